//! Adapters behind the ports of the use case.

mod approve;
mod fetch;
mod host;
mod keys;
mod looped;
mod plane;
mod session;

pub(crate) use approve::Ask;
pub(crate) use fetch::Fetcher;
pub(crate) use host::{Host, connect};
pub(crate) use keys::keys;
pub(crate) use looped::Delivery;
pub(crate) use plane::{AT_ONCE, Plane, Room};
pub(crate) use session::{Session, interrupted, journal, journal_path, refused, stopped};
