//! What is remembered of an instance between passes.
//!
//! The index lags behind our own writes by one round trip; what the server answered to them is kept here until the index
//! has caught up, so that no pass acts on what it knows to be old.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use plinth_api::{GroupVersionKind, Object, ObjectKey};
use plinth_cluster::{
    backoff::{Backoff, seed_of},
    watch::Look,
};
use plinth_engine::{
    instance::{Applied, Failure},
    ports::{Access, Query, ReadError, WriteError},
};
use serde_json::Value;

use crate::recent::version;

/// One instance's memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// What was applied for it.
    pub(super) applied: BTreeMap<ObjectKey, Applied>,
    /// Objects that the last decision asked about.
    pub(super) objects: BTreeSet<ObjectKey>,
    /// Lists that it asked for.
    pub(super) lists: BTreeSet<Query>,
    /// Kinds that it waits for.
    pub(super) kinds: BTreeSet<GroupVersionKind>,
    /// Answers of the server that are newer than the index.
    recent: BTreeMap<ObjectKey, Object>,
    /// UIDs whose deletion was asked for.
    leaving: BTreeSet<String>,
    /// What did not work.
    failures: BTreeMap<ObjectKey, Held<Failure>>,
    list_failures: BTreeMap<Query, Held<ReadError>>,
    /// What the account was asked about.
    reviews: BTreeMap<Access, Held<Result<bool, ReadError>>>,
    /// Proofs of a journal that were taken up and not told yet.
    pub(super) proven: BTreeMap<ObjectKey, Proven>,
    /// What was told already, so that only changes are told.
    pub(super) told: super::tell::Told,
}

/// A proof that a child needs no write (contracts 22).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proven {
    /// The child's node.
    pub(super) node: String,
    /// Digest of the input.
    pub(super) digest: String,
    /// Generation that came of it.
    pub(super) generation: i64,
}

#[derive(Clone, Debug)]
struct Held<T> {
    what: T,
    attempts: u32,
    until: Timestamp,
    /// Its time is over: a pass has looked again since, and whatever that pass did not try needs no other one.
    is_over: bool,
}

impl<T> Held<T> {
    /// Whether it still counts.
    fn holds(&mut self, now: Timestamp) -> bool {
        self.is_over |= self.until <= now;
        !self.is_over
    }
}

/// What memory and index say together.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Known {
    /// There is no telling without asking the server.
    Ask,
    /// This is the newest state; `None` where the object does not exist.
    Is(Option<Object>),
}

impl Memory {
    /// Puts the index' word and our own newest knowledge together.
    pub(super) fn newest(&mut self, key: &ObjectKey, look: Look) -> Known {
        match (look, self.recent.get(key)) {
            (Look::Present(seen), Some(recent)) if version(recent) > version(&seen) => {
                Known::Is(Some(self.marked(recent.clone())))
            }
            (Look::Present(seen), _) => {
                self.recent.remove(key);
                Known::Is(Some(self.marked(seen.as_ref().clone())))
            }
            // Just created and not seen yet, or gone since: only the server knows.
            (Look::Absent, Some(_)) | (Look::Unwatched | Look::Unknown, _) => Known::Ask,
            (Look::Absent, None) => Known::Is(None),
        }
    }

    /// The server's answer to a question: as good as a write's.
    pub(super) fn asked(&mut self, key: &ObjectKey, answer: Option<&Object>) {
        match answer {
            Some(object) => drop(self.recent.insert(key.clone(), object.clone())),
            None => drop(self.recent.remove(key)),
        }
    }

    /// An object whose deletion we asked for is terminating, whatever the index still says.
    pub(super) fn marked(&self, mut object: Object) -> Object {
        if object.uid().is_some_and(|uid| self.leaving.contains(uid)) {
            mark_terminating(&mut object);
        }
        object
    }

    /// The server's answer to a write.
    pub(super) fn wrote(&mut self, key: &ObjectKey, object: &Object) {
        self.attempts_over(key);
        self.recent.insert(key.clone(), object.clone());
    }

