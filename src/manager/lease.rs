//! One Lease for every writer (contracts 21): taken before the first write, renewed while writing, given back at the end.
//!
//! | the Lease | may be taken |
//! | --- | --- |
//! | absent, given back, or ours | at once |
//! | of another, older than its duration | when it was not renewed for another while that we watched ([`Timing::grace`]) |
//! | of another, of the future (clocks differ) | when it was not renewed for its duration that we watched |
//! | of another, any | at once with `break_lock` |

mod record;
mod store;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use plinth_api::{GroupVersionKind, Object, ObjectKey};
use plinth_engine::ports::{Answer, Applier, Apply, Clock, Delete, ReadError, WriteError};
use thiserror::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use record::LeaseRecord;
pub use store::{LeaseStore, MemoryStore};

/// The times of a Lease; the defaults are those of Kubernetes' own components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a Lease counts after its last renewal, for others.
    pub duration: Duration,
    /// How long it counts for its holder; shorter, so that a holder stops before another starts.
    pub renew_deadline: Duration,
    /// Time between attempts to take or renew it.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { duration: seconds(15), renew_deadline: seconds(10), retry: seconds(2) }
    }
}

impl Timing {
    /// How long an outdated Lease is watched before it is taken: a holder whose clock is behind renews within this time.
    pub fn grace(&self) -> Duration {
        self.retry.mul_f64(1.5)
    }
}

/// Why a Lease cannot be taken or renewed. Trying again may help with each of these but [`LeaseError::Write`] of a refusal.
#[derive(Debug, Error)]
pub enum LeaseError {
    /// It cannot be read.
    #[error("reading the Lease {0}")]
    Read(String, #[source] ReadError),
    /// It cannot be written.
    #[error("writing the Lease {0}")]
    Write(String, #[source] WriteError),
}

/// The answer to one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It is ours now, or still.
    Held,
    /// Another holds it.
    HeldBy {
        /// Who.
        holder: String,
        /// When it was last renewed, by the holder's clock.
        renewed: Option<Timestamp>,
    },
}

/// A Lease as one would-be holder sees it.
pub struct Lease {
    store: Arc<dyn LeaseStore>,
    clock: Arc<dyn Clock>,
    key: ObjectKey,
    identity: String,
    timing: Timing,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The last record seen of another, and since when it has been the same.
    other: Option<(LeaseRecord, Instant)>,
    /// Until when writes may go out.
    valid_until: Option<Instant>,
}

impl Lease {
    /// Names a Lease; contacts nothing. `identity` tells holders apart, and a run that comes back under its old identity
    /// takes its own Lease at once.
    pub fn new(
        store: Arc<dyn LeaseStore>,
        clock: Arc<dyn Clock>,
        key: ObjectKey,
        identity: impl Into<String>,
        timing: Timing,
    ) -> Arc<Self> {
        Arc::new(Self { store, clock, key, identity: identity.into(), timing, seen: Mutex::default() })
    }

    /// The kind of Leases.
    pub fn kind() -> GroupVersionKind {
        GroupVersionKind::new("coordination.k8s.io", "v1", "Lease")
    }

    /// Whether writes may go out now.
    pub fn is_held(&self) -> bool {
        self.seen().valid_until.is_some_and(|until| Instant::now() < until)
    }

    /// Tries once to take or renew it. `break_lock` takes it from whoever holds it.
    pub async fn attempt(&self, break_lock: bool) -> Result<Attempt, LeaseError> {
        // The time before the request counts: the server may have stored it right then.
        let asked = Instant::now();
        let now = self.clock.now();
        let object = self.store.read(&self.key).await.map_err(|error| LeaseError::Read(self.key.to_string(), error))?;
        let record = object.as_ref().map(LeaseRecord::read).unwrap_or_default();
        if !break_lock && !self.may_take(&record, now) {
            return Ok(self.lost_to(record));
        }
        let next = record.taken_by(&self.identity, self.timing.duration, now);
        let written = self.store(object, &next).await;
        match written {
            Ok(_) => {
                let mut seen = self.seen();
                *seen = Seen { other: None, valid_until: Some(asked + self.timing.renew_deadline) };
                Ok(Attempt::Held)
            }
            // Somebody was faster; who, the next attempt tells.
            Err(WriteError::Conflict { .. }) => Ok(self.lost_to(record)),
            Err(error) => Err(LeaseError::Write(self.key.to_string(), error)),
        }
    }

