//! ResourceGraphDefinition (`kro.run/v1alpha1`, and krop's `krop.opendefense.cloud/v1alpha1`, kro's spec plus `target`).
//!
//! Source: reference/kro.md section 1.1. Free-form parts stay JSON; the engine gives them their meaning.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Group of kro's own ResourceGraphDefinition.
pub const KRO_GROUP: &str = "kro.run";
/// Group of krop's ResourceGraphDefinition, a blueprint.
pub const KROP_GROUP: &str = "krop.opendefense.cloud";
/// The one version both groups have.
pub const VERSION: &str = "v1alpha1";
/// The kind's name.
pub const KIND: &str = "ResourceGraphDefinition";
/// Group of the revisions of kro's definitions.
pub const REVISION_GROUP: &str = "internal.kro.run";
/// Kind of the revisions.
pub const REVISION_KIND: &str = "GraphRevision";

/// `spec` of a ResourceGraphDefinition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RgdSpec {
    /// The API that instances have.
    pub schema: RgdSchema,
    /// The nodes of the graph.
    #[serde(default)]
    pub resources: Vec<RgdResource>,
}

/// The API that a graph defines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RgdSchema {
    /// Group of the instances, `kro.run` where absent.
    #[serde(default = "default_group")]
    pub group: String,
    /// Version of the instances, such as `v1alpha1`.
    pub api_version: String,
    /// Kind of the instances.
    pub kind: String,
    /// Whether instances are namespaced.
    #[serde(default)]
    pub scope: Scope,
    /// SimpleSchema of `spec`.
    #[serde(default)]
    pub spec: Map<String, Value>,
    /// SimpleSchema of custom types.
    #[serde(default)]
    pub types: Map<String, Value>,
    /// Templates of `status`.
    #[serde(default)]
    pub status: Map<String, Value>,
    /// Columns that replace the default ones, as in a CRD.
    #[serde(default)]
    pub additional_printer_columns: Vec<Value>,
    /// Short names of the kind.
    #[serde(default)]
    pub short_names: Vec<String>,
    /// Categories of the kind.
    #[serde(default)]
    pub categories: Vec<String>,
    /// Labels and annotations for the generated CRD.
    #[serde(default)]
    pub metadata: CrdMetadata,
}

fn default_group() -> String {
    KRO_GROUP.to_owned()
}

/// Whether a kind's objects live in namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// Objects live in namespaces.
    #[default]
    Namespaced,
    /// Objects belong to the cluster.
    Cluster,
}

/// Labels and annotations for a generated CRD.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrdMetadata {
    /// Labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// One node: exactly one of `template` and `external_ref` is set in a valid graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RgdResource {
    /// The node's id, lowerCamelCase.
    pub id: String,
    /// The object to apply, with expressions in its strings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Map<String, Value>>,
    /// The object (or objects) to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_ref: Option<Value>,
    /// Expressions that all hold when the node is ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ready_when: Vec<String>,
    /// Expressions that all hold when the node is wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_when: Vec<String>,
    /// Iterators of a collection, each a map of one entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub for_each: Vec<BTreeMap<String, String>>,
    /// krop only: the plane the child lives on (`consumer`, `provider`, `host`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}
