//! The loop on a real API server.
#![allow(clippy::unwrap_used, reason = "tests may unwrap")]

mod artifacts;
mod delivery;
mod platform;
mod rbac;
mod stage;
