//! What an instance becomes as far as it is known without a cluster.

use plinth_api::Object;

/// One object of a rendered graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The node's id.
    pub node: String,
    /// The object; fields that are not known keep their template text.
    pub object: Object,
    /// Paths whose values are not known before the run, sorted.
    pub unresolved: Vec<String>,
}
