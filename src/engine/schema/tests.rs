use std::sync::Arc;

use plinth_api::Object;
use serde_json::{Value, json};

use super::*;

fn schema(json: Value) -> Schema {
    serde_json::from_value(json).unwrap()
}

/// Holds a value against a schema and gives the findings as lines.
fn findings(schema_json: Value, value: &Value) -> Vec<String> {
    validate(value, &schema(schema_json), "spec").iter().map(ToString::to_string).collect()
}

#[test]
fn a_schema_is_written_as_it_was_read() {
    let json = json!({
        "type": "object", "required": ["a"], "default": {},
        "properties": {
            "a": {"type": "array", "items": {"type": "string", "enum": ["x"]}, "x-kubernetes-list-type": "set"},
            "b": {"type": "object", "additionalProperties": {"type": "number", "minimum": 1, "maximum": 1.5}},
            "c": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "d": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "nullable": true},
            "e": {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''", "message": "m"}]}
        }
    });
    assert_eq!(serde_json::to_value(schema(json.clone())).unwrap(), json);
}

#[test]
fn every_rule_has_its_finding() {
    let object =
        json!({"type": "object", "properties": {"image": {"type": "string"}, "n": {"type": "integer"}}, "required": ["n"]});
    for (schema, value, expected) in [
        (json!({"type": "string"}), json!(1), vec!["spec: expected string, got integer"]),
        (json!({"type": "integer"}), json!(1.5), vec!["spec: expected integer, got number"]),
        (json!({"type": "integer"}), json!(1.0), vec![]),
        (json!({"type": "integer"}), json!(i64::MAX), vec![]),
        (json!({"type": "integer"}), json!(99_999_999_999_999_999_999.0_f64), vec!["spec: expected integer, got number"]),
        (json!({"type": "integer", "format": "int32"}), json!(3_000_000_000_u64), vec!["spec: 3000000000 does not fit int32"]),
        (json!({"type": "string"}), json!(null), vec!["spec: expected string, got null"]),
        (json!({"type": "string", "nullable": true}), json!(null), vec![]),
        (json!({"x-kubernetes-int-or-string": true}), json!("80%"), vec![]),
        (json!({"x-kubernetes-int-or-string": true}), json!(true), vec!["spec: expected integer or string, got boolean"]),
        (
            json!({"type": "string", "enum": ["small", "large"]}),
            json!("smal"),
            vec!["spec: \"smal\" is not one of \"small\", \"large\" (did you mean \"small\"?)"],
        ),
        (json!({"type": "string", "pattern": "^a+$"}), json!("ab"), vec!["spec: \"ab\" does not match ^a+$"]),
        (json!({"type": "string", "minLength": 2}), json!("é"), vec!["spec: has 1 characters, at least 2 are needed"]),
        (json!({"type": "number", "minimum": 2}), json!(1), vec!["spec: 1 is not at least 2"]),
        (json!({"type": "number", "maximum": 2, "exclusiveMaximum": true}), json!(2), vec!["spec: 2 is not less than 2"]),
        (json!({"type": "number", "multipleOf": 0.1}), json!(0.3), vec![]),
        (json!({"type": "array", "maxItems": 1}), json!([1, 2]), vec!["spec: has 2 elements, at most 1 are allowed"]),
        (json!({"type": "array", "x-kubernetes-list-type": "set"}), json!(["a", "a"]), vec!["spec[1]: \"a\" is there twice"]),
        (object.clone(), json!({"imag": "x", "n": 1}), vec!["spec.imag: unknown field (did you mean \"image\"?)"]),
        (object.clone(), json!({"other": "x", "n": 1}), vec!["spec.other: unknown field (fields here are image, n)"]),
        (object, json!({"image": 1}), vec!["spec.image: expected string, got integer", "spec.n: is required and missing"]),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"a.b": 1}),
            vec!["spec[\"a.b\"]: expected string, got integer"],
        ),
        (
            json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": 1, "b": 1}),
            vec!["spec: matches 2 of the forms allowed here, not exactly one (oneOf)"],
        ),
        (json!({"anyOf": [{"required": ["a"]}]}), json!({"a": 1, "z": 1}), vec![]),
        (json!({"not": {"required": ["a"]}}), json!({"a": 1}), vec!["spec: has a form that is not allowed here (not)"]),
    ] {
        assert_eq!(findings(schema.clone(), &value), expected, "{schema} {value}");
    }
}

#[test]
fn keys_of_map_lists_are_unique() {
    let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {"type": "object", "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}}});
    let value = json!([{"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP"}]);
    assert_eq!(findings(list, &value), ["spec[2]: [1,\"TCP\"] is there twice"]);
}

#[test]
fn a_hostile_value_costs_little() {
    let many: serde_json::Map<String, Value> = (0..10_000).map(|n| (format!("f{n}"), json!(1))).collect();
    assert_eq!(findings(json!({"type": "object"}), &Value::Object(many)).len(), 100);
}

#[test]
fn defaults_fill_what_is_absent() {
    let schema = schema(json!({"type": "object", "properties": {
        "a": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 1}}},
        "c": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "string", "default": "x"}}}},
        "e": {"type": "object", "properties": {"f": {"type": "string", "default": "y"}}},
        "g": {"type": "string", "default": "z", "nullable": true}
    }}));
    for (value, expected) in [
        (json!({}), json!({"a": {"b": 1}, "g": "z"})),
        (json!({"a": null, "g": null}), json!({"a": {"b": 1}, "g": null})),
        (
            json!({"a": {"b": 2}, "c": [{}, {"d": "w"}], "e": {}, "g": "q"}),
            json!({"a": {"b": 2}, "c": [{"d": "x"}, {"d": "w"}], "e": {"f": "y"}, "g": "q"}),
        ),
    ] {
        let mut filled = value.clone();
        apply_defaults(&mut filled, &schema);
        assert_eq!(filled, expected, "{value}");
        apply_defaults(&mut filled, &schema);
        assert_eq!(filled, expected, "twice");
    }
}

#[test]
fn unknown_fields_are_pruned() {
    let schema = schema(json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"in": {"type": "object"}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "raw": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}
        }},
        "metadata": {"type": "object"}
    }}));
    let value = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "extra": 1, "spec": {
        "open": {"x": 1, "in": {"y": 1}}, "list": [{"a": "1", "b": 2}], "raw": {"kind": "R", "metadata": {"name": "r"}, "more": 1}}});
    let mut object = Object::from_value(value).unwrap();
    let pruned = prune_object(&mut object, &schema);
    assert_eq!(pruned, ["extra", "spec.list[0].b", "spec.open.in.y", "spec.raw.more"]);
    assert_eq!(validate_object(&object, &schema), vec![]);
    assert_eq!(object.name(), "n");
}

#[test]
fn paths_lead_through_maps_and_lists() {
    let schema = Arc::new(schema(json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "string"}}, "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
        "labels": {"type": "object", "additionalProperties": {"type": "boolean"}}
    }})));
    let find = |path: &str| schema.at(&segments(path).unwrap());
    assert_eq!(find("spec.list[3]"), Found::Schema(Arc::new(Schema::of_type("string"))));
    assert_eq!(find("labels[\"a.b/c\"]"), Found::Schema(Arc::new(Schema::of_type("boolean"))));
    assert_eq!(find("spec.open.any[1].thing"), Found::Open);
    assert_eq!(find("spec.lst"), Found::Missing { depth: 1, names: vec!["list".into(), "open".into()] });
    for malformed in ["a[", "a[x]", "a..b", "a[\"x"] {
        assert_eq!(segments(malformed), None, "{malformed}");
    }
}
