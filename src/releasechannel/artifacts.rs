//! Artifacts of a channel as a consumer asks for them: all versions of one, where each is pulled from, and with which secret.

mod name;

use std::fmt;

use plinth_api::platform::NAMESPACE;

use crate::access::Access;
use crate::channel::Channel;
use crate::closure::Node;
use crate::config::RequestedRepository;
use crate::descriptor::{Identity, Resource};
use crate::image::ImageReference;
use crate::repository::ComponentVersion;
use crate::source::RepositoryRef;

/// One artifact at one component version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// What consumers know it by, such as `flux-chart`; the rule is written in `docs/artifacts.md`.
    pub name: String,
    /// The component version that ships it; what a user selects.
    pub component: ComponentVersion,
    /// The resource.
    pub resource: Identity,
    /// Version of the artifact itself, such as an image's tag.
    pub version: String,
    /// OCM resource type.
    pub kind: String,
    /// What can be pulled: `host/repository:tag@digest`, or the chart's place in a Helm repository. `None` where only plinth can read it.
    pub reference: Option<String>,
    /// The host that it is pulled from.
    pub registry: Option<String>,
    /// What the bytes must be.
    pub digest: Option<String>,
    /// Who lets us in there; empty where nobody has to.
    pub pull_secrets: Vec<PullSecret>,
}

/// Where the credential for a registry is. Never the credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullSecret {
    /// A Secret on the platform cluster, from `Platform.spec.source.credentialsRef`.
    Cluster {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// A file or helper on this machine.
    Local {
        /// The registry.
        registry: String,
        /// The file, and what of it.
        from: String,
    },
}

impl fmt::Display for PullSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster { name, namespace } => write!(f, "{namespace}/{name}"),
            Self::Local { registry, from } => write!(f, "{registry} in {from}"),
        }
    }
}

/// All artifacts of a channel, ordered by component, version and resource. Contacts nobody and runs no helper.
pub fn artifacts(channel: &Channel) -> Vec<Artifact> {
    channel.closure.nodes.values().flat_map(|node| of_node(channel, node)).collect()
}

fn of_node(channel: &Channel, node: &Node) -> Vec<Artifact> {
    let all = node.descriptor.resources.iter().map(|resource| (resource, Access::read(&resource.access)));
    let there: Vec<(&Resource, Access)> = all.filter(|(_, access)| *access != Access::Nothing).collect();
    let names = name::names(&node.descriptor.name, &there.iter().map(|(resource, _)| *resource).collect::<Vec<_>>());
    there.into_iter().zip(names).map(|((resource, access), name)| artifact(channel, node, resource, &access, name)).collect()
}

fn artifact(channel: &Channel, node: &Node, resource: &Resource, access: &Access, name: String) -> Artifact {
    let digest = resource.digest.as_ref().and_then(crate::descriptor::DigestSpec::digest).map(|digest| digest.to_string());
    let place = Place::of(access, node, digest.as_deref());
    Artifact {
        name,
        component: node.at(),
        resource: resource.identity.clone(),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        pull_secrets: place.as_ref().map(|place| pull_secrets(channel, place)).unwrap_or_default(),
        registry: place.as_ref().map(|place| place.registry.clone()),
        reference: place.and_then(|place| place.reference),
        digest,
    }
}

/// Where an artifact is pulled from.
struct Place {
    registry: String,
    repository: String,
    plain_http: bool,
    reference: Option<String>,
}

impl Place {
    fn of(access: &Access, node: &Node, digest: Option<&str>) -> Option<Self> {
        match access {
            Access::OciArtifact { image } => ImageReference::parse(image).map(|image| Self::of_image(image, digest)),
            Access::Relative { reference } => {
                let RepositoryRef::Oci { host, plain_http, .. } = own_repository(node)? else { return None };
                let image = ImageReference::parse(&format!("{host}/{}", reference.trim_start_matches('/')))?;
                Some(Self::of_image(ImageReference { plain_http, ..image }, digest))
            }
            Access::OciBlob { repository, .. } => {
                let image = ImageReference::parse(repository)?;
                Some(Self { registry: image.host, repository: image.repository, plain_http: image.plain_http, reference: None })
            }
            Access::LocalBlob { reference, media_type, .. } => {
                let RepositoryRef::Oci { host, plain_http, .. } = own_repository(node)? else { return None };
                let repository = node.source.location(&node.descriptor.name);
                let pulled = crate::fetch::is_manifest_type(media_type).then(|| format!("{host}/{repository}@{reference}"));
                Some(Self { registry: host, repository, plain_http, reference: pulled })
            }
            Access::Helm { repository, chart, .. } => {
                let url = url::Url::parse(repository).ok()?;
                let path = url.path().trim_matches('/').to_owned();
                let reference = Some(format!("{}/{chart}", repository.trim_end_matches('/')));
                Some(Self {
                    registry: url.host_str()?.to_owned(),
                    repository: path,
                    plain_http: url.scheme() == "http",
                    reference,
                })
            }
            Access::Wget { url, .. } => {
                let parsed = url::Url::parse(url).ok()?;
                let host = parsed.host_str()?.to_owned();
                Some(Self { registry: host, repository: String::new(), plain_http: false, reference: Some(url.clone()) })
            }
            Access::Nothing | Access::Other { .. } => None,
        }
    }

    /// Pinned, where the descriptor says the digest.
    fn of_image(image: ImageReference, digest: Option<&str>) -> Self {
        let digest = image.digest.clone().or_else(|| digest.and_then(|digest| digest.parse().ok()));
        let (registry, repository, plain_http) = (image.host.clone(), image.repository.clone(), image.plain_http);
        Self { registry, repository, plain_http, reference: Some(ImageReference { digest, ..image }.to_string()) }
    }
}

fn own_repository(node: &Node) -> Option<RepositoryRef> {
    RepositoryRef::from_value(&node.source.specification()).ok()
}

/// The Platform's Secret, which goes down to every artifact as with the OCM controllers; else what this machine knows.
fn pull_secrets(channel: &Channel, place: &Place) -> Vec<PullSecret> {
    if let Some(secret) = channel.platform.as_ref().and_then(|platform| platform.source.credentials_ref.as_ref()) {
        let namespace = secret.namespace.clone().unwrap_or_else(|| NAMESPACE.to_owned());
        return vec![PullSecret::Cluster { name: secret.name.clone(), namespace }];
    }
    let wanted = RequestedRepository::new(&place.registry, !place.plain_http, &place.repository);
    let from = channel.fetcher.registries.configuration().origin(&wanted);
    from.map(|from| PullSecret::Local { registry: place.registry.clone(), from }).into_iter().collect()
}

#[cfg(test)]
mod tests;
