//! What to do with the CustomResourceDefinition of a graph. Pure.
//!
//! Invariant: a refused change changes nothing at all; the caller asks before it publishes a graph (kro.md section 16, 3).

use plinth_api::Object;
use plinth_engine::{
    naming::{keys, label_value},
    schema::compat::{self, Change, Changes},
};
use serde_json::Value;

use crate::conditions;

/// The next step for a CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is as wanted.
    Keep,
    /// It is to be written: it is new, or it changes compatibly, or a breaking change is permitted.
    Write {
        /// What breaks, where a breaking change was permitted.
        breaking: Option<String>,
    },
    /// It may not be written.
    Refuse(String),
}

/// Compares the CRD there is with the one that the definition `rgd` wants, or that whose CRD it was, where that is gone.
pub fn step(live: Option<&Object>, wanted: &Object, rgd: &str, allow_breaking: bool) -> Step {
    let Some(live) = live else { return Step::Write { breaking: None } };
    if let Some(refusal) = foreign(live, rgd) {
        return Step::Refuse(refusal);
    }
    let changes = compat::compare_crds(live, wanted);
    if changes.breaking.is_empty() {
        return if is_as_wanted(live, wanted) { Step::Keep } else { Step::Write { breaking: None } };
    }
    let words = words(&changes);
    if allow_breaking {
        return Step::Write { breaking: Some(words) };
    }
    let hint = format!("to let them through, annotate the definition with {}=true", keys::ALLOW_BREAKING_CHANGES);
    Step::Refuse(format!("cannot update CRD {}: breaking changes detected: {words} ({hint})", wanted.name()))
}

/// The breaking changes in kro's words, each with its field: the first three, and how many more there are.
fn words(changes: &Changes) -> String {
    const SHOWN: usize = 3;
    let words = |change: &Change| match field(&change.path) {
        field if field.is_empty() => change.summary(),
        field => format!("{} (at {field})", change.summary()),
    };
    let mut parts: Vec<String> = changes.breaking.iter().take(SHOWN).map(words).collect();
    if changes.breaking.len() > SHOWN {
        parts.push(format!("and {} more changes", changes.breaking.len() - SHOWN));
    }
    parts.join("; ")
}

/// `spec.a` for `.properties.spec.properties.a.type`: the field that an author knows, not the way to it in the schema.
fn field(path: &str) -> String {
    let path = format!("{path}.").replace(".properties.", ".").replace(".items.", "[].");
    let path = path.replace(".[]", "[]");
    path.trim_matches('.').trim_end_matches(".type").to_owned()
}

/// `wanted` with the types that the live CRD's status has where `wanted` knows none: a field is anything while the kind that it is
/// read from is not served.
pub fn with_known_status(live: &Object, wanted: &Object) -> Object {
    let mut wanted = wanted.clone();
    let versions = wanted.0.get_mut("spec").and_then(|spec| spec.get_mut("versions")).and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        let before = live.spec()["versions"].as_array().into_iter().flatten().find(|before| before["name"] == version["name"]);
        let status = version.pointer_mut(STATUS).zip(before.and_then(|before| before.pointer(STATUS)));
        if let Some((status, before)) = status {
            take_types(before, status);
        }
    }
    wanted
}

/// Where the status' schema is in a version of a CRD.
const STATUS: &str = "/schema/openAPIV3Schema/properties/status";

fn take_types(before: &Value, schema: &mut Value) {
    let is_anything = schema["x-kubernetes-preserve-unknown-fields"] == true && schema.get("properties").is_none();
    if is_anything {
        schema.clone_from(before);
        return;
    }
    if let (Some(before), Some(Value::Object(fields))) = (before.get("properties"), schema.get_mut("properties")) {
        for (name, field) in fields {
            before.get(name).into_iter().for_each(|before| take_types(before, field));
        }
    }
    if let (Some(before), Some(items)) = (before.get("items"), schema.get_mut("items")) {
        take_types(before, items);
    }
}

/// Why the CRD is not this definition's, in kro's words.
fn foreign(live: &Object, rgd: &str) -> Option<String> {
    if live.label(keys::OWNED) != Some("true") {
        return Some(format!("failed to update CRD {}: CRD already exists and is not owned by KRO", live.name()));
    }
    let owner = other_owner(live, rgd)?;
    Some(format!("failed to update CRD {}: CRD is owned by another ResourceGraphDefinition {owner}", live.name()))
}

/// The definition whose CRD this is, by the value of its label, where that is another one than `rgd`.
pub fn other_owner<'a>(live: &'a Object, rgd: &str) -> Option<&'a str> {
    let owner = live.label(keys::RGD_NAME).unwrap_or_default();
    (live.label(keys::OWNED) == Some("true") && owner != label_value(rgd)).then_some(owner)
}

/// Whether everything that is wanted is there; what the server adds (defaults, `status`) does not count.
fn is_as_wanted(live: &Object, wanted: &Object) -> bool {
    let labels = |object: &Object, key: &str| object.at(&["metadata", key]).cloned().unwrap_or(Value::Null);
    covers(&labels(live, "labels"), &labels(wanted, "labels"))
        && covers(&labels(live, "annotations"), &labels(wanted, "annotations"))
        && covers(live.spec(), wanted.spec())
}

