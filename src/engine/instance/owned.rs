//! Nodes that the graph makes: what is wanted, against what is there.

use plinth_api::{Object, ObjectKey};

use super::{
    account::{account, refusal},
    compare::input,
    decision::{Action, NodeState, WaitsFor},
    expand::expand,
    inventory::Inventory,
    observation::Failure,
    pass::{Look, Outcome, Pass, readiness},
    resolve::{Wanted, applyset_of, decorate, fill, locate},
    values::{Trouble, Values},
};
use crate::{
    graph::{Node, NodeKind, collision},
    naming::keys,
    permission,
    ports::{Apply, WriteError},
};

impl<'a> Pass<'a> {
    pub(super) fn owned(&mut self, node: &'a Node, objects: &mut Vec<ObjectKey>) -> Outcome {
        let wanted = match self.wanted_of(node) {
            Ok(wanted) => wanted,
            Err(trouble) => return trouble.into(),
        };
        objects.extend(wanted.iter().map(|wanted| wanted.key.clone()));
        if let Some(outcome) = self.claim(node, &wanted) {
            return outcome;
        }
        let mut live = Vec::new();
        let mut worst: Option<Outcome> = None;
        for wanted in wanted {
            match self.compare(node, wanted) {
                Ok(object) => live.push(object),
                Err(outcome) if worst.as_ref().is_none_or(|worst| rank(worst.state) < rank(outcome.state)) => {
                    worst = Some(outcome);
                }
                Err(_) => {}
            }
        }
        if let Some(outcome) = worst {
            return outcome;
        }
        if node.kind.is_list() {
            self.values.observe_all(node, &live);
        } else if let Some(object) = live.first() {
            self.values.observe(node, object.as_value());
        }
        readiness(node, &live)
    }

    /// The objects that a node wants, with everything that kro puts on them.
    fn wanted_of(&self, node: &Node) -> Result<Vec<Wanted>, Trouble> {
        let items = match node.kind {
            NodeKind::Collection => expand(self.graph, node, &self.values)?,
            _ => vec![self.values.clone()],
        };
        let size = items.len();
        let item = |(index, values): (usize, &Values)| {
            let mut object = fill(node, values)?;
            let key = locate(node, &mut object, &self.seen.instance, self.cluster(node))?;
            let index = (node.kind == NodeKind::Collection).then_some(index);
            let mut wanted = Wanted { key, object, index };
            decorate(self.graph, node, &self.seen.instance, &mut wanted, size);
            Ok(wanted)
        };
        items.iter().enumerate().map(item).collect()
    }

    /// Notes what is wanted; fails where an object is wanted twice.
    fn claim(&mut self, node: &Node, wanted: &[Wanted]) -> Option<Outcome> {
        for Wanted { key, .. } in wanted {
            if let Some(other) = self.wanted.get(key) {
                return Some(Outcome::failed(collision(&node.id, other, &key.to_string())));
            }
            self.wanted.insert(key.clone(), node.id.clone());
        }
        self.batch = self.batch.union(&inventory_of(wanted, &self.seen.instance));
        None
    }

    /// The live object, where it is as wanted; else what is to be done or waited for.
    fn compare(&mut self, node: &'a Node, wanted: Wanted) -> Result<&'a Object, Outcome> {
        let input = input(&self.salt(), &wanted.object);
        let live = match self.look(&wanted.key) {
            Look::Unread => return Err(Outcome::new(NodeState::Acting)),
            Look::Blind(outcome) => return Err(outcome),
            Look::Absent => None,
            Look::Found(live) => Some(live),
        };
        if let Some(Failure::Write { input: failed, error }) = self.seen.failures.get(&wanted.key)
            && failed.as_ref().is_none_or(|failed| *failed == input)
        {
            return Err(self.unwritable(error, &wanted.object));
        }
        let Some(live) = live else { return Err(self.apply(node, wanted, input)) };
        if live.is_terminating() {
            let key = wanted.key;
            let message =
                format!("resource {key} for node {:?} is currently being deleted; waiting for deletion to complete", node.id);
            return Err(Outcome::waits(NodeState::Terminating, WaitsFor::Deletion(key), message));
        }
        self.membership(&wanted.key, live)?;
        let remembered = self.seen.applied.get(&wanted.key);
        if remembered.is_some_and(|applied| applied.proves(&input, &wanted.object, live, node.schema.as_deref())) {
            return Ok(live);
        }
        Err(self.apply(node, wanted, input))
    }

    /// What is written as somebody else is another input: children are applied anew by whoever comes to keep them.
    fn salt(&self) -> String {
        let uid = self.seen.instance.uid().unwrap_or_default();
        account(self.graph, self.seen).map_or_else(|| uid.to_owned(), |account| format!("{uid} {account}"))
    }

    fn membership(&self, key: &ObjectKey, live: &Object) -> Result<(), Outcome> {
        let ours = applyset_of(self.graph, &self.seen.instance);
        match live.label(keys::APPLYSET_PART_OF) {
            Some(other) if other != ours => {
                let gvk = format!("{}, Kind={}", key.gvk.api_version(), key.gvk.kind);
                let name = key.namespace.as_ref().map_or(key.name.clone(), |namespace| format!("{namespace}/{}", key.name));
                Err(Outcome::failed(format!(
                    "resource belongs to a different ApplySet: {name} ({gvk}) belongs to ApplySet {other:?}, cannot reassign to {ours:?}"
                )))
            }
            _ => Ok(()),
        }
    }

    fn apply(&mut self, node: &Node, wanted: Wanted, input: String) -> Outcome {
        let manager = keys::MANAGER_APPLYSET.to_owned();
        let apply = Apply { key: wanted.key, object: wanted.object, manager, force: true, subresource: None };
        self.applies.push(Action::Apply { node: node.id.clone(), apply, input });
        Outcome::new(NodeState::Acting)
    }

    fn unwritable(&mut self, error: &WriteError, object: &Object) -> Outcome {
        match error {
            WriteError::NotServed(gvk) => {
                self.watch.kinds.insert(gvk.clone());
                Outcome::waits(NodeState::Pending, WaitsFor::Kind(gvk.clone()), error.to_string())
            }
            // What an account may not do, no right of the controller mends.
            WriteError::Forbidden { .. } if self.graph.account.is_none() => Outcome::lacks(permission::of_write(error, object)),
            _ => Outcome::failed(refusal(self.graph, self.seen, error)),
        }
    }
}

/// Of several items, the one that most needs to be told stands for its node.
fn rank(state: NodeState) -> u8 {
    match state {
        NodeState::Failed => 4,
        NodeState::Terminating => 3,
        NodeState::Pending | NodeState::Deferred => 2,
        NodeState::Acting => 1,
        NodeState::Ready | NodeState::Skipped | NodeState::Unready => 0,
    }
}

fn inventory_of(wanted: &[Wanted], instance: &Object) -> Inventory {
    let own = instance.namespace();
    let namespaces =
        wanted.iter().filter_map(|wanted| wanted.key.namespace.clone()).filter(|namespace| Some(namespace.as_str()) != own);
    Inventory { kinds: wanted.iter().map(|wanted| wanted.key.gvk.group_kind()).collect(), namespaces: namespaces.collect() }
}
