//! The control plane in this process (issue 02). So far: its store.
//!
//! Invariant: nothing in here reads a clock or draws a number; times and UIDs come in with each request, so that the same
//! requests give the same objects and the same events.

pub mod fields;
pub mod filter;
pub mod store;
