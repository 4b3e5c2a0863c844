//! A resolved channel: the closure, its lock, and the documents that bootstrap needs.

use std::sync::Arc;

use bytes::Bytes;
use plinth_api::lock::ReleaseLock;
use plinth_api::platform::PlatformSpec;
use serde_json::Value;

use crate::closure::Closure;
use crate::ctf::archive::gunzip_bytes;
use crate::error::ResolveError;
use crate::fetch::Fetcher;
use crate::repository::{ComponentRepository, ComponentVersion};
use crate::verify::{Verification, verify_resources};

/// The exact answer to "what will be installed", with the RGDs.
#[derive(Debug)]
pub struct Channel {
    /// Every component version, resource, digest and place; sorted, and the same text for the same content.
    pub lock: ReleaseLock,
    /// The root: what SOURCE named.
    pub root: ComponentVersion,
    /// The RGD resources of the closure, ordered by component, version and resource. Each text is one or more YAML documents, all of
    /// them ResourceGraphDefinitions (contracts 1).
    pub rgds: Vec<RgdDocument>,
    /// The resources `instance`: the top-level instance of a distribution with its defaults.
    pub instances: Vec<ComponentText>,
    /// The resources `scenario`.
    pub scenarios: Vec<ComponentText>,
    /// The distribution that [`crate::Selection`] asked for.
    pub distribution: Option<ComponentVersion>,
    /// The Platform file that SOURCE was, if it was one.
    pub platform: Option<PlatformSpec>,
    /// What was proven of it.
    pub verification: Verification,
    /// What a person should know and need not act on, such as "an umbrella with resources of its own".
    pub remarks: Vec<String>,
    pub(crate) closure: Closure,
    pub(crate) fetcher: Fetcher,
}

/// One RGD resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RgdDocument {
    /// The component version that has it.
    pub component: ComponentVersion,
    /// Name of the resource.
    pub resource: String,
    /// YAML, decompressed.
    pub text: String,
}

/// A text resource of a component version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentText {
    /// The component version that has it.
    pub component: ComponentVersion,
    /// YAML, decompressed.
    pub text: String,
}

impl Channel {
    /// Reads a resource of a component version of the closure into memory: hashed, compared with the resource's digest, and with the
    /// one layer of an OCI artifact taken out. Not decompressed.
    pub async fn fetch(&self, component: &ComponentVersion, resource: &str) -> Result<Bytes, ResolveError> {
        let node = self.closure.require(component)?;
        self.fetcher.resource(node, resource).await
    }

    /// The YAML or JSON documents of a resource, decompressed where they are compressed; empty ones are left out.
    pub async fn documents(&self, component: &ComponentVersion, resource: &str) -> Result<Vec<Value>, ResolveError> {
        let refuse =
            |reason: String| ResolveError::Document { component: component.clone(), resource: resource.to_owned(), reason };
        let bytes = self.fetch(component, resource).await?;
        let plain = gunzip_bytes(&bytes, "the document", self.fetcher.limits.document_bytes)
            .map_err(|error| refuse(error.to_string()))?;
        let documents = crate::text::yaml_documents(&plain).map_err(|error| refuse(format!("it is not YAML: {error}")))?;
        Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
    }

    /// Reads all content that is beside the descriptors and compares it with its digests; compares pinned references. What was proven
    /// before, and this.
    pub async fn verify_resources(&self) -> Result<Verification, ResolveError> {
        let mut verification = self.verification.clone();
        verify_resources(&self.closure, &self.fetcher, &mut verification).await?;
        Ok(verification)
    }

    /// The instance of this distribution, if it has one.
    pub fn instance(&self, distribution: &ComponentVersion) -> Option<&str> {
        self.instances.iter().find(|text| text.component == *distribution).map(|text| text.text.as_str())
    }

    /// The component versions reachable from this one, itself included, sorted.
    pub fn reachable(&self, from: &ComponentVersion) -> Vec<ComponentVersion> {
        self.closure.reachable(from)
    }

    /// The repositories in the order of [`ReleaseLock::repositories`].
    pub fn repositories(&self) -> &[Arc<dyn ComponentRepository>] {
        &self.closure.repositories
    }

    /// The descriptor of a component version of the closure.
    pub fn descriptor(&self, component: &ComponentVersion) -> Option<&crate::descriptor::Descriptor> {
        self.closure.nodes.get(component).map(|node| node.descriptor.as_ref())
    }
}
