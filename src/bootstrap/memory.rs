//! Twins of the ports, for tests: a cluster in memory, and a loop that does to it what the controller does, simply.

mod cluster;
mod control;

pub use cluster::{FakeCluster, Fault};
pub use control::{FakeLoop, TokioClock};
