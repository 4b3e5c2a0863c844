//! The API of the control plane in this process: one request in, one answer out, under one lock.
//!
//! A request is sent on its way ([`seam`](super::seam)), routed ([`route`]), allowed ([`rbac`]), and answered by its verb: [`read`], [`write`], [`delete`], [`watch`].

pub mod check;
mod crd;
mod definition;
pub mod delete;
pub mod discovery;
mod dispatch;
mod identity;
pub mod kinds;
pub mod listing;
mod marks;
pub mod names;
mod options;
pub mod patch;
pub mod preset;
pub mod problem;
mod ratchet;
pub mod rbac;
pub mod read;
pub mod route;
pub mod rules;
mod scale;
pub mod state;
mod tokens;
pub mod validations;
pub mod watch;
pub mod write;
