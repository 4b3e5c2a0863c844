//! Instances of all definitions: one queue, one pass at a time for each instance.
//!
//! A pass builds an [`Observation`] from the index, asks the engine what to do, does it, and asks again until nothing is left.
//! It ends by declaring what it depends on; the next pass comes when something of that changes, never by polling.
//!
//! Invariant: everything that is decided is decided by [`decide`]; this module fetches, writes and remembers.

mod act;
mod events;
mod memory;
mod observe;
mod stands;
mod tell;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey};
use plinth_cluster::watch::{Owner, WatchSet};
use plinth_engine::{
    instance::{Applied, Decision, InstanceState, Observation, WaitsFor, decide},
    ports::Answer,
};
use plinth_manager::reconcile::{Failure, Outcome, Reconciler};
use plinth_run::{Cause, EventKind, Health, Subject, state};

use self::{
    act::{Progress, Round},
    memory::{Known, Memory},
};
use crate::{
    figures::{Figures, gvr},
    graphs::Graphs,
    world::World,
};

pub(crate) use self::memory::UNPERMITTED;

/// Role of the owners that instances are.
pub const ROLE: &str = "instance";

/// When to look again for members of kinds that the graph has no more, which are not watched.
const UNWATCHED: Duration = Duration::from_secs(2);

