//! Making the fields of other tools ours, in the server's record of managers: as long as the old manager holds them too, a field that we
//! take back would stay (Kubernetes: server-side apply, "transferring ownership"). Values are not touched.

use std::collections::BTreeMap;

use plinth_api::Object;
use plinth_engine::naming::keys;
use serde_json::{Map, Value};

use crate::managed;

/// Beginnings of the field managers of tools that apply whole objects. A controller that adds single fields to objects of others, as those
/// of Kubernetes do, keeps them.
const TOOLS: [&str; 9] = [
    "kubectl",
    "helm",
    "kustomize-controller",
    "helm-controller",
    "flux",
    "argocd",
    "before-first-apply",
    "krop-controller",
    "kro",
];

/// The object with the records of other tools handed to `heir`, `None` where there are none.
pub(crate) fn adopted(live: &Object, heir: &str) -> Option<Object> {
    let records = live.at(&["metadata", "managedFields"]).and_then(Value::as_array)?;
    let mut is_changed = false;
    // One record for each manager and version: what is ours already takes the others up.
    let mut kept: Vec<Value> = Vec::new();
    let mut ours: BTreeMap<(String, String), Value> = BTreeMap::new();
    for record in records {
        let manager = record["manager"].as_str().unwrap_or_default();
        let is_whole = managed::is_of_object(record);
        let next = is_whole.then(|| successor(manager, heir)).flatten();
        is_changed |= next.is_some();
        let is_ours = is_whole && manager.starts_with("plinth.dev/") && record["operation"] == "Apply";
        let Some(to) = next.or(is_ours.then_some(manager)) else {
            kept.push(record.clone());
            continue;
        };
        let version = record["apiVersion"].as_str().unwrap_or_default();
        let mut record = record.clone();
        record["manager"] = to.into();
        record["operation"] = "Apply".into();
        ours.entry((to.to_owned(), version.to_owned()))
            .and_modify(|known| join(&mut known["fieldsV1"], &record["fieldsV1"]))
            .or_insert(record);
    }
    let mut object = live.clone();
    kept.extend(ours.into_values());
    object.metadata_mut().insert("managedFields".into(), Value::Array(kept));
    is_changed.then_some(object)
}

/// Who has the fields of a manager from here on: kro's four have their counterparts, of which each takes back only its own.
fn successor<'a>(manager: &str, heir: &'a str) -> Option<&'a str> {
    match manager {
        "kro.run/labeller" => Some(keys::MANAGER_LABELLER),
        "kro.run/applyset" => Some(keys::MANAGER_APPLYSET),
        "kro.run/applyset-parent" => Some(keys::MANAGER_APPLYSET_PARENT),
        _ => TOOLS.iter().any(|tool| manager.starts_with(tool)).then_some(heir),
    }
}

/// Both sets of fields.
fn join(into: &mut Value, other: &Value) {
    let Some(other) = other.as_object() else { return };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    for (name, below) in other {
        join(&mut into[name.as_str()], below);
        if into[name.as_str()].is_null() {
            into[name.as_str()] = Value::Object(Map::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_tools_are_ours_and_those_of_kubernetes_stay() {
        let live = Object::from_value(json!({"metadata": {"name": "x", "managedFields": [
            {"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:a": {}}}},
            {"manager": "kro.run/applyset", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:b": {}}}},
            {"manager": "plinth.dev/plinth", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:c": {}}}},
            {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:d": {}}}},
            {"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "subresource": "status", "fieldsV1": {"f:status": {}}},
        ]}}))
        .unwrap();
        let found = adopted(&live, keys::MANAGER).unwrap();
        let records = found.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap();
        let of = |manager: &str| records.iter().find(|record| record["manager"] == manager).unwrap()["fieldsV1"].clone();
        assert_eq!(of(keys::MANAGER), json!({"f:data": {"f:a": {}, "f:c": {}}}));
        assert_eq!(of(keys::MANAGER_APPLYSET), json!({"f:data": {"f:b": {}}}));
        assert_eq!(of("kube-controller-manager"), json!({"f:data": {"f:d": {}}}));
        assert_eq!((records.len(), of("kubectl")), (4, json!({"f:status": {}})));
        assert_eq!(adopted(&found, keys::MANAGER), None, "once is enough");
    }
}
