//! Compiling, end to end.

mod corpus;
mod rules;
pub(crate) mod seed;
