//! What holds for any text, any graph, any observation and any fault.

use std::{cell::Cell, collections::BTreeSet};

use proptest::{
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use serde_json::{Value, json};

use crate::{
    graph::{Compiled, Graph, Options, compile, render},
    instance::{Action, Decision, NodeState, decide},
    naming::keys,
    testing::{cluster::Cluster, compiled, core, definition, graph, rgd},
};

/// A random graph as text: nodes that read nodes before them, some left out by a flag, some ready by a flag, some collections.
#[derive(Clone, Debug)]
struct Shape {
    nodes: Vec<Node>,
    listed: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Node {
    reads: Vec<bool>,
    optional: bool,
    gated: bool,
    list: bool,
}

fn shapes() -> impl Strategy<Value = Shape> {
    (1_usize..7).prop_flat_map(|count| {
        let node = (
            prop::collection::vec(prop::bool::weighted(0.3), count),
            any::<bool>(),
            prop::bool::weighted(0.3),
            prop::bool::weighted(0.25),
        );
        let node = node.prop_map(|(reads, optional, gated, list)| Node { reads, optional, gated, list });
        let listed = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
        (prop::collection::vec(node, count), listed).prop_map(|(nodes, listed)| Shape { nodes, listed })
    })
}

impl Shape {
    /// Nodes in a random order of the document.
    fn text(&self) -> String {
        let resources: String = self.listed.iter().map(|index| self.resource(*index)).collect();
        rgd("on: '[]boolean'\nitems: '[]string'", "", &resources)
    }

    fn resource(&self, index: usize) -> String {
        let node = &self.nodes[index];
        let read = (0..index).filter(|other| node.reads[*other]).map(|other| {
            if self.nodes[other].list { format!("${{string(size(n{other}))}}") } else { format!("${{n{other}.data.x}}") }
        });
        let read: String = read.collect();
        let mut text = format!("- id: n{index}\n");
        if node.optional {
            text += &format!("  includeWhen: ['${{schema.spec.on[{index}]}}']\n");
        }
        if node.gated {
            let own = if node.list { "each".to_owned() } else { format!("n{index}") };
            text += &format!("  readyWhen: ['${{{own}.metadata.?annotations.?go.orValue(\"\") == \"1\"}}']\n");
        }
        let name = if node.list { format!("n{index}-${{one}}") } else { format!("n{index}") };
        if node.list {
            text += "  forEach: [{one: '${schema.spec.items}'}]\n";
        }
        text + &format!(
            "  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: {name}\n    data:\n      x: 'v{read}'\n"
        )
    }

    fn spec(&self, bits: u64) -> Value {
        let on: Vec<bool> = (0..self.nodes.len()).map(|index| bits >> index & 1 == 1).collect();
        let items: Vec<&str> = ["a", "b", "c"].into_iter().take(usize::try_from(bits % 4).unwrap()).collect();
        json!({"on": on, "items": items})
    }
}

/// What happens between two decisions.
#[derive(Clone, Debug)]
enum Happening {
    /// The author edits the instance.
    Edit(u64),
    /// Somebody edits, deletes or releases the n-th object.
    Drift(usize),
    Vanish(usize),
    Open(usize),
    /// Writes of objects of this node are refused, or none are.
    Refuse(Option<usize>),
    /// What is known of the n-th object is lost.
    Forget(usize),
    /// Watches lag, or catch up.
    Lag(bool),
    /// Only this many of the next actions are done: the process is killed after them.
    Kill(usize),
    /// The instance is to go.
    Delete,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        3 => any::<u64>().prop_map(Happening::Edit),
        1 => (0_usize..8).prop_map(Happening::Drift),
        1 => (0_usize..8).prop_map(Happening::Vanish),
        3 => (0_usize..8).prop_map(Happening::Open),
        1 => prop::option::of(0_usize..7).prop_map(Happening::Refuse),
        1 => (0_usize..8).prop_map(Happening::Forget),
        1 => any::<bool>().prop_map(Happening::Lag),
        1 => (0_usize..3).prop_map(Happening::Kill),
        1 => Just(Happening::Delete),
    ];
    prop::collection::vec(one, 0..14)
}

/// A cluster to which things happen.
struct Story {
    cluster: Cluster,
    shape: Shape,
    lags: bool,
    most: usize,
    decisions: usize,
}

impl Story {
    fn new(shape: Shape) -> Self {
        let cluster = Cluster::new(graph(&shape.text(), &core()), shape.spec(u64::MAX));
        Self { cluster, shape, lags: false, most: usize::MAX, decisions: 0 }
    }

    fn nth(&self, index: usize) -> Option<plinth_api::ObjectKey> {
        let children: Vec<_> = self.cluster.objects.keys().filter(|key| key.gvk.kind == "ConfigMap").collect();
        children.get(index % children.len().max(1)).map(|key| (*key).clone())
    }

    fn happens(&mut self, what: &Happening) {
        match what {
            Happening::Edit(bits) => {
                let spec = self.shape.spec(*bits);
                if let Some(instance) = self.cluster.objects.get_mut(&self.cluster.key) {
                    instance.0.insert("spec".into(), spec);
                }
            }
            Happening::Drift(index) => {
                let Some(key) = self.nth(*index) else { return };
                self.cluster.objects.get_mut(&key).unwrap().0.insert("data".into(), json!({"x": "edited"}));
            }
            Happening::Vanish(index) => {
                let Some(key) = self.nth(*index) else { return };
                self.cluster.objects.remove(&key);
            }
            Happening::Open(index) => {
                let Some(key) = self.nth(*index) else { return };
                let metadata = self.cluster.objects.get_mut(&key).unwrap().metadata_mut();
                metadata.entry("annotations").or_insert(json!({}))["go"] = json!("1");
            }
            Happening::Refuse(node) => {
                let name = node.map(|node| format!("n{node}"));
                self.cluster.refuses = Box::new(move |key| name.as_ref().is_some_and(|name| key.name.starts_with(name.as_str())));
                self.cluster.seen.failures.clear();
            }
            Happening::Forget(index) => {
                let Some(key) = self.nth(*index) else { return };
                self.cluster.seen.objects.remove(&key);
                self.cluster.seen.applied.remove(&key);
            }
            Happening::Lag(lags) => self.lags = *lags,
            Happening::Kill(after) => self.most = *after,
            Happening::Delete => {
                let key = self.cluster.key.clone();
                if self.cluster.objects.contains_key(&key) {
                    self.cluster.delete(&key);
                }
            }
        }
    }

    /// Decides and acts for some rounds; checks every decision.
    fn rounds(&mut self, most: usize) -> Result<(), TestCaseError> {
        for _ in 0..most {
            if !self.cluster.objects.contains_key(&self.cluster.key) {
                return Ok(());
            }
            if !self.lags {
                self.cluster.refresh();
            }
            let decision = decide(&self.cluster.graph, &self.cluster.seen);
            self.check(&decision)?;
            if decision.actions.is_empty() {
                return Ok(());
            }
            for action in decision.actions.iter().take(self.most) {
                // What a lagging watch still shows may be gone: a server answers that as done.
                let gone = matches!(action, Action::Delete { delete, .. } if !self.cluster.objects.contains_key(&delete.key));
                if !gone && self.cluster.objects.contains_key(&self.cluster.key) {
                    self.cluster.act(action);
                }
            }
            self.most = usize::MAX;
        }
        Ok(())
    }

    fn check(&mut self, decision: &Decision) -> Result<(), TestCaseError> {
        self.decisions += 1;
        let again = decide(&self.cluster.graph, &self.cluster.seen);
        prop_assert_eq!(&decision.actions, &again.actions, "the same observation gives the same decision");
        let deleted: BTreeSet<_> = decision
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::Delete { delete, .. } => Some(&delete.key),
                _ => None,
            })
            .collect();
        prop_assert!(!deleted.contains(&self.cluster.key));
        let applied = decision.actions.iter().any(|action| matches!(action, Action::Apply { .. }));
        prop_assert!(deleted.is_empty() || !applied, "nothing is applied and deleted at once");
        if deleted.is_empty() {
            return Ok(());
        }
        let wave = |key: &plinth_api::ObjectKey| {
            let object = self.cluster.seen.objects.get(key).and_then(Option::as_ref);
            let listed = self.cluster.seen.lists.values().flatten().find(|object| object.name() == key.name);
            object.or(listed).and_then(|object| object.annotation(keys::APPLY_ORDER)).map(str::to_owned)
        };
        prop_assert!(
            deleted.iter().map(|key| wave(key)).collect::<BTreeSet<_>>().len() == 1,
            "one wave at a time: {:?}",
            deleted
        );
        if self.cluster.seen.instance.is_terminating() {
            return Ok(());
        }
        let settled = |state| matches!(state, NodeState::Ready | NodeState::Unready | NodeState::Skipped);
        prop_assert!(decision.complete && decision.nodes.iter().all(|node| settled(node.state)), "pruned in an incomplete pass");
        for node in decision.nodes.iter().filter(|node| node.state != NodeState::Skipped) {
            prop_assert!(node.objects.iter().all(|key| !deleted.contains(key)), "{} is wanted", node.id);
        }
        Ok(())
    }
}

