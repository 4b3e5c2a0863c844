//! What the loop must be allowed to do in the cluster, computed from the plan: least privilege, and no wildcard.
//!
//! | what | whose name is known | what the loop does with it |
//! | --- | --- | --- |
//! | definitions, instances, delivery objects | no: others make them too | watches them, writes status, marks and finalizers |
//! | revisions of definitions | no: they are numbered | everything |
//! | generated CRDs | yes | applies them; no other CRD, but it reads all |
//! | the Repository, definitions, instance and namespaces of the platform | yes | applies them, where its Platform changes |
//! | children | where the plan knows it | watches the kind, applies and deletes the object |
//! | children of a definition with a service account | where the plan knows it | watches the kind, acts as that account |
//! | external references | – | watches the kind |
//! | roles that a graph makes | yes | as any child, and holds their rules itself |
//! | roles that a graph binds | yes | `bind` on that one name: a lift, said in the plan |
//!
//! A watch is for all namespaces, because there is one for each kind. A right in one namespace is written there, unless that namespace
//! comes only during the run: nobody could write a Role into it before. A kind that is not served yet goes by its group and by the
//! plural that its CRD in the graphs says, else by the plural that CRDs usually have; the next plan corrects it.
//!
//! Invariant: neither `escalate` nor anything with `*` is ever among the rules.

mod grants;
mod handed;
mod objects;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use plinth_api::{GroupVersionKind, Object, ObjectKey, Permission, crds::ARTIFACT, delivery, platform, rbac::Rights, rgd};
use plinth_engine::{
    naming, permission,
    ports::ServiceAccount,
    schema::{Lookup, SchemaSource, builtin},
};
use serde_json::{Map, Value};

use crate::{
    plan::{Built, Leftover, Place},
    wanted::{self, Step, Wanted},
};
use grants::{Grants, Scope};
pub use objects::roles;
pub(crate) use objects::{granted, rules_of};
pub use plinth_api::platform::NAMESPACE;

/// What is read, marked, and let go of when it is deleted; a finalizer is taken off by replacing the object.
const KEEP: [&str; 5] = ["get", "list", "watch", "patch", "update"];
/// What watching needs.
const WATCH: [&str; 2] = ["list", "watch"];
/// What applying and deleting an object needs.
const OWN: [&str; 4] = ["get", "create", "patch", "delete"];

/// Name of the controller's own objects, of its Lease and of its service account.
pub const NAME: &str = "plinth";
/// Name of the roles with what `plinth grant` added.
pub const GRANTED: &str = "plinth-granted";
/// Name of the ConfigMap with the journal.
pub const JOURNAL: &str = "plinth-journal";
/// Name of the ConfigMap with the release lock.
pub const LOCK: &str = "plinth-lock";
/// Name of the ConfigMap with the lock of the release before.
pub const PREVIOUS: &str = "plinth-lock-previous";

/// The rights of the loop. What the run itself writes, and the spec of the Platform, are what the controller moves the platform by.
pub(crate) fn of(
    (wanted, platform): (&[Wanted], &Map<String, Value>),
    built: &[Built],
    places: &[Place],
    source: &dyn SchemaSource,
) -> Rights {
    let mut needs = Needs { source, built, places, grants: Grants::default() };
    needs.machinery();
    needs.delivery();
    for built in built {
        needs.definition(built);
    }
    for place in places {
        needs.child(place);
        needs.reader(&place.subject.key);
    }
    for wanted in wanted {
        needs.moved(wanted);
        needs.reader(&wanted.key);
    }
    needs.secrets(platform);
    needs.places();
    needs.grants.rights()
}

/// What the loop needs whatever its platform is: where it is installed without a plan, [`crate::grant`] adds the rest.
#[must_use]
pub(crate) fn of_none() -> Rights {
    let mut needs = Needs { source: builtin(), built: &[], places: &[], grants: Grants::default() };
    needs.machinery();
    needs.delivery();
    needs.grants.rights()
}

/// What is needed so far.
struct Needs<'a> {
    source: &'a dyn SchemaSource,
    built: &'a [Built],
    places: &'a [Place],
    grants: Grants,
}

