//! Artifact (`plinth.dev/v1alpha1`): one OCI artifact of a release channel, found by `spec.name` and `spec.version` (seed 004, Approach B).

use serde::{Deserialize, Serialize};

/// The kind.
pub const KIND: &str = "Artifact";

/// OCM label of a resource whose value is the Artifact's `spec.name`, instead of the one that the rule gives.
pub const NAME_LABEL: &str = "plinth.dev/artifact-name";

/// `spec` of an Artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactSpec {
    /// What consumers know it by, such as `crossplane-chart`.
    pub name: String,
    /// Version of the component that ships it; never the tag.
    pub version: String,
    /// Where it is pulled from: `host/repository:tag@digest`.
    pub url: String,
    /// Who lets consumers in there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pullsecrets: Vec<PullSecretRef>,
}

/// A Secret; an Artifact has no namespace of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PullSecretRef {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}
