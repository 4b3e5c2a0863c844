//! YAML as Kubernetes reads it, bounded, with the place of every field.
//!
//! Scalars follow YAML 1.1 as Kubernetes does (`yes` is true, `0755` is 493); see [`documents`].

mod locations;
mod parse;
mod path;
mod scalar;
#[cfg(test)]
mod tests;

pub use locations::Locations;
pub(crate) use parse::whole;
pub use parse::{documents, documents_with_duplicates};
pub use path::{element, field};
pub(crate) use scalar::place_of;

use std::ops::Range;

use serde_json::Value;

use crate::Diagnostic;

/// One YAML document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Its content.
    pub value: Value,
    /// Where its fields are in the text.
    pub locations: Locations,
    /// Keys that are there twice; always empty from [`documents`].
    pub duplicates: Vec<Diagnostic>,
    /// Warnings about keys that `kubectl` reads as something else: `on` without quotes is `"true"` there.
    pub ambiguous: Vec<Diagnostic>,
    /// Bytes of the text that it is written in, from the line on in which it begins.
    pub(crate) part: Range<usize>,
}
