//! Who an object is: cluster key, kind, namespace, name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which API server and, for kcp, which logical cluster (design.md section 1).
///
/// Every object key, watch, event subject and journal line starts with one. [`ClusterKey::host`] is the platform cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterKey(pub String);

impl ClusterKey {
    /// The platform cluster, the one plane of an installation without kcp.
    pub fn host() -> Self {
        Self("host".to_owned())
    }
}

impl Default for ClusterKey {
    fn default() -> Self {
        Self::host()
    }
}

impl fmt::Display for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Group, version and kind of an API type. The core group is the empty string.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupVersionKind {
    /// API group, empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Version inside the group, such as `v1alpha1`.
    pub version: String,
    /// Kind in UpperCamelCase.
    pub kind: String,
}

impl GroupVersionKind {
    /// Builds a key from its three parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Reads `apiVersion` (`group/version` or `version`) and `kind`; `None` where `apiVersion` has more than one slash or is empty.
    pub fn from_api_version(api_version: &str, kind: &str) -> Option<Self> {
        let (group, version) = match api_version.split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", api_version),
        };
        if version.is_empty() || version.contains('/') || kind.is_empty() {
            return None;
        }
        Some(Self::new(group, version, kind))
    }

    /// `group/version`, or `version` alone in the core group: the text of an object's `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The same type without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }
}

/// Prints `Kind.group/version`, or `Kind/version` in the core group.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            write!(f, "{}/{}", self.kind, self.version)
        } else {
            write!(f, "{}.{}/{}", self.kind, self.group, self.version)
        }
    }
}

/// Group and kind of an API type, where the version does not matter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// API group, empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Kind in UpperCamelCase.
    pub kind: String,
}

/// Prints `Kind.group`, or `Kind` in the core group (the form of ApplySet annotations).
impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.kind) } else { write!(f, "{}.{}", self.kind, self.group) }
    }
}

/// One object on one cluster: (cluster key, kind, namespace, name).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// The API server (and logical cluster) that holds the object.
    #[serde(default)]
    pub cluster: ClusterKey,
    /// The object's type.
    #[serde(flatten)]
    pub gvk: GroupVersionKind,
    /// `None` for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
}

impl ObjectKey {
    /// `Kind.group/namespace/name` or `Kind.group/name`: what it is called where its cluster is said beside it. With the group,
    /// because kinds of different groups share their names (openmcp.md section 11).
    pub fn named(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{}/{namespace}/{}", self.gvk.group_kind(), self.name),
            None => format!("{}/{}", self.gvk.group_kind(), self.name),
        }
    }
}

/// Prints what [`ObjectKey::named`] says, preceded by `cluster:` away from the host cluster.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cluster != ClusterKey::host() {
            write!(f, "{}:", self.cluster)?;
        }
        f.write_str(&self.named())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_version_round_trips() {
        for (text, group, version) in [("v1", "", "v1"), ("apps/v1", "apps", "v1")] {
            let gvk = GroupVersionKind::from_api_version(text, "X").unwrap();
            assert_eq!((gvk.group.as_str(), gvk.version.as_str()), (group, version));
            assert_eq!(gvk.api_version(), text);
        }
        for text in ["", "a/", "a/b/c"] {
            assert_eq!(GroupVersionKind::from_api_version(text, "X"), None, "{text}");
        }
    }

    #[test]
    fn keys_print_what_people_read() {
        let key = ObjectKey {
            cluster: ClusterKey::host(),
            gvk: GroupVersionKind::new("apps", "v1", "Deployment"),
            namespace: Some("default".into()),
            name: "operator".into(),
        };
        assert_eq!(key.to_string(), "Deployment.apps/default/operator");
    }
}
