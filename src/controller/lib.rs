//! The loop that keeps a platform: definitions, their instances, and the delivery kinds, in one process.
//!
//! Every reconciler is a function of data with a thin shell around it; the shells talk to [`world`], never to a client, so that
//! they run in tests without a server. Everything that happens is told to the run's recorder.
//!
//! Invariants: nothing polls what can be watched; nothing is written that is already so; nothing is pruned after a pass that
//! was not complete.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "tests may unwrap, and read better with literals")
)]

pub mod artifacts;
pub mod awaited;
pub mod conditions;
pub mod delivery;
pub mod figures;
pub mod graphs;
pub mod instance;
pub mod journal;
pub mod live;
pub mod platform;
mod recent;
pub mod rgd;
mod start;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;
#[cfg(test)]
mod unpermitted;
pub mod world;

pub use start::{Handle, Options, Reach, start};

/// Bytes as lower-case hexadecimal text.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
