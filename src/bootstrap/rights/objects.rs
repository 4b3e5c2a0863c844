//! Rights as the roles and bindings that give them to a service account.

use plinth_api::{
    Object,
    rbac::{self, PolicyRule, Rights},
};
use serde_json::{Value, json};

use super::{GRANTED, NAME, NAMESPACE};

/// The roles, each with its binding to the controller's service account behind it.
pub fn roles(rights: &Rights) -> Vec<Object> {
    named(NAME, rights)
}

/// The same under the name of what was granted later: the next `up` writes its own roles anew, and leaves these alone.
pub(crate) fn granted(rights: &Rights) -> Vec<Object> {
    named(GRANTED, rights)
}

/// The rules of a role; what cannot be read counts as not there.
pub(crate) fn rules_of(role: &Object) -> Vec<PolicyRule> {
    let rules = role.0.get("rules").and_then(Value::as_array).into_iter().flatten();
    rules.filter_map(|rule| serde_json::from_value(rule.clone()).ok()).collect()
}

fn named(name: &str, rights: &Rights) -> Vec<Object> {
    let mut objects = pair(name, None, &rights.cluster);
    for (namespace, rules) in &rights.namespaces {
        objects.extend(pair(name, Some(namespace), rules));
    }
    objects
}

fn pair(name: &str, namespace: Option<&str>, rules: &[PolicyRule]) -> Vec<Object> {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let api_version = format!("{}/v1", rbac::GROUP);
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    let role = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": rules});
    let binding = json!({
        "apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": metadata,
        "roleRef": {"apiGroup": rbac::GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    });
    [role, binding].map(object).into()
}

fn object(value: Value) -> Object {
    Object::from_value(value).expect("a JSON object was just written")
}
