//! The recorder that a run has: numbers and dates events, keeps them, folds them, tells the sinks.

use std::sync::{Arc, Mutex};

use plinth_engine::ports::Clock;

use crate::{
    event::{Event, EventKind, VERSION},
    memory::lock,
    ports::{Journal, JournalError, Recorder, Sink},
    state::RunState,
    subject::RunId,
};

/// The one place where events become numbered. Order is fixed: journal, fold, sinks.
pub struct Log {
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    sinks: Vec<Arc<dyn Sink>>,
    run: RunId,
    inner: Mutex<Inner>,
}

struct Inner {
    next: u64,
    state: RunState,
    failure: Option<JournalError>,
}

impl Log {
    /// Starts run `run` on what the journal holds already; the state is the fold of it.
    pub fn open(
        run: RunId,
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        sinks: Vec<Arc<dyn Sink>>,
    ) -> Result<Self, JournalError> {
        let state = RunState::replay(&journal.load()?.events);
        Ok(Self::resume(run, state, journal, clock, sinks))
    }

    /// Starts run `run` on a state that is known from elsewhere.
    pub fn resume(
        run: RunId,
        state: RunState,
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        sinks: Vec<Arc<dyn Sink>>,
    ) -> Self {
        // An id that is in the journal already goes on counting: no number comes twice.
        let next = if state.run.as_ref() == Some(&run) { state.seq + 1 } else { 1 };
        Self { journal, clock, sinks, run, inner: Mutex::new(Inner { next, state, failure: None }) }
    }

    /// The state so far.
    pub fn state(&self) -> RunState {
        lock(&self.inner).state.clone()
    }

    /// Reads something out of the state without copying it.
    pub fn read<T>(&self, read: impl FnOnce(&RunState) -> T) -> T {
        read(&lock(&self.inner).state)
    }

    /// Why the journal does not keep events any more. A runner asks before every write: what cannot be recorded is not done.
    pub fn failure(&self) -> Option<JournalError> {
        lock(&self.inner).failure.clone()
    }

    /// The clock that dates events.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }
}

impl Recorder for Log {
    fn record(&self, kind: EventKind) {
        // One lock around all of it: sinks see events in the order of the journal.
        let mut inner = lock(&self.inner);
        if inner.state.is_echo(&kind) {
            return;
        }
        let event = Event { v: VERSION, run: self.run.clone(), seq: inner.next, at: self.clock.now(), kind };
        if inner.failure.is_none() {
            inner.failure = self.journal.append(&event).err();
        }
        inner.next += 1;
        inner.state.fold(&event);
        for sink in &self.sinks {
            sink.take(&event);
        }
    }
}
