//! Component versions in an OCI store (ocm.md section 3): tag, manifest or index, descriptor layer.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use serde_json::Value;

use super::store::{ArtifactStore, Content, Manifest, Pointer};
use super::{BlobStream, ComponentRepository, ComponentVersion, FoundDescriptor, embedded, layer};
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::options::Limits;
use crate::source::DESCRIPTORS;
use crate::versions;

const COMPONENT_CONFIGS: [&str; 3] = [
    "application/vnd.ocm.software.component.config.v1+json",
    "application/vnd.gardener.cloud.cnudie.component.config.v1+json",
    "application/vnd.oci.gardener.cloud.cnudie.component-descriptor-metadata.config.v2+json",
];

/// A component repository in an OCI store.
#[derive(Debug)]
pub struct OciRepository {
    store: Arc<dyn ArtifactStore>,
    sub_path: String,
    specification: Value,
    limits: Limits,
}

impl OciRepository {
    /// `sub_path` is the path below the store's root, without slashes at the ends.
    pub fn new(store: Arc<dyn ArtifactStore>, sub_path: &str, specification: Value, limits: Limits) -> Self {
        Self { store, sub_path: sub_path.to_owned(), specification, limits }
    }

    async fn find(&self, component: &ComponentVersion) -> Result<FoundDescriptor, RepositoryError> {
        let repository = self.location(&component.name);
        let (manifest, what) = self.manifest_of(component, &repository).await?;
        if self.store.is_local() {
            self.prove(&repository, &manifest, &what).await?;
        }
        let layer = self.descriptor_layer(&repository, &manifest, &what).await?;
        let digest = entry_digest(&layer, &what)?;
        let bytes = match embedded::bytes(&layer, &digest, self.limits.descriptor_bytes, &what)? {
            Some(bytes) => bytes,
            None => self.store.blob(&repository, &digest).await?.read(self.limits.descriptor_bytes).await?,
        };
        let descriptor = layer::decode(media_type(&layer), &bytes, self.limits.descriptor_bytes, &what)?;
        if descriptor.name != component.name || descriptor.version != component.version {
            let reason = format!("its descriptor says {}:{}", descriptor.name, descriptor.version);
            return Err(RepositoryError::malformed(what, reason));
        }
        Ok(FoundDescriptor { descriptor: Arc::new(descriptor), digest })
    }

    /// The manifest of a component version, and what messages call it.
    async fn manifest_of(&self, component: &ComponentVersion, repository: &str) -> Result<(Manifest, String), RepositoryError> {
        let pointer = Pointer::Tag(versions::to_tag(&component.version));
        let what = format!("{}/{repository}{pointer}", self.store.place());
        let top = self.store.manifest(repository, &pointer).await?;
        Ok((self.component_manifest(repository, top, &what).await?, what))
    }

    /// Compares the configuration with its digest.
    async fn prove(&self, repository: &str, manifest: &Manifest, what: &str) -> Result<(), RepositoryError> {
        let Some(config) = manifest.document.get("config").filter(|config| config.is_object()) else { return Ok(()) };
        let digest = entry_digest(config, what)?;
        if embedded::bytes(config, &digest, self.limits.manifest_bytes, what)?.is_some() {
            return Ok(());
        }
        self.store.blob(repository, &digest).await?.read(self.limits.manifest_bytes).await.map(drop)
    }

    /// In an index, the manifest of the component version: the annotated one, else the only one with an artifact type or configuration
    /// of a component, else the first (ocm.md 3.2).
    async fn component_manifest(&self, repository: &str, top: Manifest, what: &str) -> Result<Manifest, RepositoryError> {
        if !top.is_index() {
            return Ok(top);
        }
        let entries = top.entries("manifests");
        let annotated = |entry: &&Value| annotation(entry, "software.ocm.descriptor") == Some("true");
        let is_typed = |entry: &&Value| {
            entry.get("artifactType").and_then(Value::as_str).is_some_and(|kind| kind.contains("component-descriptor"))
        };
        let chosen = only(entries.iter().filter(annotated)).or_else(|| only(entries.iter().filter(is_typed)));
        match chosen {
            Some(entry) => self.member(repository, entry, what).await,
            None => self.first_component_manifest(repository, entries, what).await,
        }
    }

    /// A member of an index: as it stands in the index, else as the store has it.
    async fn member(&self, repository: &str, entry: &Value, what: &str) -> Result<Manifest, RepositoryError> {
        let digest = entry_digest(entry, what)?;
        match embedded::bytes(entry, &digest, self.limits.manifest_bytes, what)? {
            Some(bytes) => Manifest::decode(bytes, digest, media_type(entry), what),
            None => self.store.manifest(repository, &Pointer::Digest(digest)).await,
        }
    }

    async fn first_component_manifest(
        &self,
        repository: &str,
        entries: &[Value],
        what: &str,
    ) -> Result<Manifest, RepositoryError> {
        const LOOKED_AT: usize = 64;
        let mut first = None;
        for entry in entries.iter().take(LOOKED_AT) {
            let manifest = self.member(repository, entry, what).await?;
            if is_component_config(&manifest) {
                return Ok(manifest);
            }
            first = first.or(Some(manifest));
        }
        // Its layers may still say what it is.
        first.ok_or_else(|| RepositoryError::malformed(what, "that is an empty index, not a component version"))
    }

