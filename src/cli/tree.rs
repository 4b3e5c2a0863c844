//! What a cluster has of a platform and what it lacks, as a tree with verdicts: the ground of `status` and `why`.
//!
//! Objects are found by labels, not by a journal, so that it works from any machine. What should be there and is not follows from
//! the graphs, so that it shows also while nobody reconciles them.

mod expected;
mod gather;
mod graphs;
mod made;
mod removal;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey};
use plinth_bootstrap::Schemas;
use plinth_engine::{
    graph::Definition,
    health::{Explanation, Health, Verdict, explain, judge_at, judge_instance, since},
    naming::keys,
    ports::{ReadError, Reader},
};

use gather::Gathered;
pub(crate) use gather::{kinds, of_runs, wanted};
use graphs::Graphs;
pub(crate) use graphs::Memory;
pub(crate) use made::of_definitions;

/// Objects by key.
type Found = BTreeMap<ObjectKey, Object>;

/// One object of a platform.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// How it is.
    pub(crate) verdict: Verdict,
    /// The instance it is a child of.
    pub(crate) parent: Option<ObjectKey>,
    /// Since when it is so, where the object says that.
    pub(crate) since: Option<Timestamp>,
    /// Whether it is there; what is only wanted is in the tree, too.
    pub(crate) is_there: bool,
    /// What it is made of.
    pub(crate) children: Vec<ObjectKey>,
    /// Checks of the channel that were switched off when it was written.
    pub(crate) unverified: Option<String>,
    /// What has to be there and ready before it can be made, where it is not there.
    pub(crate) waits_for: Vec<ObjectKey>,
}

/// All objects of a platform, by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    /// The objects, those that are missing as well.
    pub(crate) leaves: BTreeMap<ObjectKey, Leaf>,
    /// What is there belongs to a platform whose top-level instance is not there: what is lacking, as a sentence.
    pub(crate) begun: Option<String>,
    /// A removal has begun and has not ended: the sign of it, as a sentence.
    pub(crate) removing: Option<String>,
}

impl Tree {
    /// Reads definitions with the platform's label, their instances, and everything below them; and compiles the definitions, to
    /// see what is lacking.
    pub(crate) async fn load(platform: &str, reader: &dyn Reader, schemas: &dyn Schemas) -> Result<Self, ReadError> {
        Self::load_again(platform, reader, schemas, &mut Memory::default()).await
    }

    /// The same for whoever looks again and again.
    pub(crate) async fn load_again(
        platform: &str,
        reader: &dyn Reader,
        schemas: &dyn Schemas,
        memory: &mut Memory,
    ) -> Result<Self, ReadError> {
        let Gathered { found, graphs, outside, begun, removing } = gather::all(platform, reader, schemas, memory).await?;
        Ok(Self { begun, removing, ..Self::of(&found, &graphs, &outside) })
    }

    /// The tree of what was found, and of what the graphs ask for besides. `outside` is there without being found by label.
    fn of(found: &Found, graphs: &Graphs, outside: &Found) -> Self {
        let by_uid: BTreeMap<&str, &ObjectKey> = found.iter().filter_map(|(key, object)| Some((object.uid()?, key))).collect();
        let parent = |key: &ObjectKey, object: &Object| {
            // What is made for a definition lies below it; the label is on children of instances as well.
            let label = if made::is_of_definition(&key.gvk) { keys::RGD_ID } else { keys::INSTANCE_ID };
            let known = object.label(label).and_then(|uid| by_uid.get(uid)).map(|parent| (*parent).clone());
            known.or_else(|| recorded_parent(object))
        };
        let (now, defined) = (Timestamp::now(), defined(found.values()));
        let judged = expected::judged(graphs, found, outside);
        let verdict = |key: &ObjectKey, object: &Object| match judged.get(key) {
            Some(verdict) => verdict.clone(),
            None if defined.contains(&key.gvk) => judge_instance(object, now),
            None => judge_at(object, now),
        };
        let leaf = |key: &ObjectKey, object: &Object| Leaf {
            verdict: verdict(key, object),
            parent: parent(key, object),
            since: since(object),
            is_there: true,
            children: Vec::new(),
            unverified: object.annotation(keys::UNVERIFIED).map(str::to_owned),
            waits_for: Vec::new(),
        };
        let mut leaves: BTreeMap<ObjectKey, Leaf> = found.iter().map(|(key, object)| (key.clone(), leaf(key, object))).collect();
        leaves.extend(expected::missing(graphs, found, outside));
        let mut tree = Self { leaves, ..Self::default() };
        tree.link();
        tree.settle(graphs);
        tree
    }

