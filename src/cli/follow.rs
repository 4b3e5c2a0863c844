//! A platform followed by watches: every change of a verdict becomes an event, as a run would tell it.
//!
//! Reads first, then watches: after the first sync nothing is listed again, whatever happens.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, rgd};
use plinth_bootstrap::wanted;
use plinth_cluster::{
    Cluster, Watches,
    watch::{Owner, Settings, WatchKey, WatchSet, WatchState},
};
use plinth_engine::{
    health::Health,
    naming::{self, keys},
    ports::Query,
};
use plinth_run::{Cause, Event, EventKind, RunId, Subject, Verb, event::VERSION};
use tokio::sync::Notify;

use crate::tree::{self, Leaf, Tree, kinds};

/// Changes that come together are judged together.
const GATHER: Duration = Duration::from_millis(100);
/// How long a first read is waited for before its failure is looked for.
const PATIENCE: Duration = Duration::from_secs(1);
const ROLE: &str = "dash";

/// Follows one platform on one cluster.
pub(crate) struct Follower {
    hub: Arc<Watches>,
    owner: Owner,
    selector: String,
    changed: Arc<Notify>,
    told: BTreeMap<ObjectKey, EventKind>,
    failing: BTreeSet<String>,
    run: RunId,
    seq: u64,
}

impl Follower {
    /// Watches nothing yet. Must be called inside the runtime.
    pub(crate) fn new(cluster: Arc<Cluster>, platform: &str) -> Self {
        let hub = Watches::new(Settings::default());
        let changed = Arc::new(Notify::new());
        let wake = Arc::clone(&changed);
        hub.route(ROLE, Arc::new(move |_, _| wake.notify_one()));
        hub.engage(cluster);
        let key = ObjectKey { cluster: ClusterKey::host(), gvk: definition_kind(), namespace: None, name: platform.to_owned() };
        Self {
            hub,
            owner: Owner { role: ROLE, key },
            selector: naming::platform_selector(platform),
            changed,
            told: BTreeMap::new(),
            failing: BTreeSet::new(),
            run: run(),
            seq: 0,
        }
    }

    /// The first event, which says what is followed.
    pub(crate) fn begin(&mut self, platform: &str, server: &str) -> Event {
        self.event(started(platform, server))
    }

    /// Stops all watches and starts them again: everything is listed anew.
    pub(crate) fn refresh(&mut self) {
        self.hub.forget(&self.owner);
        self.changed.notify_one();
    }

