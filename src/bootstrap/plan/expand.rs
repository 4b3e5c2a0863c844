//! Following the graphs down from the top-level instance: every object that the loop will write, and when it can.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, delivery};
use plinth_engine::graph::{self, Graph, Node};
use plinth_run::{Deferred, Subject};
use serde_json::Value;

use super::compile::Built;
use crate::error::Error;

/// Most objects that a plan may have.
const MAX_PLACES: usize = 50_000;

/// How far down a plan may go: definitions in a cluster may make each other's kinds.
const MAX_LEVEL: usize = 256;

/// One object that the loop will write.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The object; parts of its name may be expressions where they are not known yet.
    pub subject: Subject,
    /// Name of the definition that it comes from.
    pub rgd: String,
    /// The object as far as it is known.
    pub object: Object,
    /// Paths that are not known before the run.
    pub unresolved: Vec<String>,
    /// How many waits lie before it, counted from the top-level instance.
    pub level: usize,
    /// Kinds that have to be served before it can be written: its own and those of what it reads.
    pub waits_for: BTreeSet<GroupVersionKind>,
}

impl Place {
    /// Whether it is a delivery object of this kind.
    pub(crate) fn is_delivery(&self, kind: &str) -> bool {
        self.subject.key.gvk.group == delivery::GROUP && self.subject.key.gvk.kind == kind
    }

    /// Whether namespace and name are known.
    pub fn is_named(&self) -> bool {
        let open = |text: &str| text.contains("${");
        !open(&self.subject.key.name) && !self.subject.key.namespace.as_deref().is_some_and(open)
    }
}

/// Everything below the instance of the last definition.
pub(super) fn all(instance: &Object, built: &[Built]) -> Result<Vec<Place>, Error> {
    let root = built.last().expect("a distribution has at least its top-level definition");
    below(instance, root, built)
}

/// Everything below an instance of one of the definitions.
pub(crate) fn below(instance: &Object, root: &Built, built: &[Built]) -> Result<Vec<Place>, Error> {
    let graphs = built.iter().map(|built| (built.graph.instance.gvk.clone(), built)).collect();
    let mut walk = Walk { graphs, places: Vec::new() };
    let key = instance.key(&ClusterKey::host()).expect("the instance has a type");
    walk.graph(root, instance, &key, &Reach::default())?;
    Ok(walk.places)
}

/// How far down something is, and what it waits for.
#[derive(Clone, Debug, Default)]
struct Reach {
    level: usize,
    waits_for: BTreeSet<GroupVersionKind>,
}

impl Reach {
    fn join(&mut self, other: &Self) {
        self.level = self.level.max(other.level);
        self.waits_for.extend(other.waits_for.iter().cloned());
    }
}

struct Walk<'a> {
    graphs: BTreeMap<GroupVersionKind, &'a Built>,
    places: Vec<Place>,
}

impl Walk<'_> {
    /// Lays out one graph's nodes; the answer is where its last object is. Definitions do not make their own kinds, not even
    /// through others (`distribution::choose` refuses that), so this ends.
    fn graph(&mut self, built: &Built, instance: &Object, parent: &ObjectKey, start: &Reach) -> Result<Reach, Error> {
        let graph = built.graph.as_ref();
        let rendered = graph::render(graph, instance);
        let mut reached: BTreeMap<&str, Reach> = BTreeMap::new();
        let mut end = start.clone();
        for node in &graph.nodes {
            let mut reach = start.clone();
            node.dependencies.iter().filter_map(|id| reached.get(id.as_str())).for_each(|other| reach.join(other));
            reach.waits_for.extend(graph.missing.iter().filter(|missing| missing.node == node.id).map(|m| m.gvk.clone()));
            if node.kind.is_owned() {
                reach.level += 1;
                let objects = rendered.iter().filter(|rendered| rendered.node == node.id);
                let mut below = reach.clone();
                for rendered in objects {
                    let place = place(built, node, rendered, parent, &reach);
                    below.join(&self.place(place)?);
                }
                end.join(&below);
                // Who only needs the instance to exist need not wait for all that is below it.
                if waits_until_ready(built, node) {
                    reach = below;
                }
            }
            end.join(&reach);
            reached.insert(&node.id, reach);
        }
        Ok(end)
    }

    /// Keeps one place and, where it is an instance, everything below it.
    fn place(&mut self, place: Place) -> Result<Reach, Error> {
        if self.places.len() == MAX_PLACES {
            return Err(Error::Unusable(format!("the distribution makes more than {MAX_PLACES} objects")));
        }
        if place.level > MAX_LEVEL {
            return Err(Error::Unusable(format!("{} lies more than {MAX_LEVEL} levels below its instance", place.subject)));
        }
        let reach = Reach { level: place.level, waits_for: place.waits_for.clone() };
        let (object, key) = (place.object.clone(), place.subject.key.clone());
        self.places.push(place);
        match self.graphs.get(&key.gvk).copied() {
            Some(below) => self.graph(below, &object, &key, &reach),
            None => Ok(reach),
        }
    }
}

