//! Rules of single kinds that no schema says.

use std::{collections::BTreeSet, sync::Arc};

use plinth_api::Object;
use plinth_engine::schema::Schema;
use serde_json::{Value, json};

use super::{
    kinds::Served,
    names::{Rule, finalizer_fault, name_fault},
    problem::FieldFault,
    validations::{BadRule, Rules},
};

/// What is wrong with an object by the rules of its kind; `old` is the one it replaces.
pub fn check(object: &Object, old: Option<&Object>, served: &Served) -> Vec<FieldFault> {
    let mut faults = match (served.group.as_str(), served.plural.as_str()) {
        ("apps", "deployments" | "statefulsets" | "daemonsets" | "replicasets") => selector(object, old),
        ("", "namespaces") if old.is_none() => finalizers(object),
        ("", "configmaps") => immutable(object, old, &["data", "binaryData"]),
        ("", "secrets") => {
            let mut faults = immutable(object, old, &["data"]);
            if let Some(old) = old
                && old.0.get("type") != object.0.get("type")
            {
                faults.push(unchanged("type", object.0.get("type").unwrap_or(&Value::Null)));
            }
            faults
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => role(object, old),
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition(object, old),
        _ => Vec::new(),
    };
    faults.truncate(100);
    faults
}

fn fault(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> FieldFault {
    FieldFault { reason, field: field.into(), message: message.into() }
}

fn unchanged(field: &str, value: &Value) -> FieldFault {
    fault("FieldValueInvalid", field, format!("Invalid value: {value}: field is immutable"))
}

/// What a namespace waits for is looked at when it is made.
fn finalizers(object: &Object) -> Vec<FieldFault> {
    let names = object.spec()["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.filter_map(|name| finalizer_fault(name, "spec.finalizers")).collect()
}

fn selector(object: &Object, old: Option<&Object>) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    let selector = &object.spec()["selector"];
    let labels = &object.spec()["template"]["metadata"]["labels"];
    let wanted = selector["matchLabels"].as_object();
    if selector.is_null() || wanted.is_some_and(|wanted| wanted.iter().any(|(name, value)| labels.get(name) != Some(value))) {
        let shown = if labels.is_null() { "null".to_owned() } else { labels.to_string() };
        let message = format!("Invalid value: {shown}: `selector` does not match template `labels`");
        faults.push(fault("FieldValueInvalid", "spec.template.metadata.labels", message));
    }
    if old.is_some_and(|old| old.spec()["selector"] != *selector) {
        faults.push(unchanged("spec.selector", selector));
    }
    let containers = object.spec()["template"]["spec"]["containers"].as_array();
    if containers.is_some_and(Vec::is_empty) {
        faults.push(fault("FieldValueRequired", "spec.template.spec.containers", "Required value"));
    }
    for (index, container) in containers.into_iter().flatten().enumerate() {
        for field in ["name", "image"] {
            if container[field].as_str().unwrap_or_default().is_empty() {
                faults.push(fault(
                    "FieldValueRequired",
                    format!("spec.template.spec.containers[{index}].{field}"),
                    "Required value",
                ));
            }
        }
    }
    faults
}

fn immutable(object: &Object, old: Option<&Object>, fields: &[&str]) -> Vec<FieldFault> {
    let Some(old) = old.filter(|old| old.0.get("immutable") == Some(&json!(true))) else { return Vec::new() };
    let changed = |name: &&&str| old.0.get(**name) != object.0.get(**name);
    let mut faults = Vec::new();
    if object.0.get("immutable") != Some(&json!(true)) {
        faults.push(fault("FieldValueForbidden", "immutable", "Forbidden: field is immutable when `immutable` is set"));
    }
    let changed = fields.iter().filter(changed);
    faults
        .extend(changed.map(|name| fault("FieldValueForbidden", *name, "Forbidden: field is immutable when `immutable` is set")));
    faults
}

fn role(object: &Object, old: Option<&Object>) -> Vec<FieldFault> {
    let role = object.0.get("roleRef");
    if old.is_none_or(|old| old.0.get("roleRef") == role) {
        return Vec::new();
    }
    let role = role.unwrap_or(&Value::Null);
    vec![fault("FieldValueInvalid", "roleRef", format!("Invalid value: {role}: cannot change roleRef"))]
}

fn definition(object: &Object, old: Option<&Object>) -> Vec<FieldFault> {
    let mut faults = old.map_or_else(Vec::new, |old| kept(object, old));
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let expected = format!("{}.{}", text(&["spec", "names", "plural"]), text(&["spec", "group"]));
    if object.name() != expected && old.is_none() {
        let message = format!("Invalid value: {:?}: must be spec.names.plural+\".\"+spec.group", object.name());
        faults.push(fault("FieldValueInvalid", "metadata.name", message));
    }
    for (path, field) in [(["spec", "group"], "spec.group"), (["spec", "scope"], "spec.scope")] {
        if text(&path).is_empty() {
            faults.push(fault("FieldValueRequired", field, "Required value"));
        }
    }
    let versions = object.at(&["spec", "versions"]).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    faults.extend(versions_of(object, versions));
    for (index, version) in versions.iter().enumerate() {
        let shared = versions.iter().all(|other| other["schema"] == version["schema"]) && !version["schema"].is_null();
        if shared && index > 0 {
            break;
        }
        // The API server keeps a schema that all versions have in common in one place, and says so.
        let at = if shared {
            "spec.validation.openAPIV3Schema".to_owned()
        } else {
            format!("spec.versions[{index}].schema.openAPIV3Schema")
        };
        match version.pointer("/schema/openAPIV3Schema") {
            None => faults.push(fault("FieldValueRequired", at, "Required value")),
            Some(schema) => {
                structural(schema, &at, true, &mut faults);
                faults.extend(expressions(schema, &at));
            }
        }
    }
    faults
}

/// What a CRD keeps: its group and plural always, and what says where its objects are once it is served.
fn kept(object: &Object, old: &Object) -> Vec<FieldFault> {
    let conditions = old.status()["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_established = conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    let served: &[&str] = if is_established { &["scope", "names.kind"] } else { &[] };
    let changed = served.iter().chain(&["group", "names.plural"]).filter_map(|path| {
        let pointer = format!("/{}", path.replace('.', "/"));
        let value = |object: &Object| object.spec().pointer(&pointer).cloned().unwrap_or(json!(""));
        (value(object) != value(old)).then(|| unchanged(&format!("spec.{path}"), &value(object)))
    });
    changed.collect()
}

/// Names of versions, and in which of them objects are stored.
fn versions_of(object: &Object, versions: &[Value]) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    let all = &object.spec()["versions"];
    let names: Vec<&str> = versions.iter().map(|version| version["name"].as_str().unwrap_or_default()).collect();
    for (index, name) in names.iter().enumerate() {
        let Some(why) = name_fault(name, Rule::Label1035) else { continue };
        let field = format!("spec.versions[{index}].name");
        // The first one is the version of old, too.
        let also = (index == 0).then(|| "spec.version".to_owned());
        let told = also.into_iter().chain([field]);
        faults.extend(told.map(|field| fault("FieldValueInvalid", field, format!("Invalid value: {name:?}: {why}"))));
    }
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        faults.push(fault(
            "FieldValueInvalid",
            "spec.versions",
            format!("Invalid value: {all}: must contain unique version names"),
        ));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let message = format!("Invalid value: {all}: must have exactly one version marked as storage version");
        faults.push(fault("FieldValueInvalid", "spec.versions", message));
    }
    let stored = object.status()["storedVersions"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, name) in stored.iter().enumerate().filter(|(_, name)| !names.iter().any(|known| *name == known)) {
        let text = name.as_str().unwrap_or_default();
        let message = format!(
            "Invalid value: {name}: missing from spec.versions; {text} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {text} and removes {text} from status.storedVersions"
        );
        faults.push(fault("FieldValueInvalid", format!("status.storedVersions[{index}]"), message));
    }
    faults
}

/// CEL rules that are none.
fn expressions(schema: &Value, at: &str) -> Vec<FieldFault> {
    let Ok(schema) = serde_json::from_value::<Schema>(schema.clone()) else { return Vec::new() };
    let told = |bad: BadRule| fault(bad.reason, format!("{at}{}", bad.path), bad.message);
    Rules::of(&Arc::new(schema)).1.into_iter().map(told).collect()
}

/// What makes a schema structural, as far as authors get it wrong.
fn structural(schema: &Value, at: &str, root: bool, faults: &mut Vec<FieldFault>) {
    let open = schema["x-kubernetes-preserve-unknown-fields"] == true || schema["x-kubernetes-int-or-string"] == true;
    match schema["type"].as_str() {
        None | Some("") if root => {
            faults.push(fault("FieldValueRequired", format!("{at}.type"), "Required value: must not be empty at the root"));
        }
        None | Some("") if !open => {
            faults.push(fault(
                "FieldValueRequired",
                format!("{at}.type"),
                "Required value: must not be empty for specified object fields",
            ));
        }
        _ => {}
    }
    if schema["x-kubernetes-list-type"] == "map" && schema["x-kubernetes-list-map-keys"].as_array().is_none_or(Vec::is_empty) {
        let message = "Required value: must not be empty if x-kubernetes-list-type is map";
        faults.push(fault("FieldValueRequired", format!("{at}.x-kubernetes-list-map-keys"), message));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        structural(property, &format!("{at}.properties[{name}]"), false, faults);
    }
    if schema["items"].is_object() {
        structural(&schema["items"], &format!("{at}.items"), false, faults);
    }
    if schema["additionalProperties"].is_object() {
        structural(&schema["additionalProperties"], &format!("{at}.additionalProperties"), false, faults);
    }
}
