//! A platform followed by watches: every change of a verdict becomes an event, as a run would tell it.
//!
//! Reads first, then watches: after the first sync nothing is listed again, whatever happens.

mod seen;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, rgd};
use plinth_bootstrap::preflight::REACHABLE;
use plinth_cluster::{
    Watches,
    watch::{Look, Owner, Settings, WatchKey, WatchSet, WatchState},
};
use plinth_engine::{
    health::Health,
    naming::{self, keys},
    ports::{Query, ReadError},
};
use plinth_run::{Cause, CheckVerdict, Event, EventKind, RunId, Subject, Verb, duration, event::VERSION, health::NOT_WANTED};
use seen::Seen;
use tokio::sync::Notify;

use crate::{
    tree::{self, Leaf, Memory, Tree, kinds},
    wire::Host,
};

/// Changes that come together are judged together.
const GATHER: Duration = Duration::from_millis(100);
/// How long a first read is waited for before its failure is looked for.
const PATIENCE: Duration = Duration::from_secs(1);
const ROLE: &str = "dash";

/// A server that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Since when.
    pub(crate) since: Timestamp,
    /// What it is that went wrong last.
    pub(crate) why: String,
}

/// Follows one platform on one cluster.
pub(crate) struct Follower {
    hub: Arc<Watches>,
    host: Host,
    platform: String,
    owner: Owner,
    selector: String,
    changed: Arc<Notify>,
    memory: Memory,
    /// What was told of each object, and whether it was there.
    told: BTreeMap<ObjectKey, (EventKind, bool)>,
    /// Whether what is wanted and not there is told, too.
    tells_lacking: bool,
    failing: BTreeSet<String>,
    /// The server does not answer: nothing is judged, and what was told stays.
    lost: Option<Lost>,
    run: RunId,
    seq: u64,
}

impl Follower {
    /// Watches nothing yet. Must be called inside the runtime.
    pub(crate) fn new(host: Host, platform: &str) -> Self {
        let hub = Watches::new(Settings::default());
        let changed = Arc::new(Notify::new());
        let wake = Arc::clone(&changed);
        hub.route(ROLE, Arc::new(move |_, _| wake.notify_one()));
        hub.engage(Arc::clone(&host.0));
        let key = ObjectKey { cluster: ClusterKey::host(), gvk: definition_kind(), namespace: None, name: platform.to_owned() };
        Self {
            hub,
            host,
            platform: platform.to_owned(),
            owner: Owner { role: ROLE, key },
            selector: naming::platform_selector(platform),
            changed,
            memory: Memory::default(),
            told: BTreeMap::new(),
            tells_lacking: true,
            failing: BTreeSet::new(),
            lost: None,
            run: run(),
            seq: 0,
        }
    }

    /// Tells only of what is there: what a run waits for, it knows itself.
    pub(crate) fn of_what_is_there(self) -> Self {
        Self { tells_lacking: false, ..self }
    }

    /// The platform that is followed.
    pub(crate) fn platform(&self) -> &str {
        &self.platform
    }

    /// How many watches it has open.
    pub(crate) fn watches(&self) -> usize {
        self.hub.states().len()
    }

    /// The first event, which says what is followed.
    pub(crate) fn begin(&mut self, platform: &str, server: &str) -> Event {
        self.event(started(platform, server))
    }

    /// Whether the server does not answer.
    pub(crate) fn lost(&self) -> Option<&Lost> {
        self.lost.as_ref()
    }

    /// Whether anything was told of the platform yet.
    pub(crate) fn has_told(&self) -> bool {
        !self.told.is_empty()
    }

    /// Stops all watches and starts them again: everything is listed anew. What was told stays until it has been.
    pub(crate) fn refresh(&mut self) {
        self.hub.forget(&self.owner);
        self.changed.notify_one();
    }

    /// What changed since the last time; waits until something did, be it only that the server went away or came back.
    pub(crate) async fn next(&mut self) -> Vec<Event> {
        loop {
            let was_lost = self.lost.clone();
            let said = self.until_settled().await;
            let events = match self.unreachable() {
                Some(why) => self.lose(why),
                None => match self.judge().await {
                    Ok(tree) => self.compare(&tree, said),
                    Err(ReadError::Unavailable(why)) => self.lose(why),
                    Err(error) => self.compare_nothing(&error, said),
                },
            };
            if !events.is_empty() || self.lost != was_lost {
                return events;
            }
            self.moved().await;
        }
    }

