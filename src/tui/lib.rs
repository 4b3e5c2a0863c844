//! The terminal: model, message, update, view. Effects are data; the loop in [`app`] is the only part that touches a terminal.
//!
//! Invariant: [`update::update`] has no I/O and [`view::draw`] only reads, so every screen is a function of the messages so far.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod app;
pub mod command;
pub mod effect;
pub mod message;
pub mod model;
pub mod rows;
pub mod terminal;
pub mod theme;
pub mod update;
pub mod view;

pub use effect::Effect;
pub use message::Message;
pub use model::Model;
