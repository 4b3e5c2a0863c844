//! The service account of an instance: what it may read, and what is said where it may not do something.

use plinth_api::{ObjectKey, Permission};

use super::{
    decision::{Action, NodeState},
    observation::Observation,
    pass::{Outcome, Pass},
};
use crate::{
    graph::Graph,
    ports::{Access, Query, ServiceAccount, WriteError},
};

/// What keeping a child takes.
const KEEP: &str = "create, patch, delete";

impl Pass<'_> {
    /// Whether the instance's account may read an object of somebody else; `None` where it may, or where there is no account. The
    /// controller reads with rights of its own, so that without this an instance would see whatever those let it see.
    pub(super) fn may_get(&mut self, key: &ObjectKey) -> Option<Outcome> {
        let account = account(self.graph, self.seen)?;
        let (namespace, name) = (key.namespace.clone(), Some(key.name.clone()));
        self.may(Access { account, cluster: key.cluster.clone(), gvk: key.gvk.clone(), namespace, name })
    }

    /// The same of a list.
    pub(super) fn may_list(&mut self, query: &Query) -> Option<Outcome> {
        let account = account(self.graph, self.seen)?;
        let namespace = query.namespace.clone();
        self.may(Access { account, cluster: query.cluster.clone(), gvk: query.gvk.clone(), namespace, name: None })
    }

    fn may(&mut self, access: Access) -> Option<Outcome> {
        match self.seen.reviews.get(&access) {
            Some(Ok(true)) => None,
            Some(Ok(false)) => {
                let Access { account, gvk, namespace, name, .. } = &access;
                let what = name.as_deref().map(|name| format!(" {name:?}")).unwrap_or_default();
                let (verb, place) = (access.verb(), place(namespace.as_deref()));
                Some(Outcome::failed(format!(
                    "{account} may not {verb} {}{what}{place}: it needs the verb {verb}",
                    gvk.group_kind()
                )))
            }
            Some(Err(error)) => Some(self.unreadable(error)),
            None => {
                self.reads.push(Action::Review(access));
                Some(Outcome::new(NodeState::Acting))
            }
        }
    }
}

/// The account of the instance.
pub(super) fn account(graph: &Graph, seen: &Observation) -> Option<ServiceAccount> {
    Some(graph.account.as_ref()?.of(&seen.instance))
}

/// Why a child was not written or deleted: of a missing right whose it is, and the rule that gives it.
pub(super) fn refusal(graph: &Graph, seen: &Observation, error: &WriteError) -> String {
    let (WriteError::Forbidden { missing, message }, Some(account)) = (error, account(graph, seen)) else {
        return error.to_string();
    };
    let Permission { group, resource, verb, namespace, .. } = missing.as_ref();
    if verb == "impersonate" {
        let ServiceAccount { namespace, name } = &account;
        return format!(
            "the controller may not act as {account}: it needs the rule {}",
            rule("", "serviceaccounts", Some(name), "impersonate", Some(namespace))
        );
    }
    // What an admission plugin refuses, or rights that would be handed on, no verb on the resource mends.
    if !message.contains(" cannot ") {
        return format!("{account}: {error}: {message}");
    }
    let place = place(namespace.as_deref());
    let kind = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
    format!(
        "{account} may not {verb} {kind}{place}: it needs the rule {}",
        rule(group, resource, None, KEEP, namespace.as_deref())
    )
}

/// As a Role has it.
fn rule(group: &str, plural: &str, name: Option<&str>, verbs: &str, namespace: Option<&str>) -> String {
    let names = name.map(|name| format!(", resourceNames: [{name}]")).unwrap_or_default();
    format!("{{apiGroups: [{group:?}], resources: [{plural}]{names}, verbs: [{verbs}]}}{}", place(namespace))
}

fn place(namespace: Option<&str>) -> String {
    namespace.map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default()
}