    /// What changed since the last time; waits until something did.
    pub(crate) async fn next(&mut self) -> Vec<Event> {
        loop {
            let definitions = self.declare();
            let waiting = self.unsettled();
            if waiting.is_empty() {
                let events = self.compare(definitions);
                if !events.is_empty() {
                    return events;
                }
                self.changed.notified().await;
            } else {
                tokio::select! {
                    biased;
                    () = self.changed.notified() => {}
                    () = self.hub.until_synced(&waiting) => {}
                    // A watch that fails tells nobody; it is tried again, and said, but not waited for.
                    () = tokio::time::sleep(PATIENCE) => {}
                }
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    /// Watches definitions, and the kinds that they define and make.
    fn declare(&self) -> Vec<Object> {
        let query =
            |gvk, selector: &str| Query { cluster: ClusterKey::host(), gvk, namespace: None, selector: selector.to_owned() };
        let of_definitions = query(definition_kind(), &self.selector);
        let definitions = self.objects(&of_definitions);
        let owned = format!("{}=true", keys::OWNED);
        let own = [wanted::crd_kind(), wanted::namespace_kind()].map(|gvk| query(gvk, &self.selector));
        let made = kinds(&definitions).into_iter().chain(tree::of_definitions()).map(|gvk| query(gvk, &owned));
        let lists = made.chain(own).chain([of_definitions]).collect();
        self.hub.declare(&self.owner, WatchSet { objects: [].into(), lists });
        definitions
    }

    fn objects(&self, query: &Query) -> Vec<Object> {
        self.hub.list(query).unwrap_or_default().iter().map(|object| Object::clone(object)).collect()
    }

    /// Watches that have neither read everything nor failed. Nothing is judged before: a part would look like a whole.
    fn unsettled(&self) -> Vec<WatchKey> {
        let is_open = |state: &WatchState| !state.is_current() && !matches!(state, WatchState::Failing { .. });
        self.hub.states().into_iter().filter(|(_, state)| is_open(state)).map(|(key, _)| key).collect()
    }

    /// What cannot be read, each kind said once.
    fn failures(&mut self) -> Vec<EventKind> {
        let mut said = Vec::new();
        for (key, state) in self.hub.states() {
            let WatchState::Failing { error, synced: false, .. } = state else { continue };
            let message = format!("{} cannot be watched: {error}", key.gvk);
            if self.failing.insert(message.clone()) {
                said.push(EventKind::Warning { subject: None, reason: "Unreadable".to_owned(), message });
            }
        }
        said
    }

    fn compare(&mut self, definitions: Vec<Object>) -> Vec<Event> {
        let owned = format!("{}=true", keys::OWNED);
        let watched: Vec<WatchKey> = self.hub.states().into_iter().map(|(key, _)| key).collect();
        let mut objects = definitions;
        for WatchKey { cluster, gvk } in watched.into_iter().filter(|watch| watch.gvk != definition_kind()) {
            for selector in [&owned, &self.selector] {
                let query = Query { cluster: cluster.clone(), gvk: gvk.clone(), namespace: None, selector: selector.clone() };
                objects.extend(self.objects(&query));
            }
        }
        let tree = Tree::of_objects(objects);
        let mut kinds = self.failures();
        for (key, leaf) in &tree.leaves {
            let kind = verdict(&tree, key, leaf);
            if self.told.get(key) != Some(&kind) {
                self.told.insert(key.clone(), kind.clone());
                kinds.push(kind);
            }
        }
        let gone: Vec<ObjectKey> = self.told.keys().filter(|key| !tree.leaves.contains_key(*key)).cloned().collect();
        for key in gone {
            self.told.remove(&key);
            kinds.push(EventKind::ChangeApplied {
                subject: Subject::root(key),
                action: plinth_run::Action::Delete,
                digest: String::new(),
                generation: 0,
                result: None,
                uid: None,
            });
        }
        kinds.into_iter().map(|kind| self.event(kind)).collect()
    }

    fn event(&mut self, kind: EventKind) -> Event {
        self.seq += 1;
        Event { v: VERSION, run: self.run.clone(), seq: self.seq, at: Timestamp::now(), kind }
    }
}

/// What is said before it is known which platform is followed.
pub(crate) fn opening(server: &str) -> Event {
    Event { v: VERSION, run: run(), seq: 0, at: Timestamp::now(), kind: started("", server) }
}

fn run() -> RunId {
    RunId(format!("dash-{}", std::process::id()))
}

fn started(platform: &str, server: &str) -> EventKind {
    let (platform, source) = (platform.to_owned(), server.to_owned());
    EventKind::RunStarted { verb: Verb::Controller, platform, source, cluster: None, resumed: None }
}

fn definition_kind() -> GroupVersionKind {
    GroupVersionKind::new(rgd::KRO_GROUP, rgd::VERSION, rgd::KIND)
}

/// An object's verdict with what is behind it, as a run tells it.
fn verdict(tree: &Tree, key: &ObjectKey, leaf: &Leaf) -> EventKind {
    let subject = Subject { key: key.clone(), node: None, parent: leaf.parent.clone() };
    let causes = if leaf.verdict.health == Health::Current { Vec::new() } else { causes(tree, key) };
    EventKind::HealthChanged {
        subject,
        health: leaf.verdict.health,
        reason: leaf.verdict.reason.clone(),
        message: leaf.verdict.message.clone(),
        causes,
    }
}

fn causes(tree: &Tree, key: &ObjectKey) -> Vec<Cause> {
    let below = tree.why(key).chain.into_iter().skip(1);
    below
        .map(|cause| Cause {
            subject: Some(Subject::root(cause.subject)),
            reason: cause.verdict.reason,
            message: cause.verdict.message,
        })
        .collect()
}
