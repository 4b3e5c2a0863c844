//! What is known about an instance and its children when a decision is made.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plinth_api::{ClusterKey, GroupKind, Object, ObjectKey};
use serde::{Deserialize, Serialize};

use crate::{
    graph::Plane,
    ports::{Access, Query, ReadError, WriteError},
};

/// Everything that a decision is made from.
///
/// The shell keeps `objects` and `lists` current (from its watches) for as long as it uses the same observation.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// The instance as the server holds it.
    pub instance: Object,
    /// The cluster that holds the instance.
    pub cluster: ClusterKey,
    /// Clusters of the planes; one that is not listed is the instance's own.
    pub planes: BTreeMap<Plane, ClusterKey>,
    /// Objects that were asked for; `None` where the object does not exist.
    pub objects: BTreeMap<ObjectKey, Option<Object>>,
    /// Lists that were asked for. They must be complete, with who manages each object in `managedFields`.
    pub lists: BTreeMap<Query, Vec<Object>>,
    /// What did not work, until the shell wants it tried again (after a back-off, or when the world changed).
    pub failures: BTreeMap<ObjectKey, Failure>,
    /// Lists that could not be read.
    pub list_failures: BTreeMap<Query, ReadError>,
    /// Whether somebody may read, as far as it was asked ([`super::Action::Review`]).
    pub reviews: BTreeMap<Access, Result<bool, ReadError>>,
    /// What was applied for this instance, from this process or from a journal.
    pub applied: BTreeMap<ObjectKey, Applied>,
    /// Kinds that other definitions define: children of these kinds are instances themselves.
    pub instance_kinds: BTreeSet<GroupKind>,
    /// plinth's own Ready of instances that the shell knows of ([`super::Decision::ready`]).
    pub ready_instances: BTreeMap<ObjectKey, bool>,
    /// The time.
    pub now: Timestamp,
}

/// Memory of one successful apply. Small, so that a journal can hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// The node it was for.
    pub node: String,
    /// Digest of what was asked for (hex SHA-256).
    pub input: String,
    /// Digest of the fields asked for as the server answered them: drift is seen by it.
    pub result: String,
    /// `metadata.uid` of the object.
    pub uid: String,
}

/// Why an object is not as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It could not be read.
    Read(ReadError),
    /// It could not be written. Counts only while the same input is wanted.
    Write {
        /// Digest of what was asked for ([`super::Action::Apply`]); `None` for a deletion.
        input: Option<String>,
        /// What the server said.
        error: WriteError,
    },
}
