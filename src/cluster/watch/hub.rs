//! The tasks behind [`Watches`].

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use plinth_api::{ClusterKey, Object, ObjectKey};
use plinth_engine::ports::{Query, ReadError};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Look, Notice, Owner, WatchKey, WatchSet, WatchState,
    book::{Book, Turnover},
    feed::{Feed, Step},
};
use crate::{
    backoff::{Backoff, seed_of},
    cluster::Cluster,
    clusters::Clusters,
    revision::Revision,
};

/// Told about changes, outside any lock; it must not block (it puts a key on a queue).
pub type Sink = Arc<dyn Fn(&Owner, &Notice) + Send + Sync>;

/// How watches behave.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Delays after failures.
    pub backoff: Backoff,
    /// Tells processes apart in the jitter of those delays.
    pub seed: u64,
    /// Keeps in the index who manages an object: `metadata.managedFields` without the fields themselves.
    pub managers: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { backoff: Backoff::REQUESTS, seed: 0, managers: false }
    }
}

/// All watches of a process.
pub struct Watches {
    settings: Settings,
    clusters: Clusters,
    inner: Mutex<Inner>,
    /// Moves whenever a watch's state does.
    moved: Revision,
}

#[derive(Default)]
struct Inner {
    book: Book,
    sinks: BTreeMap<&'static str, Sink>,
    tasks: BTreeMap<WatchKey, AbortOnDropHandle<()>>,
}

impl Watches {
    /// Nothing is watched yet, and no cluster engaged.
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self { settings, clusters: Clusters::default(), inner: Mutex::default(), moved: Revision::default() })
    }

    /// Says where notices for a role go.
    pub fn route(&self, role: &'static str, sink: Sink) {
        self.lock().sinks.insert(role, sink);
    }

    /// Brings a cluster in: its catalog starts to follow the CRDs, and watches that were waiting for the cluster start.
    pub fn engage(self: &Arc<Self>, cluster: Arc<Cluster>) {
        cluster.catalog().follow();
        let mut inner = self.lock();
        let key = cluster.key().clone();
        self.clusters.insert(cluster);
        let waiting: Vec<WatchKey> =
            inner.book.watches().map(|(watch, _)| watch).filter(|watch| watch.cluster == key).cloned().collect();
        for watch in waiting {
            self.start(&mut inner, watch);
        }
    }

    /// Takes a cluster out: its watches stop, and owners hear [`Notice::Lost`].
    pub fn disengage(&self, key: &ClusterKey) {
        let mut notices = Vec::new();
        {
            let mut inner = self.lock();
            self.clusters.remove(key);
            inner.tasks.retain(|watch, _| watch.cluster != *key);
            let lost: Vec<WatchKey> =
                inner.book.watches().map(|(watch, _)| watch).filter(|watch| watch.cluster == *key).cloned().collect();
            for watch in lost {
                notices.extend(inner.book.lose(&watch));
            }
        }
        self.deliver(notices);
    }

    /// The engaged clusters, which write and read by the cluster in each key.
    pub fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// Replaces an owner's set: at the end of a complete pass.
    pub fn declare(self: &Arc<Self>, owner: &Owner, set: WatchSet) {
        let mut inner = self.lock();
        let Turnover { started, ended } = inner.book.declare(owner, set);
        for watch in ended {
            inner.tasks.remove(&watch);
        }
        for watch in started {
            self.start(&mut inner, watch);
        }
    }

    /// Adds to an owner's set: during a pass, and when one fails.
    pub fn extend(self: &Arc<Self>, owner: &Owner, set: WatchSet) {
        let all = self.lock().book.set_of(owner).union(set);
        self.declare(owner, all);
    }

    /// Takes an owner's set away.
    pub fn forget(self: &Arc<Self>, owner: &Owner) {
        self.declare(owner, WatchSet::default());
    }

    /// What is known of an object, told apart from what is not known.
    pub fn look(&self, key: &ObjectKey) -> Look {
        self.lock().book.look(key)
    }

    /// The object, where it is known to exist.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        match self.look(key) {
            Look::Present(object) => Some(object),
            Look::Unwatched | Look::Unknown | Look::Absent => None,
        }
    }

    /// What a query selects, by namespace and name; `None` while the watch is not declared or not synced.
    pub fn list(&self, query: &Query) -> Option<Vec<Arc<Object>>> {
        self.lock().book.list(query)
    }

    /// Where a watch stands; `None` where nobody declared it.
    pub fn state(&self, watch: &WatchKey) -> Option<WatchState> {
        self.lock().book.state(watch)
    }

    /// All watches and where they stand.
    pub fn states(&self) -> Vec<(WatchKey, WatchState)> {
        self.lock().book.watches().map(|(key, state)| (key.clone(), state.clone())).collect()
    }

    /// Whether the index follows the server.
    pub fn synced(&self, watch: &WatchKey) -> bool {
        self.state(watch).is_some_and(|state| state.is_current())
    }

    /// Waits until all these watches are synced or parked. Bound it by a deadline: a cluster may be away for long.
    pub async fn until_synced(&self, watches: &[WatchKey]) {
        self.moved.until(|| watches.iter().all(|watch| self.synced(watch)).then_some(())).await;
    }

    /// Waits until `settled` answers, which is asked now and whenever a watch's state has moved.
    pub async fn until<T>(&self, settled: impl FnMut() -> Option<T>) -> T {
        self.moved.until(settled).await
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(self: &Arc<Self>, inner: &mut Inner, watch: WatchKey) {
        let Some(cluster) = self.clusters.get(&watch.cluster) else {
            inner.book.set_state(&watch, WatchState::Away);
            return;
        };
        inner.book.set_state(&watch, WatchState::Starting);
        let hub = Arc::downgrade(self);
        let task = tokio::spawn(follow(hub, cluster, watch.clone(), self.settings.managers));
        inner.tasks.insert(watch, AbortOnDropHandle::new(task));
    }

    fn deliver(&self, notices: Vec<(Owner, Notice)>) {
        let sinks = self.lock().sinks.clone();
        for (owner, notice) in notices {
            if let Some(sink) = sinks.get(owner.role) {
                sink(&owner, &notice);
            }
        }
        self.moved.step();
    }

    fn report(&self, watch: &WatchKey, step: Step) {
        let notices = self.lock().book.take(watch, step);
        self.deliver(notices);
    }

    fn park(&self, watch: &WatchKey) {
        let notices = self.lock().book.gone(watch);
        self.deliver(notices);
    }

    fn fail(&self, watch: &WatchKey, error: ReadError, attempt: u32) -> std::time::Duration {
        let seed = self.settings.seed ^ seed_of(&format!("{}/{}", watch.cluster, watch.gvk));
        let next = self.settings.backoff.delay(attempt, seed);
        tracing::warn!(cluster = %watch.cluster, kind = %watch.gvk, %error, attempt, ?next, "a watch failed and will be tried again");
        let notices = {
            let mut inner = self.lock();
            let synced = inner.book.state(watch).is_some_and(|state| state.is_current());
            inner.book.fail(watch, WatchState::Failing { error, attempt, next, synced })
        };
        self.deliver(notices);
        next
    }
}

