//! What our identity must be allowed to do, computed from the plan's kinds.

use std::collections::BTreeSet;

use plinth_api::{GroupVersionKind, Permission};
use plinth_engine::schema::{Lookup, SchemaSource};

use super::{compile::Built, expand::Place};
use crate::{rights, wanted::Wanted};

/// What the run's own writes need.
const WRITE: [&str; 3] = ["get", "create", "patch"];
/// What the loop needs for children.
const KEEP: [&str; 4] = ["get", "create", "patch", "delete"];
/// What watching needs, over all namespaces.
const WATCH: [&str; 2] = ["list", "watch"];

/// What writing these objects needs.
pub(super) fn to_write(wanted: &[Wanted], source: &dyn SchemaSource) -> BTreeSet<Permission> {
    let mut needed = Needed { source, permissions: BTreeSet::new() };
    for wanted in wanted {
        needed.add(&wanted.key.gvk, wanted.key.namespace.as_deref(), &WRITE, "");
    }
    needed.permissions
}

/// All permissions. A kind that is not served yet has no plural name, so its permissions are asked for when it comes.
pub(super) fn needed(wanted: &[Wanted], places: &[Place], built: &[Built], source: &dyn SchemaSource) -> BTreeSet<Permission> {
    let mut needed = Needed { source, permissions: BTreeSet::new() };
    // Who writes holds the Lease.
    for verb in ["get", "create", "update"] {
        let namespace = Some(rights::NAMESPACE.to_owned());
        let (group, resource) = ("coordination.k8s.io".to_owned(), "leases".to_owned());
        needed.permissions.insert(Permission { group, resource, verb: verb.to_owned(), namespace });
    }
    for wanted in wanted {
        needed.add(&wanted.key.gvk, wanted.key.namespace.as_deref(), &WRITE, "");
    }
    for place in places {
        let namespace = place.subject.key.namespace.as_deref().filter(|namespace| !namespace.contains("${"));
        needed.add(&place.subject.key.gvk, namespace, &KEEP, "");
        needed.add(&place.subject.key.gvk, None, &WATCH, "");
    }
    for built in built {
        needed.add(&built.key.gvk, None, &WATCH, "");
        needed.add(&built.key.gvk, None, &["patch"], "/status");
        needed.add(&built.graph.instance.gvk, None, &WATCH, "");
        needed.add(&built.graph.instance.gvk, None, &["patch"], "/status");
        for node in built.graph.nodes.iter().filter(|node| !node.kind.is_owned()) {
            needed.add(&node.gvk, None, &["get"], "");
            needed.add(&node.gvk, None, &WATCH, "");
        }
    }
    needed.permissions
}

struct Needed<'a> {
    source: &'a dyn SchemaSource,
    permissions: BTreeSet<Permission>,
}

impl Needed<'_> {
    fn add(&mut self, gvk: &GroupVersionKind, namespace: Option<&str>, verbs: &[&str], subresource: &str) {
        let Lookup::Served(kind) = self.source.kind(gvk) else { return };
        for verb in verbs {
            self.permissions.insert(Permission {
                group: gvk.group.clone(),
                resource: format!("{}{subresource}", kind.plural),
                verb: (*verb).to_owned(),
                namespace: namespace.filter(|_| kind.namespaced).map(str::to_owned),
            });
        }
    }
}
