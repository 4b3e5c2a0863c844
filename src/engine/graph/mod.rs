//! From a ResourceGraphDefinition to an immutable graph: parsed expressions, edges, types, the generated CRD.
//!
//! Invariant: compiling never panics and never stops at the first mistake; what it answers depends on the definition and
//! the schemas alone. A node whose kind is not served yet is *deferred*: it stays in the graph, unchecked.

mod compiled;
mod definition;
mod document;
mod node;
mod rendered;

pub use compiled::{Compiled, Missing, Options};
pub use definition::{Definition, Source};
pub use node::{Graph, InstanceKind, Node, NodeKind, Plane};
pub use rendered::Rendered;
