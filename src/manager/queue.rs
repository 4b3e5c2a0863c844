//! A work queue: each key at most once waiting and at most once in work, in the order of insertion.
//!
//! | call | key is idle | waiting | in work |
//! | --- | --- | --- | --- |
//! | `add` | waits | stays where it is | waits again once done |
//! | `add_after` | waits once due | stays | waits again once due and done |
//! | `retry` | as `add_after`, with a delay that grows until `forget` | | |

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plinth_cluster::backoff::{Backoff, seed_of};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

/// Delays of failing keys: 200 ms, doubling up to 1000 s (kro.md section 18), with a quarter of jitter.
pub const FAILURES: Backoff = Backoff { first: Duration::from_millis(200), max: Duration::from_secs(1000), jitter: 0.25 };

/// A queue of keys; clones share it.
#[derive(Debug)]
pub struct Queue<K>(Arc<Shared<K>>);

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Shared<K> {
    backoff: Backoff,
    lines: Mutex<Lines<K>>,
    wake: Notify,
}

/// The state, without time.
#[derive(Debug)]
struct Lines<K> {
    /// Waiting keys by ticket.
    waiting: BTreeMap<u64, K>,
    tickets: BTreeMap<K, u64>,
    next_ticket: u64,
    working: BTreeSet<K>,
    /// Added while in work.
    dirty: BTreeSet<K>,
    /// Delayed keys by due time, and the due time of each.
    due: BTreeSet<(Instant, K)>,
    delayed: BTreeMap<K, Instant>,
    failures: BTreeMap<K, u32>,
    closed: bool,
}

impl<K: Ord + Clone + std::fmt::Debug> Default for Queue<K> {
    fn default() -> Self {
        Self::new(FAILURES)
    }
}

impl<K: Ord + Clone + std::fmt::Debug> Queue<K> {
    /// An empty queue; `backoff` gives the delays of [`Queue::retry`].
    pub fn new(backoff: Backoff) -> Self {
        Self(Arc::new(Shared { backoff, lines: Mutex::new(Lines::new()), wake: Notify::new() }))
    }

    /// Adds a key.
    pub fn add(&self, key: K) {
        self.lines().add(key);
        self.0.wake.notify_one();
    }

    /// Adds a key once `delay` is over; of several delays the earliest counts.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.lines().add_at(key, Instant::now() + delay);
        self.0.wake.notify_one();
    }

    /// Adds a key that failed, after a delay that grows with each failure, and answers with that delay.
    pub fn retry(&self, key: K) -> Duration {
        let seed = seed_of(&format!("{key:?}"));
        let attempt = self.lines().fail(&key);
        let delay = self.0.backoff.delay(attempt, seed);
        self.add_after(key, delay);
        delay
    }

    /// Forgets a key's failures.
    pub fn forget(&self, key: &K) {
        self.lines().failures.remove(key);
    }

    /// Failures of a key since it was last forgotten.
    pub fn failures(&self, key: &K) -> u32 {
        self.lines().failures.get(key).copied().unwrap_or_default()
    }

    /// The next key, to be given back with [`Queue::done`]; `None` once the queue is closed.
    pub async fn take(&self) -> Option<K> {
        loop {
            // Made before the look, so that what is added in between is not missed.
            let woken = self.0.wake.notified();
            let next_due = {
                let mut lines = self.lines();
                if lines.closed {
                    // Pass it on: one notification may stand for several waiters.
                    self.0.wake.notify_one();
                    return None;
                }
                lines.promote(Instant::now());
                if let Some(key) = lines.take() {
                    if !lines.waiting.is_empty() {
                        self.0.wake.notify_one();
                    }
                    return Some(key);
                }
                lines.due.first().map(|(at, _)| *at)
            };
            match next_due {
                None => woken.await,
                Some(at) => tokio::select! {
                    biased;
                    () = woken => {}
                    () = sleep_until(at) => {}
                },
            }
        }
    }

    /// Gives a key back; it waits again where it was added meanwhile.
    pub fn done(&self, key: &K) {
        self.lines().done(key);
        self.0.wake.notify_one();
    }

    /// Ends the queue: nothing is handed out any more.
    pub fn close(&self) {
        self.lines().closed = true;
        self.0.wake.notify_one();
    }

    /// Keys that wait, delayed ones aside.
    pub fn len(&self) -> usize {
        self.lines().waiting.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nothing waits or is in work; what is delayed waits for time, not for a worker.
    pub fn is_settled(&self) -> bool {
        let lines = self.lines();
        lines.waiting.is_empty() && lines.working.is_empty()
    }

    /// Whether nothing waits, is delayed, or is in work.
    pub fn is_idle(&self) -> bool {
        let lines = self.lines();
        lines.waiting.is_empty() && lines.due.is_empty() && lines.working.is_empty()
    }

    fn lines(&self) -> MutexGuard<'_, Lines<K>> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone> Lines<K> {
    fn new() -> Self {
        Self {
            waiting: BTreeMap::new(),
            tickets: BTreeMap::new(),
            next_ticket: 0,
            working: BTreeSet::new(),
            dirty: BTreeSet::new(),
            due: BTreeSet::new(),
            delayed: BTreeMap::new(),
            failures: BTreeMap::new(),
            closed: false,
        }
    }

    fn add(&mut self, key: K) {
        // What is wanted now needs no later reminder.
        if let Some(at) = self.delayed.remove(&key) {
            self.due.remove(&(at, key.clone()));
        }
        if self.working.contains(&key) {
            self.dirty.insert(key);
        } else if let Entry::Vacant(ticket) = self.tickets.entry(key.clone()) {
            ticket.insert(self.next_ticket);
            self.waiting.insert(self.next_ticket, key);
            self.next_ticket += 1;
        }
    }

    fn add_at(&mut self, key: K, at: Instant) {
        if self.tickets.contains_key(&key) || self.delayed.get(&key).is_some_and(|earlier| *earlier <= at) {
            return;
        }
        if let Some(later) = self.delayed.insert(key.clone(), at) {
            self.due.remove(&(later, key.clone()));
        }
        self.due.insert((at, key));
    }

    fn promote(&mut self, now: Instant) {
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let (_, key) = self.due.pop_first().expect("there is a first, or the loop had ended");
            self.delayed.remove(&key);
            self.add(key);
        }
    }

    fn take(&mut self) -> Option<K> {
        let (_, key) = self.waiting.pop_first()?;
        self.tickets.remove(&key);
        self.working.insert(key.clone());
        Some(key)
    }

    fn done(&mut self, key: &K) {
        self.working.remove(key);
        if self.dirty.remove(key) {
            self.add(key.clone());
        }
    }

    fn fail(&mut self, key: &K) -> u32 {
        let failures = self.failures.entry(key.clone()).or_default();
        *failures = failures.saturating_add(1);
        *failures
    }
}

#[cfg(test)]
mod tests;
