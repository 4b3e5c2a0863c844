//! From a ResourceGraphDefinition to an immutable graph: parsed expressions, edges, types, the generated CRD.
//!
//! Invariant: compiling never panics and never stops at the first mistake; what it answers depends on the definition and
//! the schemas alone. A node whose kind is not served yet is *deferred*: it stays in the graph, unchecked.

mod account;
mod authored;
mod check;
mod collisions;
mod compile;
mod compiled;
mod definition;
mod document;
mod draft;
mod draw;
mod edges;
mod example;
mod findings;
mod fit;
mod infer;
mod metadata;
mod names;
mod namesakes;
mod node;
mod order;
mod readable;
mod rendered;
mod revision;
mod selector;
mod shape;
mod status;

pub use account::Account;
pub(crate) use authored::types_of as authored_types;
pub(crate) use collisions::collision;
pub use compile::{compile, kinds};
pub use compiled::{Compiled, Missing, Options};
pub use definition::{Definition, Source};
pub use draw::{to_dot, to_text};
pub use namesakes::namesakes;
pub use node::{Condition, Dimension, Graph, InstanceKind, Node, NodeKind, Plane, Projection, Slot};
pub use rendered::{Example, Rendered, render, render_examples, render_with};
pub use revision::{revision_name, spec_hash};
pub(crate) use selector::fault as selector_fault;

#[cfg(test)]
pub(crate) mod tests;
