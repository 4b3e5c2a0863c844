//! Twins of the ports, for tests and for what needs no file: a journal in a vector, a recorder that only collects, a scripted
//! observer, a stepped clock.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, Waker},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use plinth_engine::ports::{Answer, Clock};

use crate::{
    event::{Event, EventKind},
    journal::Replay,
    ports::{Journal, JournalError, Observer, Recorder, Seen, Sighting, Sink},
};

/// A panic elsewhere does not make a vector of events wrong.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A journal in memory; it can be told to fail.
#[derive(Debug, Default)]
pub struct VecJournal {
    events: Mutex<Vec<Event>>,
    broken: AtomicBool,
}

impl VecJournal {
    /// A journal that holds these events already.
    pub fn with(events: Vec<Event>) -> Self {
        Self { events: Mutex::new(events), broken: AtomicBool::new(false) }
    }

    /// Every append fails from now on.
    pub fn break_down(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    /// What it holds.
    pub fn events(&self) -> Vec<Event> {
        lock(&self.events).clone()
    }
}

impl Journal for VecJournal {
    fn append(&self, event: &Event) -> Result<(), JournalError> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(JournalError::Write { journal: "memory".into(), message: "broken by the test".into() });
        }
        lock(&self.events).push(event.clone());
        Ok(())
    }

    fn load(&self) -> Result<Replay, JournalError> {
        Ok(Replay { events: self.events(), cut: None })
    }
}

/// A recorder that only collects kinds.
#[derive(Debug, Default)]
pub struct VecRecorder(Mutex<Vec<EventKind>>);

impl VecRecorder {
    /// What was recorded.
    pub fn kinds(&self) -> Vec<EventKind> {
        lock(&self.0).clone()
    }
}

impl Recorder for VecRecorder {
    fn record(&self, kind: EventKind) {
        lock(&self.0).push(kind);
    }
}

/// A sink that only collects events.
#[derive(Debug, Default)]
pub struct VecSink(Mutex<Vec<Event>>);

impl VecSink {
    /// What it was told.
    pub fn events(&self) -> Vec<Event> {
        lock(&self.0).clone()
    }
}

impl Sink for VecSink {
    fn take(&self, event: &Event) {
        lock(&self.0).push(event.clone());
    }
}

/// An observer that plays a script, each sighting after its delay on the script's clock.
///
/// At the end it answers `None`, or, when made by [`ScriptedObserver::then_silent`], never again.
pub struct ScriptedObserver {
    script: Mutex<VecDeque<(Duration, Sighting)>>,
    clock: Arc<dyn Clock>,
    silent: bool,
}

impl ScriptedObserver {
    /// Plays `script` and ends.
    pub fn new(clock: Arc<dyn Clock>, script: Vec<(Duration, Sighting)>) -> Self {
        Self { script: Mutex::new(script.into()), clock, silent: false }
    }

    /// Plays `script` and then never answers, as a watch on a quiet cluster.
    pub fn then_silent(clock: Arc<dyn Clock>, script: Vec<(Duration, Sighting)>) -> Self {
        Self { silent: true, ..Self::new(clock, script) }
    }
}

impl Observer for ScriptedObserver {
    fn next(&self) -> Answer<'_, Option<Seen>> {
        Box::pin(async move {
            // Taken only after the delay: a caller that gives up in between loses nothing.
            let Some(delay) = lock(&self.script).front().map(|(delay, _)| *delay) else {
                return if self.silent { std::future::pending().await } else { None };
            };
            if !delay.is_zero() {
                self.clock.sleep(delay).await;
            }
            lock(&self.script).pop_front().map(|(_, sighting)| Seen::Sighting(sighting))
        })
    }
}

/// A clock that stands still until a test steps it; a sleeper wakes when it is stepped past its time.
#[derive(Clone, Debug)]
pub struct SteppedClock(Arc<Mutex<Stepped>>);

#[derive(Debug)]
struct Stepped {
    now: Timestamp,
    sleepers: Vec<Waker>,
}

impl SteppedClock {
    /// Starts at this time.
    pub fn at(start: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(Stepped { now: start, sleepers: Vec::new() })))
    }

    /// Moves on and wakes all sleepers, who look for themselves whether it is time.
    pub fn step(&self, duration: Duration) {
        let mut stepped = lock(&self.0);
        stepped.now = later(stepped.now, duration);
        stepped.sleepers.drain(..).for_each(Waker::wake);
    }
}

/// `at` plus `duration`, at most the end of time.
fn later(at: Timestamp, duration: Duration) -> Timestamp {
    let step = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    at.checked_add(step).unwrap_or(Timestamp::MAX)
}

impl Default for SteppedClock {
    fn default() -> Self {
        Self::at(Timestamp::UNIX_EPOCH)
    }
}

impl Clock for SteppedClock {
    fn now(&self) -> Timestamp {
        lock(&self.0).now
    }

    fn sleep(&self, duration: Duration) -> Answer<'static, ()> {
        let stepped = Arc::clone(&self.0);
        let due = later(self.now(), duration);
        Box::pin(poll_fn(move |context| {
            let mut stepped = lock(&stepped);
            if stepped.now >= due {
                return Poll::Ready(());
            }
            stepped.sleepers.push(context.waker().clone());
            Poll::Pending
        }))
    }
}
