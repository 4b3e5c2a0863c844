//! What plinth left on a cluster, in a form that two runs can be compared by.

use std::collections::BTreeMap;

use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams},
    discovery::{Discovery, verbs},
};
use serde_json::Value;

/// Differs from run to run and says nothing about the result.
const VARYING: [&str; 8] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "lastTransitionTime",
    "lastUpdateTime",
    "renewTime",
    "acquireTime",
];

/// Every object that a manager of plinth has a share in, by kind, namespace and name.
pub(crate) async fn of_plinth(client: &Client) -> BTreeMap<String, Value> {
    let mut names = BTreeMap::new();
    let mut objects = BTreeMap::new();
    for (kind, object) in all(client).await {
        let key = format!("{kind}/{}/{}", object.namespace().unwrap_or_default(), object.name_any());
        // Some kinds (ComponentStatus) are answers, not stored objects, and have none.
        names.extend(object.uid().map(|uid| (uid, format!("UID of {key}"))));
        let managers = object.managed_fields().iter().filter_map(|entry| entry.manager.as_deref());
        if managers.into_iter().any(|manager| manager.starts_with("plinth")) {
            objects.insert(key, serde_json::to_value(&object).unwrap());
        }
    }
    // Who holds it is not part of what was built.
    objects.retain(|key, _| !key.starts_with("Lease."));
    objects.values_mut().for_each(|object| normalise(object, &names));
    objects
}

async fn all(client: &Client) -> Vec<(String, DynamicObject)> {
    let discovery = Discovery::new(client.clone()).run().await.unwrap();
    let mut found = Vec::new();
    for (resource, capabilities) in discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources) {
        if !capabilities.supports_operation(verbs::LIST) {
            continue;
        }
        let list = Api::<DynamicObject>::all_with(client.clone(), &resource).list(&ListParams::default()).await.unwrap();
        found.extend(list.into_iter().map(|object| (format!("{}.{}", resource.kind, resource.group), object)));
    }
    found
}

fn normalise(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            map.retain(|field, _| !VARYING.contains(&field.as_str()));
            map.values_mut().for_each(|value| normalise(value, names));
            if let Some(Value::Array(conditions)) = map.get_mut("conditions") {
                // A map by type: which was written first depends on what was interrupted.
                conditions.sort_by_key(|condition| condition["type"].to_string());
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| normalise(value, names)),
        Value::String(text) => {
            if let Some(name) = names.get(text.as_str()) {
                *text = name.clone();
            }
        }
        _ => {}
    }
}

/// Fails with what differs, object by object.
pub(crate) fn assert_same(found: &BTreeMap<String, Value>, wanted: &BTreeMap<String, Value>, when: &str) {
    let keys: Vec<_> = found.keys().chain(wanted.keys()).collect();
    for key in keys {
        let (found, wanted) = (found.get(key), wanted.get(key));
        assert_eq!(found, wanted, "{when}: {key} differs (left found, right wanted)");
    }
}
