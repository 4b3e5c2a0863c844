//! What the graphs ask for, held against what is there.

use std::collections::BTreeMap;

use plinth_api::{Object, ObjectKey};
use plinth_bootstrap::plan::is_workload;
use plinth_engine::{
    graph::{self, Graph, Node, NodeKind, Rendered},
    health::{Health, Verdict},
    instance::{failures, judge_child},
    naming::keys,
    ports::{ReadError, Reader},
};
use plinth_run::next::{DEFERRED, not_served};

use serde_json::Value;

use super::{Found, Graphs, Leaf};

/// Objects that instances read or want and that do not carry their labels: made by somebody else, or bereft of their labels.
pub(super) async fn outside(graphs: &Graphs, found: &Found, reader: &dyn Reader) -> Result<Found, ReadError> {
    let mut outside = Found::new();
    for (instance, object, graph) in instances(graphs, found) {
        for rendered in graph::render_with(graph, object, &children(found, object)) {
            let Some(key) = graph.node(&rendered.node).and_then(|node| key_of(node, &rendered, instance)) else { continue };
            if found.contains_key(&key) || outside.contains_key(&key) {
                continue;
            }
            match reader.get(&key).await {
                Ok(live) => outside.extend(live.map(|live| (key, live))),
                // What may not be read may well be there.
                Err(ReadError::Forbidden { .. }) => drop(outside.insert(key, Object::default())),
                Err(ReadError::NotServed(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(outside)
}

/// Verdicts on children that are there, as the loop gives them: `readyWhen` decides, and what the last pass could not write has
/// failed. An instance tells of itself.
pub(super) fn judged(graphs: &Graphs, found: &Found, outside: &Found) -> BTreeMap<ObjectKey, Verdict> {
    let mut judged = BTreeMap::new();
    for (instance, object, graph) in instances(graphs, found) {
        let failures = failures(object);
        let verdict = |node: &Node, live: &Object| match failures.get(&node.id) {
            Some(why) => Verdict::new(Health::Failed, "Failed", why.clone()),
            None => judge_child(node, live),
        };
        let rendered = graph::render_with(graph, object, &observed(graph, object, found, outside));
        let named = rendered.iter().filter_map(|rendered| {
            let node = graph.node(&rendered.node).filter(|node| node.kind.is_owned())?;
            Some((node, key_of(node, rendered, instance)?))
        });
        // A child whose name is known only during the run says itself which node it is of.
        let uid = object.uid();
        let labelled = found.iter().filter(|(_, child)| uid.is_some() && child.label(keys::INSTANCE_ID) == uid);
        let labelled = labelled.filter_map(|(key, child)| Some((graph.node(child.label(keys::NODE_ID)?)?, key.clone())));
        for (node, key) in named.chain(labelled) {
            if let Some(live) = found.get(&key).filter(|_| !graphs.contains_key(&key.gvk)) {
                judged.insert(key, verdict(node, live));
            }
        }
    }
    judged
}

/// One child as its graph wants it, without the fields that are known only during the run.
pub(super) fn wanted(graphs: &Graphs, found: &Found, outside: &Found, key: &ObjectKey) -> Option<Object> {
    let makes = |graph: &Graph| graph.nodes.iter().any(|node| node.kind.is_owned() && node.gvk == key.gvk);
    instances(graphs, found).filter(|(.., graph)| makes(graph)).find_map(|(instance, object, graph)| {
        let rendered = graph::render_with(graph, object, &observed(graph, object, found, outside));
        let is_it = |rendered: &Rendered| {
            let node = graph.node(&rendered.node).filter(|node| node.kind.is_owned());
            node.and_then(|node| key_of(node, rendered, instance)).as_ref() == Some(key)
        };
        let mut wanted = rendered.into_iter().find(is_it)?.object;
        wanted.0.retain(|_, value| is_known(value));
        Some(wanted)
    })
}

/// Takes out what still is an expression; false where nothing is left.
fn is_known(value: &mut Value) -> bool {
    match value {
        Value::String(text) => !text.contains("${"),
        Value::Array(list) => {
            // Elements are compared by their place, so that a list is known as a whole or not at all.
            list.iter_mut().all(is_known)
        }
        Value::Object(fields) => {
            let was_empty = fields.is_empty();
            fields.retain(|_, value| is_known(value));
            was_empty || !fields.is_empty()
        }
        _ => true,
    }
}

/// What nodes are read as: the instance's children, and what it only reads.
fn observed(graph: &Graph, object: &Object, found: &Found, outside: &Found) -> Vec<Object> {
    let reads = |key: &ObjectKey| graph.nodes.iter().any(|node| node.kind == NodeKind::External && node.gvk == key.gvk);
    let read = found.iter().chain(outside).filter(|(key, _)| reads(key)).map(|(_, object)| object.clone());
    children(found, object).into_iter().chain(read).collect()
}

/// Leaves for everything that is wanted and not there.
pub(super) fn missing(graphs: &Graphs, found: &Found, outside: &Found) -> BTreeMap<ObjectKey, Leaf> {
    let mut missing = BTreeMap::new();
    for (key, object, graph) in instances(graphs, found) {
        let rendered = graph::render_with(graph, object, &observed(graph, object, found, outside));
        let failures = failures(object);
        let mut look = Look { instance: key, found, outside, failures, open: BTreeMap::new(), missing: &mut missing };
        for node in &graph.nodes {
            look.node(node, &rendered);
        }
    }
    expect_kinds(&mut missing, found);
    missing
}

/// Names the workloads that probably bring the kinds that are not served yet, as the plan does.
fn expect_kinds(missing: &mut BTreeMap<ObjectKey, Leaf>, found: &Found) {
    let made = missing.iter().filter(|(_, leaf)| leaf.verdict.reason != DEFERRED).map(|(key, _)| key);
    let expected: Vec<ObjectKey> = found.keys().chain(made).filter(|key| is_workload(&key.gvk)).cloned().collect();
    let names: Vec<String> = expected.iter().map(ToString::to_string).collect();
    let from = match names.as_slice() {
        [] => return,
        [one] => one.clone(),
        several => format!("one of {}", several.join(", ")),
    };
    for (key, leaf) in missing.iter_mut().filter(|(_, leaf)| leaf.verdict.reason == DEFERRED) {
        leaf.verdict.message = not_served(&key.gvk, Some(&from));
        leaf.waits_for.extend(expected.iter().cloned());
    }
}

/// Instances that are to stay, each with its graph.
fn instances<'a>(graphs: &'a Graphs, found: &'a Found) -> impl Iterator<Item = (&'a ObjectKey, &'a Object, &'a Graph)> {
    let live = found.iter().filter(|(_, object)| !object.is_terminating());
    live.filter_map(|(key, object)| Some((key, object, graphs.get(&key.gvk)?.as_ref())))
}

fn children(found: &Found, instance: &Object) -> Vec<Object> {
    let uid = instance.uid();
    found.values().filter(|object| uid.is_some() && object.label(keys::INSTANCE_ID) == uid).cloned().collect()
}

/// Where a rendered object goes; `None` where its name is known only during the run.
fn key_of(node: &Node, rendered: &Rendered, instance: &ObjectKey) -> Option<ObjectKey> {
    let object = &rendered.object;
    let namespace = match node.namespaced {
        Some(false) => None,
        Some(true) => object.namespace().or(instance.namespace.as_deref()),
        None => object.namespace(),
    };
    let is_open = |text: &str| text.is_empty() || text.contains("${");
    let is_known = !is_open(object.name()) && !namespace.is_some_and(is_open);
    let namespace = namespace.map(str::to_owned);
    let name = object.name().to_owned();
    is_known.then(|| ObjectKey { cluster: instance.cluster.clone(), gvk: node.gvk.clone(), namespace, name })
}

/// One look at an instance's nodes, in topological order.
struct Look<'a> {
    instance: &'a ObjectKey,
    found: &'a Found,
    outside: &'a Found,
    /// Nodes that the last pass could not write.
    failures: BTreeMap<String, String>,
    /// Nodes that hold up those that read them, with the objects that are not there or not ready.
    open: BTreeMap<&'a str, Vec<ObjectKey>>,
    missing: &'a mut BTreeMap<ObjectKey, Leaf>,
}

impl<'a> Look<'a> {
    fn node(&mut self, node: &'a Node, rendered: &[Rendered]) {
        let before: Vec<ObjectKey> =
            node.dependencies.iter().filter_map(|id| self.open.get(id.as_str())).flatten().cloned().collect();
        let own: Vec<&Rendered> = rendered.iter().filter(|rendered| rendered.node == node.id).collect();
        let keys: Vec<Option<ObjectKey>> = own.iter().map(|rendered| key_of(node, rendered, self.instance)).collect();
        let mut open = Vec::new();
        for key in keys {
            match key {
                Some(key) if self.is_there(node, &key) => {}
                Some(key) => {
                    self.note(node, &key, &before);
                    open.push(key);
                }
                // Who is held up by something without a name is held up by what that waits for.
                None => open.extend(before.iter().cloned()),
            }
        }
        if !open.is_empty() {
            self.open.insert(&node.id, open);
        }
    }

    /// There, and ready where others wait for that; a selector finds what it finds.
    fn is_there(&self, node: &Node, key: &ObjectKey) -> bool {
        let Some(live) = self.found.get(key).or_else(|| self.outside.get(key)) else {
            return node.kind == NodeKind::ExternalSelector;
        };
        // What may not be read is taken for ready.
        live.0.is_empty() || judge_child(node, live).health == Health::Current
    }

    /// What is there speaks for itself; what is not there gets a leaf.
    fn note(&mut self, node: &Node, key: &ObjectKey, before: &[ObjectKey]) {
        if self.found.contains_key(key) || self.outside.contains_key(key) {
            return;
        }
        let verdict = match before.first() {
            _ if self.failures.contains_key(&node.id) => Verdict::new(Health::Failed, "Failed", self.failures[&node.id].clone()),
            _ if node.is_deferred() => Verdict::new(Health::Waiting, DEFERRED, not_served(&node.gvk, None)),
            Some(first) => Verdict::new(Health::Waiting, "NotMade", format!("it is made once {first} is ready")),
            None => Verdict::not_found(),
        };
        let leaf = Leaf {
            verdict,
            parent: Some(self.instance.clone()),
            since: None,
            is_there: false,
            children: Vec::new(),
            unverified: None,
            waits_for: before.to_vec(),
        };
        self.missing.entry(key.clone()).or_insert(leaf);
    }
}
