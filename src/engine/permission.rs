//! Which rights are missing where the API server refused a request. Pure.

use std::collections::BTreeSet;

use plinth_api::{Object, Permission, rbac};
use serde_json::Value;

use crate::ports::{ReadError, WriteError};

/// What a refused write of `object` lacks; empty where it failed for another reason.
///
/// Who writes a binding needs `bind` on its role, and who writes a role its rules: what is refused then is not the write.
pub fn of_write(error: &WriteError, object: &Object) -> BTreeSet<Permission> {
    let WriteError::Forbidden { missing, .. } = error else { return BTreeSet::new() };
    match missing.verb.as_str() {
        "bind" => bound(missing, object).into_iter().collect(),
        "escalate" => held(missing, object),
        _ => BTreeSet::from([missing.as_ref().clone()]),
    }
}

/// What a refused read lacks. Lists and watches are of the whole cluster, because there is one for each kind.
pub fn of_read(error: &ReadError) -> Option<Permission> {
    let ReadError::Forbidden { missing, .. } = error else { return None };
    let is_wide = matches!(missing.verb.as_str(), "list" | "watch");
    let missing = missing.as_ref().clone();
    Some(if is_wide { Permission { namespace: None, name: None, ..missing } } else { missing })
}

/// The role of a binding.
fn bound(missing: &Permission, binding: &Object) -> Option<Permission> {
    let text = |field: &str| binding.at(&["roleRef", field]).and_then(Value::as_str);
    let resource = match text("kind")? {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        _ => return None,
    };
    let (resource, name) = (resource.to_owned(), text("name").map(str::to_owned));
    Some(Permission { resource, name, ..missing.clone() })
}

/// The rules of a role, each verb on each resource.
fn held(missing: &Permission, role: &Object) -> BTreeSet<Permission> {
    let rules = role.0.get("rules").and_then(Value::as_array).into_iter().flatten();
    let rules = rules.filter_map(|rule| serde_json::from_value::<rbac::PolicyRule>(rule.clone()).ok());
    rules.flat_map(|rule| of_rule(&rule, missing.namespace.as_deref())).collect()
}

/// What a rule says, each verb on each object; paths are none.
pub fn of_rule(rule: &rbac::PolicyRule, namespace: Option<&str>) -> Vec<Permission> {
    let names: Vec<Option<&String>> =
        if rule.resource_names.is_empty() { vec![None] } else { rule.resource_names.iter().map(Some).collect() };
    let mut all = Vec::new();
    for (group, resource) in rule.api_groups.iter().flat_map(|group| rule.resources.iter().map(move |plural| (group, plural))) {
        for (verb, name) in rule.verbs.iter().flat_map(|verb| names.iter().map(move |name| (verb, *name))) {
            all.push(Permission {
                group: group.clone(),
                resource: resource.clone(),
                verb: verb.clone(),
                namespace: namespace.map(str::to_owned),
                name: name.cloned(),
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(verb: &str, resource: &str) -> WriteError {
        let (group, name) = (rbac::GROUP.to_owned(), Some("x".to_owned()));
        let missing = Permission { group, resource: resource.into(), verb: verb.into(), namespace: Some("n".into()), name };
        WriteError::Forbidden { missing: Box::new(missing), message: "no".into() }
    }

    fn printed(error: &WriteError, object: Value) -> Vec<String> {
        of_write(error, &Object::from_value(object).unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_refused_write_lacks_its_verb_or_what_it_hands_on() {
        let binding = json!({"roleRef": {"kind": "ClusterRole", "name": "admin"}});
        let role = json!({"rules": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get"]}, "no rule"]});
        let group = "rbac.authorization.k8s.io";
        assert_eq!(printed(&refused("create", "roles"), json!({})), [format!("create roles.{group} x in namespace n")]);
        assert_eq!(
            printed(&refused("bind", "rolebindings"), binding),
            [format!("bind clusterroles.{group} admin in namespace n")]
        );
        assert_eq!(
            printed(&refused("escalate", "roles"), role),
            ["get pods a in namespace n", "get jobs.batch in namespace n", "list jobs.batch in namespace n"]
        );
        let away = WriteError::NotServed(plinth_api::GroupVersionKind::new("", "v1", "Pod"));
        assert_eq!(printed(&away, json!({})), Vec::<String>::new());
    }

    #[test]
    fn a_watch_is_of_the_whole_cluster() {
        let of = |verb: &str| {
            let WriteError::Forbidden { mut missing, message } = refused(verb, "roles") else { unreachable!("it is refused") };
            missing.name = None;
            of_read(&ReadError::Forbidden { missing, message }).unwrap().namespace
        };
        assert_eq!((of("list"), of("get")), (None, Some("n".to_owned())));
        assert_eq!(of_read(&ReadError::Unavailable("down".into())), None);
    }
}