    /// Tells parents of their children. One that is not in the tree is no parent.
    fn link(&mut self) {
        let known: BTreeSet<ObjectKey> = self.leaves.keys().cloned().collect();
        let mut children: BTreeMap<ObjectKey, Vec<ObjectKey>> = BTreeMap::new();
        for (key, leaf) in &mut self.leaves {
            leaf.parent = leaf.parent.take().filter(|parent| known.contains(parent) && parent != key);
            if let Some(parent) = &leaf.parent {
                children.entry(parent.clone()).or_default().push(key.clone());
            }
        }
        for (parent, children) in children {
            if let Some(leaf) = self.leaves.get_mut(&parent) {
                leaf.children = children;
            }
        }
    }

    /// An instance whose own status says Ready is not ready where a child is not there or not ready by `readyWhen`, or an instance
    /// below it is not ready (contracts 13): nobody may have looked since.
    fn settle(&mut self, graphs: &Graphs) {
        let mut deepest_first: Vec<(usize, ObjectKey)> = self.leaves.keys().map(|key| (self.depth(key), key.clone())).collect();
        deepest_first.sort_by(|a, b| b.cmp(a));
        for (_, key) in deepest_first {
            let leaf = &self.leaves[&key];
            if leaf.verdict.health != Health::Current {
                continue;
            }
            let is_open = |child: &&ObjectKey| match self.leaves[*child].verdict.health {
                Health::Current => false,
                Health::NotFound | Health::Terminating => true,
                // Judged as its node says; without a graph nobody knows what the node asks for.
                _ => graphs.contains_key(&key.gvk),
            };
            let Some(child) = leaf.children.iter().find(is_open) else { continue };
            let message = format!("{child} is {}", plinth_run::health::word(self.leaves[child].verdict.health));
            let verdict = Verdict::new(Health::Waiting, "ChildNotReady", message);
            let since = self.leaves[child].since;
            if let Some(leaf) = self.leaves.get_mut(&key) {
                (leaf.verdict, leaf.since) = (verdict, since);
            }
        }
    }

    /// How many parents lie above it; labels that lead in a circle end at the number of objects.
    fn depth(&self, key: &ObjectKey) -> usize {
        let parents = std::iter::successors(Some(key), |key| self.leaves.get(*key)?.parent.as_ref());
        parents.take(self.leaves.len()).count()
    }

    /// What was not checked of the channel that the platform came from, each once.
    pub(crate) fn unverified(&self) -> BTreeSet<&str> {
        self.leaves.values().filter_map(|leaf| leaf.unverified.as_deref()).collect()
    }

    /// Objects without a parent, definitions first.
    pub(crate) fn roots(&self) -> impl Iterator<Item = (&ObjectKey, &Leaf)> {
        self.leaves.iter().filter(|(_, leaf)| leaf.parent.is_none())
    }

    /// Why an object is as it is.
    pub(crate) fn why(&self, key: &ObjectKey) -> Explanation<ObjectKey> {
        let verdict = |key: &ObjectKey| self.leaves.get(key).map_or_else(Verdict::not_found, |leaf| leaf.verdict.clone());
        let causes = |key: &ObjectKey| match self.leaves.get(key) {
            Some(leaf) => leaf.waits_for.iter().chain(&leaf.children).cloned().collect(),
            None => Vec::new(),
        };
        explain(key.clone(), verdict, causes)
    }

    /// The health of the whole: the worst of all objects, `NotFound` where there is no platform.
    pub(crate) fn health(&self) -> Health {
        let has = |health| self.leaves.values().any(|leaf| leaf.verdict.health == health);
        if self.leaves.is_empty() && self.begun.is_none() {
            Health::NotFound
        } else if has(Health::Failed) {
            Health::Failed
        } else if self.begun.is_none() && self.leaves.values().all(|leaf| leaf.verdict.health == Health::Current) {
            Health::Current
        } else {
            Health::InProgress
        }
    }
}

/// The kinds that definitions define: their objects are instances.
fn defined<'a>(objects: impl Iterator<Item = &'a Object>) -> BTreeSet<GroupVersionKind> {
    let definitions = objects.filter_map(|object| Definition::from_object(object).ok());
    definitions.map(|definition| instances_of(&definition)).collect()
}

fn instances_of(definition: &Definition) -> GroupVersionKind {
    let schema = &definition.spec.schema;
    GroupVersionKind::new(schema.group.clone(), schema.api_version.clone(), schema.kind.clone())
}

/// The instance that an object's labels name, for children whose instance is not there any more.
fn recorded_parent(object: &Object) -> Option<ObjectKey> {
    let label = |name: &str| object.label(name).map(str::to_owned);
    Some(ObjectKey {
        cluster: ClusterKey::host(),
        gvk: GroupVersionKind::new(label(keys::INSTANCE_GROUP)?, label(keys::INSTANCE_VERSION)?, label(keys::INSTANCE_KIND)?),
        namespace: label(keys::INSTANCE_NAMESPACE),
        name: label(keys::INSTANCE_NAME)?,
    })
}
