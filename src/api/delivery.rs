//! The delivery kinds of the OCM controllers (`delivery.ocm.software/v1alpha1`).
//!
//! Source: reference/openmcp.md section 3, reference/ocm.md section 16.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The group of all delivery kinds.
pub const GROUP: &str = "delivery.ocm.software";
/// Their version.
pub const VERSION: &str = "v1alpha1";

/// `spec` of a Repository: where components are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RepositorySpec {
    /// An OCM repository specification, such as `{type: OCIRegistry, baseUrl}` or `{type: CommonTransportFormat, filePath}`.
    pub repository_spec: Value,
    /// Credentials and settings, each a reference to a Secret or ConfigMap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ocm_config: Vec<OcmConfigRef>,
    /// How often to look again, a Go duration such as `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// Stops reconciliation.
    #[serde(default)]
    pub suspend: bool,
}

/// A reference to OCM configuration that is handed down from parent to child.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OcmConfigRef {
    /// `Secret`, `ConfigMap`, or a delivery kind whose configuration is inherited.
    #[serde(default)]
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; the referring object's where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `Propagate` or `DoNotPropagate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// `spec` of a Component: which component in which versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentSpec {
    /// The Repository in the same namespace.
    pub repository_ref: NameRef,
    /// OCM component name.
    pub component: String,
    /// A version or a constraint.
    pub semver: String,
    /// A regular expression that versions must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semver_filter: Option<String>,
    /// `Allow` or `Deny` (default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downgrade_policy: Option<String>,
    /// Signatures that must be right, each with its key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<SignatureRef>,
    /// Credentials and settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ocm_config: Vec<OcmConfigRef>,
    /// How often to look again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// Stops reconciliation.
    #[serde(default)]
    pub suspend: bool,
}

/// A signature of a component version and the key that proves it: one of `secretRef` and `value`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignatureRef {
    /// Name of the signature.
    pub signature: String,
    /// A Secret in the same namespace that holds the key under the signature's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<NameRef>,
    /// The public key or certificates: PEM, or base64 of PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A reference by name in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameRef {
    /// `metadata.name`.
    pub name: String,
}

/// `spec` of a Resource: one resource of a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSpec {
    /// The Component in the same namespace.
    pub component_ref: NameRef,
    /// Which resource.
    pub resource: ResourceSelector,
    /// Named CEL expressions over `resource`, or nested maps of them; results go to `status.additional`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_status_fields: Option<Value>,
    /// `Always` (default) compares the resource with its digest, `Never` does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification_policy: Option<String>,
    /// Credentials and settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ocm_config: Vec<OcmConfigRef>,
    /// Stops reconciliation.
    #[serde(default)]
    pub suspend: bool,
}

/// How a Resource names its resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSelector {
    /// By identity, through a path of component references.
    pub by_reference: ByReference,
}

/// A resource identity below a path of reference identities.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ByReference {
    /// Resource identity: `name` and extra attributes.
    pub resource: BTreeMap<String, String>,
    /// Reference identities from the component down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference_path: Vec<BTreeMap<String, String>>,
}

/// `spec` of a Deployer (cluster-scoped): apply the manifests that a Resource holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeployerSpec {
    /// The Resource.
    pub resource_ref: NamespacedRef,
    /// Stops reconciliation.
    #[serde(default)]
    pub suspend: bool,
}

/// A reference by name and, where known, namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespacedRef {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`; a Deployer without one takes the single Resource of that name (contracts 18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// `spec` of a Discovery: what a component version leads to, selected and projected (OCM ADR 0025).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverySpec {
    /// The Component in the same namespace whose version is the root.
    pub component_ref: NameRef,
    /// Which references lead to the components that are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_selector: Option<Selector>,
    /// Which components are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component_selector: Option<Selector>,
    /// Which of their resources are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_selector: Option<Selector>,
    /// What of them goes into the status; whole descriptors where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extract: Option<Extract>,
    /// `Fail` (default) or `Ignore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_resolution_error: Option<String>,
    /// Credentials and settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ocm_config: Vec<OcmConfigRef>,
    /// Stops reconciliation.
    #[serde(default)]
    pub suspend: bool,
}

/// What an element of a component graph must be; all parts hold, and without any everything matches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selector {
    /// Attributes of its identity.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_identity: BTreeMap<String, String>,
    /// Labels whose value is this text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// A CEL condition over `identity` and `labels`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expression: String,
}

/// What goes into `status.discovery`: one of the three.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Extract {
    /// For each resource: field and CEL expression over `resource` and `component`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_resources: BTreeMap<String, String>,
    /// For each component: field and CEL expression over `component`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_components: BTreeMap<String, String>,
    /// One CEL expression over `components`, the descriptors.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expression: String,
}
