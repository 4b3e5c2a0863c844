//! The loop on a real API server.
#![allow(clippy::unwrap_used, reason = "tests may unwrap")]

mod account;
mod artifacts;
mod delivery;
mod platform;
mod rbac;
mod stage;
