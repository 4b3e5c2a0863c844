//! The loop on a real API server.
#![allow(clippy::unwrap_used, reason = "tests may unwrap")]

mod platform;
mod stage;
