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
/// The group of roles and their bindings.
const RBAC: &str = "rbac.authorization.k8s.io";
/// The role that may do everything.
const ADMINISTRATORS: &str = "cluster-admin";

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
        needed.permissions.insert(Permission { group, resource, verb: verb.to_owned(), namespace, name: None });
    }
    for wanted in wanted {
        needed.add(&wanted.key.gvk, wanted.key.namespace.as_deref(), &WRITE, "");
    }
    for place in places {
        let namespace = place.subject.key.namespace.as_deref().filter(|namespace| !namespace.contains("${"));
        needed.add(&place.subject.key.gvk, namespace, &KEEP, "");
        needed.add(&place.subject.key.gvk, None, &WATCH, "");
        needed.permissions.extend(to_bind(place));
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
                name: None,
            });
        }
    }
}

/// What binding the role of administrators needs. The API server lets others be bound as well by whoever has all their rights, which
/// cannot be asked for; nobody but an administrator has those of this one.
fn to_bind(place: &Place) -> Option<Permission> {
    let role = place.object.0.get("roleRef")?;
    let is_binding = place.subject.key.gvk.group == RBAC && place.subject.key.gvk.kind.ends_with("RoleBinding");
    let is_administrators = role["kind"] == "ClusterRole" && role["name"] == ADMINISTRATORS;
    (is_binding && is_administrators).then(|| Permission {
        group: RBAC.to_owned(),
        resource: "clusterroles".to_owned(),
        verb: "bind".to_owned(),
        namespace: None,
        name: Some(ADMINISTRATORS.to_owned()),
    })
}