    /// Tries until it is ours, telling about each attempt that was in vain; `false` where `shutdown` came first.
    pub async fn acquire(&self, shutdown: &CancellationToken, mut vain: impl FnMut(&Result<Attempt, LeaseError>)) -> bool {
        loop {
            match self.attempt(false).await {
                Ok(Attempt::Held) => return true,
                answer => vain(&answer),
            }
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return false,
                () = self.clock.sleep(self.timing.retry) => {}
            }
        }
    }

    /// Renews until `shutdown`, or until it is lost: another holds it, or it could not be renewed before the deadline.
    /// Returns whether it is still held.
    pub async fn keep(&self, shutdown: &CancellationToken) -> bool {
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return self.is_held(),
                () = self.clock.sleep(self.timing.retry) => {}
            }
            match self.attempt(false).await {
                Ok(Attempt::Held) => {}
                Ok(Attempt::HeldBy { holder, .. }) if holder != self.identity => {
                    tracing::warn!(lease = %self.key, holder, "the Lease was lost to another");
                    return false;
                }
                answer => tracing::warn!(lease = %self.key, ?answer, "the Lease could not be renewed"),
            }
            if !self.is_held() {
                return false;
            }
        }
    }

    /// Stops writing and gives the Lease back, where it is ours, so that the next holder need not wait.
    pub async fn release(&self) -> Result<(), LeaseError> {
        self.seen().valid_until = None;
        let object = self.store.read(&self.key).await.map_err(|error| LeaseError::Read(self.key.to_string(), error))?;
        let record = object.as_ref().map(LeaseRecord::read).unwrap_or_default();
        if record.holder != self.identity {
            return Ok(());
        }
        match self.store(object, &record.given_back(self.clock.now())).await {
            Ok(_) | Err(WriteError::Conflict { .. }) => Ok(()),
            Err(error) => Err(LeaseError::Write(self.key.to_string(), error)),
        }
    }

    fn may_take(&self, record: &LeaseRecord, now: Timestamp) -> bool {
        if record.holder.is_empty() || record.holder == self.identity {
            return true;
        }
        let mut seen = self.seen();
        let since = match &seen.other {
            Some((known, since)) if known == record => *since,
            _ => {
                let since = Instant::now();
                seen.other = Some((record.clone(), since));
                since
            }
        };
        let needed = if record.is_outdated(now) { self.timing.grace() } else { record.duration };
        since.elapsed() >= needed && needed > Duration::ZERO
    }

    fn lost_to(&self, record: LeaseRecord) -> Attempt {
        if record.holder != self.identity && !record.holder.is_empty() {
            self.seen().valid_until = None;
        }
        Attempt::HeldBy { holder: record.holder, renewed: record.renewed }
    }

    async fn store(&self, object: Option<Object>, record: &LeaseRecord) -> Result<Object, WriteError> {
        match object {
            None => self.store.create(&self.key, &record.object(&self.key, None)).await,
            Some(old) => self.store.replace(&self.key, &record.object(&self.key, Some(old))).await,
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets writes through while the Lease is held, and drops them once it is older than its renew deadline.
pub struct Gated<A> {
    /// What writes.
    pub inner: A,
    /// The Lease that must be held.
    pub lease: Arc<Lease>,
}

impl<A: Applier> Applier for Gated<A> {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        if self.lease.is_held() { self.inner.apply(request) } else { refused(&request.key) }
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        if self.lease.is_held() { self.inner.delete(request) } else { refused(&request.key) }
    }
}

fn refused<'a, T: Send + 'a>(key: &ObjectKey) -> Answer<'a, Result<T, WriteError>> {
    let error = WriteError::NotLeader { key: key.clone() };
    Box::pin(async move { Err(error) })
}

#[cfg(test)]
mod tests;