impl Needs<'_> {
    /// What every loop needs, whatever the graphs say.
    fn machinery(&mut self) {
        let own = Scope::Namespace(NAMESPACE.to_owned());
        self.grants.add(&Scope::Cluster, "", "namespaces", Some("kube-system"), &["get"]);
        self.grants.add(&Scope::Cluster, "", "events", None, &["create", "patch"]);
        let crds = wanted::crd_kind();
        self.grants.add(&Scope::Cluster, &crds.group, "customresourcedefinitions", None, &["get", "list", "watch"]);
        let definitions = format!("{}s", rgd::KIND.to_lowercase());
        self.kept(rgd::KRO_GROUP, &definitions);
        // Revisions name their definition as owner that must not go first.
        self.grants.add(&Scope::Cluster, rgd::KRO_GROUP, &format!("{definitions}/finalizers"), None, &["update"]);
        let revisions = format!("{}s", rgd::REVISION_KIND.to_lowercase());
        self.kept(rgd::REVISION_GROUP, &revisions);
        self.grants.add(&Scope::Cluster, rgd::REVISION_GROUP, &revisions, None, &["create", "delete"]);
        let leases = "coordination.k8s.io";
        self.grants.add(&own, leases, "leases", Some(NAME), &["get", "update"]);
        // Creating by name is not told apart from creating another.
        self.grants.add(&own, leases, "leases", None, &["create"]);
        self.grants.add(&own, "", "configmaps", Some(JOURNAL), &["get", "create", "patch"]);
        for name in [LOCK, PREVIOUS] {
            self.grants.add(&own, "", "configmaps", Some(name), &["get", "create", "patch"]);
        }
    }

    fn delivery(&mut self) {
        for plural in ["repositories", "components", "resources", "deployers", "discoveries"] {
            self.kept(delivery::GROUP, plural);
        }
        // Platforms are read, and the Artifacts that one asks for are the controller's own.
        self.grants.add(&Scope::Cluster, platform::GROUP, "platforms", None, &["get", "list", "watch"]);
        self.grants.add(&Scope::Cluster, platform::GROUP, "platforms/status", None, &["patch"]);
        self.grants.add(
            &Scope::Cluster,
            platform::GROUP,
            "artifacts",
            None,
            &["get", "list", "watch", "create", "patch", "delete"],
        );
        let crds = wanted::crd_kind();
        let artifacts = Some(ARTIFACT.name);
        self.grants.add(&Scope::Cluster, &crds.group, "customresourcedefinitions", artifacts, &["get", "create", "patch"]);
    }

    fn kept(&mut self, group: &str, plural: &str) {
        self.grants.add(&Scope::Cluster, group, plural, None, &KEEP);
        self.grants.add(&Scope::Cluster, group, &format!("{plural}/status"), None, &["patch"]);
    }

    /// What the controller writes of the platform itself, where its Platform asks for another release or other values.
    fn moved(&mut self, wanted: &Wanted) {
        let key = &wanted.key;
        let is_namespace = key.gvk == wanted::namespace_kind();
        if !is_namespace && !matches!(wanted.step, Step::Definitions | Step::Instance) {
            return;
        }
        let (plural, scope) = (self.plural(&key.gvk), self.scope(key));
        self.grants.add(&scope, &key.gvk.group, &plural, Some(&key.name), &["get", "create", "patch"]);
    }

    /// Where rights lie in a namespace, planning looks whether that is there.
    fn places(&mut self) {
        for namespace in self.grants.namespaces() {
            self.grants.add(&Scope::Cluster, "", "namespaces", Some(&namespace), &["get"]);
        }
    }

    /// Credentials and keys that the Platform names.
    fn secrets(&mut self, platform: &Map<String, Value>) {
        let keys = platform.get("verify").and_then(|verify| verify["keys"].as_array()).into_iter().flatten();
        let keys = keys.filter_map(|key| key.get("secretRef"));
        let credentials = platform.get("source").and_then(|source| source.get("credentialsRef"));
        for reference in keys.chain(credentials) {
            let Some(name) = reference["name"].as_str() else { continue };
            let scope = self.inside(reference["namespace"].as_str().unwrap_or(NAMESPACE));
            self.grants.add(&scope, "", "secrets", Some(name), &["get"]);
        }
    }

    /// Its CRD, its instances, and what it only reads.
    fn definition(&mut self, built: &Built) {
        let crds = wanted::crd_kind();
        self.grants.add(
            &Scope::Cluster,
            &crds.group,
            "customresourcedefinitions",
            Some(built.graph.crd.name()),
            &["get", "create", "patch"],
        );
        let instance = &built.graph.instance;
        self.kept(&instance.gvk.group, &instance.plural);
        for node in built.graph.nodes.iter().filter(|node| !node.kind.is_owned()) {
            let plural = self.plural(&node.gvk);
            self.grants.add(&Scope::Cluster, &node.gvk.group, &plural, None, &["get", "list", "watch"]);
        }
    }

    fn child(&mut self, place: &Place) {
        let key = &place.subject.key;
        let plural = self.plural(&key.gvk);
        let scope = self.scope(key);
        let name = Some(key.name.as_str()).filter(|name| is_known(name));
        self.grants.add(&Scope::Cluster, &key.gvk.group, &plural, None, &WATCH);
        if let Some(account) = self.account(place) {
            self.grants.add(&scope, &key.gvk.group, &plural, name, &["get"]);
            let scope = self.inside(&account.namespace);
            self.grants.add(&scope, "", "serviceaccounts", Some(&account.name), &["impersonate"]);
        } else {
            self.grants.add(&scope, &key.gvk.group, &plural, name, &OWN);
            handed::lifts(place, &scope, &mut self.grants);
        }
        if key.gvk.group == delivery::GROUP {
            self.delivered(place);
        }
    }

    /// An instance whose definition names a service account reads what it only refers to as that account, too, whether or not it has
    /// children.
    fn reader(&mut self, instance: &ObjectKey) {
        let is_its = |built: &&Built| built.graph.instance.gvk.group_kind() == instance.gvk.group_kind();
        let refers = |built: &&Built| built.graph.nodes.iter().any(|node| !node.kind.is_owned());
        let Some(built) = self.built.iter().find(is_its).filter(refers) else { return };
        let Some(account) = &built.graph.account else { return };
        let (namespace, name) = (account.namespace.clone().or_else(|| instance.namespace.clone()), account.name.clone());
        if let Some(namespace) = namespace.filter(|namespace| is_known(namespace)) {
            self.grants.add(&self.inside(&namespace), "", "serviceaccounts", Some(&name), &["impersonate"]);
        }
    }

    /// The service account by whose rights it is written, where its definition names one: then writing it is that account's matter.
    fn account(&self, place: &Place) -> Option<ServiceAccount> {
        let account = self.built.iter().find(|built| built.graph.name == place.rgd)?.graph.account.as_ref()?;
        let namespace = place.subject.parent.as_ref().and_then(|parent| parent.namespace.clone());
        let namespace = account.namespace.clone().or(namespace)?;
        Some(ServiceAccount { namespace, name: account.name.clone() })
    }

    /// Configuration that a delivery object reads by name, and what a Deployer applies.
    fn delivered(&mut self, place: &Place) {
        let named = |list: &str, object: &str| -> Vec<Value> {
            let entries = place.object.spec()[list].as_array().cloned().unwrap_or_default();
            entries.into_iter().map(|entry| if object.is_empty() { entry } else { entry[object].clone() }).collect()
        };
        for reference in named("ocmConfig", "").into_iter().chain(named("verify", "secretRef")) {
            let text = |field: &str| reference[field].as_str().filter(|text| !text.is_empty());
            let plural = match text("kind").unwrap_or("Secret") {
                "Secret" => "secrets",
                "ConfigMap" => "configmaps",
                // Another delivery object, which is read anyway.
                _ => continue,
            };
            let (Some(name), namespace) = (text("name"), text("namespace").or(place.subject.key.namespace.as_deref())) else {
                continue;
            };
            if !is_known(name) || !namespace.is_some_and(is_known) {
                self.grants.open(format!("{}: which of the {plural} it reads is known only during the run", place.subject));
                continue;
            }
            let scope = namespace.map_or(Scope::Cluster, |namespace| self.inside(namespace));
            self.grants.add(&scope, "", plural, Some(name), &["get"]);
        }
        if place.is_delivery("Deployer") {
            self.grants.open(format!("{}: what it applies is known only during the run", place.subject));
        }
    }

    /// As the server says, as a CRD among the children says, or as kubebuilder and kro make it of the kind.
    fn plural(&self, gvk: &GroupVersionKind) -> String {
        if let Lookup::Served(kind) = self.source.kind(gvk) {
            return kind.plural.clone();
        }
        let text = |object: &Object, path: &[&str]| object.at(path).and_then(Value::as_str).map(str::to_owned);
        let is_its = |object: &&Object| {
            text(object, &["spec", "group"]).as_ref() == Some(&gvk.group)
                && text(object, &["spec", "names", "kind"]).as_ref() == Some(&gvk.kind)
        };
        let brought = self.places.iter().filter(|place| place.subject.key.gvk == wanted::crd_kind()).map(|place| &place.object);
        let named = brought.filter(is_its).find_map(|crd| text(crd, &["spec", "names", "plural"]));
        named.unwrap_or_else(|| naming::resource_name(&gvk.kind))
    }

    fn scope(&self, key: &ObjectKey) -> Scope {
        key.namespace.as_deref().filter(|namespace| is_known(namespace)).map_or(Scope::Cluster, |name| self.inside(name))
    }

    /// A namespace that a graph makes is not there when the rights are written.
    fn inside(&self, namespace: &str) -> Scope {
        let is_it = |place: &Place| place.subject.key.gvk == wanted::namespace_kind() && place.subject.key.name == namespace;
        if self.places.iter().any(is_it) { Scope::Cluster } else { Scope::Namespace(namespace.to_owned()) }
    }
}

