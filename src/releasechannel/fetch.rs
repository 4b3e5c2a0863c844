//! Getting the bytes of a resource, and proving them against its digest (ocm.md sections 5 and 7).

pub(crate) mod artifact;
mod web;

pub(crate) use artifact::is_packed;

use std::sync::Arc;

use bytes::Bytes;

use crate::access::Access;
use crate::closure::Node;
use crate::config::WebConsumer;
use crate::descriptor::{Descriptor, DigestSpec, Resource};
use crate::digest::Digest;
use crate::error::{ErrorKind, RepositoryError, ResolveError};
use crate::image::ImageReference;
use crate::options::{Limits, Options};
use crate::registry::Asked;
use crate::repository::{ArtifactStore, BlobStream, ComponentRepository, ComponentVersion, Content, Manifest, Pointer};

/// What an access leads to.
#[derive(Debug)]
pub(crate) enum Found {
    /// Plain bytes.
    Blob { stream: BlobStream, media_type: String },
    /// A manifest or index in a store.
    Artifact(Artifact),
}

/// A manifest or index, and where its blobs are.
#[derive(Debug)]
pub(crate) struct Artifact {
    pub(crate) store: Arc<dyn ArtifactStore>,
    pub(crate) repository: String,
    pub(crate) manifest: Manifest,
}

/// The bytes of one resource of a component version that was found in `repository`: bounded, proven, one layer taken out of an OCI
/// artifact. For whoever has no [`crate::Channel`], such as the delivery controllers.
pub async fn read_resource(
    repository: &dyn ComponentRepository,
    descriptor: &Descriptor,
    resource: &Resource,
    options: &Options,
) -> Result<Bytes, ResolveError> {
    let fetcher = Fetcher { registries: crate::registry::Registries::new(options)?, limits: options.limits.clone() };
    let component = ComponentVersion::new(descriptor.name.as_str(), descriptor.version.as_str());
    let what = format!("resource {} of {component}", resource.identity);
    let read = async {
        let found = fetcher.open(repository, &descriptor.name, resource, &what).await?;
        fetcher.document(found, resource, &what).await
    };
    read.await.map_err(|source| ResolveError::Repository { path: vec![component], source })
}

/// What a resource's digest turned out to be of (ocm.md section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DigestOf {
    /// The bytes of a blob.
    Blob,
    /// The manifest of an OCI artifact, whatever the algorithm is called.
    Manifest,
    /// The packed form of an OCI artifact.
    Packed,
}

/// What an access led to, unpacked; artifacts are proven.
pub(crate) enum Settled {
    Artifact(Artifact),
    Blob(BlobStream),
}

/// Opens resources. Holds the connections to registries outside the component's own repository.
#[derive(Clone, Debug)]
pub(crate) struct Fetcher {
    pub(crate) registries: Arc<crate::registry::Registries>,
    pub(crate) limits: Limits,
}

impl Fetcher {
    /// The bytes of a resource by name, for documents: bounded, proven, one layer taken out of an OCI artifact.
    pub(crate) async fn resource(&self, node: &Node, name: &str) -> Result<Bytes, ResolveError> {
        let found: Vec<&Resource> = node.descriptor.resources.iter().filter(|resource| resource.identity.name == name).collect();
        let component = node.at();
        match found.as_slice() {
            [resource] => self.read(node, resource).await,
            [] => {
                let names = node.descriptor.resources.iter().map(|resource| resource.identity.to_string()).collect::<Vec<_>>();
                let reason = format!("there is none of that name; there are: {}", names.join(", "));
                Err(ResolveError::Document { component, resource: name.to_owned(), reason })
            }
            several => {
                let choices = several.iter().map(|resource| resource.identity.to_string()).collect();
                Err(ResolveError::Choice {
                    question: format!("{component} has several resources `{name}`"),
                    choices,
                    by: "only the whole identity tells them apart",
                })
            }
        }
    }

