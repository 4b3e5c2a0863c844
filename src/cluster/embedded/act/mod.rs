//! What a cluster does besides answering: workloads start, addresses are given, and a [`Scenario`] is followed.
//!
//! Invariant: all of it is [`Actors::step`], which looks at the changes since the last step, acts on them and on what is due by
//! the clock, and says when to come back. Nothing in here waits, so that a simulation can step it beside everything else, and
//! everything is written through the API, as controllers do, so that it shows in managed fields and watches.

mod conditions;
mod daemon;
mod deployment;
mod hands;
mod images;
mod job;
mod kubelet;
mod mishap;
mod needs;
mod play;
mod replicas;
mod rollout;
mod small;
mod stateful;
#[cfg(test)]
mod tests;
mod workload;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use plinth_api::{Object, Scenario};
use tokio::task::JoinHandle;

use super::{
    Embedded, Shared,
    api::state::State,
    store::{Change, Place},
};
use hands::Hands;
pub use images::{AnyImage, ImageCatalog, ImageList};
pub use mishap::Mishap;
use play::Play;

/// Most reconciliations in one step: two actors that undo each other's work must not stop the process.
const MAX_ROUNDS: usize = 100_000;

/// How a cluster acts.
#[derive(Clone)]
pub struct Acting {
    /// What its programs do.
    pub scenario: Scenario,
    /// What the scenario's times are multiplied by.
    pub pace: f64,
    /// Which images can be pulled.
    pub images: Arc<dyn ImageCatalog>,
}

impl Default for Acting {
    fn default() -> Self {
        Self { scenario: Scenario::default(), pace: 1.0, images: Arc::new(AnyImage) }
    }
}

impl Acting {
    /// A time of the scenario, at this pace.
    fn time(&self, written: Duration) -> SignedDuration {
        SignedDuration::try_from(written.mul_f64(self.pace.clamp(0.0, 1000.0))).unwrap_or(SignedDuration::MAX)
    }
}

/// When to look at something again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wake {
    at: Timestamp,
    /// Whether something will happen then; not so where only a deadline passes or a failure is tried again.
    moves: bool,
}

/// What is still to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// When to step again, unless something changes before.
    pub next: Option<Timestamp>,
    /// Whether something will happen by itself: a pod that starts, a rule that is due. Deadlines and retries do not count.
    pub moves: bool,
}

/// The programs of a cluster, to be stepped.
pub struct Actors {
    shared: Arc<Shared>,
    acting: Acting,
    seen: u64,
    queue: BTreeSet<Place>,
    timers: BTreeMap<Place, Wake>,
    memory: Memory,
    play: Play,
}

/// What the actors remember that no object says.
#[derive(Default)]
pub(crate) struct Memory {
    /// When an object (by UID) took its last step; finer than the seconds of its own timestamps.
    since: BTreeMap<String, Timestamp>,
    /// What waits for a Secret, a ConfigMap or a ServiceAccount.
    lacking: BTreeSet<Place>,
    /// Addresses given so far.
    addresses: u32,
}

impl Actors {
    fn new(shared: Arc<Shared>, acting: Acting) -> Self {
        let play = Play::new(&acting.scenario);
        let (queue, timers, memory) = (BTreeSet::new(), BTreeMap::new(), Memory::default());
        Self { shared, acting, seen: 0, queue, timers, memory, play }
    }

    /// Does everything that can be done now.
    pub fn step(&mut self) -> Outlook {
        let shared = Arc::clone(&self.shared);
        let now = shared.now();
        shared.with(|state| self.act(state, now))
    }

    fn act(&mut self, state: &mut State, now: Timestamp) -> Outlook {
        self.queue.extend(self.timers.iter().filter(|(_, wake)| wake.at <= now).map(|(place, _)| place.clone()));
        for _ in 0..MAX_ROUNDS {
            self.follow(state, now);
            let mut hands = Hands { state, now, acting: &self.acting, memory: &mut self.memory };
            if self.play.act(&mut hands) {
                continue;
            }
            let Some(place) = self.queue.pop_first() else { break };
            match workload::reconcile(&mut hands, &place) {
                Some(wake) => self.timers.insert(place, wake),
                None => self.timers.remove(&place),
            };
        }
        self.outlook()
    }

