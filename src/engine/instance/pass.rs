//! One look at all nodes, in topological order: what each is, and what it needs.
//!
//! A node that waits holds up those that read it and nobody else.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{ClusterKey, Object, ObjectKey, Permission};
use serde_json::Value;

use super::{
    decision::{Action, NodeState, NodeVerdict, WaitsFor, Watch},
    inventory::Inventory,
    observation::{Failure, Observation},
    values::{Trouble, Values},
};
use crate::{
    cel::{Reads, written},
    graph::{Condition, Graph, Node, NodeKind},
    permission,
    ports::ReadError,
};

/// What is known of a node.
pub(super) struct Outcome {
    pub(super) state: NodeState,
    pub(super) waits_for: Option<WaitsFor>,
    pub(super) message: String,
}

impl Outcome {
    pub(super) fn new(state: NodeState) -> Self {
        Self { state, waits_for: None, message: String::new() }
    }

    pub(super) fn waits(state: NodeState, waits_for: WaitsFor, message: impl Into<String>) -> Self {
        Self { state, waits_for: Some(waits_for), message: message.into() }
    }

    /// Waits for rights.
    pub(super) fn lacks(missing: BTreeSet<Permission>) -> Self {
        let message = plinth_api::permission::message(&missing);
        Self::waits(NodeState::Pending, WaitsFor::Permission(missing), message)
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self { state: NodeState::Failed, waits_for: None, message: message.into() }
    }
}

impl From<Trouble> for Outcome {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Absent(message) | Trouble::Failed(message) => Self::failed(message),
            Trouble::Pending { node, path } => {
                let message = format!("waiting for field {path} (data pending)");
                Self::waits(NodeState::Pending, WaitsFor::Field { node, path }, message)
            }
        }
    }
}

/// A pass over the nodes.
pub(super) struct Pass<'a> {
    pub(super) graph: &'a Graph,
    pub(super) seen: &'a Observation,
    pub(super) values: Values,
    pub(super) verdicts: Vec<NodeVerdict>,
    pub(super) watch: Watch,
    pub(super) reads: Vec<Action>,
    pub(super) applies: Vec<Action>,
    /// Objects that are wanted, by the node that wants them.
    pub(super) wanted: BTreeMap<ObjectKey, String>,
    /// Kinds and namespaces of everything wanted.
    pub(super) batch: Inventory,
    states: BTreeMap<&'a str, NodeState>,
}

/// What is known of an object.
pub(super) enum Look<'a> {
    /// It must be read first.
    Unread,
    /// It cannot be read.
    Blind(Outcome),
    /// It is not there.
    Absent,
    /// It is there.
    Found(&'a Object),
}

impl<'a> Pass<'a> {
    /// Looks at every node.
    pub(super) fn run(graph: &'a Graph, seen: &'a Observation) -> Self {
        let mut pass = Self {
            graph,
            seen,
            values: Values::new(graph, &seen.instance),
            verdicts: Vec::new(),
            watch: Watch::default(),
            reads: Vec::new(),
            applies: Vec::new(),
            wanted: BTreeMap::new(),
            batch: Inventory::default(),
            states: BTreeMap::new(),
        };
        graph.nodes.iter().for_each(|node| pass.node(node));
        pass
    }

    fn node(&mut self, node: &'a Node) {
        let mut objects = Vec::new();
        let outcome = match self.gate(node) {
            Some(outcome) => outcome,
            None => self.visit(node, &mut objects),
        };
        self.states.insert(&node.id, outcome.state);
        let Outcome { state, waits_for, message } = outcome;
        self.verdicts.push(NodeVerdict { id: node.id.clone(), state, objects, waits_for, message });
    }

    fn visit(&mut self, node: &'a Node, objects: &mut Vec<ObjectKey>) -> Outcome {
        if node.kind.is_owned() { self.owned(node, objects) } else { self.external(node, objects) }
    }

    /// Whether a node is looked at at all: left out, deferred, or behind another node.
    fn gate(&mut self, node: &'a Node) -> Option<Outcome> {
        if let Some(left_out) = self.left_out(node) {
            return Some(left_out);
        }
        if node.is_deferred() {
            self.watch.kinds.insert(node.gvk.clone());
            let message = format!("kind {} is not served yet", node.gvk);
            return Some(Outcome::waits(NodeState::Deferred, WaitsFor::Kind(node.gvk.clone()), message));
        }
        node.dependencies.iter().find_map(|id| self.behind(node, id, "dependent node"))
    }

    /// Left out by `includeWhen`, its own or that of a node it reads.
    fn left_out(&self, node: &'a Node) -> Option<Outcome> {
        let skipped = |id: &&String| self.states.get(id.as_str()) == Some(&NodeState::Skipped);
        if let Some(id) = node.dependencies.iter().find(skipped) {
            return Some(Outcome {
                message: format!("node {id:?}, which it reads, is left out"),
                ..Outcome::new(NodeState::Skipped)
            });
        }
        let read: BTreeSet<&String> =
            node.include_when.iter().flat_map(|when| when.expression.references().identifiers.keys()).collect();
        if let Some(behind) = read.into_iter().find_map(|id| self.behind(node, id, "includeWhen dependency")) {
            return Some(behind);
        }
        match self.values.all(&node.include_when) {
            Ok(None) => None,
            Ok(Some(source)) => {
                Some(Outcome { message: format!("includeWhen {source:?} is not true"), ..Outcome::new(NodeState::Skipped) })
            }
            Err((trouble, _)) => Some(trouble.into()),
        }
    }

