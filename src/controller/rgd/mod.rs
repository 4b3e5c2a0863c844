//! ResourceGraphDefinitions: compile, install the generated CRD, publish the graph.
//!
//! A pass is cheap and may come at any time: when the definition changes, when a kind that it uses is served, changes or goes,
//! when its CRD changes, when an instance goes while it is being deleted. Nothing polls.

pub mod crd;
pub mod definition;
mod history;
mod reconcile;
pub mod revision;
pub mod status;
#[cfg(test)]
mod tests;

pub(crate) use history::leftovers;
pub use reconcile::{Definitions, INSTANCES_ROLE, ROLE};
