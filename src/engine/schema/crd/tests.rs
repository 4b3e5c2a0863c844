use std::path::{Path, PathBuf};

use plinth_api::{Object, rgd::RgdSpec};
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    schema::{Schema, apply_object_defaults, prune_object, validate_object},
    simpleschema,
    testing::recorded,
    yaml,
};

/// The file that a golden CRD was made from: `__` stands for `/`, and the first folder is left out.
fn source(golden: &str) -> Option<PathBuf> {
    let root = recorded("kro")?;
    let (folder, rest) = golden.split_once("__")?;
    let file = match folder {
        "integration" | "unit" => format!("go/{folder}/{rest}.json"),
        _ => {
            let path = golden.replace("__", "/");
            match path.rsplit_once(".md-") {
                Some((page, fence)) => format!("yaml/{page}.md#{fence}.yaml"),
                None => format!("yaml/{path}.yaml"),
            }
        }
    };
    Some(root.join(file)).filter(|path| path.exists())
}

/// The definition whose kind the golden CRD has; a file may hold several.
fn definition(file: &Path, kind: &Value) -> Option<(String, RgdSpec)> {
    let text = std::fs::read_to_string(file).unwrap();
    let rgds = yaml::documents_with_duplicates(&text).unwrap().into_iter().map(|document| document.value);
    let rgd = rgds.into_iter().find(|rgd| rgd["spec"]["schema"]["kind"] == *kind)?;
    let name = rgd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Some((name, serde_json::from_value(rgd["spec"].clone()).unwrap()))
}

/// What a golden file keeps of a CRD; descriptions of kro's own columns apart.
fn comparable(crd: &Object, own_columns: bool) -> Value {
    let keys =
        |name: &str| crd.at(&["metadata", name]).and_then(Value::as_object).map(|map| map.keys().cloned().collect::<Vec<_>>());
    let spec = &crd.0["spec"];
    let mut value = json!({
        "crd": crd.name(), "labels": keys("labels"), "annotations": keys("annotations"),
        "names": spec["names"], "scope": spec["scope"], "versions": spec["versions"],
    });
    if own_columns {
        drop_column_descriptions(&mut value);
    }
    value
}

fn drop_column_descriptions(value: &mut Value) {
    for version in value["versions"].as_array_mut().unwrap() {
        for column in version["additionalPrinterColumns"].as_array_mut().into_iter().flatten() {
            column.as_object_mut().unwrap().remove("description");
        }
    }
}

/// Our CRD for a golden one; the status that CEL types give is taken from the golden one, without the fields we add.
fn ours(golden: &Value, name: &str, spec: &RgdSpec) -> Object {
    let built = simpleschema::build(&spec.schema.spec, &spec.schema.types).unwrap().schema;
    let mut status: Schema =
        serde_json::from_value(golden["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"].clone()).unwrap();
    for (field, inferred) in [("state", "state"), ("conditions", "conditions")] {
        if !spec.schema.status.contains_key(inferred) || field == "conditions" {
            status.properties.remove(field);
        }
    }
    generate(Owner { name, uid: "u", platform: None }, &spec.schema, built, status)
}

#[test]
fn show_03_crds() {
    let Some(folder) = recorded("kro/golden-crds") else { return };
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let (mut equal, mut kept_back) = (0, Vec::new());
    let all = names.len();
    for path in names {
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut golden: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let Some((name, spec)) = source(&stem).and_then(|file| definition(&file, &golden["names"]["kind"])) else {
            kept_back.push(stem);
            continue;
        };
        let own_columns = spec.schema.additional_printer_columns.is_empty();
        if own_columns {
            drop_column_descriptions(&mut golden);
        }
        assert_eq!(comparable(&ours(&golden, &name, &spec), own_columns), golden, "{stem}");
        equal += 1;
    }
    println!("SHOW 03 crds {equal}/{all} (no source for {})", kept_back.join(", "));
    assert!(equal * 10 >= all * 9, "too few sources: {kept_back:?}");
}

/// All YAML files below a folder.
fn yaml_files(folder: PathBuf) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![folder], Vec::new());
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn published_crds_are_read() {
    let folders = ["openmcp", "kro/crds", "kro/cases", "krop", "kcp/crds"].map(recorded);
    let (mut crds, mut count) = (0, 0);
    for file in folders.into_iter().flatten().flat_map(yaml_files) {
        // Some files in the corpus are templates and no YAML.
        let Ok(documents) = yaml::documents(&std::fs::read_to_string(&file).unwrap()) else { continue };
        let objects = documents.into_iter().filter_map(|document| Object::from_value(document.value));
        for crd in objects.filter(|object| object.0.get("kind") == Some(&json!("CustomResourceDefinition"))) {
            let kinds = kinds(&crd).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert!(kinds.iter().all(|kind| kind.schema.field("metadata").is_some()));
            crds += 1;
            count += kinds.len();
        }
    }
    println!("{count} kinds of {crds} published CRDs");
}

