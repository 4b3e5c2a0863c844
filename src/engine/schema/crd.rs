//! CustomResourceDefinitions: reading kinds from one, and making the one of a graph.

use plinth_api::{Object, rgd::RgdSchema};
use thiserror::Error;

use super::{KindInfo, Schema};

/// Why a CustomResourceDefinition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("reading CustomResourceDefinition {name}: {message}")]
pub struct CrdError {
    /// Its `metadata.name`.
    pub name: String,
    /// What is wrong.
    pub message: String,
}

/// The graph that a generated CRD belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// Name of the ResourceGraphDefinition.
    pub name: &'a str,
    /// Its UID, empty offline.
    pub uid: &'a str,
}

/// All served versions of a CustomResourceDefinition (`apiextensions.k8s.io/v1`) as kinds.
pub fn kinds(_crd: &Object) -> Result<Vec<KindInfo>, CrdError> {
    Ok(Vec::new())
}

/// The CRD of a graph's instances: `spec` from SimpleSchema, `status` as inferred (without `state` and `conditions`, which are
/// added where absent). Source: reference/kro.md section 16, contracts entry 11.
pub fn generate(_owner: Owner<'_>, _schema: &RgdSchema, _spec: Schema, _status: Schema) -> Object {
    Object::default()
}
