//! Instances of all definitions: one queue, one pass at a time for each instance.
//!
//! A pass builds an [`Observation`] from the index, asks the engine what to do, does it, and asks again until nothing is left.
//! It ends by declaring what it depends on; the next pass comes when something of that changes, never by polling.
//!
//! Invariant: everything that is decided is decided by [`decide`]; this module fetches, writes and remembers.

mod act;
mod memory;
mod observe;
mod tell;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plinth_api::{GroupVersionKind, Object, ObjectKey};
use plinth_cluster::watch::{Look, Owner, WatchSet};
use plinth_engine::{
    graph::Graph,
    instance::{Applied, Decision, Observation, decide},
};
use plinth_run::{Cause, state};

use self::memory::{Known, Memory};
use crate::{graphs::Graphs, world::World};

/// Role of the owners that instances are.
pub const ROLE: &str = "instance";

/// Most rounds of one pass; a pass that has more to do goes on later, so that it cannot hold a worker for ever.
const MOST_ROUNDS: usize = 200;

/// When to look at an instance again, besides when something changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Only when something changes.
    Change,
    /// After this long.
    After(Duration),
}

/// The reconciler of instances.
pub struct Instances {
    world: World,
    graphs: Arc<Graphs>,
    shared: Mutex<Shared>,
    /// Asks for a pass of another instance; puts a key on the queue.
    enqueue: Arc<dyn Fn(&ObjectKey) + Send + Sync>,
}

/// What instances know of each other. Bounded by the number of instances and their children.
#[derive(Default)]
struct Shared {
    memories: BTreeMap<ObjectKey, Memory>,
    /// What a journal proves, until an instance takes it up.
    seed: BTreeMap<ObjectKey, state::Applied>,
    /// plinth's own Ready of each instance.
    ready: BTreeMap<ObjectKey, bool>,
    /// Why instances are not ready.
    causes: BTreeMap<ObjectKey, Vec<Cause>>,
    /// Instances by the children they have: whoever is a child of another has a parent to tell.
    parents: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Instances by the kinds they wait for.
    waiting: BTreeMap<GroupVersionKind, BTreeSet<ObjectKey>>,
}

impl Instances {
    /// A reconciler with what a journal proves (contracts 22).
    pub fn new(
        world: World,
        graphs: Arc<Graphs>,
        seed: BTreeMap<ObjectKey, state::Applied>,
        enqueue: Arc<dyn Fn(&ObjectKey) + Send + Sync>,
    ) -> Self {
        let shared = Mutex::new(Shared { seed, ..Shared::default() });
        Self { world, graphs, shared, enqueue }
    }

    /// One pass over one instance.
    pub async fn pass(&self, key: &ObjectKey) -> Next {
        let mut memory = self.lock().memories.remove(key).unwrap_or_default();
        let next = self.drive(key, &mut memory).await;
        if let Some(next) = next {
            self.lock().memories.insert(key.clone(), memory);
            return next;
        }
        self.forget(key);
        Next::Change
    }

    /// A kind came to be served: instances that wait for it go on.
    pub fn served(&self, gvk: &GroupVersionKind) {
        let waiting: Vec<ObjectKey> = {
            let mut shared = self.lock();
            for memory in shared.memories.values_mut() {
                memory.served(gvk);
            }
            shared.waiting.remove(gvk).into_iter().flatten().collect()
        };
        waiting.iter().for_each(|key| (self.enqueue)(key));
    }

    /// Whether an instance is Ready in plinth's own sense (contracts 13); `None` where it was never looked at.
    pub fn is_ready(&self, key: &ObjectKey) -> Option<bool> {
        self.lock().ready.get(key).copied()
    }

    /// `None`: the instance is gone and nothing of it is to be remembered.
    async fn drive(&self, key: &ObjectKey, memory: &mut Memory) -> Option<Next> {
        let instance = match self.instance(key, memory).await {
            Ok(instance) => instance?,
            Err(delay) => return Some(Next::After(delay)),
        };
        // Without a graph there is nothing to do yet: publishing one asks for a pass of every instance.
        let Some(published) = self.graphs.of_kind(&key.cluster, &key.gvk.group_kind()) else { return Some(Next::Change) };
        let mut observation = self.observe(key, instance, memory);
        let decision = self.rounds(key, &published.graph, &mut observation, memory).await?;
        self.conclude(key, &decision, observation, memory);
        let settled = decision.actions.is_empty();
        Some(match memory.next_attempt(self.world.clock.now()) {
            Some(delay) => Next::After(delay),
            None if settled => Next::Change,
            None => Next::After(Duration::ZERO),
        })
    }

    /// Decides and acts until nothing is left to do, or nothing more can be done now.
    async fn rounds(
        &self,
        key: &ObjectKey,
        graph: &Graph,
        observation: &mut Observation,
        memory: &mut Memory,
    ) -> Option<Decision> {
        let mut decision = Decision::default();
        for _ in 0..MOST_ROUNDS {
            observation.now = self.world.clock.now();
            decision = decide(graph, observation);
            if self.take_up_proofs(&decision, observation, memory) {
                continue;
            }
            if decision.actions.is_empty() {
                break;
            }
            match self.execute(key, graph, &decision, observation, memory).await {
                act::Progress::More => {}
                act::Progress::Stop => break,
                act::Progress::Gone => return None,
            }
        }
        Some(decision)
    }