/// Whatever happens: nothing is pruned before a pass is complete, and once all is well the cluster has exactly what is wanted.
fn prune(shape: Shape, story: &[Happening]) -> Result<usize, TestCaseError> {
    let mut stage = Story::new(shape);
    stage.rounds(60)?;
    for what in story {
        stage.happens(what);
        stage.rounds(8)?;
    }
    stage.lags = false;
    stage.cluster.refuses = Box::new(|_| false);
    stage.cluster.seen.failures.clear();
    stage.cluster.controller = Box::new(|object| {
        if object.gvk().is_some_and(|gvk| gvk.kind == "ConfigMap") {
            object.metadata_mut().entry("annotations").or_insert(json!({}))["go"] = json!("1");
        }
    });
    (0..40).for_each(|index| stage.happens(&Happening::Open(index)));
    stage.rounds(200)?;
    if !stage.cluster.objects.contains_key(&stage.cluster.key) {
        prop_assert!(stage.cluster.objects.is_empty(), "nothing is left of a deleted instance");
        return Ok(stage.decisions);
    }
    (0..40).for_each(|index| stage.happens(&Happening::Open(index)));
    stage.rounds(200)?;
    let decision = decide(&stage.cluster.graph, &stage.cluster.seen);
    if stage.cluster.seen.instance.is_terminating() {
        prop_assert!(!stage.cluster.objects.contains_key(&stage.cluster.key), "a deletion ends");
        return Ok(stage.decisions);
    }
    let wanted: BTreeSet<_> =
        decision.nodes.iter().filter(|node| node.state != NodeState::Skipped).flat_map(|node| node.objects.clone()).collect();
    let there: BTreeSet<_> = stage.cluster.objects.keys().filter(|key| key.gvk.kind == "ConfigMap").cloned().collect();
    prop_assert_eq!(there, wanted, "{:#?}", decision.nodes);
    Ok(stage.decisions)
}

