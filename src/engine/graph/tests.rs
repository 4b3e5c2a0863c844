//! Compiling, end to end.

pub(crate) mod corpus;
mod hostile;
mod rules;
pub(crate) mod seed;