fn place(built: &Built, node: &Node, rendered: &graph::Rendered, parent: &ObjectKey, reach: &Reach) -> Place {
    let object = rendered.object.clone();
    let namespace = match node.namespaced {
        Some(false) => None,
        Some(true) => object.namespace().or(parent.namespace.as_deref()).map(str::to_owned),
        None => object.namespace().map(str::to_owned),
    };
    let key = ObjectKey { cluster: parent.cluster.clone(), gvk: node.gvk.clone(), namespace, name: object.name().to_owned() };
    Place {
        subject: Subject::child(key, &node.id, parent.clone()),
        rgd: built.graph.name.clone(),
        object,
        unresolved: rendered.unresolved.clone(),
        level: reach.level,
        waits_for: reach.waits_for.clone(),
    }
}

/// Whether nodes that read this one wait for its conditions; without `readyWhen` kro lets them go on once it exists.
fn waits_until_ready(built: &Built, node: &Node) -> bool {
    built.rgd.definition.spec.resources.get(node.position).is_some_and(|resource| !resource.ready_when.is_empty())
}

/// What waits for kinds, node by node, with a guess at who brings them.
pub(super) fn deferred(built: &[Built], places: &[Place]) -> Vec<Deferred> {
    built.iter().flat_map(|built| of_graph(built, &built.graph, places)).collect()
}

fn of_graph(built: &Built, graph: &Graph, places: &[Place]) -> Vec<Deferred> {
    let mut by_node: BTreeMap<&str, Vec<GroupVersionKind>> = BTreeMap::new();
    for missing in &graph.missing {
        by_node.entry(&missing.node).or_default().push(missing.gvk.clone());
    }
    by_node
        .into_iter()
        .map(|(node, missing)| Deferred {
            subject: Subject::root(built.key.clone()),
            node: node.to_owned(),
            expected_from: missing.first().and_then(|gvk| brought_by(gvk, places)),
            missing,
        })
        .collect()
}

/// Who probably brings a kind: a CRD among the objects for certain, else the workloads that start without it.
pub(super) fn brought_by(gvk: &GroupVersionKind, places: &[Place]) -> Option<String> {
    if let Some(crd) = places.iter().find(|place| is_crd_of(&place.object, gvk)) {
        return Some(crd.subject.to_string());
    }
    let starts = |place: &&Place| is_workload(&place.subject.key.gvk) && place.waits_for.is_empty();
    let mut workloads: Vec<String> = places.iter().filter(starts).map(|place| place.subject.to_string()).collect();
    workloads.sort();
    workloads.dedup();
    match workloads.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("one of {}", several.join(", "))),
    }
}

/// Whether objects of a kind run programs, which may bring kinds.
pub fn is_workload(gvk: &GroupVersionKind) -> bool {
    matches!(
        (gvk.group.as_str(), gvk.kind.as_str()),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet") | ("batch", "Job" | "CronJob") | ("", "Pod")
    )
}

fn is_crd_of(object: &Object, gvk: &GroupVersionKind) -> bool {
    object.gvk().is_some_and(|kind| kind.group == "apiextensions.k8s.io")
        && object.at(&["spec", "group"]).and_then(Value::as_str) == Some(&gvk.group)
        && object.at(&["spec", "names", "kind"]).and_then(Value::as_str) == Some(&gvk.kind)
}
