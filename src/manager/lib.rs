//! The generic parts of a controller, as values: several controllers live in one process.
//!
//! Invariant: nothing here knows a kind of its users. Selects are biased and collections ordered, so that the same inputs
//! in the same order give the same run (contracts 23).
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod conditions;
pub mod finalizer;
pub mod lease;
pub mod metrics;
pub mod queue;
pub mod reconcile;
pub mod serve;
pub mod shutdown;
pub mod status;

pub use lease::{Gated, Holder, Kept, Lease};
pub use metrics::Metrics;
pub use plinth_cluster::SystemClock;
pub use queue::Queue;
pub use reconcile::{Outcome, Reconciler, Report, Settings, Summary, run_controller};
pub use serve::Health;
pub use shutdown::Shutdown;