    /// A deletion was accepted.
    pub(super) fn deleted(&mut self, key: &ObjectKey, uid: Option<&str>) {
        self.attempts_over(key);
        self.recent.remove(key);
        self.applied.remove(key);
        self.leaving.extend(uid.map(str::to_owned));
    }

    fn attempts_over(&mut self, key: &ObjectKey) {
        self.failures.remove(key);
    }

    /// Forgets what concerns objects that no decision asks about any more. What was applied is still known: a decision that is held
    /// up by one object does not ask about those behind it, and the next one would find them as the index still shows them.
    pub(super) fn settle(&mut self, seen: impl Fn(&ObjectKey) -> Look) {
        let (objects, applied) = (&self.objects, &self.applied);
        self.recent.retain(|key, _| objects.contains(key) || applied.contains_key(key));
        if self.leaving.is_empty() {
            return;
        }
        let present = |key| match seen(key) {
            Look::Present(object) => object.uid().map(str::to_owned),
            _ => None,
        };
        let there: BTreeSet<String> = self.objects.iter().filter_map(present).collect();
        self.leaving.retain(|uid| there.contains(uid));
    }

    /// A failure, to be tried again after a while that grows with each attempt.
    pub(super) fn failed(&mut self, key: &ObjectKey, failure: Failure, now: Timestamp) -> Duration {
        let attempts = self.failures.get(key).map_or(0, |held| held.attempts) + 1;
        let delay = backoff(&failure).delay(attempts, seed_of(&key.to_string()));
        self.failures.insert(key.clone(), Held { what: failure, attempts, until: later(now, delay), is_over: false });
        delay
    }

    /// A list that could not be read.
    pub(super) fn list_failed(&mut self, query: &Query, error: ReadError, now: Timestamp) -> Duration {
        let attempts = self.list_failures.get(query).map_or(0, |held| held.attempts) + 1;
        let backoff = if matches!(error, ReadError::Forbidden { .. }) { UNPERMITTED } else { Backoff::REQUESTS };
        let delay = backoff.delay(attempts, seed_of(&query.selector));
        self.list_failures.insert(query.clone(), Held { what: error, attempts, until: later(now, delay), is_over: false });
        delay
    }

    /// Failures that still count at this time, when a pass begins; those whose time is over are tried again.
    pub(super) fn failures(&mut self, now: Timestamp) -> BTreeMap<ObjectKey, Failure> {
        let held = self.failures.iter_mut().filter_map(|(key, held)| held.holds(now).then(|| (key.clone(), held.what.clone())));
        held.collect()
    }

    /// List failures that still count at this time.
    pub(super) fn list_failures(&mut self, now: Timestamp) -> BTreeMap<Query, ReadError> {
        let held =
            self.list_failures.iter_mut().filter_map(|(query, held)| held.holds(now).then(|| (query.clone(), held.what.clone())));
        held.collect()
    }

    /// Whether the account may read something: a right is taken for granted for a while, a missing one is asked for again.
    pub(super) fn reviewed(&mut self, access: &Access, answer: Result<bool, ReadError>, now: Timestamp) {
        let before = self.reviews.get(access).filter(|held| held.what != Ok(true)).map_or(0, |held| held.attempts);
        let attempts = before + 1;
        let delay = if answer == Ok(true) { GRANTED } else { REFUSED.delay(attempts, seed_of(&access.account.to_string())) };
        self.reviews.insert(access.clone(), Held { what: answer, attempts, until: later(now, delay), is_over: false });
    }

    /// Reviews that still count at this time.
    pub(super) fn reviews(&mut self, now: Timestamp) -> BTreeMap<Access, Result<bool, ReadError>> {
        let held =
            self.reviews.iter_mut().filter_map(|(access, held)| held.holds(now).then(|| (access.clone(), held.what.clone())));
        held.collect()
    }

    /// A kind came to be served: failures for want of it are over. Whether there were any.
    pub(super) fn served(&mut self, gvk: &GroupVersionKind) -> bool {
        let before = self.failures.len() + self.list_failures.len();
        self.failures.retain(|_, held| not_served(&held.what) != Some(gvk));
        self.list_failures.retain(|_, held| !matches!(&held.what, ReadError::NotServed(missing) if missing == gvk));
        self.failures.len() + self.list_failures.len() < before
    }

