//! Screens of a recorded run at the sizes people have, scripts of keys, and every size and order of messages without a panic.
#![allow(clippy::unwrap_used, missing_docs)]

mod agree;
mod contexts;
mod golden;
mod page;
mod pictures;
mod planes;
mod random;
mod sample;
mod scripts;
