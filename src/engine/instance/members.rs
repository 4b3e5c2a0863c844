//! Members of the instance's ApplySet: what to prune after a complete pass, what to delete with the instance.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{ClusterKey, GroupKind, GroupVersionKind, Object, ObjectKey};

use super::{
    decision::{Action, Watch},
    inventory::{Inventory, is_applied},
    observation::Observation,
};
use crate::{
    graph::Graph,
    naming::keys,
    ports::{Delete, Query, ReadError},
};

/// Members as far as they are known.
#[derive(Default)]
pub(super) struct Members<'a> {
    pub(super) found: BTreeMap<ObjectKey, &'a Object>,
    /// Lists and objects that have to be read first.
    pub(super) reads: Vec<Action>,
    /// Why members cannot be known.
    pub(super) blind: Option<String>,
}

impl<'a> Members<'a> {
    /// Looks for the members of `set` among the kinds that are recorded and among what was applied.
    pub(super) fn look(graph: &Graph, seen: &'a Observation, set: &str, inventory: &Inventory, watch: &mut Watch) -> Self {
        let mut members = Self::default();
        let clusters: BTreeSet<&ClusterKey> = seen.planes.values().chain([&seen.cluster]).collect();
        for kind in &inventory.kinds {
            for cluster in &clusters {
                let gvk = version_of(graph, kind);
                let selector = format!("{}={set}", keys::APPLYSET_PART_OF);
                members.list(seen, Query { cluster: (*cluster).clone(), gvk, namespace: None, selector }, watch);
            }
        }
        for key in seen.applied.keys() {
            members.remembered(seen, key, set, watch);
        }
        members
    }

    fn list(&mut self, seen: &'a Observation, query: Query, watch: &mut Watch) {
        watch.lists.insert(query.clone());
        match (seen.list_failures.get(&query), seen.lists.get(&query)) {
            // A kind that is gone has no objects.
            (Some(ReadError::NotServed(_)), _) => {}
            (Some(error), _) => self.blind = Some(error.to_string()),
            (None, None) => self.reads.push(Action::List(query)),
            (None, Some(objects)) => {
                let members = objects.iter().filter(|object| is_applied(object));
                self.found.extend(members.filter_map(|object| Some((object.key(&query.cluster)?, object))));
            }
        }
    }

    /// What was applied is looked at by name: a list may be older than the apply.
    fn remembered(&mut self, seen: &'a Observation, key: &ObjectKey, set: &str, watch: &mut Watch) {
        watch.objects.insert(key.clone());
        match seen.objects.get(key) {
            None if seen.failures.contains_key(key) => {}
            None => self.reads.push(Action::Read(key.clone())),
            Some(None) => drop(self.found.remove(key)),
            Some(Some(object)) if object.label(keys::APPLYSET_PART_OF) == Some(set) => {
                self.found.insert(key.clone(), object);
            }
            Some(Some(_)) => {}
        }
    }

    /// Deletions of the highest wave among the members that `goes` names; an empty answer while that wave is still going.
    pub(super) fn next_wave(&self, goes: impl Fn(&ObjectKey) -> bool) -> Vec<Action> {
        let going: Vec<_> = self.found.iter().filter(|(key, _)| goes(key)).collect();
        let Some(highest) = going.iter().map(|(_, object)| wave(object)).max() else { return Vec::new() };
        let wave = going.into_iter().filter(|(_, object)| wave(object) == highest && !object.is_terminating());
        wave.map(|(key, object)| delete(key, object)).collect()
    }
}

/// The recorded wave; members without one go last.
fn wave(object: &Object) -> usize {
    object.annotation(keys::APPLY_ORDER).and_then(|order| order.parse().ok()).unwrap_or_default()
}

fn delete(key: &ObjectKey, object: &Object) -> Action {
    let uid = object.uid().map(str::to_owned);
    Action::Delete { node: object.label(keys::NODE_ID).map(str::to_owned), delete: Delete { key: key.clone(), uid } }
}

/// An inventory names no versions: the graph's where it has the kind, else the one that the server prefers (empty).
fn version_of(graph: &Graph, kind: &GroupKind) -> GroupVersionKind {
    let known = graph.nodes.iter().map(|node| &node.gvk).find(|gvk| gvk.group_kind() == *kind);
    known.cloned().unwrap_or_else(|| GroupVersionKind::new(&kind.group, "", &kind.kind))
}
