//! The port to wherever component versions are.

mod blob;
pub(crate) mod embedded;
mod layer;
mod oci_mapping;
mod store;

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

pub use blob::BlobStream;
pub use oci_mapping::OciRepository;
pub(crate) use oci_mapping::{annotation, entry_digest, media_type};
pub use store::{ArtifactStore, Content, Manifest, Pointer};

use crate::digest::Digest;
use crate::error::RepositoryError;

/// Name and version of a component version, compared as exact strings (ocm.md section 2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentVersion {
    /// OCM component name.
    pub name: String,
    /// Version as the descriptor spells it.
    pub version: String,
}

impl ComponentVersion {
    /// Puts the two parts together.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into() }
    }
}

impl fmt::Display for ComponentVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.version)
    }
}

/// A descriptor as it was found: its bytes have been checked against `digest`.
#[derive(Clone, Debug)]
pub struct FoundDescriptor {
    /// The descriptor.
    pub descriptor: Arc<crate::descriptor::Descriptor>,
    /// Digest of the descriptor's bytes as they are stored.
    pub digest: Digest,
}

/// Where component versions and their blobs are. Adapters: OCI registry, CTF, in memory (also behind local YAML).
///
/// Whatever an adapter hands out has the digest that was asked for; a caller need not check again.
pub trait ComponentRepository: Send + Sync + fmt::Debug {
    /// The OCM repository specification, as it goes into a lock or a Repository object.
    fn specification(&self) -> Value;

    /// All versions of a component, lowest first; foreign tags are left out. Unknown component: empty.
    fn versions<'a>(&'a self, component: &'a str) -> BoxFuture<'a, Result<Vec<String>, RepositoryError>>;

    /// One component version's descriptor. Name and version inside have been compared with what was asked.
    fn descriptor<'a>(&'a self, component: &'a ComponentVersion) -> BoxFuture<'a, Result<FoundDescriptor, RepositoryError>>;

    /// Reads the configuration that a component version's manifest names, and compares it with its digest. An archive has done so with
    /// its descriptor; of a registry nothing of it is used, and it is not asked for again.
    fn prove_configuration<'a>(&'a self, component: &'a ComponentVersion) -> BoxFuture<'a, Result<(), RepositoryError>>;

    /// Opens the blob, manifest or index with this digest in the component's own OCI repository.
    fn open<'a>(
        &'a self,
        component: &'a str,
        digest: &'a Digest,
        content: Content,
    ) -> BoxFuture<'a, Result<BlobStream, RepositoryError>>;

    /// Names of all components, sorted, where the repository can list them (archives); `None` where it cannot.
    fn components(&self) -> BoxFuture<'_, Result<Option<Vec<String>>, RepositoryError>>;

    /// The OCI store underneath, for artifacts beside the component versions.
    fn artifacts(&self) -> Arc<dyn ArtifactStore>;

    /// The OCI repository inside [`ComponentRepository::artifacts`] that holds this component's versions and local blobs.
    fn location(&self, component: &str) -> String;
}
