use std::sync::Arc;

use plinth_api::{Object, rgd::RgdSchema};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{change::Bound, *};
use crate::{
    schema::{
        Additional,
        crd::{Owner, generate},
    },
    testing::json_lines,
};

fn schema(json: &Value) -> Schema {
    serde_json::from_value(json.clone()).unwrap()
}

/// kro's name of a change, `None` for changes that kro does not see.
fn kros_name(kind: ChangeKind) -> Option<String> {
    use ChangeKind as Kind;
    let bound = |bound: Bound, what: &str| {
        let parted =
            |letter: char| if letter.is_ascii_uppercase() { vec!['_', letter] } else { vec![letter.to_ascii_uppercase()] };
        Some(format!("{}_{what}", bound.keyword().chars().flat_map(parted).collect::<String>()))
    };
    let name = match kind {
        Kind::PropertyRemoved => "PROPERTY_REMOVED",
        Kind::PropertyAdded => "PROPERTY_ADDED",
        Kind::RequiredAdded => "REQUIRED_ADDED",
        Kind::RequiredRemoved => "REQUIRED_REMOVED",
        Kind::RequiredDefaultRemoved => "REQUIRED_DEFAULT_REMOVED",
        Kind::TypeChanged => "TYPE_CHANGED",
        Kind::DescriptionChanged => "DESCRIPTION_CHANGED",
        Kind::DefaultChanged => "DEFAULT_CHANGED",
        Kind::PatternAdded => "PATTERN_ADDED",
        Kind::PatternChanged => "PATTERN_CHANGED",
        Kind::PatternRemoved => "PATTERN_REMOVED",
        Kind::EnumRestricted => "ENUM_RESTRICTED",
        Kind::EnumExpanded => "ENUM_EXPANDED",
        Kind::BoundAdded(which) => return bound(which, "ADDED"),
        Kind::BoundRemoved(which) => return bound(which, "REMOVED"),
        Kind::BoundTightened(which) => return bound(which, if which.is_lower() { "INCREASED" } else { "DECREASED" }),
        Kind::BoundRelaxed(which) => return bound(which, if which.is_lower() { "DECREASED" } else { "INCREASED" }),
        _ => return None,
    };
    Some(name.to_owned())
}

/// Changes as kro prints them, without those it does not see.
fn as_kro(changes: &[Change]) -> Value {
    let seen = changes.iter().filter(|change| !change.path.contains("additionalProperties"));
    let seen = seen.filter_map(|change| Some((kros_name(change.kind)?, change)));
    seen.map(|(name, change)| json!({"Path": change.path, "ChangeType": name, "OldValue": change.old, "NewValue": change.new}))
        .collect()
}

#[test]
fn show_03_compatibility() {
    let inputs = json_lines("kro/vectors/compat.in.jsonl");
    let outputs = json_lines("kro/vectors/compat.out.jsonl");
    for (input, output) in inputs.iter().zip(&outputs) {
        let changes = compare(&schema(&input["old"]), &schema(&input["new"]));
        assert_eq!(as_kro(&changes.breaking), output["breaking"], "{}", input["id"]);
        assert_eq!(as_kro(&changes.compatible), output["nonBreaking"], "{}", input["id"]);
        // kro calls a new required field optional.
        let words = output["summary"]
            .as_str()
            .unwrap()
            .replace("Optional property b was added", "Required property b was added without a default");
        if output["breaking"] != json!([]) {
            assert_eq!(changes.summary(), words, "{}", input["id"]);
        }
        assert_eq!(changes.is_empty(), input["old"] == input["new"], "{}", input["id"]);
    }
    println!("SHOW 03 compatibility {}/{}", outputs.len(), inputs.len());
}

/// Found by holding 60 000 random pairs against kro's own library.
#[test]
fn a_field_that_becomes_required_breaks_with_a_default_too() {
    let field = json!({"type": "integer", "default": 1});
    let old = json!({"type": "object", "properties": {"a": field}});
    let new = json!({"type": "object", "properties": {"a": field}, "required": ["a"]});
    assert_eq!(compare(&schema(&old), &schema(&new)).summary(), "Field a is newly required");
    let retyped = json!({"type": "object", "properties": {"a": {"type": "string", "default": "x", "description": "d"}}});
    let changes = as_kro(&compare(&schema(&old), &schema(&retyped)).compatible);
    let kinds: Vec<_> = changes.as_array().unwrap().iter().map(|change| change["ChangeType"].clone()).collect();
    assert_eq!(kinds, ["DESCRIPTION_CHANGED", "DEFAULT_CHANGED"]);
}

