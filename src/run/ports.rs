//! The ports of a run. Twins for tests are in [`crate::memory`].

use plinth_engine::ports::Answer;
use thiserror::Error;

use crate::{
    event::{Cause, Event, EventKind},
    health::Health,
    subject::Subject,
};

/// Where events are kept. The first consumer; it loses nothing.
///
/// Synchronous, because an event must be kept before the next write to a cluster begins. An adapter that cannot write at
/// once (a ConfigMap) keeps its own bounded queue and answers with an error when that is full.
pub trait Journal: Send + Sync {
    /// Keeps one event, durably.
    fn append(&self, event: &Event) -> Result<(), JournalError>;

    /// All events so far, oldest first.
    fn load(&self) -> Result<crate::journal::Replay, JournalError>;
}

/// Takes what happened. Controllers, the runner and the preflight all talk to one.
pub trait Recorder: Send + Sync {
    /// Numbers, dates and keeps one event. Never blocks on a presenter.
    fn record(&self, kind: EventKind);
}

/// Is told of every event after the journal has it. Must not block.
pub trait Sink: Send + Sync {
    /// Takes one event.
    fn take(&self, event: &Event);
}

/// Sees objects change: reads first, then watches (ux.md lesson 3).
pub trait Observer: Send + Sync {
    /// The next change of any object of the platform; what exists already comes first. `None` where nothing will come any more.
    fn next(&self) -> Answer<'_, Option<Seen>>;
}

/// What an observer answers with.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one at a time is on its way, and most are sightings")]
pub enum Seen {
    /// Something was recorded in the run's own log: whoever follows looks at the state. What a loop in this process gives.
    Recorded,
    /// Something that the log does not have yet. What a watch gives.
    Sighting(Sighting),
}

/// The verdict on one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    /// The object.
    pub subject: Subject,
    /// Its health; [`Health::NotFound`] where it is gone.
    pub health: Health,
    /// One word in UpperCamelCase, empty where there is none.
    pub reason: String,
    /// A sentence, empty where there is none.
    pub message: String,
    /// Why, from the nearest cause to the root.
    pub causes: Vec<Cause>,
    /// It will not heal by itself: the run fails at once instead of at its deadline.
    pub terminal: bool,
}

/// Why the journal cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JournalError {
    /// It cannot be written.
    #[error("write journal {journal}: {message}")]
    Write {
        /// Path or name.
        journal: String,
        /// What happened.
        message: String,
    },
    /// It cannot be read.
    #[error("read journal {journal}: {message}")]
    Read {
        /// Path or name.
        journal: String,
        /// What happened.
        message: String,
    },
    /// A line is not an event.
    #[error("line {line} is not an event: {message}")]
    Malformed {
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A line is written by another version.
    #[error("line {line} has event version {version}; this is a reader of version 1")]
    Version {
        /// Line, from 1.
        line: usize,
        /// What the line says.
        version: u64,
    },
    /// A line is too long.
    #[error("line {line} is longer than {limit} bytes")]
    TooLong {
        /// Line, from 1; 0 for an event that is to be written.
        line: usize,
        /// The limit in bytes.
        limit: usize,
    },
}