    /// Behind another node that is not ready, with the fields that are read of it where it is not there; `None` for ready nodes and for
    /// names that are no nodes.
    fn behind(&self, node: &Node, id: &str, what: &str) -> Option<Outcome> {
        let state = self.states.get(id).filter(|state| !matches!(state, NodeState::Ready | NodeState::Skipped))?;
        let why = match state {
            NodeState::Acting => "no observed state",
            NodeState::Unready => "waiting for readiness",
            NodeState::Deferred => "its kind is not served yet",
            NodeState::Terminating => "it is being deleted",
            NodeState::Failed => "it has failed",
            NodeState::Pending | NodeState::Ready | NodeState::Skipped => "waiting for data",
        };
        let read = if *state == NodeState::Pending { fields_of(node, id) } else { String::new() };
        let message = format!("{what} {id:?} not ready: {why}{read} (data pending)");
        Some(Outcome::waits(NodeState::Pending, WaitsFor::Node(id.to_owned()), message))
    }

    /// The cluster of a node's objects.
    pub(super) fn cluster(&self, node: &Node) -> &'a ClusterKey {
        self.seen.planes.get(&node.plane).unwrap_or(&self.seen.cluster)
    }

    /// Looks at an object, and asks for it where it was not read yet.
    pub(super) fn look(&mut self, key: &ObjectKey) -> Look<'a> {
        self.watch.objects.insert(key.clone());
        if let Some(Failure::Read(error)) = self.seen.failures.get(key) {
            return Look::Blind(self.unreadable(error));
        }
        match self.seen.objects.get(key) {
            None => {
                self.reads.push(Action::Read(key.clone()));
                Look::Unread
            }
            Some(None) => Look::Absent,
            Some(Some(object)) => Look::Found(object),
        }
    }

    pub(super) fn unreadable(&mut self, error: &ReadError) -> Outcome {
        match error {
            ReadError::NotServed(gvk) => {
                self.watch.kinds.insert(gvk.clone());
                Outcome::waits(NodeState::Pending, WaitsFor::Kind(gvk.clone()), error.to_string())
            }
            ReadError::Forbidden { .. } => Outcome::lacks(permission::of_read(error).into_iter().collect()),
            ReadError::Unavailable(_) | ReadError::Unauthenticated(_) => Outcome::failed(error.to_string()),
        }
    }

    /// Whether nothing is left to resolve, read or apply, so that what is not wanted may go.
    pub(super) fn is_complete(&self) -> bool {
        let settled = |state| matches!(state, NodeState::Ready | NodeState::Unready | NodeState::Skipped);
        self.verdicts.iter().all(|verdict| settled(verdict.state))
    }
}

/// `, field a.b.c` for what a node reads of another one; empty where it reads the whole of it.
fn fields_of(node: &Node, id: &str) -> String {
    const MOST: usize = 3;
    let expressions = node.slots.iter().map(|slot| &slot.expression);
    let expressions = expressions.chain(node.for_each.iter().map(|dimension| &dimension.expression));
    let expressions = expressions.chain(node.include_when.iter().map(|condition| &condition.expression));
    let paths = expressions.flat_map(|expression| &expression.references().paths);
    let read = paths.filter(|path| path[0] == id && path.len() > 1).map(|path| written(path));
    match read.collect::<BTreeSet<_>>() {
        none if none.is_empty() => String::new(),
        fields if fields.len() == 1 => format!(", field {}", fields.into_iter().collect::<String>()),
        fields => {
            let more = if fields.len() > MOST { ", …" } else { "" };
            format!(", fields {}{more}", fields.into_iter().take(MOST).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Ready when there is nothing that says otherwise: each of the objects is asked by `readyWhen`.
pub(super) fn readiness(node: &Node, objects: &[&Object]) -> Outcome {
    if node.ready_when.is_empty() {
        return Outcome::new(NodeState::Ready);
    }
    let objects = objects.iter().map(|object| object.as_value());
    match node.kind {
        NodeKind::ExternalSelector => {
            let reads_all = |condition: &Condition| condition.expression.references().identifiers.contains_key(&node.id);
            let (all, each): (Vec<_>, Vec<_>) = node.ready_when.iter().cloned().partition(reads_all);
            let list = Value::Array(objects.clone().cloned().collect());
            match asked(node, &node.id, [&list], &all) {
                ready if ready.state == NodeState::Ready => asked(node, "each", objects, &each),
                other => other,
            }
        }
        NodeKind::Collection => asked(node, "each", objects, &node.ready_when),
        NodeKind::Template | NodeKind::External => asked(node, &node.id, objects, &node.ready_when),
    }
}

/// Whether all conditions hold for each of the values, by its name in them.
fn asked<'v>(node: &Node, name: &str, values: impl IntoIterator<Item = &'v Value>, conditions: &[Condition]) -> Outcome {
    let reads = Reads::of(conditions.iter().map(|condition| &condition.expression));
    for value in values {
        match Values::only(name, reads.project(name, value)).all(conditions) {
            Ok(None) => {}
            Ok(Some(source)) => {
                let message = format!("readyWhen {source:?} is not true");
                return Outcome::waits(NodeState::Unready, WaitsFor::Condition(source.to_owned()), message);
            }
            Err((Trouble::Pending { path, .. }, source)) => {
                let message = format!("readyWhen {source:?}: field {path} is not there yet");
                return Outcome::waits(NodeState::Unready, WaitsFor::Field { node: node.id.clone(), path }, message);
            }
            Err((Trouble::Absent(message) | Trouble::Failed(message), _)) => return Outcome::failed(message),
        }
    }
    Outcome::new(NodeState::Ready)
}
