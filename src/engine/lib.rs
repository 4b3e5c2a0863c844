//! The pure core: from a ResourceGraphDefinition and what was observed to what is to be done next.
//!
//! Invariant: nothing in here touches a network, a file, the environment, a clock or a runtime. What comes from outside
//! comes in as data or through a port ([`ports`]); the same code runs in the controller, in a rehearsal and in tests.

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::print_stdout,
        clippy::print_stderr,
        clippy::needless_pass_by_value,
        clippy::format_collect
    )
)]

pub mod cel;
pub mod diagnostic;
pub mod graph;
pub mod health;
pub mod instance;
pub mod naming;
pub mod permission;
pub mod ports;
pub mod quantity;
pub mod schema;
pub mod simpleschema;
pub mod stored;
pub mod template;
#[cfg(test)]
mod testing;
pub mod yaml;

pub use diagnostic::{Diagnostic, Location, did_you_mean};