/// Most rounds of one pass; a pass that has more to do goes on later, so that it cannot hold a worker for ever.
const MOST_ROUNDS: usize = 200;

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
    /// What each instance was judged by.
    judged: BTreeMap<ObjectKey, stands::Judged>,
    /// Why instances are not ready.
    causes: BTreeMap<ObjectKey, Vec<Cause>>,
    /// Instances by the children they have: whoever is a child of another has a parent to tell.
    parents: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Told when readiness changes.
    tell: Option<Arc<dyn Fn() + Send + Sync>>,
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

    async fn pass(&self, key: &ObjectKey) -> Outcome {
        let mut memory = self.lock().memories.remove(key).unwrap_or_default();
        let Some(outcome) = self.drive(key, &mut memory).await else {
            self.forget(key);
            return Outcome::Done;
        };
        self.lock().memories.insert(key.clone(), memory);
        outcome
    }

    /// A kind came to be served. Its watch starts at once for those that wait for it, so that it lists while the definition is
    /// still being compiled; publishing the graph asks for their passes. Those that failed for want of the kind go on now.
    pub fn served(&self, cluster: &ClusterKey, gvk: &GroupVersionKind) {
        let (waiting, failed) = {
            let mut shared = self.lock();
            let of_cluster = |key: &&ObjectKey| key.cluster == *cluster;
            let waiting: Vec<ObjectKey> = shared.waiting.get(gvk).into_iter().flatten().filter(of_cluster).cloned().collect();
            let mut failed = Vec::new();
            for (key, memory) in shared.memories.iter_mut().filter(|(key, _)| key.cluster == *cluster) {
                if memory.served(gvk) {
                    failed.push(key.clone());
                }
            }
            (waiting, failed)
        };
        for key in waiting {
            self.world.index.extend(&owner(&key), WatchSet::all_of(cluster.clone(), gvk.clone()));
        }
        for key in &failed {
            (self.enqueue)(key);
        }
    }

    /// The graphs in use.
    pub(crate) fn graphs(&self) -> &Graphs {
        &self.graphs
    }

    /// Where figures go.
    pub(crate) fn figures(&self) -> &Figures {
        &self.world.figures
    }

    /// Whether an instance is Ready in plinth's own sense (contracts 13); `None` where it was never looked at.
    pub fn is_ready(&self, key: &ObjectKey) -> Option<bool> {
        self.lock().ready.get(key).copied()
    }

    /// Why an instance is not ready, from the nearest cause to the root.
    pub fn causes(&self, key: &ObjectKey) -> Vec<Cause> {
        self.lock().causes.get(key).cloned().unwrap_or_default()
    }

    /// Says whom to tell when an instance turns ready, or not ready, or for another reason.
    pub fn on_readiness(&self, tell: Arc<dyn Fn() + Send + Sync>) {
        self.lock().tell = Some(tell);
    }

    /// Every instance that is known.
    pub fn all(&self) -> Vec<ObjectKey> {
        self.lock().ready.keys().cloned().collect()
    }

    /// `None`: the instance is gone and nothing of it is to be remembered.
    async fn drive(&self, key: &ObjectKey, memory: &mut Memory) -> Option<Outcome> {
        let instance = match self.instance(key, memory).await {
            Ok(instance) => instance?,
            Err(delay) => return Some(Outcome::RequeueAfter(delay)),
        };
        if self.world.removing && !instance.is_terminating() {
            return Some(Outcome::Wait { reason: "a removal is under way".to_owned() });
        }
        // Without a graph there is nothing to do yet: publishing one asks for a pass of every instance.
        let Some(published) = self.graphs.of_kind(&key.cluster, &key.gvk.group_kind()) else {
            self.world.figures.count("instance_graph_resolution_pending_total", &[("gvr", &gvr(&key.gvk, ""))]);
            return Some(Outcome::Wait { reason: "no definition of the kind is in use".to_owned() });
        };
        let before = instance.status()["state"].as_str().map(str::to_owned);
        let mut observation = self.observe(key, instance, memory);
        let mut round =
            Round { world: &self.world, key, graph: &published.graph, observation: &mut observation, memory: &mut *memory };
        let mut decision = self.rounds(&mut round).await?;
        // What could not be written yet is not there: a run that ends by this Ready would leave it so.
        decision.ready &= decision.actions.is_empty();
        round.tell_proven();
        self.world.figures.decided(&published.graph, &decision, before.as_deref());
        let judged = stands::Judged::of(&published.graph, observation.instance.generation(), &decision);
        self.lock().judged.insert(key.clone(), judged);
        self.conclude(key, &decision, observation, memory);
        let blind = decision.watch.lists.iter().any(|query| query.gvk.version.is_empty());
        let unsettled = !decision.actions.is_empty();
        Some(match memory.next_attempt(self.world.clock.now()) {
            Some(delay) => Outcome::RequeueAfter(delay),
            None if unsettled => Outcome::RequeueAfter(Duration::ZERO),
            None if blind && decision.state == InstanceState::Deleting => Outcome::RequeueAfter(UNWATCHED),
            None => Outcome::Done,
        })
    }

    /// Decides and acts until nothing is left to do, or nothing more can be done now.
    async fn rounds(&self, round: &mut Round<'_>) -> Option<Decision> {
        let mut decision = Decision::default();
        for _ in 0..MOST_ROUNDS {
            round.observation.now = self.world.clock.now();
            decision = decide(round.graph, round.observation);
            if self.take_up_proofs(&decision, round) {
                continue;
            }
            if decision.actions.is_empty() {
                break;
            }
            match round.execute(&decision).await {
                Progress::More => {}
                Progress::Stop => break,
                Progress::Gone => return None,
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
    fn take_up_proofs(&self, decision: &Decision, round: &mut Round<'_>) -> bool {
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
                round.memory.proven.insert(key.clone(), memory::Proven { node, digest, generation });
                round.observation.applied.entry(key.clone()).or_insert(applied);
                any = true;
            }
        }
        any
    }

    /// Remembers, declares and tells.
    fn conclude(&self, key: &ObjectKey, decision: &Decision, observation: Observation, memory: &mut Memory) {
        let watch = &decision.watch;
        memory.objects.clone_from(&watch.objects);
        memory.lists.clone_from(&watch.lists);
        memory.keep_failures_of(&watch.objects, &watch.lists);
        let mut set: WatchSet = watch.clone().into();
        set.objects.insert(key.clone());
        set.lists.retain(|query| !query.gvk.version.is_empty());
        self.world.index.declare(&owner(key), set);
        self.world.awaited.declare(key, made_again(decision));
        self.remember(key, decision);
        let kinds = self.graphs.kinds();
        let (known, causes) = {
            let mut shared = self.lock();
            // Known before it tells anything: its parent tells nothing of it from now on.
            shared.ready.entry(key.clone()).or_default();
            let children = decision.nodes.iter().flat_map(|verdict| &verdict.objects);
            let known = children.filter(|child| shared.ready.contains_key(child)).cloned().collect();
            (known, shared.causes.clone())
        };
        let context = tell::Context { instance: key, instance_kinds: &kinds, known: &known, causes: &causes };
        let (events, own_causes) = tell::tell(decision, &observation, &context, &mut memory.told);
        memory.kinds.clone_from(&watch.kinds);
        memory.applied = observation.applied;
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
        let (parents, tell) = {
            let mut shared = self.lock();
            let before = shared.ready.insert(key.clone(), ready);
            let same = before == Some(ready) && shared.causes.get(key) == Some(&causes);
            shared.causes.insert(key.clone(), causes);
            let parents = if same { BTreeSet::new() } else { shared.parents.get(key).cloned().unwrap_or_default() };
            (parents, shared.tell.clone().filter(|_| !same))
        };
        if let Some(tell) = tell {
            tell();
        }
        for parent in &parents {
            (self.enqueue)(parent);
        }
    }

    fn forget(&self, key: &ObjectKey) {
        self.world.index.forget(&owner(key));
        self.world.awaited.declare(key, BTreeSet::new());
        let (known, parents) = {
            let mut shared = self.lock();
            shared.memories.remove(key);
            let known = shared.ready.remove(key).is_some();
            shared.judged.remove(key);
            shared.causes.remove(key);
            for parents in shared.parents.values_mut() {
                parents.remove(key);
            }
            shared.parents.retain(|_, parents| !parents.is_empty());
            (known, shared.parents.get(key).cloned().unwrap_or_default())
        };
        if known {
            self.world.recorder.record(EventKind::HealthChanged {
                subject: Subject::root(key.clone()),
                health: Health::NotFound,
                reason: "NotFound".to_owned(),
                message: String::new(),
                causes: Vec::new(),
            });
        }
        for parent in &parents {
            (self.enqueue)(parent);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // Every change of the maps is complete in itself, so a panic elsewhere leaves them usable.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reconciler<ObjectKey> for Instances {
    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Outcome, Failure>> {
        Box::pin(async move { Ok(self.pass(key).await) })
    }
}

/// Children that somebody deleted and that the instance makes again once they are gone.
fn made_again(decision: &Decision) -> BTreeSet<ObjectKey> {
    let deletions = decision.nodes.iter().filter_map(|verdict| match &verdict.waits_for {
        Some(WaitsFor::Deletion(key)) => Some(key.clone()),
        _ => None,
    });
    deletions.filter(|_| decision.state != InstanceState::Deleting).collect()
}

/// Who is told about what an instance depends on.
fn owner(key: &ObjectKey) -> Owner {
    Owner { role: ROLE, key: key.clone() }
}
