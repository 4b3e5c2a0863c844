//! Platform (`plinth.dev/v1alpha1`): what is wanted, as one object or one file (contracts 20).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Group of plinth's own kinds.
pub const GROUP: &str = "plinth.dev";
/// Their version.
pub const VERSION: &str = "v1alpha1";
/// Both, as `apiVersion` has them.
pub const API_VERSION: &str = "plinth.dev/v1alpha1";
/// Where everything of plinth's own is in a cluster, and where a Secret is that names no namespace (contracts 9).
pub const NAMESPACE: &str = "plinth-system";

/// `spec` of a Platform.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlatformSpec {
    /// The channel and where it is.
    pub source: PlatformSource,
    /// Which distribution of the channel, where it holds several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<DistributionChoice>,
    /// Namespace of the top-level instance and its delivery objects; where absent, the distribution's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Label that a component reference must have, where references to its component have it at all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Version range per component name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub select: BTreeMap<String, String>,
    /// Merged over the distribution's `instance.yaml`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
    /// Signature policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifyPolicy>,
    /// When and how far to upgrade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<UpgradePolicy>,
    /// Whether Artifact objects are kept.
    #[serde(default, skip_serializing_if = "is_not")]
    pub artifacts: bool,
    /// Lets the platform be as it is: its channel is not looked at, and nothing of it is written but what its definitions keep.
    #[serde(default, skip_serializing_if = "is_not")]
    pub suspend: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
fn is_not(flag: &bool) -> bool {
    !flag
}

/// The channel and where it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlatformSource {
    /// A SOURCE without version, or a component name where `repositories` are given.
    pub channel: String,
    /// Version or range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Repositories in order of preference, as text or OCM repository specification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<Value>,
    /// A Secret with credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<crate::delivery::NamespacedRef>,
    /// PEM of further certificate authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

/// Which distribution of a channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistributionChoice {
    /// Component name, or its last segment.
    pub name: String,
    /// Version or range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Signature policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyPolicy {
    /// `required`, `if-signed` or `off`.
    #[serde(default)]
    pub policy: String,
    /// Keys, by signature name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<Value>,
}

/// When and how far to upgrade.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpgradePolicy {
    /// `Manual`, `Patch` or `Minor`.
    #[serde(default)]
    pub policy: String,
    /// When upgrades may start: `[DAYS ]HH:MM-HH:MM` in UTC, such as `Sat,Sun 22:00-04:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_documents_is_group_and_version() {
        assert_eq!(API_VERSION, format!("{GROUP}/{VERSION}"));
    }
}
