//! What a run is, for everybody: events, plan, state, and the ports that carry them.
//!
//! Invariant: a run is its events. [`RunState`] is nothing but their fold, so resume, replay, JUnit, the summary, the exit
//! code and the terminal interface all agree. Nothing in here talks to a client, a file or a clock, and no event carries the
//! body of an object, so that no secret can travel in one.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod duration;
pub mod event;
pub mod feed;
pub mod filter;
pub mod health;
pub mod history;
pub mod inspect;
pub mod journal;
pub mod log;
pub mod memory;
pub mod next;
pub mod outcome;
pub mod plan;
pub mod ports;
pub mod present;
pub mod state;
pub mod subject;

pub use event::{Cause, CheckVerdict, Event, EventKind, LongWait, SkipReason, Verb};
pub use feed::Feed;
pub use filter::Filter;
pub use health::Health;
pub use history::History;
pub use log::Log;
pub use outcome::Outcome;
pub use plan::{Action, Change, Deferred, Plan, Stage};
pub use ports::{Journal, Observer, Recorder, Seen, Sighting, Sink};
pub use state::{Applied, RunState, SubjectState, Summary};
pub use subject::{CheckId, ClusterIdentity, RunId, StageId, Subject};