/// What kro's API server stored is right by our reading of the same CRD.
#[test]
fn recorded_instances_are_valid() {
    let Some(folder) = recorded("kro/golden-instances") else { return };
    let mut valid = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let golden: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let Some(crd) = recorded(&format!("kro/golden-crds/{stem}.json")) else { continue };
        let crd: Value = serde_json::from_str(&std::fs::read_to_string(crd).unwrap()).unwrap();
        let schema: Schema = serde_json::from_value(crd["versions"][0]["schema"]["openAPIV3Schema"].clone()).unwrap();
        let (Some(mut input), Some(stored)) =
            (Object::from_value(golden["input"].clone()), Object::from_value(golden["instance"].clone()))
        else {
            continue;
        };
        prune_object(&mut input, &schema);
        apply_object_defaults(&mut input, &schema);
        assert_eq!(input.0.get("spec"), stored.0.get("spec"), "{stem}");
        let findings = validate_object(&input, &schema);
        assert!(findings.is_empty(), "{stem}: {findings:?}");
        valid += 1;
    }
    println!("{valid} recorded instances pruned, defaulted and valid as the API server had them");
}

fn rgd_schema(extra: &Value) -> plinth_api::rgd::RgdSchema {
    let mut schema = json!({"apiVersion": "v1alpha1", "kind": "Web"});
    schema.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    serde_json::from_value(schema).unwrap()
}

#[test]
fn identity_is_ours_and_wins() {
    let schema = rgd_schema(&json!({"metadata": {"labels": {"kro.run/owned": "no", "team": "a"}, "annotations": {"b": "c"}}}));
    let crd = generate(Owner { name: "web", uid: "", platform: None }, &schema, Schema::default(), Schema::default());
    let version = format!("plinth-{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        crd.0["metadata"]["labels"],
        json!({
            "kro.run/owned": "true", "kro.run/kro-version": version, "kro.run/resource-graph-definition-name": "web", "team": "a"
        })
    );
    assert_eq!(crd.name(), "webs.kro.run");
}

#[test]
fn a_generated_crd_is_read_back_with_its_metadata_described() {
    let schema = rgd_schema(&json!({"scope": "Cluster", "group": "g.io"}));
    let spec = simpleschema::build(&serde_json::from_value(json!({"image": "string | required=true"})).unwrap(), &Map::new())
        .unwrap()
        .schema;
    let crd = generate(Owner { name: "web", uid: "u", platform: None }, &schema, spec, Schema::open_object());
    let kinds = kinds(&crd).unwrap();
    let [kind] = kinds.as_slice() else { panic!("{kinds:?}") };
    assert_eq!((kind.gvk.to_string().as_str(), kind.plural.as_str(), kind.namespaced), ("Web.g.io/v1alpha1", "webs", false));
    assert!(kind.schema.field("metadata").unwrap().field("labels").is_some());
    let instance = Object::from_value(
        json!({"apiVersion": "g.io/v1alpha1", "kind": "Web", "metadata": {"name": "w"}, "spec": {"imge": "x"}}),
    )
    .unwrap();
    let findings: Vec<String> = validate_object(&instance, &kind.schema).iter().map(ToString::to_string).collect();
    assert_eq!(findings, ["spec.imge: unknown field (did you mean \"image\"?)", "spec.image: is required and missing"]);
}

#[test]
fn columns_are_written_as_they_are_stored() {
    let column = json!({"name": "A", "type": "string", "jsonPath": ".spec.a", "priority": 0, "description": ""});
    let crd = generate(
        Owner { name: "w", uid: "", platform: None },
        &rgd_schema(&json!({"additionalPrinterColumns": [column]})),
        Schema::default(),
        Schema::default(),
    );
    assert_eq!(
        crd.0["spec"]["versions"][0]["additionalPrinterColumns"],
        json!([{"name": "A", "type": "string", "jsonPath": ".spec.a"}])
    );
}

#[test]
fn embedded_objects_are_described_too() {
    let crd = json!({"metadata": {"name": "xs.g"}, "spec": {"group": "g", "scope": "Namespaced", "names": {"kind": "X", "plural": "xs"}, "versions": [
        {"name": "v1", "served": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"list": {"type": "array", "items":
            {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}}}}},
        {"name": "v2", "served": false}
    ]}});
    let kinds = kinds(&Object::from_value(crd).unwrap()).unwrap();
    assert_eq!(kinds.len(), 1);
    let item = kinds[0].schema.field("list").unwrap().items.as_ref().unwrap();
    assert!(item.field("metadata").unwrap().field("name").is_some());
}

#[test]
fn a_broken_crd_is_named() {
    for (crd, words) in [
        (json!({"metadata": {"name": "xs.g"}}), "reading CustomResourceDefinition xs.g: spec.group is missing"),
        (
            json!({"metadata": {"name": "xs.g"}, "spec": {"group": "g", "scope": "Cluster", "names": {"kind": "X", "plural": "xs"}}}),
            "spec.versions is missing",
        ),
    ] {
        let error = kinds(&Object::from_value(crd).unwrap()).unwrap_err().to_string();
        assert!(error.ends_with(words), "{error}");
    }
}
