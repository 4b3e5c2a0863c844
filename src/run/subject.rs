//! Who and what events are about.

use std::fmt;

use plinth_api::ObjectKey;
use plinth_engine::graph::Plane;
use serde::{Deserialize, Serialize};

/// One run of a verb, unique in its journal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which cluster it really is: the UID of its kube-system namespace, or of the LogicalCluster in kcp (design.md section 1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterIdentity(pub String);

impl fmt::Display for ClusterIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of a stage in its plan, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StageId(pub u32);

impl fmt::Display for StageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The stable name of a preflight check, such as `cluster-identity`: the anchor of its page in docs/why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckId(pub String);

impl From<&str> for CheckId {
    fn from(id: &str) -> Self {
        Self(id.to_owned())
    }
}

impl fmt::Display for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The object that an event is about, and its place in the graph where it has one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Subject {
    /// The object.
    pub key: ObjectKey,
    /// Id of the node that the object comes from, in the graph of its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The instance that the object is a child of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ObjectKey>,
    /// The role of its cluster, where one was given to it; a platform without kcp has one cluster and no roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plane: Option<Plane>,
}

impl Subject {
    /// An object that belongs to no graph, such as an RGD or the top-level instance.
    pub fn root(key: ObjectKey) -> Self {
        Self { key, node: None, parent: None, plane: None }
    }

    /// The child that node `node` of `parent` makes.
    pub fn child(key: ObjectKey, node: impl Into<String>, parent: ObjectKey) -> Self {
        Self { node: Some(node.into()), parent: Some(parent), ..Self::root(key) }
    }

    /// The same on a cluster with this role.
    #[must_use]
    pub fn on(self, plane: Plane) -> Self {
        Self { plane: Some(plane), ..self }
    }

    /// The plane as it is called: the role, or the cluster's key where nobody gave it one.
    pub fn plane(&self) -> &str {
        match self.plane {
            Some(plane) => plane.word(),
            None => &self.key.cluster.0,
        }
    }

    /// The plane with its cluster, where the role alone does not say which one it is.
    pub fn place(&self) -> String {
        let (plane, cluster) = (self.plane(), &self.key.cluster.0);
        if plane == cluster { plane.to_owned() } else { format!("{plane} {cluster}") }
    }
}

/// Prints the object's key.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}