    /// The whole as the watches see it. An error where one of them cannot follow: what it knows may be of earlier.
    pub(crate) async fn tree(&mut self) -> Result<Tree, ReadError> {
        self.until_settled().await;
        match Seen(Arc::clone(&self.hub)).doubt() {
            Some(error) => Err(error),
            None => self.judge().await,
        }
    }

    /// Waits until something changes, and what changes with it.
    pub(crate) async fn moved(&self) {
        let known = self.lost.as_ref().map(|lost| lost.why.clone());
        let link = || (self.unreachable() != known).then_some(());
        tokio::select! {
            biased;
            () = self.changed.notified() => {}
            () = self.hub.until(link) => {}
        }
        tokio::time::sleep(GATHER).await;
    }

    /// Why the server cannot be reached: none of the watches follows, or what is to be watched is not known. One kind alone that does
    /// not answer is no reason to show nothing.
    fn unreachable(&self) -> Option<String> {
        let states = self.hub.states();
        let failing = |state: &WatchState| match state {
            WatchState::Failing { error: ReadError::Unavailable(why), synced, .. } => Some((why.clone(), *synced)),
            _ => None,
        };
        let of_definitions = states.iter().find(|(key, _)| key.gvk == definition_kind());
        let unread = of_definitions.and_then(|(_, state)| failing(state)).filter(|(_, synced)| !synced);
        let follows = states.iter().any(|(_, state)| *state == WatchState::Synced);
        let first = || states.iter().find_map(|(_, state)| failing(state)).filter(|_| !follows);
        unread.or_else(first).map(|(why, _)| why)
    }

    /// The server does not answer: that is said once, and by [`Follower::lost`] as long as it is so.
    fn lose(&mut self, why: String) -> Vec<Event> {
        let message = format!("no connection: {why}; retrying");
        let before = self.lost.take();
        let since = before.as_ref().map_or_else(Timestamp::now, |lost| lost.since);
        self.lost = Some(Lost { since, why });
        if before.is_some() { Vec::new() } else { vec![self.answers(CheckVerdict::Warned, message)] }
    }

    fn answers(&mut self, verdict: CheckVerdict, message: String) -> Event {
        self.event(EventKind::CheckFinished { id: REACHABLE.into(), verdict, message, hint: None })
    }

    /// An object as the platform's graphs want it.
    pub(crate) async fn wanted(&mut self, key: &ObjectKey) -> Result<Option<Object>, ReadError> {
        let seen = Seen(Arc::clone(&self.hub));
        tree::wanted(&self.platform, &seen, &self.host, &mut self.memory, key).await
    }

    async fn judge(&mut self) -> Result<Tree, ReadError> {
        let seen = Seen(Arc::clone(&self.hub));
        Tree::load_again(&self.platform, &seen, &self.host, &mut self.memory).await
    }

