//! ReleaseLock (`plinth.dev/v1alpha1`): the exact answer to "what will be installed".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A saved or printed lock. Lists are sorted, so that the same content is the same text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseLock {
    /// `plinth.dev/v1alpha1`.
    pub api_version: String,
    /// `ReleaseLock`.
    pub kind: String,
    /// The component that was asked for.
    pub root: LockedRef,
    /// OCM repository specifications, in order of preference.
    pub repositories: Vec<Value>,
    /// The closure, sorted by name and then version.
    pub components: Vec<LockedComponent>,
}

/// Name and version of a component version, compared as exact strings (ocm.md section 2).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LockedRef {
    /// OCM component name.
    pub name: String,
    /// Version, as the descriptor spells it.
    pub version: String,
}

/// One component version of the closure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockedComponent {
    /// OCM component name.
    pub name: String,
    /// Version, as the descriptor spells it.
    pub version: String,
    /// Index into [`ReleaseLock::repositories`]: where it was found.
    pub repository: usize,
    /// Digest of the descriptor's bytes, `sha256:…`.
    pub digest: String,
    /// Digest of what a copy must keep of the descriptor, signed or not, `sha256:…`; absent in locks of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Signatures, in the descriptor's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<LockedSignature>,
    /// References to other component versions, in the descriptor's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<LockedReference>,
    /// Resources, in the descriptor's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<LockedResource>,
}

/// A signature of a component version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedSignature {
    /// Its name.
    pub name: String,
    /// Digest of the signature as the descriptor has it, `sha256:…`.
    pub digest: String,
}

/// A reference from one component version to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockedReference {
    /// Local name of the reference.
    pub name: String,
    /// Further identity attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_identity: BTreeMap<String, String>,
    /// The component version it points at.
    #[serde(flatten)]
    pub target: ReferenceTarget,
}

/// The component version that a reference points at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReferenceTarget {
    /// OCM component name.
    pub component_name: String,
    /// Version.
    pub version: String,
}

/// One resource of a component version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockedResource {
    /// Local name of the resource.
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// OCM resource type, such as `ociImage`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Further identity attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_identity: BTreeMap<String, String>,
    /// The descriptor's own digest, `sha256:…`, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Access specification: where the bytes are. Unsigned, never authenticated.
    pub access: Value,
}
