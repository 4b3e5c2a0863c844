//! Instances driven to their end in a cluster in memory.

mod faults;
mod life;
mod removal;
mod seed;
