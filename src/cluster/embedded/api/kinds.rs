//! What is served: the built-in kinds, and those of each logical cluster's CustomResourceDefinitions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use plinth_api::{ClusterKey, Object};
use plinth_engine::schema::{KindInfo, Schema, builtin, crd};
use serde_json::Value;

use super::{scale::Paths, validations::Rules};
use crate::embedded::{
    filter::{Reach, is_logical},
    store::Resource,
};

/// A served version of a resource.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of discovery")]
pub struct Served {
    /// API group, empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Version in which objects are stored.
    pub storage: String,
    /// Kind.
    pub kind: String,
    /// Kind of lists.
    pub list_kind: String,
    /// Name in URLs.
    pub plural: String,
    /// Name for people.
    pub singular: String,
    /// Abbreviations.
    pub short_names: Vec<String>,
    /// Such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The whole object's schema.
    pub schema: Arc<Schema>,
    /// Its CEL rules, if it has any.
    pub rules: Option<Rules>,
    /// Whether status is a subresource.
    pub status: bool,
    /// Where its objects keep their replicas, if they can be scaled.
    pub scale: Option<Paths>,
    /// Whether the API server brings it itself.
    pub builtin: bool,
    /// Whether generations are counted.
    pub generation: bool,
    /// Whether objects are only answered, never stored (`SelfSubjectAccessReview`).
    pub review: bool,
    /// Fields beside name and namespace that field selectors may ask for.
    pub selectable: Vec<String>,
    /// Whose API it is, where several bring one of the same name to different clusters: objects of each are kept apart, so
    /// that a request over all clusters meets those of one alone. Empty for built-in kinds and CRDs.
    pub identity: String,
}

impl Served {
    /// `GROUP/VERSION`, or the version alone for core.
    pub fn api_version(&self) -> String {
        self.with_group(&self.version)
    }

    /// The same of stored objects.
    pub fn stored_version(&self) -> String {
        self.with_group(&self.storage)
    }

    /// Where its objects are kept: `GROUP/PLURAL`, or `GROUP/PLURAL:IDENTITY`.
    pub fn resource(&self) -> Resource {
        let plural = if self.identity.is_empty() { self.plural.clone() } else { format!("{}:{}", self.plural, self.identity) };
        Resource { group: self.group.clone(), plural }
    }

    /// Whether it is this version of this resource.
    fn is(&self, group: &str, version: &str, plural: &str) -> bool {
        self.plural == plural && self.group == group && self.version == version
    }

    fn keeps(&self, resource: &Resource) -> bool {
        let own = match resource.plural.strip_prefix(&self.plural) {
            Some("") => self.identity.is_empty(),
            Some(rest) => rest.strip_prefix(':') == Some(&self.identity),
            None => false,
        };
        own && self.group == resource.group
    }

    fn with_group(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }
}

/// What is served somewhere.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    /// Each version of each resource.
    pub served: Vec<Arc<Served>>,
    /// Changes with what is served, for caches of OpenAPI documents.
    pub revision: u64,
}

impl Kinds {
    /// One served version of a resource.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Served>> {
        self.served.iter().find(|served| served.is(group, version, plural)).cloned()
    }
}

/// Kinds by cluster.
#[derive(Default)]
pub struct Registry {
    defined: BTreeMap<ClusterKey, Defined>,
    changes: u64,
}

/// What the CRDs of one cluster define.
#[derive(Default)]
struct Defined {
    kinds: BTreeMap<String, Vec<Arc<Served>>>,
    revision: u64,
}

static BUILTIN: LazyLock<Vec<Arc<Served>>> = LazyLock::new(|| builtin().iter().map(|kind| Arc::new(own(kind))).collect());

/// Whether a group is one of Kubernetes' own.
pub(super) fn is_builtin(group: &str) -> bool {
    BUILTIN.iter().any(|served| served.group == group)
}

/// Whether a resource is that of namespaces, which go one by one.
pub(super) fn is_namespaces(group: &str, plural: &str) -> bool {
    group.is_empty() && plural == "namespaces"
}

impl Registry {
    /// One served version of a resource; over all logical clusters that of the first one that has it.
    pub fn find(&self, reach: &Reach, group: &str, version: &str, plural: &str) -> Option<Arc<Served>> {
        self.first(reach, |served| served.is(group, version, plural))
    }

