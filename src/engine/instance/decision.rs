//! What is to be done next for an instance, and how its nodes are.

use std::collections::BTreeSet;

use plinth_api::{GroupVersionKind, ObjectKey, Permission};
use serde_json::Value;

use crate::{
    Diagnostic,
    ports::{Access, Apply, Delete, Query},
};

/// The answer to an observation.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// What to do now; all of them may be done at the same time, except that deletions keep their order. Empty: nothing is
    /// left to do until something changes.
    pub actions: Vec<Action>,
    /// How the nodes are, in topological order.
    pub nodes: Vec<NodeVerdict>,
    /// What a later decision depends on: a change there means deciding again.
    pub watch: Watch,
    /// kro's `state`.
    pub state: InstanceState,
    /// plinth's own Ready (contracts 13): kro's, every child that is itself an instance is Ready, and nothing is left over.
    pub ready: bool,
    /// What nobody wants any more and could not be deleted yet, in words; `None` where there is no such thing.
    pub left_over: Option<String>,
    /// Whether every node was observed, resolved and applied, so that pruning is allowed.
    pub complete: bool,
    /// The whole status as it should be, whether or not it has to be written.
    pub status: Value,
    /// Status expressions that failed; the other fields are there all the same.
    pub problems: Vec<Diagnostic>,
}

impl Decision {
    /// The verdict of one node.
    pub fn node(&self, id: &str) -> Option<&NodeVerdict> {
        self.nodes.iter().find(|verdict| verdict.id == id)
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Read an object into [`super::Observation::objects`].
    Read(ObjectKey),
    /// Read a list into [`super::Observation::lists`]. An empty version means the one that the server prefers.
    List(Query),
    /// Ask whether somebody may read, into [`super::Observation::reviews`].
    Review(Access),
    /// Write the instance's own metadata: labels, finalizer, ApplySet inventory. The answer is the new instance.
    PatchInstance(Apply),
    /// Apply a child. The answer goes into `objects`, and [`super::Applied::remember`] into `applied`.
    Apply {
        /// The node.
        node: String,
        /// The request.
        apply: Apply,
        /// Digest of the request for [`super::Applied`] and [`super::Failure::Write`].
        input: String,
    },
    /// Delete a child (pruning, or removal of the instance).
    Delete {
        /// The node it belonged to, as its label says.
        node: Option<String>,
        /// The request, by UID.
        delete: Delete,
    },
    /// Replace the instance's status. Comes only when nothing else is to be done.
    WriteStatus(Value),
    /// Take the finalizer off the instance, last of all.
    RemoveFinalizer(String),
}

/// What a decision depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// Single objects, existing or not.
    pub objects: BTreeSet<ObjectKey>,
    /// Lists.
    pub lists: BTreeSet<Query>,
    /// Kinds that are not served yet.
    pub kinds: BTreeSet<GroupVersionKind>,
}

/// kro's `status.state` of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InstanceState {
    /// Everything is as wanted.
    Active,
    /// Something is still to come.
    #[default]
    InProgress,
    /// Something failed.
    Error,
    /// The instance is being removed.
    Deleting,
}

impl InstanceState {
    /// kro's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::InProgress => "IN_PROGRESS",
            Self::Error => "ERROR",
            Self::Deleting => "DELETING",
        }
    }
}

/// How one node is.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeVerdict {
    /// The node's id.
    pub id: String,
    /// Its state.
    pub state: NodeState,
    /// Its objects, as far as their names are known.
    pub objects: Vec<ObjectKey>,
    /// What it waits for, where it waits.
    pub waits_for: Option<WaitsFor>,
    /// A sentence on the state, empty where there is nothing to say.
    pub message: String,
}

/// The states of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeState {
    /// There, as wanted, and ready.
    Ready,
    /// Left out by `includeWhen` (its own, or that of a node it reads).
    Skipped,
    /// Being read or applied: an action of this decision is about it.
    Acting,
    /// There, but not ready.
    Unready,
    /// Cannot be resolved yet: a field, a node, an external object or a right is not there.
    Pending,
    /// Its kind is not served yet.
    Deferred,
    /// Being deleted.
    Terminating,
    /// Failed: an expression, a read or a write.
    Failed,
}

/// What exactly a node waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// A kind that is not served.
    Kind(GroupVersionKind),
    /// An object that somebody else makes.
    Object(ObjectKey),
    /// A field that is not there yet.
    Field {
        /// The node (or `schema`) that should have it.
        node: String,
        /// The whole path as the expression reads it, such as `image.status.resource.access.imageReference`.
        path: String,
    },
    /// Another node to become ready.
    Node(String),
    /// Its own `readyWhen` to hold.
    Condition(String),
    /// An object to be gone.
    Deletion(ObjectKey),
    /// Rights that the controller lacks.
    Permission(BTreeSet<Permission>),
}

impl NodeVerdict {
    /// The rights that it waits for.
    pub fn missing(&self) -> Option<&BTreeSet<Permission>> {
        match &self.waits_for {
            Some(WaitsFor::Permission(missing)) => Some(missing),
            _ => None,
        }
    }
}
