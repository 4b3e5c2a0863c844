//! Fields that somebody else holds otherwise than wanted: a server-side apply would end in a conflict there.

use std::fmt::{self, Display};

use plinth_api::Object;
use plinth_engine::yaml::{element, field};
use serde_json::Value;

use crate::{compare::differences, managed};

/// A field and who holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Path of the field.
    pub field: String,
    /// The field manager, as `metadata.managedFields` calls it.
    pub manager: String,
}

impl Display for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} by {}", self.field, self.manager)
    }
}

/// What `wanted` would set and managers other than `ours` hold with another value (Kubernetes: server-side apply, conflicts).
///
/// Elements of list maps are looked into by their keys; what is in sets conflicts with nobody.
pub(crate) fn held(wanted: &Value, live: &Object, ours: &str) -> Vec<Held> {
    held_by(wanted, live, |manager| manager != ours)
}

/// The same for the managers that are asked for.
pub(crate) fn held_by(wanted: &Value, live: &Object, who: impl Fn(&str) -> bool) -> Vec<Held> {
    let whole = live.as_value();
    let mut found = Vec::new();
    for record in managed::records(live) {
        let manager = record["manager"].as_str().unwrap_or("somebody");
        if who(manager) {
            let mut fields = Vec::new();
            clash(wanted, whole, &record["fieldsV1"], "", &mut fields);
            found.extend(fields.into_iter().map(|field| Held { field, manager: manager.to_owned() }));
        }
    }
    found
}

fn clash(wanted: &Value, live: &Value, fields: &Value, path: &str, found: &mut Vec<String>) {
    let Some(below) = fields.as_object() else { return };
    if below.keys().all(|key| key == ".") {
        found.extend((!differences(wanted, live).is_empty()).then(|| path.to_owned()));
        return;
    }
    for (key, below) in below {
        if let Some(name) = key.strip_prefix("f:") {
            let Some(value) = wanted.get(name) else { continue };
            clash(value, live.get(name).unwrap_or(&Value::Null), below, &field(path, name), found);
        } else if let Some((value, index, live)) = key.strip_prefix("k:").and_then(|keys| of_keys(keys, wanted, live)) {
            clash(value, live, below, &element(path, index), found);
        }
    }
}

/// The element with these keys, as wanted and as it is there, with its index there.
fn of_keys<'a>(keys: &str, wanted: &'a Value, live: &'a Value) -> Option<(&'a Value, usize, &'a Value)> {
    let keys: serde_json::Map<String, Value> = serde_json::from_str(keys).ok()?;
    let has_them = |item: &Value| keys.iter().all(|(name, value)| item.get(name) == Some(value));
    let value = wanted.as_array()?.iter().find(|item| has_them(item))?;
    let (index, live) = live.as_array()?.iter().enumerate().find(|(_, item)| has_them(item))?;
    Some((value, index, live))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields_of(fields: &Value, wanted: &Value, live: &Value) -> Vec<String> {
        let mut live = live.clone();
        live["metadata"] = json!({"managedFields": [
            {"manager": "ours", "operation": "Apply", "fieldsV1": {"f:spec": {}}},
            {"manager": "kubectl", "operation": "Update", "fieldsV1": fields},
            {"manager": "kubelet", "operation": "Update", "subresource": "status", "fieldsV1": {"f:spec": {}}},
        ]});
        held(wanted, &Object::from_value(live).unwrap(), "ours").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_field_of_another_with_another_value_is_held() {
        let (wanted, live) = (json!({"spec": {"a": 1, "b": 2, "d": [1]}}), json!({"spec": {"a": 1, "b": 3, "c": 4, "d": [2]}}));
        let of = |fields: Value| fields_of(&json!({"f:spec": fields}), &wanted, &live);
        assert_eq!(of(json!({"f:a": {}, "f:c": {}})), [""; 0]);
        assert_eq!(of(json!({"f:b": {}, "f:d": {}})), ["spec.b by kubectl", "spec.d by kubectl"]);
        assert_eq!(fields_of(&json!({}), &wanted, &json!({"spec": {"a": 1, "b": 2, "d": [1]}})), [""; 0]);
    }

    #[test]
    fn elements_are_found_by_their_keys_and_sets_conflict_with_nobody() {
        let wanted = json!({"spec": {"ports": [{"port": 2, "name": "x"}, {"port": 1, "name": "a"}], "set": ["a"]}});
        let live = json!({"spec": {"ports": [{"port": 1, "name": "b"}, {"port": 3, "name": "c"}], "set": ["b"]}});
        let fields = json!({"f:spec": {"f:set": {"v:\"b\"": {}},
            "f:ports": {"k:{\"port\":1}": {".": {}, "f:name": {}}, "k:{\"port\":3}": {"f:name": {}}, "k:{": {}}}});
        assert_eq!(fields_of(&fields, &wanted, &live), ["spec.ports[0].name by kubectl"]);
    }
}
