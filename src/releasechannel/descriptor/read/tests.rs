use proptest::prelude::*;
use serde_json::json;

use super::*;

fn minimal() -> Value {
    json!({"meta": {"schemaVersion": "v2"}, "component": {"name": "acme.example/x", "version": "1.0.0", "provider": "acme.example"}})
}

fn with(pointer: &str, value: Value) -> Value {
    let mut document = minimal();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap()[key] = value;
    document
}

#[test]
fn accepts_absent_null_and_empty_lists() {
    for list in [Value::Null, json!([])] {
        let read = Descriptor::from_value(with("/component/resources", list)).unwrap();
        assert!(read.resources.is_empty());
    }
    assert_eq!(Descriptor::from_value(minimal()).unwrap().provider, "acme.example");
}

#[test]
fn reads_the_provider_in_all_its_forms() {
    for provider in [json!("a"), json!({"name": "a"}), json!("{\"name\":\"a\",\"labels\":[]}")] {
        assert_eq!(Descriptor::from_value(with("/component/provider", provider)).unwrap().provider, "a");
    }
}

#[test]
fn reads_both_schemas() {
    let v3 = json!({"apiVersion": "ocm.software/v3alpha1", "kind": "ComponentVersion", "metadata": {"name": "acme.example/x", "version": "1",
        "provider": {"name": "a"}}, "spec": {"references": [{"name": "leaf", "componentName": "acme.example/y", "version": "2"}]}});
    let read = Descriptor::from_value(v3).unwrap();
    assert_eq!((read.schema, read.references[0].version.as_str()), (Schema::V3Alpha1, "2"));
}

#[test]
fn refuses_unknown_schemas_and_bad_fields_by_path() {
    let cases = [
        (with("/meta/schemaVersion", json!("v9")), "v9"),
        (json!({"apiVersion": "x/v1", "kind": "Y"}), "x/v1"),
        (json!([]), "none"),
        (with("/component/name", json!("nodomain")), "component.name"),
        (with("/component/version", json!(1)), "component.version"),
        (with("/component/resources", json!({})), "component.resources"),
        (with("/component/resources", json!([{"name": "x"}])), "component.resources[0].type"),
        (with("/component/resources", json!([{"name": "../x", "type": "t"}])), "component.resources[0].name"),
        (with("/component/resources", json!([{"name": "x", "type": "t", "access": []}])), "component.resources[0].access"),
        (with("/component/componentReferences", json!([{"name": "x", "componentName": "y", "version": "1"}])), "componentName"),
        (with("/component/labels", json!([{"value": 1}])), "component.labels[0].name"),
    ];
    for (document, expected) in cases {
        let error = Descriptor::from_value(document).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} does not name {expected}");
    }
}

#[test]
fn reads_every_descriptor_of_the_corpus() {
    let folder = crate::testing::data().join("ocm/descriptors");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mut document: Value = text::document(&std::fs::read(&path).unwrap()).unwrap();
        // One of the two tools prints a list.
        if let Value::Array(mut list) = document {
            document = list.remove(0);
        }
        let descriptor = Descriptor::from_value(document).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(descriptor.signatures.len(), 1);
        read += 1;
    }
    assert!(read >= 13);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        "[a-z/.]{0,12}".prop_map(Value::from),
        any::<f64>().prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("(name|version|type|access|digest|labels|componentName)", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn never_panics_on_text(text in "\\PC{0,200}") {
        let _ = Descriptor::read(text.as_bytes());
    }

    #[test]
    fn never_panics_on_wrong_fields(value in json_value(), key in "(name|version|provider|labels|resources|sources|componentReferences)") {
        let _ = Descriptor::from_value(with(&format!("/component/{key}"), value.clone()));
        let _ = Descriptor::from_value(with("/component/resources", json!([value])));
    }
}
