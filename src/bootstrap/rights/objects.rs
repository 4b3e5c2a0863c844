//! Rights as the roles and bindings that give them to a service account.

use plinth_api::{
    Object,
    rbac::{self, PolicyRule, Rights},
};
use serde_json::{Value, json};

use super::{NAME, NAMESPACE};

/// The roles, each with its binding to the controller's service account behind it.
pub fn roles(rights: &Rights) -> Vec<Object> {
    let mut objects = pair(None, &rights.cluster);
    for (namespace, rules) in &rights.namespaces {
        objects.extend(pair(Some(namespace), rules));
    }
    objects
}

fn pair(namespace: Option<&str>, rules: &[PolicyRule]) -> Vec<Object> {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let api_version = format!("{}/v1", rbac::GROUP);
    let mut metadata = json!({"name": NAME});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    let role = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": rules});
    let binding = json!({
        "apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": metadata,
        "roleRef": {"apiGroup": rbac::GROUP, "kind": kind, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    });
    [role, binding].map(object).into()
}

fn object(value: Value) -> Object {
    Object::from_value(value).expect("a JSON object was just written")
}
