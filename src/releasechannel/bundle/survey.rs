//! What a bundle will hold, and how large it will be, before anything large is read.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{self, StreamExt};
use serde::Serialize;
use serde_json::Value;

use super::Kept;
use super::kept::platform_of;
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
    /// Members of the indexes among them.
    pub(super) indexes: Vec<Index>,
}

/// An image for several platforms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    what: String,
    members: Vec<Value>,
}

impl Survey {
    pub(super) fn add(&mut self, (item, found): (Item, Looked)) {
        self.unknown += usize::from(item.bytes.is_none());
        self.items.push(item);
        self.bytes += found.sizes.values().sum::<u64>();
        self.indexes.extend(found.indexes);
    }

    /// What a person should know who wants these platforms alone; one that no image is for is refused.
    pub fn of_platforms(&self, kept: &Kept) -> Result<Vec<String>, ResolveError> {
        if *kept == Kept::default() {
            return Ok(Vec::new());
        }
        if self.indexes.is_empty() {
            return Ok(vec!["no image is for several platforms: all are carried as they are".to_owned()]);
        }
        let all: Vec<&Value> = self.indexes.iter().flat_map(|index| &index.members).collect();
        if let Some(nobody) = kept.without(&all).first() {
            let there: BTreeSet<String> = all.iter().filter_map(|member| platform_of(member)).collect();
            let there = there.into_iter().collect::<Vec<_>>().join(", ");
            return Err(ResolveError::Option {
                option: format!("--platform {nobody}"),
                reason: format!("no image of the channel is for it; there are {there}"),
            });
        }
        let mut remarks = Vec::new();
        for Index { what, members } in &self.indexes {
            let has_any = members.iter().any(|member| platform_of(member).is_some() && kept.keeps(member));
            if !has_any && members.iter().any(|member| platform_of(member).is_some()) {
                remarks.push(format!("{what} is for none of {}: only its index is carried", kept.text()));
            }
        }
        let cut = self.indexes.iter().filter(|index| index.members.iter().any(|member| !kept.keeps(member))).count();
        if cut > 0 {
            remarks.push(format!(
                "{cut} images keep an index that names platforms which are left out: a registry that wants them all there, such as docker's, takes no such archive"
            ));
        }
        Ok(remarks)
    }
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
        let (item, looked) = found?;
        sizes.extend(looked.sizes.iter().map(|(digest, size)| (digest.clone(), *size)));
        survey.add((item, looked));
    }
    survey.bytes = sizes.values().sum();
    Ok(survey)
}

/// What one resource has.
#[derive(Default)]
pub(super) struct Looked {
    sizes: Sizes,
    indexes: Vec<Index>,
}

pub(super) async fn look(
    fetcher: &Fetcher,
    node: &Node,
    resource: &Resource,
    kept: &Kept,
) -> Result<(Item, Looked), ResolveError> {
    let what = format!("resource {} of {}", resource.identity, node.at());
    let found = sizes_of(fetcher, node, resource, kept, &what).await;
    let (from, looked) = found.map_err(|source| ResolveError::Repository { path: node.path.clone(), source })?;
    let item = Item {
        component: node.descriptor.name.clone(),
        version: node.descriptor.version.clone(),
        resource: resource.identity.to_string(),
        kind: resource.kind.clone(),
        bytes: looked.as_ref().map(|looked| looked.sizes.values().sum()),
        from,
    };
    Ok((item, looked.unwrap_or_default()))
}

async fn sizes_of(
    fetcher: &Fetcher,
    node: &Node,
    resource: &Resource,
    kept: &Kept,
    what: &str,
) -> Result<(String, Option<Looked>), RepositoryError> {
    let one =
        |digest: Digest, size: Option<u64>| size.map(|size| Looked { sizes: Sizes::from([(digest, size)]), ..Looked::default() });
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
        Access::Helm { repository, chart, .. } => Ok((format!("{}/{chart}", repository.trim_end_matches('/')), None)),
        _ => match fetcher.open(node.source.as_ref(), &node.descriptor.name, resource, what).await? {
            Found::Artifact(artifact) => Ok((artifact.store.place(), Some(of_artifact(&artifact, kept, what).await?))),
            Found::Blob { stream, .. } => Ok((String::new(), stream.size().and_then(|size| one(Digest::of(b""), Some(size))))),
        },
    }
}

/// Manifests as they are, and of layers what the manifests say.
async fn of_artifact(artifact: &Artifact, kept: &Kept, what: &str) -> Result<Looked, RepositoryError> {
    let (mut sizes, mut indexes) = (Sizes::new(), Vec::new());
    let mut left: Vec<Manifest> = vec![artifact.manifest.clone()];
    while let Some(manifest) = left.pop() {
        if sizes.insert(manifest.digest.clone(), manifest.bytes.len() as u64).is_some() {
            continue;
        }
        super::staging::check_members(sizes.len(), what)?;
        if manifest.is_index() {
            indexes.push(Index { what: what.to_owned(), members: manifest.entries("manifests").to_vec() });
        }
        for member in manifest.entries("manifests").iter().filter(|member| kept.keeps(member)) {
            let pointer = Pointer::Digest(entry_digest(member, what)?);
            let mut below = artifact.store.manifest(&artifact.repository, &pointer).await?;
            if below.media_type.is_empty() {
                media_type(member).clone_into(&mut below.media_type);
            }
            left.push(below);
        }
        for blob in manifest.blobs() {
            let size = blob.get("size").and_then(Value::as_u64).unwrap_or_default();
            sizes.insert(entry_digest(blob, what)?, size);
        }
    }
    Ok(Looked { sizes, indexes })
}
