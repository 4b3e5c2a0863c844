//! CustomResourceDefinitions: reading kinds from one, and making the one of a graph.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{CrdError, kinds};
pub use write::{Owner, generate, name};
