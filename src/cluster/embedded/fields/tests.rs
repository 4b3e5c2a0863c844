use std::sync::Arc;

use plinth_api::{GroupVersionKind, Object};
use plinth_engine::schema::{Lookup, Schema, SchemaSource, builtin};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    managers::{ApplyError, Manager, Operation, applied, read, updated},
    set::{FieldSet, describe},
    typed,
};

fn schema(api_version: &str, kind: &str) -> Arc<Schema> {
    match builtin().kind(&GroupVersionKind::from_api_version(api_version, kind).unwrap()) {
        Lookup::Served(kind) => Arc::clone(&kind.schema),
        Lookup::NotServed => panic!("{kind} is not built in"),
    }
}

fn config(data: &Value) -> Object {
    Object::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})).unwrap()
}

fn by(name: &str, operation: Operation) -> Manager {
    Manager { operation, name: name.into(), api_version: "v1".into(), subresource: String::new() }
}

fn apply(stored: &Object, name: &str, data: &Value, force: bool) -> Result<Object, ApplyError> {
    applied(stored, &config(data), &schema("v1", "ConfigMap"), &by(name, Operation::Apply), force, "t")
}

fn owned(object: &Object, name: &str) -> Vec<String> {
    let managers = read(object);
    let found = managers.iter().find(|(manager, _)| manager.name == name);
    found.map(|(_, (set, _))| set.paths().iter().map(|path| describe(path)).collect()).unwrap_or_default()
}

#[test]
fn what_is_no_longer_applied_goes_unless_another_has_it() {
    let empty = config(&json!({}));
    let a = apply(&empty, "a", &json!({"x": "1", "y": "1"}), false).unwrap();
    let both = apply(&a, "b", &json!({"y": "1"}), false).unwrap();
    assert_eq!(
        (owned(&both, "a"), owned(&both, "b")),
        (vec![".data.x".to_owned(), ".data.y".into()], vec![".data.y".to_owned()])
    );
    let dropped = apply(&both, "a", &json!({"z": "1"}), false).unwrap();
    assert_eq!(dropped.0["data"], json!({"y": "1", "z": "1"}));
}

#[test]
fn fields_of_others_conflict_until_forced() {
    let a = apply(&config(&json!({})), "a", &json!({"x": "1", "y": "1"}), false).unwrap();
    let error = apply(&a, "b", &json!({"x": "2"}), false).unwrap_err();
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"a\": .data.x");
    let error = apply(&a, "b", &json!({"x": "2", "y": "2"}), false).unwrap_err();
    assert_eq!(error.to_string(), "Apply failed with 2 conflicts: conflicts with \"a\":\n- .data.x\n- .data.y");
    let forced = apply(&a, "b", &json!({"x": "2"}), true).unwrap();
    assert_eq!((owned(&forced, "a"), owned(&forced, "b")), (vec![".data.y".to_owned()], vec![".data.x".to_owned()]));
}

#[test]
fn updates_own_what_they_change() {
    let a = apply(&config(&json!({})), "a", &json!({"x": "1", "y": "1"}), false).unwrap();
    let mut new = a.clone();
    new.0["data"] = json!({"x": "2", "n": "1"});
    updated(&a, &mut new, &schema("v1", "ConfigMap"), &by("u", Operation::Update), &[], "t");
    assert_eq!(owned(&new, "u"), [".data.n", ".data.x"]);
    assert_eq!(owned(&new, "a"), Vec::<String>::new(), "x was changed and y removed");
}

#[test]
fn lists_merge_by_their_keys_in_the_applied_order() {
    let schema = schema("apps/v1", "Deployment");
    let pod = |names: &[&str]| {
        let containers: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"spec": {"template": {"spec": {"containers": containers}}}})
    };
    for (stored, applied, merged) in [
        (&["a", "b"][..], &["b", "a"][..], &["b", "a"][..]),
        (&["s", "a"], &["a", "n"], &["s", "a", "n"]),
        (&["a", "s", "b"], &["b"], &["a", "s", "b"]),
        (&["a", "s"], &["n", "a"], &["n", "a", "s"]),
        (&[], &["n"], &["n"]),
    ] {
        assert_eq!(typed::merge(&pod(stored), &pod(applied), &schema), pod(merged), "{stored:?} {applied:?}");
    }
}

