//! The graph that instances run by.

use std::sync::Arc;

use plinth_api::{GroupVersionKind, Object};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Account, Missing};
use crate::{
    Diagnostic,
    cel::{Expression, Reads},
    schema::{Schema, Segment},
    template::Text,
};

/// A compiled definition. Immutable; share it as `Arc<Graph>`.
#[derive(Clone, Debug)]
pub struct Graph {
    /// `metadata.name` of the definition.
    pub name: String,
    /// `metadata.uid` of the definition.
    pub uid: String,
    /// Group of the definition's own kind.
    pub group: String,
    /// The kind that instances have.
    pub instance: InstanceKind,
    /// The generated CRD, complete with labels.
    pub crd: Object,
    /// The nodes in topological order; where several could come next, the one listed first does.
    pub nodes: Vec<Node>,
    /// In whose name children are written; `None` for the controller's own.
    pub account: Option<Account>,
    /// The status that instances get, without `state` and `conditions`.
    pub status: Projection,
    /// Conditions that the author states; kro's own are written where there are none.
    pub conditions: Vec<Condition>,
    /// Nodes that are deferred, in the order of the definition.
    pub missing: Vec<Missing>,
    /// Findings that do not stop the graph from being used.
    pub warnings: Vec<Diagnostic>,
    /// Bounds and switches that it was compiled with.
    pub options: super::Options,
    /// What its expressions read of the instance and of the nodes.
    pub reads: Arc<Reads>,
}

impl Graph {
    /// A node by its id.
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// Ids in topological order, as `status.topologicalOrder` shows them.
    pub fn order(&self) -> Vec<&str> {
        self.nodes.iter().map(|node| node.id.as_str()).collect()
    }
}

impl Node {
    /// Its expressions, wherever they stand.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let conditions = self.ready_when.iter().chain(&self.include_when).map(|condition| &condition.expression);
        let iterators = self.for_each.iter().map(|dimension| &dimension.expression);
        self.slots.iter().map(|slot| &slot.expression).chain(conditions).chain(iterators)
    }
}

/// The kind that a graph defines.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceKind {
    /// Group, version, kind.
    pub gvk: GroupVersionKind,
    /// Plural name, the resource in URLs.
    pub plural: String,
    /// Whether instances are namespaced.
    pub namespaced: bool,
    /// What the variable `schema` looks like: `apiVersion`, `kind`, `metadata`, `spec`.
    pub schema: Arc<Schema>,
}

/// One node.
#[derive(Clone, Debug)]
pub struct Node {
    /// The id, unique in its graph.
    pub id: String,
    /// Position in `spec.resources`.
    pub position: usize,
    /// What kind of node it is.
    pub kind: NodeKind,
    /// The objects' type.
    pub gvk: GroupVersionKind,
    /// Whether the objects are namespaced; `None` where deferred.
    pub namespaced: Option<bool>,
    /// The plane the objects live on.
    pub plane: Plane,
    /// Ids of the nodes it reads, sorted.
    pub dependencies: Vec<String>,
    /// Deletion wave (kro.md 14): the highest is deleted first, 1 last.
    pub apply_order: usize,
    /// The objects' schema; `None` where deferred.
    pub schema: Option<Arc<Schema>>,
    /// The template (or the external reference) with its expressions as text.
    pub template: Value,
    /// Strings of the template that have expressions, in no particular order.
    pub slots: Vec<Slot>,
    /// All hold when the node is ready.
    pub ready_when: Vec<Condition>,
    /// All hold when the node is wanted.
    pub include_when: Vec<Condition>,
    /// Iterators of a collection; the last runs fastest.
    pub for_each: Vec<Dimension>,
}

impl Node {
    /// Whether the node's kind is not served yet.
    pub fn is_deferred(&self) -> bool {
        self.namespaced.is_none()
    }
}

/// A string of a template that has expressions.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Where it is in the template.
    pub path: Vec<Segment>,
    /// The string.
    pub text: Text,
    /// The string as one expression.
    pub expression: Expression,
    /// What the value must be; `None` where anything is allowed.
    pub schema: Option<Arc<Schema>>,
}

/// One entry of `readyWhen` or `includeWhen`.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Position in its list of the definition.
    pub index: usize,
    /// The string.
    pub text: Text,
    /// The expression.
    pub expression: Expression,
}

/// One entry of `forEach`.
#[derive(Clone, Debug)]
pub struct Dimension {
    /// Position in `forEach` of the definition.
    pub index: usize,
    /// Name of the iterator.
    pub name: String,
    /// The string.
    pub text: Text,
    /// The expression, which gives a list.
    pub expression: Expression,
    /// What the list's elements are, by which they are read (kro.md sections 4 and 9); `None` where that is not known.
    pub element: Option<Arc<Schema>>,
}

/// A status template.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    /// The template with its expressions as text.
    pub template: Value,
    /// Its expressions.
    pub slots: Vec<Slot>,
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// One object that the graph makes.
    Template,
    /// Objects made from lists (`forEach`).
    Collection,
    /// One object that somebody else makes.
    External,
    /// Objects that somebody else makes, by label selector.
    ExternalSelector,
}

impl NodeKind {
    /// Whether the graph writes the node's objects.
    pub fn is_owned(self) -> bool {
        matches!(self, Self::Template | Self::Collection)
    }

    /// Whether other nodes see the node as a list.
    pub fn is_list(self) -> bool {
        matches!(self, Self::Collection | Self::ExternalSelector)
    }
}

/// The role of the cluster that a child lives on (design.md section 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Plane {
    /// The platform cluster; the only one without kcp.
    #[default]
    Host,
    /// The consumer's workspace, where the instance is.
    Consumer,
    /// The provider's workspace, where the definition is.
    Provider,
}

impl Plane {
    /// Its name, as events, graphs and screens say it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Consumer => "consumer",
            Self::Provider => "provider",
        }
    }
}