/// Whether `live` has every value of `wanted`. A schema must be equal field by field: the server adds nothing inside it, so
/// that a field that is gone from `wanted` is a difference.
fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            let live = live.get(key).unwrap_or(&Value::Null);
            if key == "openAPIV3Schema" { same(live, wanted) } else { covers(live, wanted) }
        }),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| covers(live, wanted))
        }
        (Value::Null, Value::Object(wanted)) => wanted.is_empty(),
        (Value::Null, Value::Array(wanted)) => wanted.is_empty(),
        _ => same(live, wanted),
    }
}

/// Equality of JSON where `1` and `1.0` are one number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

/// Whether a CRD serves its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serving {
    /// It does.
    Established,
    /// The server has not finished with it.
    Pending,
    /// The server refuses it.
    Refused(String),
}

/// Reads `status.conditions` of a CRD.
pub fn serving(live: &Object) -> Serving {
    if conditions::holds(live, "Established") {
        return Serving::Established;
    }
    let refused = ["NamesAccepted", "NonStructuralSchema"].into_iter().find_map(|kind| {
        let condition = conditions::find(live, kind)?;
        let bad = if kind == "NamesAccepted" { "False" } else { "True" };
        let text = |field: &str| condition.get(field).and_then(Value::as_str).unwrap_or_default();
        (text("status") == bad).then(|| format!("CRD {}: {}", live.name(), text("message")))
    });
    refused.map_or(Serving::Pending, Serving::Refused)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(rgd: &str, owned: &str, properties: Value) -> Object {
        Object::from_value(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "apps.x.test", "labels": {"kro.run/owned": owned, "kro.run/resource-graph-definition-name": rgd}},
            "spec": {"group": "x.test", "scope": "Namespaced", "names": {"kind": "App", "plural": "apps"}, "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": properties}}}}}]}}))
        .unwrap()
    }

    #[test]
    fn an_absent_crd_is_written_and_an_equal_one_kept() {
        let wanted = crd("r", "true", json!({"a": {"type": "string"}}));
        assert_eq!(step(None, &wanted, "r", false), Step::Write { breaking: None });
        let mut live = wanted.clone();
        live.0["spec"]["conversion"] = json!({"strategy": "None"});
        live.0["spec"]["names"]["listKind"] = json!("AppList");
        live.0.insert("status".into(), json!({"conditions": []}));
        assert_eq!(step(Some(&live), &wanted, "r", false), Step::Keep);
    }

    #[test]
    fn a_long_name_is_known_by_its_label() {
        let name = "n".repeat(80);
        let wanted = crd(&label_value(&name), "true", json!({}));
        assert_eq!(step(Some(&wanted), &wanted, &name, false), Step::Keep);
    }

    #[test]
    fn somebody_elses_crd_is_refused() {
        let wanted = crd("r", "true", json!({}));
        for (live, words) in [(crd("r", "false", json!({})), "not owned by KRO"), (crd("q", "true", json!({})), "Definition q")] {
            let Step::Refuse(message) = step(Some(&live), &wanted, "r", true) else { panic!("{words}") };
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn a_breaking_change_names_its_field() {
        let live = crd("r", "true", json!({"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "string"}}}));
        let wanted = crd("r", "true", json!({"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}}}));
        let Step::Refuse(message) = step(Some(&live), &wanted, "r", false) else { panic!("not refused") };
        assert!(message.contains("Type changed from integer to string (at spec.a)"), "{message}");
        assert!(message.contains("Type changed from string to integer (at spec.b[])"), "{message}");
    }

    #[test]
    fn a_status_that_has_no_types_for_now_keeps_those_it_had() {
        let with = |status: Value| {
            let mut crd = crd("r", "true", json!({}));
            crd.0["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] =
                json!({"type": "object", "properties": status});
            crd
        };
        let anything = json!({"x-kubernetes-preserve-unknown-fields": true});
        let live = with(
            json!({"r": {"type": "boolean"}, "list": {"type": "array", "items": {"type": "string"}}, "gone": {"type": "string"}}),
        );
        let wanted = with(json!({"r": anything, "list": {"type": "array", "items": anything}, "new": anything}));
        let kept = with_known_status(&live, &wanted);
        let expected =
            with(json!({"r": {"type": "boolean"}, "list": {"type": "array", "items": {"type": "string"}}, "new": anything}));
        assert_eq!(kept, expected);
    }

    #[test]
    fn what_the_server_says_of_a_crd() {
        let with =
            |conditions: Value| Object::from_value(json!({"metadata": {"name": "c"}, "status": {"conditions": conditions}}));
        let cases = [
            (json!([{"type": "Established", "status": "True"}]), Serving::Established),
            (json!([]), Serving::Pending),
            (
                json!([{"type": "NamesAccepted", "status": "False", "message": "taken"}, {"type": "Established", "status": "False"}]),
                Serving::Refused("CRD c: taken".into()),
            ),
        ];
        for (conditions, expected) in cases {
            assert_eq!(serving(&with(conditions).unwrap()), expected);
        }
    }
}