    /// The version of a resource in which objects are stored.
    pub fn stored(&self, cluster: &ClusterKey, resource: &Resource) -> Option<Arc<Served>> {
        self.first(&Reach::One(cluster.clone()), |served| served.keeps(resource) && served.version == served.storage)
    }

    /// What a kind is served as.
    pub fn of_kind(&self, cluster: &ClusterKey, api_version: &str, kind: &str) -> Option<Arc<Served>> {
        self.first(&Reach::One(cluster.clone()), |served| served.kind == kind && served.api_version() == api_version)
    }

    /// Everything that is served, each version of a resource once.
    pub fn all(&self, reach: &Reach) -> Kinds {
        let revision = self.over(reach).map(|defined| defined.revision).sum();
        let mut served: Vec<_> = BUILTIN.iter().chain(self.defined(reach)).cloned().collect();
        if *reach == Reach::Logical {
            let mut known = BTreeSet::new();
            served.retain(|kind| known.insert((kind.group.clone(), kind.version.clone(), kind.plural.clone())));
        }
        Kinds { served, revision }
    }

    /// Whether a group has any kind.
    pub fn has_group(&self, reach: &Reach, group: &str) -> bool {
        self.first(reach, |served| served.group == group).is_some()
    }

    /// How often anything was defined otherwise in any cluster.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Serves a CRD's kinds instead of those it had before; none for a CRD that is gone or not established.
    pub fn define(&mut self, cluster: &ClusterKey, crd: &str, kinds: Vec<Served>) {
        let defined = self.defined.entry(cluster.clone()).or_default();
        defined.revision += 1;
        self.changes += 1;
        if kinds.is_empty() {
            defined.kinds.remove(crd);
        } else {
            defined.kinds.insert(crd.to_owned(), kinds.into_iter().map(Arc::new).collect());
        }
    }

    fn first(&self, reach: &Reach, wanted: impl Fn(&Served) -> bool) -> Option<Arc<Served>> {
        BUILTIN.iter().chain(self.defined(reach)).find(|served| wanted(served)).cloned()
    }

    fn defined(&self, reach: &Reach) -> impl Iterator<Item = &Arc<Served>> {
        self.over(reach).flat_map(|defined| defined.kinds.values()).flatten()
    }

    /// One cluster is looked up, not looked for: there may be thousands.
    fn over(&self, reach: &Reach) -> impl Iterator<Item = &Defined> {
        let (one, all) = match reach {
            Reach::One(cluster) => (self.defined.get(cluster), None),
            Reach::Logical => (None, Some(self.defined.iter().filter(|(cluster, _)| is_logical(cluster)))),
        };
        one.into_iter().chain(all.into_iter().flatten().map(|(_, defined)| defined))
    }
}

