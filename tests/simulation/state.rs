//! Everything that a control plane holds, in a form that two runs have in common.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::Object;
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

/// Objects by their URL path, as they are.
pub(crate) type Raw = BTreeMap<String, Object>;
/// The same without what two runs do not have in common.
pub(crate) type State = BTreeMap<String, Value>;

/// All objects as they are, in these collections and those of every cluster.
pub(crate) async fn raw(door: &Door, more: &[&str]) -> Raw {
    let mut state = Raw::new();
    for collection in COLLECTIONS.iter().chain(more) {
        let (root, plural) = collection.rsplit_once('/').unwrap();
        for object in door.list(collection).await {
            let place = object.namespace().map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
            state.insert(format!("{root}{place}/{plural}/{}", object.name()), object);
        }
    }
    state
}

/// Without what differs from run to run: versions, times, the order of conditions, and UIDs, which become the paths of their
/// objects.
pub(crate) fn normal(state: &Raw) -> State {
    let uids: BTreeMap<&str, &str> = state.iter().filter_map(|(path, object)| Some((object.uid()?, path.as_str()))).collect();
    state.iter().map(|(path, object)| (path.clone(), stripped(object.as_value(), &uids))).collect()
}

fn stripped(value: &Value, uids: &BTreeMap<&str, &str>) -> Value {
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
            let staying = fields.iter().filter(|(name, _)| !MOVING.contains(&name.as_str()));
            Value::Object(staying.map(|(name, field)| (name.clone(), stripped(field, uids))).collect())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| stripped(item, uids)).collect();
            // Conditions stand in the order in which they first came.
            items.sort_by(|a, b| a["type"].as_str().unwrap_or_default().cmp(b["type"].as_str().unwrap_or_default()));
            Value::Array(items)
        }
        Value::String(text) => Value::from(uids.get(text.as_str()).copied().unwrap_or(text)),
        other => other.clone(),
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
            let differing = names.into_iter().filter(|name| found.get(*name) != wanted.get(*name));
            for name in differing {
                let field = |fields: &serde_json::Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
                differ(&format!("{path} {name}"), &field(found), &field(wanted), all);
            }
        }
        _ if found == wanted => {}
        _ => all.push(format!("{path} is {found} and should be {wanted}")),
    }
}