#[test]
fn keys_have_the_defaults_of_the_schema() {
    let service = json!({"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}});
    let set = typed::fields(&service, &schema("v1", "Service"));
    assert_eq!(
        set.to_json(),
        json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}, "f:selector": {}}})
    );
}

#[test]
fn a_configuration_that_cannot_be_merged_is_named() {
    let schema = schema("v1", "Service");
    for (spec, message) in [
        (json!({"ports": [{"port": 80}, {"port": 80}]}), ".spec.ports: duplicate entries for key [port=80,protocol=\"TCP\"]"),
        (json!({"portz": []}), ".spec.portz: field not declared in schema"),
    ] {
        assert_eq!(typed::check(&json!({"spec": spec}), &schema).unwrap_err().to_string(), message);
    }
}

#[test]
fn broken_fields_are_no_set() {
    for fields in [json!([]), json!({"x:a": {}}), json!({"k:no": {}}), json!({"f:a": 1}), json!({"i:x": {}})] {
        assert_eq!(FieldSet::from_json(&fields), None, "{fields}");
    }
}

/// Objects with lists of all types, none of them empty: what becomes of an emptied one is in the differential table.
fn value() -> impl Strategy<Value = Value> {
    let set = prop::collection::btree_set("[a-c]", 1..3);
    let keyed = prop::collection::btree_map("[a-c]", (0..3_i32, prop::option::of(0..3_i32)), 1..3);
    let map = prop::collection::btree_map("[a-c]", "[a-c]", 1..3);
    (set, keyed, map, 0..3_i32).prop_map(|(set, keyed, map, scalar)| {
        let keyed: Vec<Value> = keyed.iter().map(|(name, (x, y))| json!({"name": name, "x": x, "y": y.unwrap_or(7)})).collect();
        json!({"set": set, "keyed": keyed, "map": map, "list": [scalar], "scalar": scalar})
    })
}

fn lists() -> Schema {
    serde_json::from_value(json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "properties": {"name": {"type": "string"}, "x": {"type": "integer"}, "y": {"type": "integer"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "integer"}},
        "scalar": {"type": "integer"}
    }}))
    .unwrap()
}

proptest! {
    #[test]
    fn sets_are_written_and_read(value in value()) {
        let set = typed::fields(&value, &lists());
        prop_assert_eq!(FieldSet::from_json(&set.to_json()), Some(set));
    }

    #[test]
    fn a_merge_has_what_was_applied_and_again_changes_nothing(old in value(), new in value()) {
        let merged = typed::merge(&old, &new, &lists());
        let again = typed::merge(&merged, &new, &lists());
        prop_assert_eq!(&merged, &again);
        let missing = typed::compare(&merged, &new, &lists());
        prop_assert!(missing.added.is_empty() && missing.modified.is_empty(), "{missing:?}");
    }

    #[test]
    fn set_algebra_holds(a in value(), b in value()) {
        let (a, b) = (typed::fields(&a, &lists()), typed::fields(&b, &lists()));
        prop_assert_eq!(a.intersection(&b).union(&a.difference(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.union(&b), b.union(&a));
    }

    #[test]
    fn two_appliers_converge(a in value(), b in value()) {
        let schema = lists();
        let object = |value: &Value| Object::from_value(value.clone()).unwrap();
        let first = applied(&Object::default(), &object(&a), &schema, &by("m", Operation::Apply), false, "t").unwrap();
        let second = applied(&first, &object(&b), &schema, &by("m", Operation::Apply), false, "t").unwrap();
        let direct = applied(&Object::default(), &object(&b), &schema, &by("m", Operation::Apply), false, "t").unwrap();
        let plain = |object: &Object| typed::fields(&object.clone().into_value(), &schema);
        prop_assert_eq!(plain(&second), plain(&direct), "one manager leaves exactly what it applies");
    }
}
