//! CustomResourceDefinitions: reading kinds from one, and making the one of a graph.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{CrdError, kinds};
pub use write::{Owner, generate, name};

/// What a printer column may be.
pub const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
/// How it may be shown.
pub const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