#[test]
fn what_kro_does_not_see_is_seen() {
    for (old, new, words) in [
        (json!({"type": "string"}), json!({"type": "string", "enum": ["a", "b"]}), "Values were restricted to \"a\", \"b\""),
        (json!({"type": "string", "enum": ["a"]}), json!({"type": "string"}), "no breaking changes"),
        (
            json!({"type": "string"}),
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "r"}]}),
            "Validation rule r was added",
        ),
        (
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "r"}]}),
            json!({"type": "string"}),
            "no breaking changes",
        ),
        (
            json!({"type": "array"}),
            json!({"type": "array", "x-kubernetes-list-type": "set"}),
            "List type changed from none to set",
        ),
        (json!({"type": "array", "x-kubernetes-list-type": "set"}), json!({"type": "array"}), "no breaking changes"),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            "Type changed from string to integer",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object"}),
            "Fields of any name are no longer allowed",
        ),
        (
            json!({"type": "object"}),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            "no breaking changes",
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "object"}),
            "Unknown fields are no longer kept",
        ),
        (json!({"type": "string"}), json!({"type": "string", "format": "byte"}), "Format changed from none to byte"),
        (json!({"type": "string", "nullable": true}), json!({"type": "string"}), "null is no longer allowed"),
        (json!({"type": "string"}), json!({"x-kubernetes-int-or-string": true}), "no breaking changes"),
    ] {
        let changes = compare(&schema(&old), &schema(&new));
        assert_eq!(changes.summary(), words, "{old} {new}");
        assert!(!changes.is_empty(), "{old} {new}");
    }
}

#[test]
fn many_changes_are_counted() {
    let properties = |names: &[&str]| Schema::object(names.iter().map(|name| ((*name).to_owned(), Schema::of_type("string"))));
    let changes = compare(&properties(&["a", "b", "c", "d", "e"]), &properties(&[]));
    assert_eq!(changes.summary(), "Property a was removed; Property b was removed; Property c was removed; and 2 more changes");
}

fn crd(extra: &Value, spec: Schema, status: Schema) -> Object {
    let mut schema = json!({"apiVersion": "v1", "kind": "Web"});
    schema.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let schema: RgdSchema = serde_json::from_value(schema).unwrap();
    generate(Owner { name: "web", uid: "u", platform: None }, &schema, spec, status)
}

#[test]
fn crds_are_compared_in_what_we_write() {
    let text = || Schema::object([("a".to_owned(), Schema::of_type("string"))]);
    let old = crd(&json!({}), text(), Schema::default());
    let mut served = old.clone();
    served.0["metadata"]["labels"]["other"] = json!("x");
    served.0["spec"]["conversion"] = json!({"strategy": "None"});
    assert!(compare_crds(&served, &old).is_empty());
    for (extra, spec, breaking, compatible) in [
        (json!({"scope": "Cluster"}), text(), "Scope changed from Namespaced to Cluster", 0),
        (json!({"apiVersion": "v2"}), text(), "Version v1 was removed", 1),
        (json!({"shortNames": ["w"]}), text(), "no breaking changes", 1),
        (
            json!({"additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}]}),
            text(),
            "no breaking changes",
            1,
        ),
        (json!({"metadata": {"labels": {"team": "a"}}}), text(), "no breaking changes", 1),
        (json!({}), Schema::object([]), "Property a was removed", 0),
    ] {
        let changes = compare_crds(&served, &crd(&extra, spec, Schema::default()));
        assert_eq!((changes.summary().as_str(), changes.compatible.len()), (breaking, compatible), "{extra}");
    }
}

#[test]
fn a_status_that_was_open_may_be_described_later() {
    let status = |field: Schema| crd(&json!({}), Schema::default(), Schema::object([("url".to_owned(), field)]));
    let open = status(Schema::any());
    let changes = compare_crds(&open, &status(Schema::of_type("string")));
    assert_eq!((changes.breaking.len(), changes.compatible.len()), (0, 1), "{changes:?}");
    let retyped = compare_crds(&status(Schema::of_type("string")), &status(Schema::of_type("integer")));
    assert_eq!(retyped.breaking[0].path, ".properties.status.properties.url.type");
}

fn any_schema() -> impl Strategy<Value = Schema> {
    let leaf =
        ("string|integer", prop::option::of("[ab]"), prop::bool::ANY, prop::option::of(0..3_i64), prop::option::of(0..3_u8))
            .prop_map(|(kind, pattern, nullable, min_length, minimum)| Schema {
                pattern,
                nullable,
                min_length,
                minimum: minimum.map(f64::from),
                ..Schema::of_type(kind)
            });
    leaf.prop_recursive(3, 12, 3, |inner| {
        let fields = prop::collection::btree_map("[a-c]", inner.clone().prop_map(Arc::new), 0..3);
        (fields, prop::option::of(inner), prop::bool::ANY, prop::collection::vec("[a-c]", 0..2)).prop_map(
            |(properties, values, preserve_unknown_fields, required)| Schema {
                properties,
                additional_properties: values.map(|values| Additional::Schema(Arc::new(values))),
                preserve_unknown_fields,
                required,
                ..Schema::of_type("object")
            },
        )
    })
}

proptest! {
    #[test]
    fn no_difference_is_overlooked(old in any_schema(), new in any_schema()) {
        prop_assert!(compare(&old, &old).is_empty());
        let same = old == new || (old.kind == new.kind && sorted(&old) == sorted(&new));
        prop_assert_eq!(compare(&old, &new).is_empty(), same);
        prop_assert_eq!(compare_status(&old, &new).is_empty(), same);
    }
}

/// Order and repetition of required names mean nothing.
fn sorted(schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    schema.required.sort();
    schema.required.dedup();
    schema.properties.values_mut().for_each(|inner| *inner = Arc::new(sorted(inner)));
    if let Some(Additional::Schema(values)) = &mut schema.additional_properties {
        *values = Arc::new(sorted(values));
    }
    schema
}
