//! Compiling, end to end.

mod rules;
pub(crate) mod seed;