    /// The instance in its newest state, `None` where it is gone.
    async fn instance(&self, key: &ObjectKey, memory: &mut Memory) -> Result<Option<Object>, Duration> {
        match memory.newest(key, self.world.index.look(key)) {
            Known::Is(object) => Ok(object),
            Known::Ask => self.world.reader.get(key).await.map_err(|error| {
                tracing::warn!(instance = %key, %error, "the instance cannot be read and will be looked at again");
                Duration::from_secs(1)
            }),
        }
    }

    /// Proofs of a journal count for the children that the graph has; each is taken up once. Whether there were any: what was
    /// decided without them does not count.
    fn take_up_proofs(&self, decision: &Decision, observation: &mut Observation, memory: &mut Memory) -> bool {
        let mut shared = self.lock();
        let mut any = false;
        if shared.seed.is_empty() {
            return any;
        }
        for verdict in &decision.nodes {
            for key in &verdict.objects {
                let Some(proof) = shared.seed.remove(key) else { continue };
                let (Some(result), Some(uid)) = (proof.result, proof.uid) else { continue };
                let (node, digest, generation) = (verdict.id.clone(), proof.digest, proof.generation);
                let applied = Applied { node: node.clone(), input: digest.clone(), result, uid };
                memory.proven.insert(key.clone(), memory::Proven { node, digest, generation });
                observation.applied.entry(key.clone()).or_insert(applied);
                any = true;
            }
        }
        any
    }

    /// Remembers, declares and tells.
    fn conclude(&self, key: &ObjectKey, decision: &Decision, observation: Observation, memory: &mut Memory) {
        let watch = &decision.watch;
        memory.objects = watch.objects.clone();
        memory.lists = watch.lists.clone();
        memory.keep_failures_of(&watch.objects, &watch.lists);
        let mut set: WatchSet = watch.clone().into();
        set.objects.insert(key.clone());
        self.world.index.declare(&owner(key), set);
        self.remember(key, decision);
        let kinds = self.graphs.kinds();
        let causes = self.lock().causes.clone();
        let context = tell::Context { instance: key, instance_kinds: &kinds, causes: &causes };
        let (events, own_causes) = tell::tell(decision, &observation, &context, &mut memory.told);
        memory.kinds.clone_from(&watch.kinds);
        memory.applied = observation.applied;
        self.tell_proven(key, memory);
        memory.settle(|key| self.world.index.look(key));
        for event in events {
            self.world.recorder.record(event);
        }
        self.publish_readiness(key, decision.ready, own_causes);
    }

    fn remember(&self, key: &ObjectKey, decision: &Decision) {
        let mut shared = self.lock();
        for waiting in shared.waiting.values_mut() {
            waiting.remove(key);
        }
        shared.waiting.retain(|_, waiting| !waiting.is_empty());
        for gvk in &decision.watch.kinds {
            shared.waiting.entry(gvk.clone()).or_default().insert(key.clone());
        }
        let kinds = self.graphs.kinds();
        let children = decision.nodes.iter().flat_map(|verdict| &verdict.objects);
        for child in children.filter(|child| kinds.contains(&child.gvk.group_kind())) {
            shared.parents.entry(child.clone()).or_default().insert(key.clone());
        }
    }

    /// A parent's Ready follows from its children's; their status alone does not always say so.
    fn publish_readiness(&self, key: &ObjectKey, ready: bool, causes: Vec<Cause>) {
        let causes = if ready { Vec::new() } else { causes };
        let parents = {
            let mut shared = self.lock();
            let before = shared.ready.insert(key.clone(), ready);
            let same = before == Some(ready) && shared.causes.get(key) == Some(&causes);
            shared.causes.insert(key.clone(), causes);
            if same { BTreeSet::new() } else { shared.parents.get(key).cloned().unwrap_or_default() }
        };
        parents.iter().for_each(|parent| (self.enqueue)(parent));
    }

    fn forget(&self, key: &ObjectKey) {
        self.world.index.forget(&owner(key));
        let parents = {
            let mut shared = self.lock();
            shared.memories.remove(key);
            shared.ready.remove(key);
            shared.causes.remove(key);
            for parents in shared.parents.values_mut() {
                parents.remove(key);
            }
            shared.parents.retain(|_, parents| !parents.is_empty());
            shared.parents.get(key).cloned().unwrap_or_default()
        };
        parents.iter().for_each(|parent| (self.enqueue)(parent));
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // Every change of the maps is complete in itself, so a panic elsewhere leaves them usable.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who is told about what an instance depends on.
fn owner(key: &ObjectKey) -> Owner {
    Owner { role: ROLE, key: key.clone() }
}

#[cfg(test)]
mod tests;