/// Rights in namespaces that are not there cannot be written there: they count everywhere, by the same names.
#[must_use]
pub(crate) fn within(rights: &Rights, namespaces: &BTreeSet<String>) -> Rights {
    let mut grants = Grants::from(rights);
    grants.spread(|namespace| namespaces.contains(namespace));
    grants.rights()
}

/// What the rules allow, one by one, for asking.
pub(crate) fn permissions(rights: &Rights) -> BTreeSet<Permission> {
    let everywhere = rights.cluster.iter().flat_map(|rule| permission::of_rule(rule, None));
    let inside = rights.namespaces.iter();
    let inside = inside.flat_map(|(name, rules)| rules.iter().flat_map(|rule| permission::of_rule(rule, Some(name))));
    everywhere.chain(inside).collect()
}

/// Both together, in the fewest rules.
#[must_use]
pub(crate) fn joined(one: &Rights, other: &Rights) -> Rights {
    let mut grants = Grants::from(one);
    grants.join(Grants::from(other));
    grants.rights()
}

/// What removing these definitions takes, and seeing that nothing of their kinds is left.
#[must_use]
pub(crate) fn of_leftovers(leftovers: &[Leftover]) -> Rights {
    let mut grants = Grants::default();
    let definitions = format!("{}s", rgd::KIND.to_lowercase());
    for leftover in leftovers {
        grants.add(&Scope::Cluster, &leftover.key.gvk.group, &definitions, Some(&leftover.key.name), &["delete"]);
        if let Some(kind) = &leftover.kind {
            grants.add(&Scope::Cluster, &kind.group, &naming::resource_name(&kind.kind), None, &KEEP);
        }
    }
    grants.rights()
}

