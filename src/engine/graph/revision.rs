//! Revisions of a definition: their hash and their names (kro.md section 17).

use serde_json::{Map, Value};

use crate::naming::{fnv32a, fnv64a};

/// Longest name of an object.
const LONGEST: usize = 253;

/// The hash of a definition's `spec` as kro computes it: equal for specs that differ only in the order of resources, of
/// conditions or of keys. Hexadecimal.
pub fn spec_hash(spec: &Value) -> String {
    let mut parts = vec![("schema", schema(&spec["schema"]))];
    let mut resources: Vec<&Value> = spec["resources"].as_array().into_iter().flatten().collect();
    resources.sort_by_key(|resource| resource["id"].as_str().unwrap_or_default());
    if !resources.is_empty() {
        parts.push(("resources", list(resources.into_iter().map(resource))));
    }
    format!("{:016x}", fnv64a(&object(parts)))
}

/// The name of a definition's revision.
pub fn revision_name(definition: &str, revision: i64) -> String {
    let end = format!("-r{revision:05}");
    if definition.len() + end.len() <= LONGEST {
        return format!("{definition}{end}");
    }
    let end = format!("{end}-{:08x}", fnv32a(definition));
    let kept: String = definition.chars().take_while(char::is_ascii).take(LONGEST - end.len()).collect();
    match kept.trim_end_matches(['.', '-']) {
        "" => format!("gr{end}"),
        kept => format!("{kept}{end}"),
    }
}

/// Fields in the order in which kro's own type has them.
fn schema(schema: &Value) -> String {
    let or = |name: &str, other: &str| json(schema.get(name).filter(|value| !value.is_null()).unwrap_or(&Value::from(other)));
    let mut parts = vec![("kind", or("kind", "")), ("apiVersion", or("apiVersion", "")), ("group", or("group", "kro.run"))];
    parts.extend(["spec", "types", "status"].map(|name| (name, json(&schema[name]))));
    parts.push(("scope", or("scope", "Namespaced")));
    let columns = schema["additionalPrinterColumns"].as_array().filter(|columns| !columns.is_empty());
    parts.extend(columns.map(|columns| ("additionalPrinterColumns", list(columns.iter().map(column)))));
    parts.extend(filled(schema, &["shortNames", "categories"]));
    if let Some(metadata) = schema.get("metadata").filter(|metadata| !metadata.is_null()) {
        parts.push(("metadata", object(filled(metadata, &["labels", "annotations"]))));
    }
    object(parts)
}

fn column(column: &Value) -> String {
    object(filled(column, &["name", "type", "format", "description", "priority", "jsonPath"]))
}

fn resource(resource: &Value) -> String {
    let mut parts = vec![("id", json(&resource["id"])), ("template", json(&resource["template"]))];
    if let Some(reference) = resource.get("externalRef").filter(|reference| !reference.is_null()) {
        let metadata = &reference["metadata"];
        let mut identity = filled(metadata, &["name", "namespace"]);
        identity.push(("selector", json(&metadata["selector"])));
        let parts_of = [("apiVersion", json(&reference["apiVersion"])), ("kind", json(&reference["kind"]))];
        parts.push(("externalRef", object(parts_of.into_iter().chain([("metadata", object(identity))]))));
    }
    for name in ["readyWhen", "includeWhen"] {
        let mut conditions: Vec<&str> = resource[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        conditions.sort_unstable();
        if !conditions.is_empty() {
            parts.push((name, json(&Value::from(conditions))));
        }
    }
    parts.extend(filled(resource, &["forEach", "target"]));
    object(parts)
}

/// The fields among these that say something.
fn filled<'n>(value: &Value, names: &[&'n str]) -> Vec<(&'n str, String)> {
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(_) => true,
    };
    names.iter().filter(|name| says(&value[**name])).map(|name| (*name, json(&value[*name]))).collect()
}

fn object<'n>(parts: impl IntoIterator<Item = (&'n str, String)>) -> String {
    let parts: Vec<String> = parts.into_iter().map(|(name, value)| format!("{name:?}:{value}")).collect();
    format!("{{{}}}", parts.join(","))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// JSON with sorted keys, escaped as Go's encoder does.
fn json(value: &Value) -> String {
    crate::cel::go_escaped(&sorted(value).to_string())
}

/// Keys in order, whatever order the map keeps.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            Value::Object(fields.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect::<Map<_, _>>())
        }
        Value::Array(list) => Value::Array(list.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        testing::{data, json_lines},
        yaml,
    };

    /// The hash that kro gave each definition it accepted.
    #[test]
    fn show_03_revision_hash() {
        let verdicts = json_lines("kro/verdicts.jsonl");
        let (mut count, mut wrong) = (0, Vec::new());
        for verdict in verdicts.iter().filter(|verdict| verdict["hash"].is_string()) {
            let path = verdict["path"].as_str().unwrap();
            let documents =
                yaml::documents_with_duplicates(&std::fs::read_to_string(data(&format!("kro/{path}"))).unwrap()).unwrap();
            let definition = documents.iter().find(|document| document.value["kind"] == "ResourceGraphDefinition").unwrap();
            count += 1;
            if verdict["hash"] != spec_hash(&definition.value["spec"]) {
                wrong.push(path);
            }
        }
        println!("SHOW 03 revision-hash {}/{count}", count - wrong.len());
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn order_without_meaning_changes_no_hash() {
        let spec = |ids: [&str; 2], ready: [&str; 2]| {
            let resource = |id: &str| json!({"id": id, "template": {"b": 1, "a": "<&>"}, "readyWhen": ready});
            json!({"schema": {"kind": "A", "apiVersion": "v1"}, "resources": [resource(ids[0]), resource(ids[1])]})
        };
        let hash = spec_hash(&spec(["x", "y"], ["1", "2"]));
        assert_eq!(hash, spec_hash(&spec(["y", "x"], ["2", "1"])));
        assert_ne!(hash, spec_hash(&spec(["x", "z"], ["1", "2"])));
        assert_eq!(spec_hash(&Value::Null).len(), 16);
    }

    #[test]
    fn names_fit() {
        assert_eq!((revision_name("app", 1), revision_name("app", 123_456)), ("app-r00001".into(), "app-r123456".into()));
        let (one, other) = (revision_name(&"a".repeat(250), 2), revision_name(&"a".repeat(251), 2));
        assert!(one.len() == LONGEST && other.len() == LONGEST && one != other, "{one} {other}");
        assert!(
            revision_name(&format!("{}.{}", "a".repeat(236), "b".repeat(16)), 1)
                .starts_with(&format!("{}-r00001-", "a".repeat(236)))
        );
    }
}