    /// The bytes of this resource.
    pub(crate) async fn read(&self, node: &Node, resource: &Resource) -> Result<Bytes, ResolveError> {
        let what = format!("resource {} of {}", resource.identity, node.at());
        let read = async {
            let found = self.open(node.source.as_ref(), &node.descriptor.name, resource, &what).await?;
            self.document(found, resource, &what).await
        };
        read.await.map_err(|source| ResolveError::Repository { path: node.path.clone(), source })
    }

    async fn document(&self, found: Found, resource: &Resource, what: &str) -> Result<Bytes, RepositoryError> {
        match settled(found, resource, what, &self.limits).await? {
            Settled::Artifact(artifact) => artifact::document_layer(&artifact, what, &self.limits).await,
            Settled::Blob(stream) => stream.read(self.limits.document_bytes).await,
        }
    }

    /// Reads a resource to its end, or as far as its digest needs, and compares it with its digest. Says what the digest is of.
    pub(crate) async fn prove(&self, node: &Node, resource: &Resource) -> Result<DigestOf, ResolveError> {
        let what = format!("resource {} of {}", resource.identity, node.at());
        let proven = async {
            match self.settle(node, resource, &what).await? {
                Settled::Artifact(artifact) => {
                    let expected = expected_digest(resource, &what)?;
                    let is_of_manifest = expected.is_none_or(|expected| expected.matches(&artifact.manifest.bytes));
                    Ok(if is_of_manifest { DigestOf::Manifest } else { DigestOf::Packed })
                }
                Settled::Blob(stream) => stream.drain().await.map(|()| DigestOf::Blob),
            }
        };
        proven.await.map_err(|source| ResolveError::Repository { path: node.path.clone(), source })
    }

    /// Follows the access of a resource and settles what it leads to.
    pub(crate) async fn settle(&self, node: &Node, resource: &Resource, what: &str) -> Result<Settled, RepositoryError> {
        let found = self.open(node.source.as_ref(), &node.descriptor.name, resource, what).await?;
        settled(found, resource, what, &self.limits).await
    }

    /// Follows the access of a resource. `what` names it in errors.
    pub(crate) async fn open(
        &self,
        source: &dyn ComponentRepository,
        component: &str,
        resource: &Resource,
        what: &str,
    ) -> Result<Found, RepositoryError> {
        match Access::read(&resource.access) {
            Access::LocalBlob { reference, media_type, .. } => open_local(source, component, &reference, media_type).await,
            Access::OciArtifact { image } => self.open_image(&image, what).await,
            Access::OciBlob { repository, digest, media_type } => {
                let image = parse_image(&repository, what)?;
                let (store, repository) = self.registries.locate(&image)?;
                let stream = store.blob(&repository, &digest).await?;
                Ok(Found::Blob { stream, media_type })
            }
            Access::Relative { reference } => open_relative(source, component, &reference, what).await,
            Access::Nothing => Err(unsupported(what, "its access type is none: it has no content")),
            Access::Wget { url, media_type, headers, redirects } => {
                let headers =
                    headers.into_iter().flat_map(|(key, values)| values.into_iter().map(move |value| (key.clone(), value)));
                let asked = Asked { consumer: WebConsumer::Wget, headers: headers.collect(), redirects };
                let stream = web::open(&self.registries.web(), &url, &asked, what, &self.limits).await?;
                Ok(Found::Blob { stream, media_type })
            }
            Access::Helm { repository, chart, authority } if authority.is_empty() => {
                self.open_chart(&repository, &chart, what).await
            }
            Access::Helm { repository, chart, authority } => {
                let fetcher = self.trusting(authority).map_err(|error| RepositoryError::malformed(what, error))?;
                fetcher.open_chart(&repository, &chart, what).await
            }
            Access::Other { kind, reason } => Err(unsupported(what, &format!("access type `{kind}`: {reason}"))),
        }
    }

