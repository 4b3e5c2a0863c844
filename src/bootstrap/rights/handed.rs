//! Roles and bindings that a graph makes. The server lets only those write them who hold what is granted, or may bind that role.

use plinth_api::{
    ObjectKey,
    rbac::{self, Lift, PolicyRule},
};
use serde_json::Value;

use super::{
    grants::{Grants, Scope},
    is_known,
};
use crate::plan::Place;

/// Adds what writing a role or a binding takes besides writing it.
pub(super) fn lifts(place: &Place, scope: &Scope, grants: &mut Grants) {
    let key = &place.subject.key;
    if key.gvk.group != rbac::GROUP {
        return;
    }
    match key.gvk.kind.as_str() {
        "Role" | "ClusterRole" => role(place, scope, grants),
        "RoleBinding" | "ClusterRoleBinding" => binding(place, scope, grants),
        _ => {}
    }
}

/// Who writes a role must hold its rules.
fn role(place: &Place, scope: &Scope, grants: &mut Grants) {
    let says = |what: &str| format!("{}: {what}", place.subject);
    if place.object.0.contains_key("aggregationRule") {
        grants.open(says("it gathers the rules of other roles, which only an administrator may let it do"));
    }
    let rules = place.object.0.get("rules").cloned().unwrap_or(Value::Null);
    for rule in rules.as_array().into_iter().flatten() {
        let Ok(read) = serde_json::from_value::<PolicyRule>(rule.clone()) else {
            grants.open(says("one of its rules cannot be read"));
            continue;
        };
        if !is_known(&rule.to_string()) {
            grants.open(says("one of its rules is known only during the run"));
        } else if read.has_wildcard() {
            grants.open(says(&format!("it grants {read}, and the controller gets no wildcard")));
        } else {
            grants.add_rule(scope, &read);
        }
    }
    if rules.is_string() {
        grants.open(says("its rules are known only during the run"));
    }
}

/// Who writes a binding needs `bind` on its role, and could bind it to itself then.
fn binding(place: &Place, scope: &Scope, grants: &mut Grants) {
    let text = |path: &[&str]| place.object.at(path).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text(&["roleRef", "kind"]), text(&["roleRef", "name"]));
    let plural = match kind {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        _ => "",
    };
    if plural.is_empty() || name.is_empty() || !is_known(name) {
        grants.open(format!("{}: the role that it binds is known only during the run", place.subject));
        return;
    }
    grants.add(scope, rbac::GROUP, plural, Some(name), &["bind"]);
    let subjects = place.object.0.get("subjects").and_then(Value::as_array);
    grants.lift(Lift {
        role: format!("{kind} {name}"),
        binding: shown(&place.subject.key),
        rgd: place.rgd.clone(),
        subjects: subjects.into_iter().flatten().map(subject).collect(),
    });
}

fn shown(key: &ObjectKey) -> String {
    let namespace = key.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{} {namespace}{}", key.gvk.kind, key.name)
}

fn subject(subject: &Value) -> String {
    let text = |field: &str| subject[field].as_str();
    let namespace = text("namespace").map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{} {namespace}{}", text("kind").unwrap_or("somebody"), text("name").unwrap_or("unknown"))
}
