//! What objects of a kind look like: structural OpenAPI v3, as CRDs and API servers publish it.
//!
//! Invariant: a [`Schema`] holds no `$ref`; [`openapi`] inlines references under bounds. Sub-schemas are shared (`Arc`), so
//! that a definition inlined in many places exists once.

mod builtin;
pub mod compat;
pub mod crd;
pub mod formats;
mod lookup;
pub mod openapi;
mod source;
mod structural;
#[cfg(test)]
mod tests;
mod types;
mod validate;

pub use builtin::{KUBERNETES_VERSION, builtin, object_meta};
pub use lookup::{Found, Segment, segments};
pub use source::{KindInfo, Lookup, SchemaMap, SchemaSource};
pub use structural::{apply_defaults, apply_object_defaults, prune, prune_object};
pub use types::{Additional, Schema, ValidationRule};
pub use validate::{type_name, validate, validate_object};
pub(crate) use validate::{validate_default, validate_known};
