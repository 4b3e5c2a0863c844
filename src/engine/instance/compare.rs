//! Whether a child is as it was applied, so that nothing unchanged is ever written.

use plinth_api::Object;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{decision::Action, observation::Applied};
use crate::{graph::Graph, naming::keys, schema::Schema};

/// Labels that change when another item of the collection comes or goes. They are no reason to write an item.
const POSITIONAL: [&str; 2] = [keys::COLLECTION_INDEX, keys::COLLECTION_SIZE];

impl Applied {
    /// What to remember of an apply that worked; `None` for any other action.
    pub fn remember(graph: &Graph, action: &Action, answer: &Object) -> Option<Self> {
        let Action::Apply { node, apply, input } = action else { return None };
        let schema = graph.node(node).and_then(|node| node.schema.as_deref());
        let result = result(&apply.object, answer, schema);
        Some(Self { node: node.clone(), input: input.clone(), result, uid: answer.uid().unwrap_or_default().to_owned() })
    }

    /// Whether an object is still as it was applied, and the same is wanted.
    pub(super) fn proves(&self, input: &str, wanted: &Object, live: &Object, schema: Option<&Schema>) -> bool {
        self.input == input && live.uid().unwrap_or_default() == self.uid && result(wanted, live, schema) == self.result
    }
}

/// Digest of what is asked for. Salted, so that a journal does not tell two equal secrets by it.
pub(super) fn input(salt: &str, wanted: &Object) -> String {
    digest(salt, &stable(wanted).0)
}

fn result(wanted: &Object, live: &Object, schema: Option<&Schema>) -> String {
    digest(live.uid().unwrap_or_default(), &fields(&stable(wanted).0, &live.0, schema))
}

/// The object without what changes by itself; most have nothing of it, and are not copied.
fn stable(object: &Object) -> Object {
    let mut object = object.clone();
    if POSITIONAL.iter().all(|label| object.label(label).is_none()) {
        return object;
    }
    if let Some(Value::Object(labels)) = object.metadata_mut().get_mut("labels") {
        labels.retain(|key, _| !POSITIONAL.contains(&key.as_str()));
    }
    object
}

fn digest(salt: &str, value: &Map<String, Value>) -> String {
    let text = serde_json::to_vec(value).expect("JSON values always serialize");
    let bytes = Sha256::new().chain_update(salt).chain_update([0]).chain_update(text).finalize();
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        use std::fmt::Write;
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The part of `live` that `wanted` speaks of: what others added, and what the server filled in, is left out.
fn project(wanted: &Value, live: &Value, schema: Option<&Schema>) -> Value {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => Value::Object(fields(wanted, live, schema)),
        (Value::Array(wanted), Value::Array(live)) => list(wanted, live, schema),
        (_, live) => live.clone(),
    }
}

fn fields(wanted: &Map<String, Value>, live: &Map<String, Value>, schema: Option<&Schema>) -> Map<String, Value> {
    let field = |(name, value): (&String, &Value)| {
        let schema = schema.and_then(|schema| schema.field(name)).map(AsRef::as_ref);
        (name.clone(), live.get(name).map_or(Value::Null, |live| project(value, live, schema)))
    };
    wanted.iter().map(field).collect()
}

fn list(wanted: &[Value], live: &[Value], schema: Option<&Schema>) -> Value {
    let items = schema.and_then(|schema| schema.items.as_deref());
    match schema.and_then(|schema| schema.list_type.as_deref()) {
        Some("map") => {
            let keys = schema.map(|schema| schema.list_map_keys.as_slice()).unwrap_or_default();
            let same = |wanted: &Value, live: &Value| {
                keys.iter().all(|key| wanted.get(key).is_none_or(|value| live.get(key) == Some(value)))
            };
            let found = wanted.iter().map(|wanted| {
                let live = live.iter().find(|live| same(wanted, live));
                live.map_or(Value::Null, |live| project(wanted, live, items))
            });
            Value::Array(found.collect())
        }
        Some("set") => Value::Array(wanted.iter().filter(|value| live.contains(value)).cloned().collect()),
        _ if wanted.len() == live.len() => {
            Value::Array(wanted.iter().zip(live).map(|(wanted, live)| project(wanted, live, items)).collect())
        }
        _ => Value::Array(live.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(value: Value) -> Schema {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_others_and_the_server_add_is_no_difference() {
        let containers = schema(json!({"type": "object", "properties": {"containers": {"type": "array",
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object"}}}}));
        let wanted = json!({"containers": [{"name": "a", "image": "x"}]});
        let live = json!({"containers": [{"name": "sidecar"}, {"name": "a", "image": "x", "pull": "Always"}], "replicas": 1});
        assert_eq!(project(&wanted, &live, Some(&containers)), wanted);
        let drifted = json!({"containers": [{"name": "a", "image": "y"}]});
        assert_ne!(project(&wanted, &drifted, Some(&containers)), wanted);
        assert_ne!(project(&wanted, &json!({}), Some(&containers)), wanted);
    }

    #[test]
    fn lists_without_keys_are_compared_whole() {
        let wanted = json!([{"ip": "1"}]);
        assert_eq!(project(&wanted, &json!([{"ip": "1", "mode": "default"}]), None), wanted);
        assert_ne!(project(&wanted, &json!([{"ip": "1"}, {"ip": "2"}]), None), wanted);
    }

    #[test]
    fn a_growing_collection_is_no_reason_to_write_its_items() {
        let item = |size: &str| {
            let labels = json!({keys::COLLECTION_SIZE: size, "app": "x"});
            Object::from_value(json!({"metadata": {"name": "a", "labels": labels}})).unwrap()
        };
        assert_eq!(input("s", &item("3")), input("s", &item("4")));
        assert_ne!(input("s", &item("3")), input("t", &item("3")));
    }
}