    /// Waits until every watch has read everything or failed. Answers with what failed and was not said yet.
    async fn until_settled(&mut self) -> Vec<EventKind> {
        loop {
            self.declare();
            let waiting = self.unsettled();
            if waiting.is_empty() {
                return self.failures();
            }
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = self.hub.until_synced(&waiting) => {}
                // A watch that fails tells nobody; it is tried again, and said, but not waited for.
                () = tokio::time::sleep(PATIENCE) => {}
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    /// Watches definitions, and the kinds that they define and make.
    fn declare(&self) {
        let query =
            |gvk, selector: &str| Query { cluster: ClusterKey::host(), gvk, namespace: None, selector: selector.to_owned() };
        let of_definitions = query(definition_kind(), &self.selector);
        let definitions = self.objects(&of_definitions);
        let owned = format!("{}=true", keys::OWNED);
        let own = tree::of_runs().map(|gvk| query(gvk, &self.selector));
        let made = kinds(&definitions).into_iter().chain(tree::of_definitions()).map(|gvk| query(gvk, &owned));
        let lists = made.chain(own).chain([of_definitions]).collect();
        self.hub.declare(&self.owner, WatchSet { objects: [].into(), lists });
    }

    fn objects(&self, query: &Query) -> Vec<Object> {
        self.hub.list(query).unwrap_or_default().iter().map(|object| Object::clone(object)).collect()
    }

    /// Watches that have neither read everything nor failed. Nothing is judged before: a part would look like a whole.
    fn unsettled(&self) -> Vec<WatchKey> {
        let is_open = |state: &WatchState| !state.is_current() && !matches!(state, WatchState::Failing { .. });
        self.hub.states().into_iter().filter(|(_, state)| is_open(state)).map(|(key, _)| key).collect()
    }

    /// What cannot be read, each kind said once; nothing where the whole server cannot be reached.
    fn failures(&mut self) -> Vec<EventKind> {
        let mut said = Vec::new();
        if self.unreachable().is_some() {
            return said;
        }
        for (key, state) in self.hub.states() {
            let WatchState::Failing { error, synced: false, .. } = state else { continue };
            let message = format!("{} cannot be watched: {error}", key.gvk);
            if self.failing.insert(message.clone()) {
                said.push(EventKind::Warning { subject: None, reason: "Unreadable".to_owned(), message });
            }
        }
        said
    }

    /// What is different from what was told, as events.
    fn compare(&mut self, tree: &Tree, said: Vec<EventKind>) -> Vec<Event> {
        let now = Timestamp::now();
        let back = self.lost.take().map(|lost| {
            let away = duration::short(now.duration_since(lost.since));
            self.answers(CheckVerdict::Passed, format!("the server answers again, after {away}"))
        });
        let mut told: Vec<(Timestamp, EventKind)> = said.into_iter().map(|kind| (now, kind)).collect();
        let tells_lacking = self.tells_lacking;
        for (key, leaf) in tree.leaves.iter().filter(|(_, leaf)| leaf.is_there || tells_lacking) {
            let verdict = (verdict(tree, key, leaf), leaf.is_there);
            if self.told.get(key) != Some(&verdict) {
                // What was so before anybody looked has been so for longer than that.
                let began = leaf.since.filter(|since| !self.told.contains_key(key) && *since < now);
                told.push((began.unwrap_or(now), verdict.0.clone()));
                self.told.insert(key.clone(), verdict);
            }
        }
        let is_told = |key: &ObjectKey| {
            let in_tree = tree.leaves.get(key).is_some_and(|leaf| leaf.is_there || tells_lacking);
            // What nobody can read now may well be there.
            in_tree || self.hub.look(key) == Look::Unknown
        };
        let gone: Vec<ObjectKey> = self.told.keys().filter(|key| !is_told(key)).cloned().collect();
        let gone = gone.iter().filter_map(|key| self.told.remove(key));
        told.extend(gone.filter_map(|(told, was_there)| ended(told, was_there)).map(|kind| (now, kind)));
        back.into_iter().chain(told.into_iter().map(|(at, kind)| Event { at, ..self.event(kind) })).collect()
    }

    /// What is told where there is nothing to compare with.
    fn compare_nothing(&mut self, error: &ReadError, mut said: Vec<EventKind>) -> Vec<Event> {
        let message = format!("what the definitions ask for is not known: {error}");
        if self.failing.insert(message.clone()) {
            said.push(EventKind::Warning { subject: None, reason: "Unreadable".to_owned(), message });
        }
        said.into_iter().map(|kind| self.event(kind)).collect()
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

/// What is not in the tree any more: it was deleted, or it never was there and nobody wants it now.
fn ended(told: EventKind, was_there: bool) -> Option<EventKind> {
    let EventKind::HealthChanged { subject, .. } = told else { return None };
    if !was_there {
        let (health, reason) = (Health::NotFound, NOT_WANTED.to_owned());
        return Some(EventKind::HealthChanged { subject, health, reason, message: String::new(), causes: Vec::new() });
    }
    let (action, subject) = (plinth_run::Action::Delete, Subject::root(subject.key));
    Some(EventKind::ChangeApplied { subject, action, digest: String::new(), generation: 0, result: None, uid: None })
}

fn definition_kind() -> GroupVersionKind {
    GroupVersionKind::new(rgd::KRO_GROUP, rgd::VERSION, rgd::KIND)
}

/// An object's verdict with what is behind it, as a run tells it.
pub(crate) fn verdict(tree: &Tree, key: &ObjectKey, leaf: &Leaf) -> EventKind {
    let subject = Subject { parent: leaf.parent.clone(), ..Subject::root(key.clone()) };
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

#[cfg(test)]
mod tests;
