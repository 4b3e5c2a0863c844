//! The parts of `plinth controller`.

mod keeper;
mod serve;
mod standby;

pub(crate) use keeper::Keeper;
pub(crate) use serve::Servers;
pub(crate) use standby::Standby;
