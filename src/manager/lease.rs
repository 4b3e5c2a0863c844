//! One Lease for every writer (contracts 21): taken before the first write, renewed while writing, given back at the end.
//!
//! | the Lease | may be taken |
//! | --- | --- |
//! | absent, given back, or ours | at once |
//! | of another, older than its duration | when it was not renewed for another while that we watched ([`Timing::grace`]) |
//! | of another, of the future (clocks differ) | when it was not renewed for its duration that we watched |
//! | of another, any | at once with `break_lock` |
//! | given back because another asked for it | by that one; by the rest when it was not taken for its duration that we watched |
//!
//! A holder that yields ([`Holder::yields`], the controller) gives it up where another asks ([`Lease::take`] does): a run on a laptop
//! has its turn while the controller waits.

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
        /// When the holder took it, by its clock.
        since: Option<Timestamp>,
        /// When it was last renewed, by the holder's clock.
        renewed: Option<Timestamp>,
        /// Whether it gives it up where it is asked to.
        yields: bool,
    },
}

/// How holding a Lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// We were asked to end it; it is still ours.
    Ended,
    /// Another one asked for it; it is still ours, and to be given back.
    Asked,
    /// It is another's, or may not be renewed; with [`Lease::keep`] also: it could not be renewed in time.
    Lost,
}

/// What one renewal came to.
enum Renewed {
    Held,
    /// Another one has it, or had it.
    Taken,
    /// The server says no.
    Refused,
    /// The server says nothing.
    Silent(String),
}

/// Who would hold a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// What tells holders apart. One that comes back under its old identity takes its own Lease at once.
    pub identity: String,
    /// One that is known to be dead, and whose Lease is taken at once.
    pub heir_of: Option<String>,
    /// It gives the Lease up where another one asks for it.
    pub yields: bool,
}

impl<T: Into<String>> From<T> for Holder {
    fn from(identity: T) -> Self {
        Self { identity: identity.into(), heir_of: None, yields: false }
    }
}

impl Holder {
    fn may_take_from(&self, other: &str) -> bool {
        other.is_empty() || other == self.identity || self.heir_of.as_deref() == Some(other)
    }
}

/// A Lease as one would-be holder sees it.
pub struct Lease {
    store: Arc<dyn LeaseStore>,
    clock: Arc<dyn Clock>,
    key: ObjectKey,
    holder: Holder,
    timing: Timing,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The last record seen of another, and since when it has been the same.
    other: Option<(LeaseRecord, Instant)>,
    /// Until when writes may go out.
    valid_until: Option<Instant>,
    /// Whether another one asks for it.
    asked: bool,
}

impl Lease {
    /// Names a Lease; contacts nothing.
    pub fn new(
        store: Arc<dyn LeaseStore>,
        clock: Arc<dyn Clock>,
        key: ObjectKey,
        holder: impl Into<Holder>,
        timing: Timing,
    ) -> Arc<Self> {
        Arc::new(Self { store, clock, key, holder: holder.into(), timing, seen: Mutex::default() })
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
        self.try_once(break_lock, false).await
    }