/// The kinds of a CRD object; none where it cannot be read.
pub fn of_crd(object: &Object) -> Vec<Served> {
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let texts = |value: Option<&Value>| -> Vec<String> {
        let list = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let versions = object.at(&["spec", "versions"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let storage = versions.iter().find(|version| version["storage"] == true);
    let storage = storage.and_then(|version| version["name"].as_str()).map(str::to_owned);
    let described = crd::kinds(object).unwrap_or_default();
    let kinds = described.into_iter().map(|kind| {
        let version = versions.iter().find(|version| version["name"] == kind.gvk.version.as_str()).unwrap_or(&Value::Null);
        let selectable = version["selectableFields"].as_array().map(Vec::as_slice).unwrap_or_default();
        Served {
            list_kind: text(&["spec", "names", "listKind"]),
            singular: text(&["spec", "names", "singular"]),
            short_names: texts(object.at(&["spec", "names", "shortNames"])),
            categories: texts(object.at(&["spec", "names", "categories"])),
            status: version["subresources"]["status"].is_object(),
            scale: Paths::of_version(version),
            builtin: false,
            generation: true,
            review: false,
            selectable: selectable
                .iter()
                .filter_map(|field| Some(field["jsonPath"].as_str()?.trim_start_matches('.').to_owned()))
                .collect(),
            group: kind.gvk.group,
            storage: storage.clone().unwrap_or_else(|| kind.gvk.version.clone()),
            version: kind.gvk.version,
            kind: kind.gvk.kind,
            plural: kind.plural,
            namespaced: kind.namespaced,
            rules: Rules::of(&kind.schema).0,
            schema: kind.schema,
            identity: String::new(),
        }
    });
    kinds.collect()
}

fn own(kind: &KindInfo) -> Served {
    let (group, plural) = (kind.gvk.group.as_str(), kind.plural.as_str());
    let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let facts = FACTS.iter().find(|fact| (fact.0, fact.1) == (group, plural));
    let review = ["authorization.k8s.io", "authentication.k8s.io"].contains(&group) || ["bindings"].contains(&plural);
    let has_status = kind.schema.properties.contains_key("status") && !review && plural != "apiservices";
    let all = facts.is_some_and(|fact| fact.3);
    Served {
        group: group.to_owned(),
        version: kind.gvk.version.clone(),
        storage: kind.gvk.version.clone(),
        kind: kind.gvk.kind.clone(),
        list_kind: format!("{}List", kind.gvk.kind),
        plural: plural.to_owned(),
        singular: kind.gvk.kind.to_lowercase(),
        short_names: facts.map(|fact| words(fact.2)).unwrap_or_default(),
        categories: if all { words("all") } else { Vec::new() },
        namespaced: kind.namespaced,
        schema: Arc::clone(&kind.schema),
        // Kubernetes checks its own kinds by code.
        rules: None,
        status: has_status || plural == "apiservices",
        scale: (group == "apps" && SCALED.contains(&plural)).then(Paths::of_workload),
        builtin: true,
        generation: GENERATIONS.contains(&plural),
        review,
        selectable: FIELDS.iter().find(|(name, _)| *name == plural).map(|(_, fields)| words(fields)).unwrap_or_default(),
        identity: String::new(),
    }
}

/// Group, plural, short names, whether in the category `all`.
const FACTS: [(&str, &str, &str, bool); 29] = [
    ("", "componentstatuses", "cs", false),
    ("", "configmaps", "cm", false),
    ("", "endpoints", "ep", false),
    ("", "events", "ev", false),
    ("events.k8s.io", "events", "ev", false),
    ("", "limitranges", "limits", false),
    ("", "namespaces", "ns", false),
    ("", "nodes", "no", false),
    ("", "persistentvolumeclaims", "pvc", false),
    ("", "persistentvolumes", "pv", false),
    ("", "pods", "po", true),
    ("", "replicationcontrollers", "rc", true),
    ("", "resourcequotas", "quota", false),
    ("", "serviceaccounts", "sa", false),
    ("", "services", "svc", true),
    ("apiextensions.k8s.io", "customresourcedefinitions", "crd crds", false),
    ("apps", "daemonsets", "ds", true),
    ("apps", "deployments", "deploy", true),
    ("apps", "replicasets", "rs", true),
    ("apps", "statefulsets", "sts", true),
    ("autoscaling", "horizontalpodautoscalers", "hpa", true),
    ("batch", "cronjobs", "cj", true),
    ("batch", "jobs", "", true),
    ("certificates.k8s.io", "certificatesigningrequests", "csr", false),
    ("networking.k8s.io", "ingresses", "ing", false),
    ("networking.k8s.io", "networkpolicies", "netpol", false),
    ("policy", "poddisruptionbudgets", "pdb", false),
    ("scheduling.k8s.io", "priorityclasses", "pc", false),
    ("storage.k8s.io", "storageclasses", "sc", false),
];

/// Built-in resources that can be scaled.
const SCALED: [&str; 3] = ["deployments", "replicasets", "statefulsets"];

/// Built-in resources whose generation is counted.
const GENERATIONS: [&str; 20] = [
    "customresourcedefinitions",
    "daemonsets",
    "deployments",
    "replicasets",
    "statefulsets",
    "replicationcontrollers",
    "jobs",
    "cronjobs",
    "ingresses",
    "ingressclasses",
    "networkpolicies",
    "poddisruptionbudgets",
    "pods",
    "endpointslices",
    "flowschemas",
    "prioritylevelconfigurations",
    "priorityclasses",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "validatingadmissionpolicies",
];

/// What field selectors of built-in kinds may ask for.
const FIELDS: [(&str, &str); 9] = [
    (
        "pods",
        "spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork status.phase status.podIP status.nominatedNodeName",
    ),
    (
        "events",
        "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source type",
    ),
    ("secrets", "type"),
    ("namespaces", "status.phase"),
    ("nodes", "spec.unschedulable"),
    ("services", "spec.clusterIP spec.type"),
    ("jobs", "status.successful"),
    ("replicationcontrollers", "status.replicas"),
    ("replicasets", "status.replicas"),
];