    /// The layer with the descriptor: recognised by its media type; where several could be it, the configuration decides.
    async fn descriptor_layer(&self, repository: &str, manifest: &Manifest, what: &str) -> Result<Value, RepositoryError> {
        let layers = manifest.entries("layers");
        let candidates: Vec<&Value> = layers.iter().filter(|layer| is_descriptor_type(media_type(layer))).collect();
        match candidates.as_slice() {
            [only] => Ok((*only).clone()),
            _ if !is_component_config(manifest) => Err(RepositoryError::malformed(what, "that is not a component version")),
            _ => self.layer_of_config(repository, manifest, what).await,
        }
    }

    async fn layer_of_config(&self, repository: &str, manifest: &Manifest, what: &str) -> Result<Value, RepositoryError> {
        let config = manifest.document.get("config").cloned().unwrap_or_default();
        let stream = self.store.blob(repository, &entry_digest(&config, what)?).await?;
        let bytes = stream.read(self.limits.manifest_bytes).await?;
        let config: Value = crate::text::json(&bytes).map_err(|error| RepositoryError::malformed(what, error))?;
        config
            .get("componentDescriptorLayer")
            .filter(|layer| layer.is_object())
            .cloned()
            .ok_or_else(|| RepositoryError::malformed(what, "its configuration names no componentDescriptorLayer"))
    }

    async fn list(&self, component: &str) -> Result<Vec<String>, RepositoryError> {
        let tags = self.store.tags(&self.location(component)).await?;
        let spelled: Vec<String> = tags.iter().map(|tag| versions::from_tag(tag)).collect();
        Ok(versions::sorted(spelled.iter().map(String::as_str)).iter().map(|version| version.raw().to_owned()).collect())
    }
}

impl ComponentRepository for OciRepository {
    fn specification(&self) -> Value {
        self.specification.clone()
    }

    fn versions<'a>(&'a self, component: &'a str) -> BoxFuture<'a, Result<Vec<String>, RepositoryError>> {
        self.list(component).boxed()
    }

    fn descriptor<'a>(&'a self, component: &'a ComponentVersion) -> BoxFuture<'a, Result<FoundDescriptor, RepositoryError>> {
        self.find(component).boxed()
    }

    fn prove_configuration<'a>(&'a self, component: &'a ComponentVersion) -> BoxFuture<'a, Result<(), RepositoryError>> {
        async move {
            let repository = self.location(&component.name);
            let (manifest, what) = self.manifest_of(component, &repository).await?;
            self.prove(&repository, &manifest, &what).await
        }
        .boxed()
    }

    fn open<'a>(
        &'a self,
        component: &'a str,
        digest: &'a Digest,
        content: Content,
    ) -> BoxFuture<'a, Result<BlobStream, RepositoryError>> {
        async move {
            let repository = self.location(component);
            match content {
                Content::Blob => self.store.blob(&repository, digest).await,
                Content::Manifest => {
                    let manifest = self.store.manifest(&repository, &Pointer::Digest(digest.clone())).await?;
                    Ok(BlobStream::from_bytes(format!("{repository}@{digest}"), manifest.bytes, digest))
                }
            }
        }
        .boxed()
    }

    fn components(&self) -> BoxFuture<'_, Result<Option<Vec<String>>, RepositoryError>> {
        async move {
            let prefix = self.location("");
            let names = |all: Vec<String>| all.iter().filter_map(|name| name.strip_prefix(&prefix)).map(str::to_owned).collect();
            Ok(self.store.repositories().await?.map(names))
        }
        .boxed()
    }

    fn artifacts(&self) -> Arc<dyn ArtifactStore> {
        Arc::clone(&self.store)
    }

    fn location(&self, component: &str) -> String {
        if self.sub_path.is_empty() {
            format!("{DESCRIPTORS}/{component}")
        } else {
            format!("{}/{DESCRIPTORS}/{component}", self.sub_path)
        }
    }
}

fn only<'a>(mut entries: impl Iterator<Item = &'a Value>) -> Option<&'a Value> {
    let first = entries.next()?;
    entries.next().is_none().then_some(first)
}

/// A string annotation of an OCI descriptor.
pub(crate) fn annotation<'a>(entry: &'a Value, key: &str) -> Option<&'a str> {
    entry.get("annotations")?.get(key)?.as_str()
}

/// The media type of an OCI descriptor.
pub(crate) fn media_type(entry: &Value) -> &str {
    entry.get("mediaType").and_then(Value::as_str).unwrap_or_default()
}

/// The digest of an OCI descriptor.
pub(crate) fn entry_digest(entry: &Value, what: &str) -> Result<Digest, RepositoryError> {
    let text = entry.get("digest").and_then(Value::as_str).unwrap_or_default();
    text.parse().map_err(|error| RepositoryError::malformed(what, error))
}

fn is_component_config(manifest: &Manifest) -> bool {
    manifest.document.get("config").is_some_and(|config| COMPONENT_CONFIGS.contains(&media_type(config)))
}

/// All media types of ocm.md 3.3 begin like this; a vendor's further suffix does not harm, since the content decides.
fn is_descriptor_type(media_type: &str) -> bool {
    [
        "application/vnd.ocm.software.component-descriptor.",
        "application/vnd.gardener.cloud.cnudie.component-descriptor.",
        "application/vnd.oci.gardener.cloud.cnudie.component-descriptor.config.",
    ]
    .iter()
    .any(|start| media_type.starts_with(start))
}

#[cfg(test)]
mod tests;