    /// Failures and lists that are of no concern any more are dropped.
    pub(super) fn keep_failures_of(&mut self, objects: &BTreeSet<ObjectKey>, lists: &BTreeSet<Query>) {
        self.failures.retain(|key, _| objects.contains(key));
        self.list_failures.retain(|query, _| lists.contains(query));
        // Those that this pass asked for are new.
        self.reviews.retain(|_, held| !held.is_over);
    }

    /// When the next failure is to be tried again.
    pub(super) fn next_attempt(&self, now: Timestamp) -> Option<Duration> {
        let objects = self.failures.values().filter(|held| !held.is_over).map(|held| held.until);
        let lists = self.list_failures.values().filter(|held| !held.is_over).map(|held| held.until);
        // Nobody has to look again because a right may have been taken away.
        let missing = self.reviews.values().filter(|held| !held.is_over && held.what != Ok(true)).map(|held| held.until);
        let next = objects.chain(lists).chain(missing).min()?;
        Some(Duration::try_from(next.duration_since(now)).unwrap_or(Duration::ZERO))
    }
}

fn not_served(failure: &Failure) -> Option<&GroupVersionKind> {
    match failure {
        Failure::Read(ReadError::NotServed(gvk)) | Failure::Write { error: WriteError::NotServed(gvk), .. } => Some(gvk),
        _ => None,
    }
}

/// For what is a matter of milliseconds: an endpoint right after its CRD is established, a conflict.
const SOON: Backoff = Backoff { first: Duration::from_millis(20), max: Duration::from_secs(5), jitter: 0.25 };
/// How long a right to read is not asked for again.
const GRANTED: Duration = Duration::from_mins(10);
/// For what somebody has to mend.
const REFUSED: Backoff = Backoff { first: Duration::from_secs(2), max: Duration::from_mins(5), jitter: 0.25 };

/// For what somebody has to permit, or to make first. RBAC tells nobody that a right is there, so that it is tried: often enough to go on soon after, and
/// too rarely to be felt.
pub(crate) const UNPERMITTED: Backoff = Backoff { first: Duration::from_secs(2), max: Duration::from_secs(20), jitter: 0.25 };

fn backoff(failure: &Failure) -> Backoff {
    match failure {
        _ if not_served(failure).is_some() => SOON,
        Failure::Write { error: WriteError::Conflict { .. }, .. } => SOON,
        Failure::Write { error: WriteError::Invalid { .. }, .. } => REFUSED,
        Failure::Write { error: WriteError::Forbidden { .. } | WriteError::Denied { .. }, .. }
        | Failure::Read(ReadError::Forbidden { .. }) => UNPERMITTED,
        _ => Backoff::REQUESTS,
    }
}

fn later(now: Timestamp, delay: Duration) -> Timestamp {
    let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
    now.checked_add(delay).unwrap_or(Timestamp::MAX)
}