/// Lives as long as the watch is declared; holds the hub only while it reports.
async fn follow(hub: Weak<Watches>, cluster: Arc<Cluster>, watch: WatchKey, managers: bool) {
    let mut attempt = 0;
    let mut feed: Option<Feed> = None;
    loop {
        let error = match cluster.catalog().find(&watch.gvk).await {
            Ok(served) => {
                let path = served.path(None);
                let anew = || Feed::new(cluster.transport().clone(), path, watch.gvk.clone()).thinned(managers);
                let feed = feed.get_or_insert_with(anew);
                let fault = feed
                    .run(&mut |step| {
                        attempt = 0;
                        if let Some(hub) = hub.upgrade() {
                            hub.report(&watch, step);
                        }
                    })
                    .await;
                cluster.read_error(&served, "watch", fault)
            }
            Err(error) => error,
        };
        let Some(owner) = hub.upgrade() else { return };
        if matches!(error, ReadError::NotServed(_)) {
            owner.park(&watch);
            feed = None;
            if cluster.catalog().known(&watch.gvk).is_none() {
                drop(owner);
                attempt = 0;
                cluster.catalog().until_served(&watch.gvk).await;
                // Absence meant something while the kind was not served; from here on it does not until the list.
                let Some(hub) = hub.upgrade() else { return };
                hub.lock().book.set_state(&watch, WatchState::Starting);
                continue;
            }
            // The endpoint is gone, and the catalog has not heard of it yet: no hot loop until it does.
        }
        attempt += 1;
        let delay = owner.fail(&watch, error, attempt);
        drop(owner);
        tokio::time::sleep(delay).await;
    }
}

#[cfg(test)]
mod tests;
