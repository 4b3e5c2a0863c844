//! What a bundle will hold, and how large it will be, before anything large is read.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt};
use serde::Serialize;

use super::Kept;
use crate::access::Access;
use crate::channel::Channel;
use crate::closure::Node;
use crate::descriptor::Resource;
use crate::digest::Digest;
use crate::error::{RepositoryError, ResolveError};
use crate::fetch::{Artifact, Fetcher, Found, is_manifest_type};
use crate::repository::{Manifest, Pointer, entry_digest, media_type};

/// The list, and its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// One entry a resource, ordered by component and then as in its descriptor; sources whose content is beside the descriptor come last.
    pub items: Vec<Item>,
    /// Bytes of everything whose size is known; what several resources share counts once.
    pub bytes: u64,
    /// How many resources have a size that only reading them would tell.
    pub unknown: usize,
}

/// One resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// OCM component name.
    pub component: String,
    /// Component version.
    pub version: String,
    /// Resource name, with further identity.
    pub resource: String,
    /// OCM resource type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its bytes as far as stores and manifests say; they are not proven yet.
    pub bytes: Option<u64>,
    /// Where they come from.
    pub from: String,
}

/// Sizes by digest, so that what is shared counts once.
type Sizes = BTreeMap<Digest, u64>;

/// Reads manifests and asks for sizes; reads no layer and no blob.
pub async fn survey(channel: &Channel, kept: &Kept) -> Result<Survey, ResolveError> {
    let all = channel.closure.nodes.values().flat_map(|node| super::carried(node).map(move |element| (node, element)));
    let looks: Vec<_> = all.map(|(node, resource)| look(&channel.fetcher, node, resource, kept)).collect();
    let mut results = stream::iter(looks).buffered(channel.fetcher.limits.parallel.max(1));
    let (mut survey, mut sizes) = (Survey::default(), Sizes::new());
    while let Some(found) = results.next().await {
        let (item, own) = found?;
        survey.unknown += usize::from(item.bytes.is_none());
        survey.items.push(item);
        sizes.extend(own);
    }
    survey.bytes = sizes.values().sum();
    Ok(survey)
}

async fn look(fetcher: &Fetcher, node: &Node, resource: &Resource, kept: &Kept) -> Result<(Item, Sizes), ResolveError> {
    let what = format!("resource {} of {}", resource.identity, node.at());
    let found = sizes_of(fetcher, node, resource, kept, &what).await;
    let (from, sizes) = found.map_err(|source| ResolveError::Repository { path: node.path.clone(), source })?;
    let item = Item {
        component: node.descriptor.name.clone(),
        version: node.descriptor.version.clone(),
        resource: resource.identity.to_string(),
        kind: resource.kind.clone(),
        bytes: sizes.as_ref().map(|sizes| sizes.values().sum()),
        from,
    };
    Ok((item, sizes.unwrap_or_default()))
}

async fn sizes_of(
    fetcher: &Fetcher,
    node: &Node,
    resource: &Resource,
    kept: &Kept,
    what: &str,
) -> Result<(String, Option<Sizes>), RepositoryError> {
    let one = |digest: Digest, size: Option<u64>| size.map(|size| Sizes::from([(digest, size)]));
    match Access::read(&resource.access) {
        Access::LocalBlob { reference, media_type, .. } if !is_manifest_type(&media_type) => {
            let store = node.source.artifacts();
            let size = store.size(&node.source.location(&node.descriptor.name), &reference).await?;
            Ok((store.place(), one(reference, size)))
        }
        Access::OciBlob { repository, digest, .. } => {
            let image = crate::fetch::parse_image(&repository, what)?;
            let (store, repository) = fetcher.registries.locate(&image)?;
            let size = store.size(&repository, &digest).await?;
            Ok((store.place(), one(digest, size)))
        }
        Access::Wget { url, .. } => Ok((url, None)),
        Access::Helm { repository, chart } => Ok((format!("{}/{chart}", repository.trim_end_matches('/')), None)),
        _ => match fetcher.open(node.source.as_ref(), &node.descriptor.name, resource, what).await? {
            Found::Artifact(artifact) => Ok((artifact.store.place(), Some(of_artifact(&artifact, kept, what).await?))),
            Found::Blob { stream, .. } => Ok((String::new(), stream.size().and_then(|size| one(Digest::of(b""), Some(size))))),
        },
    }
}

/// Manifests as they are, and of layers what the manifests say.
async fn of_artifact(artifact: &Artifact, kept: &Kept, what: &str) -> Result<Sizes, RepositoryError> {
    let mut sizes = Sizes::new();
    let mut left: Vec<Manifest> = vec![artifact.manifest.clone()];
    while let Some(manifest) = left.pop() {
        if sizes.insert(manifest.digest.clone(), manifest.bytes.len() as u64).is_some() {
            continue;
        }
        super::staging::check_members(sizes.len(), what)?;
        for member in manifest.entries("manifests").iter().filter(|member| kept.keeps(member)) {
            let pointer = Pointer::Digest(entry_digest(member, what)?);
            let mut below = artifact.store.manifest(&artifact.repository, &pointer).await?;
            if below.media_type.is_empty() {
                media_type(member).clone_into(&mut below.media_type);
            }
            left.push(below);
        }
        for blob in manifest.blobs() {
            let size = blob.get("size").and_then(serde_json::Value::as_u64).unwrap_or_default();
            sizes.insert(entry_digest(blob, what)?, size);
        }
    }
    Ok(sizes)
}
