//! Drives one instance: given what was observed, says what is to be done next. Pure and level-triggered.
//!
//! The shell calls [`decide`], executes the actions, puts the answers into the [`Observation`] and calls again until the
//! decision has no actions. Nothing is remembered here; what was applied is part of the observation, so that a journal can
//! seed it.

mod account;
mod authored;
mod compare;
mod decide;
mod decision;
mod expand;
mod external;
mod inventory;
mod judge;
mod members;
mod observation;
mod owned;
mod pass;
mod removal;
mod resolve;
mod status;
mod values;

pub use decide::decide;
pub use decision::{Action, Decision, InstanceState, NodeState, NodeVerdict, WaitsFor, Watch};
pub(crate) use expand::expand;
pub use inventory::{is_applied, member_kinds};
pub use judge::{failures, judge_child, unready};
pub use observation::{Applied, Failure, Observation};
pub(crate) use values::{Trouble, Values};

#[cfg(test)]
mod tests;