    /// A fetcher that trusts one authority more. The access that names it is not signed, so that nobody is told a login for its sake.
    fn trusting(&self, authority: String) -> Result<Self, ResolveError> {
        let of = self.registries.options();
        let mut options = Options {
            no_user_config: true,
            ocm_config: None,
            docker_config: None,
            ocm_config_texts: Vec::new(),
            docker_config_texts: Vec::new(),
            credentials: std::collections::BTreeMap::new(),
            ..of.clone()
        };
        options.ca_pem.push(authority);
        Ok(Self { registries: crate::registry::Registries::new(&options)?, limits: self.limits.clone() })
    }

    /// A Helm repository over HTTP, or a chart in a registry.
    async fn open_chart(&self, repository: &str, chart: &str, what: &str) -> Result<Found, RepositoryError> {
        if let Some(registry) = repository.strip_prefix("oci://") {
            let image = format!("{}/{}", registry.trim_end_matches('/'), chart.replace('+', "_"));
            let artifact = self.artifact(&image, what).await?;
            // The digest of a chart is that of its archive, not of the manifest around it.
            let layer =
                artifact.manifest.entries("layers").iter().find(|layer| crate::repository::media_type(layer) == web::CHART);
            let layer = layer.ok_or_else(|| RepositoryError::malformed(what, "the artifact has no layer with a chart"))?;
            let stream = artifact.store.blob(&artifact.repository, &crate::repository::entry_digest(layer, what)?).await?;
            return Ok(Found::Blob { stream, media_type: web::CHART.to_owned() });
        }
        let stream = web::open_chart(&self.registries.web(), repository, chart, what, &self.limits).await?;
        Ok(Found::Blob { stream, media_type: web::CHART.to_owned() })
    }

    async fn open_image(&self, image: &str, what: &str) -> Result<Found, RepositoryError> {
        self.artifact(image, what).await.map(Found::Artifact)
    }

    async fn artifact(&self, image: &str, what: &str) -> Result<Artifact, RepositoryError> {
        let image = parse_image(image, what)?;
        let (store, repository) = self.registries.locate(&image)?;
        let manifest = store.manifest(&repository, &image.pointer()).await?;
        Ok(Artifact { store, repository, manifest })
    }
}

/// What a resource leads to in the component's own repository, proven as far as it is without being read to its end; `None` where its access
/// leads elsewhere, or nowhere.
pub(crate) async fn settle_beside(
    source: &dyn ComponentRepository,
    component: &str,
    resource: &Resource,
    what: &str,
    limits: &Limits,
) -> Result<Option<Settled>, RepositoryError> {
    let found = match Access::read(&resource.access) {
        Access::LocalBlob { reference, media_type, .. } => open_local(source, component, &reference, media_type).await?,
        Access::Relative { reference } => match open_relative(source, component, &reference, what).await {
            Err(RepositoryError::NotFound { .. }) => return Ok(None),
            other => other?,
        },
        _ => return Ok(None),
    };
    settled(found, resource, what, limits).await.map(Some)
}

/// Unpacks what is packed and proves what can be proven before reading: an artifact by its manifest. A blob's stream gets the
/// resource's digest as a second one to have at its end.
async fn settled(found: Found, resource: &Resource, what: &str, limits: &Limits) -> Result<Settled, RepositoryError> {
    let expected = expected_digest(resource, what)?;
    let expected = expected.as_ref();
    match found {
        Found::Artifact(artifact) => {
            prove(expected, &artifact.manifest, None, what)?;
            Ok(Settled::Artifact(artifact))
        }
        Found::Blob { stream, media_type } if artifact::is_packed(&media_type) => {
            let (packed, artifact) = artifact::unpack(stream, expected, what, limits).await?;
            let is_generic = resource.digest.as_ref().is_some_and(DigestSpec::is_generic);
            prove(expected, &artifact.manifest, Some(&packed).filter(|_| is_generic), what)?;
            Ok(Settled::Artifact(artifact))
        }
        Found::Blob { stream, .. } => Ok(Settled::Blob(stream.also(what, expected))),
    }
}