/// Says of a copy that its original is on its way out.
pub(super) fn mark_terminating(object: &mut Object) {
    object.metadata_mut().entry("deletionTimestamp").or_insert_with(|| Value::String("1970-01-01T00:00:00Z".into()));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plinth_api::ClusterKey;
    use serde_json::json;

    use super::*;

    fn key() -> ObjectKey {
        ObjectKey {
            cluster: ClusterKey::host(),
            gvk: GroupVersionKind::new("", "v1", "ConfigMap"),
            namespace: Some("n".into()),
            name: "a".into(),
        }
    }

    fn at_version(version: &str) -> Object {
        Object::from_value(json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": version}})).unwrap()
    }

    fn present(version: &str) -> Look {
        Look::Present(Arc::new(at_version(version)))
    }

    #[test]
    fn our_own_write_counts_until_the_index_has_it() {
        let mut memory = Memory::default();
        memory.wrote(&key(), &at_version("12"));
        assert_eq!(memory.newest(&key(), present("9")), Known::Is(Some(at_version("12"))));
        assert_eq!(memory.newest(&key(), present("12")), Known::Is(Some(at_version("12"))));
        // The index has caught up: from now on it alone counts.
        assert_eq!(memory.newest(&key(), present("9")), Known::Is(Some(at_version("9"))));
    }

    #[test]
    fn what_may_be_created_or_gone_is_asked() {
        let mut memory = Memory::default();
        assert_eq!(memory.newest(&key(), Look::Absent), Known::Is(None));
        assert_eq!(memory.newest(&key(), Look::Unwatched), Known::Ask);
        memory.wrote(&key(), &at_version("12"));
        assert_eq!(memory.newest(&key(), Look::Absent), Known::Ask);
        assert_eq!(memory.newest(&key(), Look::Absent), Known::Ask, "until the server has answered");
        memory.asked(&key(), None);
        assert_eq!(memory.newest(&key(), Look::Absent), Known::Is(None));
    }

    #[test]
    fn what_is_being_deleted_is_terminating_at_once() {
        let mut memory = Memory { objects: BTreeSet::from([key()]), ..Memory::default() };
        memory.deleted(&key(), Some("u"));
        let Known::Is(Some(object)) = memory.newest(&key(), present("9")) else { panic!("not known") };
        assert!(object.is_terminating());
        memory.settle(|_| Look::Absent);
        let Known::Is(Some(object)) = memory.newest(&key(), present("9")) else { panic!("not known") };
        assert!(!object.is_terminating());
    }

    #[test]
    fn a_failure_counts_for_a_while_that_grows() {
        let (mut memory, start) = (Memory::default(), Timestamp::UNIX_EPOCH);
        let failure = || Failure::Read(ReadError::Unavailable("down".into()));
        let first = memory.failed(&key(), failure(), start);
        assert_eq!(memory.failures(start).len(), 1);
        assert_eq!(memory.next_attempt(start), Some(first));
        let over = later(start, first);
        assert_eq!(memory.failures(over).len(), 0);
        assert!(memory.failed(&key(), failure(), over) > first);
        memory.wrote(&key(), &at_version("1"));
        assert_eq!(memory.next_attempt(over), None);
    }

    #[test]
    fn an_answer_outlives_a_pass_that_did_not_get_as_far_as_its_object() {
        let mut memory = Memory::default();
        memory.wrote(&key(), &at_version("12"));
        let applied = Applied { node: "n".to_owned(), input: String::new(), result: String::new(), uid: String::new() };
        memory.applied.insert(key(), applied);
        memory.settle(|_| present("9"));
        assert_eq!(memory.newest(&key(), present("9")), Known::Is(Some(at_version("12"))));
        memory.applied.clear();
        memory.settle(|_| present("9"));
        assert_eq!(memory.newest(&key(), present("9")), Known::Is(Some(at_version("9"))), "nobody asks about it");
    }

    /// A write that had its effect although its answer was lost is never tried again, and must not be waited for either.
    #[test]
    fn a_failure_whose_time_is_over_asks_for_no_other_pass() {
        let (mut memory, start) = (Memory::default(), Timestamp::UNIX_EPOCH);
        let failure = || Failure::Read(ReadError::Unavailable("reset".into()));
        let first = memory.failed(&key(), failure(), start);
        let over = later(start, first);
        assert_eq!(memory.next_attempt(over), Some(Duration::ZERO), "a pass that took that long has still counted it");
        assert!(memory.failures(over).is_empty());
        assert_eq!(memory.next_attempt(over), None);
        assert!(memory.failed(&key(), failure(), over) > first, "attempts go on counting");
        assert!(memory.next_attempt(over).is_some());
    }

    #[test]
    fn a_served_kind_ends_failures_for_want_of_it() {
        let mut memory = Memory::default();
        let missing = GroupVersionKind::new("x.test", "v1", "Thing");
        memory.failed(&key(), Failure::Read(ReadError::NotServed(missing.clone())), Timestamp::UNIX_EPOCH);
        assert!(!memory.served(&GroupVersionKind::new("y.test", "v1", "Thing")));
        assert_eq!(memory.failures(Timestamp::UNIX_EPOCH).len(), 1);
        assert!(memory.served(&missing));
        assert_eq!(memory.failures(Timestamp::UNIX_EPOCH).len(), 0);
    }
}
