//! Compiling, end to end.

pub(crate) mod corpus;
mod hostile;
mod peer;
mod probes;
mod rules;
pub(crate) mod seed;
mod together;