async fn open_local(
    source: &dyn ComponentRepository,
    component: &str,
    reference: &Digest,
    media_type: String,
) -> Result<Found, RepositoryError> {
    if !is_manifest_type(&media_type) {
        let stream = source.open(component, reference, Content::Blob).await?;
        return Ok(Found::Blob { stream, media_type });
    }
    let (store, repository) = (source.artifacts(), source.location(component));
    let manifest = store.manifest(&repository, &Pointer::Digest(reference.clone())).await?;
    Ok(Found::Artifact(Artifact { store, repository, manifest }))
}

/// First relative to the registry's host, then to the component's repository (ocm.md section 5).
async fn open_relative(
    source: &dyn ComponentRepository,
    component: &str,
    reference: &str,
    what: &str,
) -> Result<Found, RepositoryError> {
    // A host that no registry has, so that docker's defaults do not apply.
    let image = parse_image(&format!("relative.invalid/{}", reference.trim_start_matches('/')), what)?;
    let store = source.artifacts();
    let location = source.location(component);
    let base = location.split(crate::source::DESCRIPTORS).next().unwrap_or_default().to_owned();
    let mut last = None;
    for repository in [image.repository.clone(), format!("{base}{}", image.repository)] {
        match store.manifest(&repository, &image.pointer()).await {
            Ok(manifest) => return Ok(Found::Artifact(Artifact { store, repository, manifest })),
            Err(error) if error.kind() == ErrorKind::NotFound => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.expect("two places were tried"))
}

pub(crate) fn parse_image(text: &str, what: &str) -> Result<ImageReference, RepositoryError> {
    ImageReference::parse(text).ok_or_else(|| RepositoryError::malformed(what, format!("`{text}` is not an image reference")))
}

fn unsupported(what: &str, reason: &str) -> RepositoryError {
    RepositoryError::Unsupported { what: what.to_owned(), reason: reason.to_owned() }
}

/// Media types whose local reference is the digest of a manifest in the same repository (v2's way, ocm.md 4.1).
pub(crate) fn is_manifest_type(media_type: &str) -> bool {
    matches!(
        media_type,
        "application/vnd.oci.image.manifest.v1+json"
            | "application/vnd.oci.image.index.v1+json"
            | "application/vnd.docker.distribution.manifest.v2+json"
            | "application/vnd.docker.distribution.manifest.list.v2+json"
    )
}

/// What the descriptor says the content must be; `None` where it says nothing or excludes it.
pub(crate) fn expected_digest(resource: &Resource, what: &str) -> Result<Option<Digest>, RepositoryError> {
    match &resource.digest {
        Some(spec) if !spec.is_excluded() => match spec.digest() {
            Some(digest) => Ok(Some(digest)),
            None => Err(RepositoryError::malformed(what, format!("its digest {}:{} is not one", spec.hash, spec.value))),
        },
        _ => Ok(None),
    }
}

/// The dual rule of ocm.md section 7: an OCI artifact is recorded by its manifest's digest or, where the algorithm is the one for blobs, by
/// the hash of its packed form.
pub(crate) fn prove(
    expected: Option<&Digest>,
    manifest: &Manifest,
    packed: Option<&Digest>,
    what: &str,
) -> Result<(), RepositoryError> {
    let Some(expected) = expected else { return Ok(()) };
    if expected.matches(&manifest.bytes) || packed == Some(expected) {
        return Ok(());
    }
    let found = hash_like(expected, &manifest.bytes);
    Err(RepositoryError::Digest { what: what.to_owned(), expected: expected.clone(), found })
}

pub(crate) fn hash_like(expected: &Digest, bytes: &[u8]) -> Digest {
    let mut hasher = expected.hasher();
    hasher.update(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests;
