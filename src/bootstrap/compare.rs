//! What is wanted held against what is there: does an apply change anything?

use plinth_api::Object;
use plinth_engine::{
    stored,
    yaml::{element, field},
};
use serde_json::Value;

use crate::managed;

/// How many differing fields are named.
const NAMED: usize = 20;

/// Paths of fields that `wanted` sets and `live` does not have so; empty where an apply would change nothing. Never values.
///
/// Fields that only `live` has belong to the server or to others. Lists are compared element by element, because servers fill
/// in defaults inside elements too.
pub fn differences(wanted: &Value, live: &Value) -> Vec<String> {
    let (mut found, wanted) = (Vec::new(), stored::kept(wanted));
    let here = Here { path: String::new(), within: "", of_kubernetes: stored::is_of_kubernetes(&wanted) };
    compare(&wanted, live, &here, &mut found);
    found
}

/// Where a comparison is.
struct Here<'a> {
    path: String,
    /// The field that holds what is compared.
    within: &'a str,
    of_kubernetes: bool,
}

impl<'a> Here<'a> {
    fn at(&self, path: String, within: &'a str) -> Self {
        Self { path, within, of_kubernetes: self.of_kubernetes }
    }
}

/// Paths of fields that `manager` applied and that `wanted` does not set any more: an apply takes them away.
///
/// Elements of lists that have a key are looked into, where the key is in what is wanted.
pub fn given_up(wanted: &Value, live: &Object, manager: &str) -> Vec<String> {
    let mut found = Vec::new();
    for record in managed::applied_by(live, manager) {
        give_up(wanted, &record["fieldsV1"], "", &mut found);
    }
    found
}

fn give_up(wanted: &Value, fields: &Value, path: &str, found: &mut Vec<String>) {
    for (key, below) in fields.as_object().into_iter().flatten() {
        let (here, wanted) = if let Some(name) = key.strip_prefix("f:") {
            (field(path, name), wanted.get(name))
        } else if let Some(keys) = key.strip_prefix("k:") {
            let keys: Value = serde_json::from_str(keys).unwrap_or_default();
            (format!("{path}[{}]", named(&keys)), with_key(wanted, &keys))
        } else {
            continue;
        };
        match wanted {
            None => found.push(here),
            Some(wanted) => give_up(wanted, below, &here, found),
        }
    }
    found.truncate(NAMED);
}

/// The element of a list whose fields have these values; one that leaves a field out may have it by a default of the server.
fn with_key<'a>(list: &'a Value, keys: &Value) -> Option<&'a Value> {
    let keys = keys.as_object()?;
    let has = |element: &&Value| keys.iter().all(|(name, value)| element.get(name).is_none_or(|own| own == value));
    list.as_array()?.iter().find(has)
}

/// The key of an element as people write it.
fn named(keys: &Value) -> String {
    let text =
        |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    keys.as_object().into_iter().flatten().map(text).collect::<Vec<_>>().join(",")
}

fn compare(wanted: &Value, live: &Value, here: &Here<'_>, found: &mut Vec<String>) {
    let path = here.path.as_str();
    if found.len() >= NAMED {
        return;
    }
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            for (name, value) in wanted {
                let live = live.get(name).unwrap_or(&Value::Null);
                below(value, live, here, name, found);
            }
        }
        (Value::Array(wanted), Value::Array(live)) if wanted.len() == live.len() => {
            for (index, (value, live)) in wanted.iter().zip(live).enumerate() {
                compare(value, live, &here.at(element(path, index), here.within), found);
            }
        }
        // An empty object or list and an absent one are the same to a server.
        (Value::Object(map), Value::Null) if map.is_empty() => {}
        (Value::Array(list), Value::Null) if list.is_empty() => {}
        (Value::Object(map), Value::Null) => {
            for (name, value) in map {
                below(value, &Value::Null, here, name, found);
            }
        }
        (wanted, live) if stored::is_kept_as(wanted, live, here.within, here.of_kubernetes) => {}
        _ => found.push(path.to_owned()),
    }
}

/// A field of a mapping. What is in a mapping of values, such as `limits`, is known by that name, not by its own.
fn below(wanted: &Value, live: &Value, here: &Here<'_>, name: &str, found: &mut Vec<String>) {
    let within = if wanted.is_object() || wanted.is_array() { name } else { here.within };
    compare(wanted, live, &here.at(field(&here.path, name), within), found);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_wanted_counts() {
        let live = json!({"a": 1, "b": {"c": [{"x": 1, "default": true}], "d": "e"}, "status": {"f": 1}});
        for same in [json!({}), json!({"a": 1}), json!({"b": {"c": [{"x": 1}]}}), json!({"n": null, "m": {}, "l": []})] {
            assert_eq!(differences(&same, &live), [""; 0], "{same}");
        }
        let cases = [
            (json!({"a": 2}), "a"),
            (json!({"a": "1"}), "a"),
            (json!({"b": {"c": []}}), "b.c"),
            (json!({"b": {"c": [{"x": 2}]}}), "b.c[0].x"),
            (json!({"b": {"c": [{"x": 1}, {"x": 2}]}}), "b.c"),
            (json!({"m": {"n": 1}}), "m.n"),
            (json!({"m": {"n.o": 1}}), "m[\"n.o\"]"),
        ];
        for (wanted, path) in cases {
            assert_eq!(differences(&wanted, &live), [path], "{wanted}");
        }
    }

    #[test]
    fn what_a_manager_gives_up_is_found_in_lists_too() {
        let live = json!({"metadata": {"managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {
            "f:a": {"f:b": {}, "f:c": {}},
            "f:l": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:value": {}}, "k:{\"name\":\"y\"}": {".": {}}},
            "f:p": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:port": {}}},
        }}]}});
        let wanted = json!({"a": {"b": 1}, "l": [{"name": "x"}], "p": [{"port": 80}]});
        let found = given_up(&wanted, &Object::from_value(live).unwrap(), "m");
        assert_eq!(found, ["a.c", "l[name=x].value", "l[name=y]"]);
    }

    #[test]
    fn what_a_server_keeps_in_another_form_is_the_same() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"password": "hunter2"}});
        let kept = |data: &str| json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": data}});
        assert_eq!(differences(&secret, &kept("aHVudGVyMg==")), [""; 0]);
        assert_eq!(differences(&secret, &kept("b3RoZXI=")), ["data.password"]);
        let pod = |cpu: Value| json!({"apiVersion": "v1", "kind": "Pod", "spec": {"c": [{"limits": {"cpu": cpu}, "value": ""}]}});
        let live = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"c": [{"limits": {"cpu": "1"}}]}});
        assert_eq!(differences(&pod(json!("1000m")), &live), [""; 0]);
        assert_eq!(differences(&pod(json!(2)), &live), ["spec.c[0].limits.cpu"]);
        let custom = json!({"apiVersion": "a.test/v1", "limits": {"cpu": "1000m"}, "text": ""});
        let live = json!({"apiVersion": "a.test/v1", "limits": {"cpu": "1"}});
        assert_eq!(differences(&custom, &live), ["limits.cpu", "text"]);
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c]{0,3}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn nothing_differs_from_itself(value in json_value()) {
            prop_assert!(differences(&value, &value).is_empty());
        }

        #[test]
        fn values_never_show(wanted in json_value(), live in json_value()) {
            let secret = json!({"f": "hunter2", "g": wanted});
            for path in differences(&secret, &live) {
                prop_assert!(!path.contains("hunter2"));
            }
        }
    }
}