    async fn try_once(&self, break_lock: bool, strict: bool) -> Result<Attempt, LeaseError> {
        // The time before the request counts: the server may have stored it right then.
        let asked = Instant::now();
        let now = self.clock.now();
        let object = self.store.read(&self.key).await.map_err(|error| LeaseError::Read(self.key.to_string(), error))?;
        let record = object.as_ref().map(LeaseRecord::read).unwrap_or_default();
        let is_others = strict && object.is_some() && record.holder != self.holder.identity;
        if is_others || !break_lock && !self.may_take(&record, now) {
            return Ok(self.lost_to(record));
        }
        let next = record.taken_by(&self.holder, self.timing.duration, now);
        let written = self.store(object, &next).await;
        match written {
            Ok(_) => {
                let mut seen = self.seen();
                let is_asked = !next.asked_by.is_empty() && next.asked_by != self.holder.identity;
                *seen = Seen { other: None, valid_until: Some(asked + self.timing.renew_deadline), asked: is_asked };
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

    /// Tries until it is ours, or until its holder is seen to live: it renewed the Lease, or gave it to another, while we watched. One
    /// that yields is asked for it, and has its time to give it up. The first look at another holder is told.
    pub async fn take(&self, break_lock: bool, mut waits: impl FnMut(&Attempt)) -> Result<Attempt, LeaseError> {
        let mut first: Option<Attempt> = None;
        let patience = self.timing.duration + self.timing.renew_deadline;
        let began = Instant::now();
        loop {
            let answer = self.attempt(break_lock).await?;
            match (&answer, &first) {
                (Attempt::Held, _) => return Ok(answer),
                // Nobody's, but another one was faster.
                (Attempt::HeldBy { holder, .. }, _) if holder.is_empty() => {}
                (Attempt::HeldBy { yields: true, .. }, known) if began.elapsed() < patience => {
                    if known.is_none() {
                        waits(&answer);
                        first = Some(answer);
                    }
                    self.ask().await?;
                }
                (_, Some(first)) if *first != answer => return Ok(answer),
                (_, Some(_)) => {}
                (_, None) => {
                    waits(&answer);
                    first = Some(answer);
                }
            }
            self.clock.sleep(self.timing.retry).await;
        }
    }

    /// Says on the Lease that we ask for it; its holder sees that when it renews.
    async fn ask(&self) -> Result<(), LeaseError> {
        let object = self.store.read(&self.key).await.map_err(|error| LeaseError::Read(self.key.to_string(), error))?;
        let record = object.as_ref().map(LeaseRecord::read).unwrap_or_default();
        if record.holder.is_empty() || record.asked_by == self.holder.identity {
            return Ok(());
        }
        let asked = LeaseRecord { asked_by: self.holder.identity.clone(), ..record };
        match self.store(object, &asked).await {
            Ok(_) | Err(WriteError::Conflict { .. }) => Ok(()),
            Err(error) => Err(LeaseError::Write(self.key.to_string(), error)),
        }
    }

    /// Renews until `shutdown`, until another one asks for it where we yield, or until it is lost: another holds it, or it could not
    /// be renewed before the deadline.
    pub async fn keep(&self, shutdown: &CancellationToken) -> Kept {
        self.kept(shutdown, false, |_, _| {}).await
    }

    /// The same where a server that does not answer costs time alone: nothing is written meanwhile, and once it answers the Lease is
    /// ours again, unless another one took it. Each attempt that got no answer is told, with its number and the reason.
    pub async fn keep_patiently(&self, shutdown: &CancellationToken, vain: impl FnMut(u32, &str)) -> Kept {
        self.kept(shutdown, true, vain).await
    }

    async fn kept(&self, shutdown: &CancellationToken, patient: bool, mut vain: impl FnMut(u32, &str)) -> Kept {
        let mut attempts = 0;
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return if self.is_held() { Kept::Ended } else { Kept::Lost },
                () = self.clock.sleep(self.timing.retry) => {}
            }
            let silent = match self.renewed(attempts > 0).await {
                Renewed::Held if self.holder.yields && self.seen().asked => return Kept::Asked,
                Renewed::Held => {
                    attempts = 0;
                    continue;
                }
                Renewed::Taken => return Kept::Lost,
                Renewed::Refused => false,
                Renewed::Silent(message) => {
                    attempts += 1;
                    vain(attempts, &message);
                    true
                }
            };
            if !(self.is_held() || patient && silent) {
                return Kept::Lost;
            }
        }
    }

    /// One renewal, which has no longer than half of its deadline. Dropping a request that the server may still carry out is harmless:
    /// it would say what the next one says, and not without the resourceVersion that it saw. `strict` also counts a Lease as
    /// another's that another one had and gave back.
    async fn renewed(&self, strict: bool) -> Renewed {
        let limit = self.timing.renew_deadline / 2;
        let Ok(answer) = tokio::time::timeout(limit, self.try_once(false, strict)).await else {
            let message = format!("no answer within {} s", limit.as_secs());
            tracing::warn!(lease = %self.key, message, "the Lease could not be renewed");
            return Renewed::Silent(message);
        };
        match answer {
            Ok(Attempt::Held) => Renewed::Held,
            Ok(Attempt::HeldBy { holder, .. }) if holder != self.holder.identity => {
                tracing::warn!(lease = %self.key, holder, "the Lease was lost to another");
                self.seen().valid_until = None;
                Renewed::Taken
            }
            answer => {
                tracing::warn!(lease = %self.key, ?answer, "the Lease could not be renewed");
                match answer {
                    Err(
                        LeaseError::Read(_, ReadError::Unavailable(message))
                        | LeaseError::Write(_, WriteError::Unavailable { message, .. }),
                    ) => Renewed::Silent(message),
                    // Written by ourselves meanwhile, by a request that got no answer.
                    Ok(_) => Renewed::Silent("it changed meanwhile".to_owned()),
                    Err(_) => Renewed::Refused,
                }
            }
        }
    }

    /// Stops writing and gives the Lease back, where it is ours, so that the next holder need not wait.
    pub async fn release(&self) -> Result<(), LeaseError> {
        self.seen().valid_until = None;
        let object = self.store.read(&self.key).await.map_err(|error| LeaseError::Read(self.key.to_string(), error))?;
        let record = object.as_ref().map(LeaseRecord::read).unwrap_or_default();
        if record.holder != self.holder.identity {
            return Ok(());
        }
        match self.store(object, &record.given_back(self.clock.now())).await {
            Ok(_) | Err(WriteError::Conflict { .. }) => Ok(()),
            Err(error) => Err(LeaseError::Write(self.key.to_string(), error)),
        }
    }

    fn may_take(&self, record: &LeaseRecord, now: Timestamp) -> bool {
        let is_for_another = record.holder.is_empty() && !["", &self.holder.identity].contains(&record.asked_by.as_str());
        if self.holder.may_take_from(&record.holder) && !is_for_another {
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
        let needed = if is_for_another {
            // Whoever asked for it has the time that a holder has.
            self.timing.duration
        } else if record.is_outdated(now) {
            self.timing.grace()
        } else {
            record.duration
        };
        since.elapsed() >= needed && needed > Duration::ZERO
    }

    fn lost_to(&self, record: LeaseRecord) -> Attempt {
        if record.holder != self.holder.identity && !record.holder.is_empty() {
            self.seen().valid_until = None;
        }
        Attempt::HeldBy { holder: record.holder, since: record.acquired, renewed: record.renewed, yields: record.yields }
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

    fn replace<'a>(&'a self, key: &'a ObjectKey, object: &'a Object) -> Answer<'a, Result<Object, WriteError>> {
        if self.lease.is_held() { self.inner.replace(key, object) } else { refused(key) }
    }
}

fn refused<'a, T: Send + 'a>(key: &ObjectKey) -> Answer<'a, Result<T, WriteError>> {
    let error = WriteError::NotLeader { key: key.clone() };
    Box::pin(async move { Err(error) })
}

#[cfg(test)]
mod tests;
