//! Everything that a control plane holds, in a form that two runs have in common.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::door::Door;

/// Collections of every cluster that anything of a simulation may be in.
const COLLECTIONS: [&str; 8] = [
    "/api/v1/namespaces",
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/apis/apps/v1/deployments",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/kro.run/v1alpha1/resourcegraphdefinitions",
    "/apis/internal.kro.run/v1alpha1/graphrevisions",
];

/// Objects by their URL path.
pub(crate) type State = BTreeMap<String, Value>;

/// All objects as they are, in these collections and those of every cluster.
pub(crate) async fn raw(door: &Door, more: &[&str]) -> State {
    let mut state = State::new();
    for collection in COLLECTIONS.iter().chain(more) {
        let (root, plural) = collection.rsplit_once('/').unwrap();
        for object in door.list(collection).await {
            let text = |field: &str| object["metadata"][field].as_str();
            let place = text("namespace").map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
            state.insert(format!("{root}{place}/{plural}/{}", text("name").unwrap_or_default()), object);
        }
    }
    state
}

/// Without what differs from run to run: versions, times, the order of conditions, and UIDs, which become the paths of their
/// objects.
pub(crate) fn normal(mut state: State) -> State {
    let uids: BTreeMap<String, String> =
        state.iter().filter_map(|(path, object)| Some((object["metadata"]["uid"].as_str()?.to_owned(), path.clone()))).collect();
    state.values_mut().for_each(|object| strip(object, &uids));
    state
}

fn strip(value: &mut Value, uids: &BTreeMap<String, String>) {
    const MOVING: [&str; 10] = [
        "resourceVersion",
        "generation",
        "observedGeneration",
        "creationTimestamp",
        "managedFields",
        "lastTransitionTime",
        "lastUpdateTime",
        "lastAppliedTime",
        // Where an item stands in its collection is no reason to write it again.
        "kro.run/collection-index",
        "kro.run/collection-size",
    ];
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !MOVING.contains(&name.as_str()));
            fields.values_mut().for_each(|field| strip(field, uids));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| strip(item, uids));
            // Conditions stand in the order in which they first came.
            items.sort_by_key(|item| item["type"].as_str().unwrap_or_default().to_owned());
        }
        Value::String(text) => {
            if let Some(path) = uids.get(text.as_str()) {
                text.clone_from(path);
            }
        }
        _ => {}
    }
}

/// What two states do not have in common, for people.
pub(crate) fn differences(found: &State, wanted: &State) -> Vec<String> {
    let mut all = Vec::new();
    for (path, object) in found {
        match wanted.get(path) {
            None => all.push(format!("{path} is left over")),
            Some(wanted) => differ(path, object, wanted, &mut all),
        }
    }
    all.extend(wanted.keys().filter(|path| !found.contains_key(*path)).map(|path| format!("{path} is missing")));
    all
}

fn differ(path: &str, found: &Value, wanted: &Value, all: &mut Vec<String>) {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            let names: BTreeSet<&String> = found.keys().chain(wanted.keys()).collect();
            let field = |fields: &serde_json::Map<String, Value>, name: &str| fields.get(name).cloned().unwrap_or_default();
            names.into_iter().for_each(|name| differ(&format!("{path} {name}"), &field(found, name), &field(wanted, name), all));
        }
        _ if found == wanted => {}
        _ => all.push(format!("{path} is {found} and should be {wanted}")),
    }
}
