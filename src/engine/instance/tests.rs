//! Instances driven to their end in a cluster in memory.

mod account;
mod faults;
mod golden;
mod life;
mod properties;
mod removal;
mod seed;
