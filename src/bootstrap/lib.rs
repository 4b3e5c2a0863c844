//! The use case: from a release channel to a plan, and from a plan to a running platform.
//!
//! The way through this room: [`Content`] is what a channel holds; [`distribution::choose`] finds the distribution in it;
//! [`wanted::assemble`] says which objects are wanted; [`plan::make`] compares them with the cluster; [`preflight`] proves that
//! the plan can be carried out; [`runner::up`] does it, [`rehearsal::rehearse`] tries it and [`removal::down`] undoes it; [`grant::survey`]
//! finds the rights that a controller lacks. The only doors are the traits in
//! [`ports`], so that all of it runs against twins, in a rehearsal, and against a cluster.
//!
//! Invariant: the order of things comes from the graphs alone. No kind of any product is named in here.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod adopt;
pub mod compare;
pub mod content;
pub mod digest;
pub mod distribution;
pub mod drift;
pub mod error;
mod gone;
pub mod grant;
pub mod held;
pub mod install;
mod managed;
pub mod memory;
pub mod others;
mod patient;
pub mod plan;
mod platforms;
pub mod ports;
pub mod preflight;
pub mod rehearsal;
pub mod release;
pub mod removal;
pub mod rights;
pub mod runner;
#[cfg(test)]
mod sample;
pub mod settings;
#[cfg(test)]
mod testing;
pub mod values;
pub mod wanted;
mod write;

pub use content::{Content, Manifest, RgdText};
pub use distribution::{Choice, Distribution, Rgd};
pub use error::Error;
pub use plan::Planned;
pub use platforms::{platforms, remains};
pub use ports::{Access, Alone, Approval, Approver, Lead, Listable, Loop, Ports, Schemas, Stand};
pub use runner::{Request, keep};
pub use settings::{Settings, ValuesFile};
