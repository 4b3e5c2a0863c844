//! The terminal: model, message, update, view. Effects are data; the loop in [`app`] is the only part that touches a terminal.
//!
//! Invariant: [`update::update`] has no I/O and [`view::draw`] only reads, so every screen is a function of the messages so far.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod app;
pub mod command;
pub mod detail;
pub mod effect;
pub mod log;
pub mod message;
pub mod model;
pub mod picture;
pub mod planes;
pub mod rows;
pub mod terminal;
pub mod theme;
pub mod trail;
pub mod update;
pub mod view;
pub mod why;

pub use effect::{Ask, Effect, What};
pub use message::{Answer, ClusterEvent, Fetched, Lost, Message};
pub use model::Model;
