//! The parts of `plinth controller`. Its [`Replica`] is public for whoever else runs one: a simulation.

mod keeper;
mod replica;
mod serve;
mod standby;

pub use replica::Replica;
pub(crate) use serve::Servers;
