//! What the graphs ask for, held against what is there.

use std::collections::BTreeMap;

use plinth_api::{Object, ObjectKey};
use plinth_engine::{
    graph::{self, Graph, Node, NodeKind, Rendered},
    health::{Health, Verdict, judge},
    naming::keys,
    ports::{ReadError, Reader},
};

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

/// Leaves for everything that is wanted and not there.
pub(super) fn missing(graphs: &Graphs, found: &Found, outside: &Found) -> BTreeMap<ObjectKey, Leaf> {
    let mut missing = BTreeMap::new();
    for (key, object, graph) in instances(graphs, found) {
        let reads = |key: &ObjectKey| graph.nodes.iter().any(|node| node.kind == NodeKind::External && node.gvk == key.gvk);
        let read = found.iter().chain(outside).filter(|(key, _)| reads(key)).map(|(_, object)| object.clone());
        let observed: Vec<Object> = children(found, object).into_iter().chain(read).collect();
        let rendered = graph::render_with(graph, object, &observed);
        let mut look = Look { instance: key, found, outside, open: BTreeMap::new(), missing: &mut missing };
        for node in &graph.nodes {
            look.node(node, &rendered);
        }
    }
    missing
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
        !live.is_terminating() && (node.ready_when.is_empty() || judge(live).health == Health::Current)
    }

    /// What is there speaks for itself; what is not there gets a leaf.
    fn note(&mut self, node: &Node, key: &ObjectKey, before: &[ObjectKey]) {
        if self.found.contains_key(key) || self.outside.contains_key(key) {
            return;
        }
        let verdict = match before.first() {
            _ if node.is_deferred() => Verdict::new(Health::Waiting, "Deferred", format!("{} is not served yet", node.gvk)),
            Some(first) => Verdict::new(Health::Waiting, "NotMade", format!("it is made once {first} is ready")),
            None => Verdict::not_found(),
        };
        let leaf = Leaf {
            verdict,
            parent: Some(self.instance.clone()),
            children: Vec::new(),
            unverified: None,
            waits_for: before.to_vec(),
        };
        self.missing.entry(key.clone()).or_insert(leaf);
    }
}