    /// Takes in what changed since the last look.
    fn follow(&mut self, state: &State, now: Timestamp) {
        if self.seen == state.store.version() {
            return;
        }
        for change in state.store.changes(self.seen) {
            self.concerned(&change);
            if let (place, _, Some(after)) = &change {
                self.play.look(place, after, now, &self.acting);
            }
        }
        self.seen = state.store.version();
    }

    /// Whoever has to look at a change: the object's own controller, its owner's, and who waited for it.
    fn concerned(&mut self, (place, before, after): &Change) {
        if let Some(uid) = before.as_ref().filter(|_| after.is_none()).and_then(|gone| gone.uid()) {
            self.memory.since.remove(uid);
        }
        if workload::acts(place) {
            self.queue.insert(place.clone());
        }
        let states = [before, after].into_iter().flatten();
        self.queue.extend(states.filter_map(|object| workload::owner(place, object)));
        if after.is_some() && needs::is_needed(&place.resource) {
            let freed: Vec<Place> = self.memory.lacking.iter().filter(|lacking| is_beside(lacking, place)).cloned().collect();
            for lacking in &freed {
                self.memory.lacking.remove(lacking);
            }
            self.queue.extend(freed);
        }
    }

    fn outlook(&self) -> Outlook {
        let wakes = || self.timers.values().copied().chain(self.play.next());
        Outlook { next: wakes().map(|wake| wake.at).min(), moves: wakes().any(|wake| wake.moves) }
    }

    /// What rules of the scenario wanted and did not get; where all `is_over`, also those that never matched.
    pub fn mishaps(&self, is_over: bool) -> Vec<Mishap> {
        self.play.mishaps(&self.acting.scenario, is_over)
    }

    /// Steps them whenever something changed or is due, for ever.
    async fn run(actors: Arc<Mutex<Self>>) {
        let shared = Arc::clone(&lock(&actors).shared);
        let clock = Arc::clone(&shared.clock);
        loop {
            let (found, seen) = step(&actors);
            let changed = shared.versions().until(|| (shared.lock().store.version() != seen).then_some(()));
            let left = found.next.map(|at| Duration::try_from(at.duration_since(clock.now())).unwrap_or_default());
            tokio::select! {
                biased;
                () = changed => {}
                () = clock.sleep(left.unwrap_or(Duration::MAX)), if left.is_some() => {}
            }
        }
    }
}

fn lock(actors: &Mutex<Actors>) -> MutexGuard<'_, Actors> {
    // The next step looks at the objects again, whatever a panic left undone.
    actors.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One step, and up to which version of the store it has looked.
fn step(actors: &Mutex<Actors>) -> (Outlook, u64) {
    let mut actors = lock(actors);
    (actors.step(), actors.seen)
}

fn is_beside(one: &Place, other: &Place) -> bool {
    (&one.cluster, &one.namespace) == (&other.cluster, &other.namespace)
}

/// The programs of a cluster at work; they stop when this is dropped.
pub struct AtWork {
    task: JoinHandle<()>,
    actors: Arc<Mutex<Actors>>,
}

impl AtWork {
    /// What is still to come. Steps first: what changed just now counts.
    pub fn outlook(&self) -> Outlook {
        step(&self.actors).0
    }

    /// [`Actors::mishaps`], of now.
    pub fn mishaps(&self, is_over: bool) -> Vec<Mishap> {
        let mut actors = lock(&self.actors);
        actors.step();
        actors.mishaps(is_over)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Embedded {
    /// The programs of a cluster, to be stepped by the caller. One set of them is enough for a control plane.
    pub fn actors(&self, acting: Acting) -> Actors {
        Actors::new(Arc::clone(&self.shared), acting)
    }

    /// Starts them as a task of the current runtime.
    pub fn act(&self, acting: Acting) -> AtWork {
        let actors = Arc::new(Mutex::new(self.actors(acting)));
        let task = tokio::spawn(Actors::run(Arc::clone(&actors)));
        AtWork { task, actors }
    }
}

/// What an object says about its controller, if it has one.
fn controller(object: &Object) -> Option<&serde_json::Value> {
    let references = object.at(&["metadata", "ownerReferences"])?.as_array()?;
    references.iter().find(|reference| reference["controller"] == true)
}