/// Order, deletion waves and what an instance becomes are the same each time, and follow the edges.
fn order(shape: &Shape) -> Result<(), TestCaseError> {
    let (one, other) = (graph(&shape.text(), &core()), graph(&shape.text(), &core()));
    let position = |graph: &Graph, id: &str| graph.nodes.iter().position(|node| node.id == id).unwrap();
    for node in &one.nodes {
        for dependency in &node.dependencies {
            prop_assert!(position(&one, dependency) < position(&one, &node.id));
            prop_assert!(one.node(dependency).unwrap().apply_order < node.apply_order, "deletion reverses the order");
        }
    }
    prop_assert_eq!((one.order(), &one.crd), (other.order(), &other.crd));
    let instance = json!({"apiVersion": "kro.run/v1alpha1", "kind": "Test", "metadata": {"name": "i", "namespace": "n"}, "spec": shape.spec(7)});
    let instance = plinth_api::Object::from_value(instance).unwrap();
    prop_assert_eq!(render(&one, &instance), render(&other, &instance), "rendering is deterministic");
    Ok(())
}

/// A text in which pieces were taken out, doubled or replaced.
fn torn(text: &str, cuts: &[(usize, usize, u8)]) -> String {
    const PIECES: [&str; 12] = ["", ": ", "- ", "${", "}", "\n", "\t", "&a ", "*a", "\"", "{", "|\n"];
    let mut letters: Vec<char> = text.chars().collect();
    for (at, length, piece) in cuts {
        let at = at % (letters.len() + 1);
        let end = (at + length).min(letters.len());
        letters.splice(at..end, PIECES[usize::from(*piece) % PIECES.len()].chars());
    }
    letters.into_iter().collect()
}

/// Whatever a text says, compiling it answers, and answers the same again.
fn text(shape: &Shape, cuts: &[(usize, usize, u8)]) -> Result<(), TestCaseError> {
    let text = torn(&shape.text(), cuts);
    if crate::yaml::documents_with_duplicates(&text).is_ok_and(|documents| documents.is_empty()) {
        return Ok(());
    }
    let (one, other) = (compiled(&text, &core()), compiled(&text, &core()));
    prop_assert_eq!(one.diagnostics(), other.diagnostics());
    if let (Compiled::Invalid(findings), Ok(definition)) = (&one, definition(&text)) {
        prop_assert!(!findings.is_empty());
        let lines = text.lines().count();
        prop_assert!(findings.iter().filter_map(|finding| finding.location).all(|place| place.line <= lines + 1));
        drop(compile(&definition, &crate::schema::SchemaMap::default(), &Options::default()));
    }
    Ok(())
}

fn run<S: Strategy>(word: &str, cases: u32, strategy: &S, property: impl Fn(S::Value) -> Result<usize, TestCaseError>) {
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let steps = Cell::new(0);
    let result = runner.run(strategy, |value| {
        steps.set(steps.get() + property(value)?);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{word}: {error}");
    }
    println!("SHOW 03 properties {word}: {cases} cases, {} steps", steps.get());
}

#[test]
fn show_03_properties() {
    let cuts = prop::collection::vec((any::<usize>(), 0_usize..40, any::<u8>()), 1..6);
    run("any-text-is-answered", 96, &(shapes(), cuts), |(shape, cuts)| text(&shape, &cuts).map(|()| 1));
    run("order-respects-edges-and-deletion-reverses-it", 48, &shapes(), |shape| order(&shape).map(|()| 1));
    run("render-is-deterministic", 24, &shapes(), |shape| order(&shape).map(|()| 1));
    run("prune-only-after-a-complete-pass", 64, &(shapes(), happenings()), |(shape, story)| prune(shape, &story));
}
