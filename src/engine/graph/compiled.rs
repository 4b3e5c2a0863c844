//! What compiling answers with.

use std::sync::Arc;

use plinth_api::GroupVersionKind;

use super::node::Graph;
use crate::Diagnostic;

/// The outcome of compiling a definition.
#[derive(Clone, Debug)]
pub enum Compiled {
    /// Every kind is served and everything checks.
    Active(Arc<Graph>),
    /// Everything that could be checked does; the nodes in `missing` wait for their kinds. Not an error: the graph's CRD is
    /// to be installed and instances run the nodes that compile.
    Deferred {
        /// The graph, deferred nodes included ([`super::Node::is_deferred`]).
        graph: Arc<Graph>,
        /// What it waits for, in the order of the definition.
        missing: Vec<Missing>,
    },
    /// The definition is refused: all findings in the order of the document, errors and warnings.
    Invalid(Vec<Diagnostic>),
}

impl Compiled {
    /// The graph, where there is one.
    pub fn graph(&self) -> Option<&Arc<Graph>> {
        match self {
            Self::Active(graph) | Self::Deferred { graph, .. } => Some(graph),
            Self::Invalid(_) => None,
        }
    }

    /// The kinds waited for, empty where active or refused.
    pub fn missing(&self) -> &[Missing] {
        match self {
            Self::Deferred { missing, .. } => missing,
            Self::Active(_) | Self::Invalid(_) => &[],
        }
    }

    /// Findings: all of them where refused, warnings else.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Active(graph) | Self::Deferred { graph, .. } => &graph.warnings,
            Self::Invalid(diagnostics) => diagnostics,
        }
    }
}

/// A node whose kind is not served yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// The node's id.
    pub node: String,
    /// The kind that is not served.
    pub gvk: GroupVersionKind,
}

/// Bounds and switches of compiling and running; the defaults are kro's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Most items that a collection may have.
    pub max_collection_size: usize,
    /// Most dimensions that a collection may have.
    pub max_dimensions: usize,
    /// The service account of definitions that name none; `None` for the controller's own rights, as with kro.
    pub account: Option<String>,
    /// Whether `omit()` is allowed (kro's feature gate `CELOmitFunction`).
    pub omit: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_collection_size: 1000, max_dimensions: 10, account: None, omit: false }
    }
}
