//! Adapters behind the ports of the use case. Public for whoever else puts a run together: a test, a simulation.

mod approve;
mod contexts;
mod fetch;
mod handing;
mod host;
mod keys;
mod lead;
mod line;
mod looped;
mod plane;
mod requests;
mod session;

pub(crate) use approve::{Ask, AskInText, ShowOnly};
pub(crate) use contexts::Contexts;
pub(crate) use fetch::{Fetcher, Wanted};
pub use host::Host;
pub(crate) use host::connect;
pub(crate) use keys::keys;
pub(crate) use lead::{key as lease_key, lease, machine};
pub(crate) use line::Line;
pub use looped::InProcess;
pub(crate) use looped::{Delivery, Turn, leaves};
pub(crate) use plane::{AT_ONCE, Plane, Room};
pub use session::unfinished;
pub(crate) use session::{Session, before_the_run, interrupted, journal, journal_path, journals, listen, refused, stopped};
