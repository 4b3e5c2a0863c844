//! What a namespace holds that is not the platform's: it would go with the namespace.

use plinth_api::Object;
use serde_json::Value;

use super::{
    scope::{self, Looked},
    survey::Found,
};
use crate::rights;

/// Objects that a sentence names.
const NAMED: usize = 3;

/// Why a namespace has to stay, if it has to. What may not be looked at may be somebody's.
pub(super) fn in_the_way(looked: &Looked, selector: &str) -> Option<String> {
    let foreign: Vec<String> = looked.found.iter().filter(|found| is_foreign(found, looked, selector)).map(name_of).collect();
    if !foreign.is_empty() {
        let more = foreign.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return Some(format!("holds {}{more} of others", foreign[..foreign.len().min(NAMED)].join(", ")));
    }
    scope::unseen(&looked.unseen).map(|unseen| format!("{unseen}, so it may hold objects of others"))
}

fn name_of(found: &Found) -> String {
    format!("{}/{}", found.key.gvk.kind, found.key.name)
}

fn is_foreign(found: &Found, looked: &Looked, selector: &str) -> bool {
    let object = &found.object;
    let is_ours = selector.split_once('=').is_some_and(|(label, value)| object.label(label) == Some(value));
    !is_ours && !object.is_terminating() && !is_the_clusters(found, looked) && !follows(object, looked)
}

/// What Kubernetes itself puts into every namespace, and what it writes about other objects.
fn is_the_clusters(found: &Found, looked: &Looked) -> bool {
    let name = found.key.name.as_str();
    match found.key.gvk.kind.as_str() {
        "Event" => true,
        // That of whoever acts on the platform: it is held until the end.
        "Lease" => found.key.namespace.as_deref() == Some(rights::NAMESPACE),
        "ConfigMap" => name == "kube-root-ca.crt",
        "ServiceAccount" => name == "default",
        "Secret" => {
            let of_default = found.object.annotation("kubernetes.io/service-account.name") == Some("default");
            of_default && found.object.0.get("type").and_then(Value::as_str) == Some("kubernetes.io/service-account-token")
        }
        "Endpoints" => looked.found.iter().any(|other| other.key.gvk.kind == "Service" && other.key.name == name),
        _ => false,
    }
}

/// Whether it was made for another object of the namespace: that one speaks for both, and where it is gone, this one goes too.
fn follows(object: &Object, looked: &Looked) -> bool {
    super::owners::references(object).iter().any(|(owner, _)| looked.namespaced.contains(&owner.gvk.group_kind()))
}