/// What is needed and not held.
#[must_use]
pub(crate) fn missing(needed: &Rights, held: &Rights) -> Rights {
    Grants::from(needed).without(&Grants::from(held)).rights()
}

/// What the loop does with an object where it was refused one step of that: asking for each step alone would take a grant for each.
#[must_use]
pub(crate) fn of_refusals<'a>(refused: impl IntoIterator<Item = &'a Permission>) -> Rights {
    let mut grants = Grants::default();
    for permission in refused {
        let Permission { group, resource, verb, namespace, name } = permission;
        if [group, resource, verb].into_iter().any(|text| text.contains('*')) {
            grants.open(format!("{permission}: the controller gets no wildcard"));
            continue;
        }
        let scope = namespace.clone().map_or(Scope::Cluster, Scope::Namespace);
        let one = [verb.as_str()];
        let verbs: &[&str] = match verb.as_str() {
            "list" | "watch" => &WATCH,
            verb if name.is_some() && OWN.contains(&verb) && !resource.contains('/') => &OWN,
            _ => &one,
        };
        grants.add(&scope, group, resource, name.as_deref(), verbs);
    }
    grants.rights()
}

/// These rights and no more: whoever asks for all that it needs names each.
#[must_use]
pub(crate) fn exactly<'a>(asked: impl IntoIterator<Item = &'a Permission>) -> Rights {
    let mut grants = Grants::default();
    for Permission { group, resource, verb, namespace, name } in asked {
        if ![group, resource, verb].into_iter().any(|text| text.contains('*')) {
            let scope = namespace.clone().map_or(Scope::Cluster, Scope::Namespace);
            grants.add(&scope, group, resource, name.as_deref(), &[verb.as_str()]);
        }
    }
    grants.rights()
}

/// Whether a text of a rendered object has no expression in it.
fn is_known(text: &str) -> bool {
    !text.contains("${")
}
