//! API servers: access, discovery, apply, watch.
//!
//! [`access`] finds an API server, [`Cluster`] talks to it as the engine's [`Applier`](plinth_engine::ports::Applier) and
//! [`Reader`](plinth_engine::ports::Reader), [`catalog`] knows what it serves, [`watch`] what it holds, and [`decorate`]
//! layers behaviour over its writes. Everything works behind any kube client, so behind any tower service.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
pub mod backoff;
pub mod catalog;
mod clock;
mod cluster;
mod clusters;
pub mod decorate;
pub mod embedded;
#[cfg(test)]
mod fake;
mod fault;
mod http;
mod inspect;
mod list;
mod review;
mod revision;
pub mod selector;
mod untyped;
pub mod watch;

pub use catalog::Catalog;
pub use clock::SystemClock;
pub use cluster::{Cluster, ClusterIdentity};
pub use clusters::Clusters;
pub use http::chain;
pub use inspect::LogQuery;
pub use watch::Watches;
