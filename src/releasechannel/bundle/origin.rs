//! Where a bundle comes from: the lock that it was made from goes along as an artifact of its own. It is not signed, so that nothing may be
//! believed for its sake but how things were called, and which copies there were on the way.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::lock::{LockedComponent, ReferenceTarget, ReleaseLock};
use serde_json::{Value, json};

use super::{Kept, LOCK_REPOSITORY, LOCK_TYPE};
use crate::assembly::{MANIFEST, added};
use crate::channel::Channel;
use crate::ctf::{Contents, IndexEntry};
use crate::error::{ErrorKind, RepositoryError, ResolveError};
use crate::options::{Limits, Options};
use crate::repository::{ArtifactStore, ComponentRepository, ComponentVersion, Pointer, entry_digest, media_type};
use crate::resolve::{find_source_root, inspect};
use crate::selection::Selection;
use crate::source::{DESCRIPTORS, RepositoryRef, SourceRef};
use crate::versions::to_tag;

/// Annotation of the lock's manifest: the platforms that are kept, where not all are.
pub(super) const PLATFORMS: &str = "plinth.dev/platforms";
/// Media type of the layer with the descriptors of copies on the way, where a bundle was made from a copy.
const COPIES_TYPE: &str = "application/vnd.plinth.dev.copies.v1+json";

/// Digests of descriptors, by component version.
type Copies = BTreeMap<String, BTreeSet<String>>;

/// What a place says it was made from.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The first lock.
    pub(crate) lock: ReleaseLock,
    /// Descriptors of copies between that and the place.
    copies: Copies,
    /// Platforms of images that the place was made for.
    kept: Kept,
}

impl Origin {
    /// Whether a component version was copied from this descriptor, as far as the place says; where it says nothing, it may have been.
    pub(super) fn knows(&self, locked: &LockedComponent) -> bool {
        let name = key(locked);
        let is_it = |first: &&LockedComponent| first.name == locked.name && first.version == locked.version;
        let first = self.lock.components.iter().find(is_it);
        first.is_none_or(|first| first.digest == locked.digest)
            || self.copies.get(&name).is_some_and(|copies| copies.contains(&locked.digest))
    }
}

fn key(component: &LockedComponent) -> String {
    format!("{}:{}", component.name, component.version)
}

/// The lock that a bundle was made from, where the channel is one: it has the original references.
pub async fn original_lock(channel: &Channel) -> Result<Option<ReleaseLock>, ResolveError> {
    Ok(of(channel).await?.map(|origin| origin.lock))
}

/// Resolves a channel for looking at it, as [`inspect`] does. A bundle that was made with a selection is read as far as it says that it goes,
/// which is a remark.
pub async fn inspect_held(source: &SourceRef, options: &Options) -> Result<Channel, ResolveError> {
    let whole = inspect(source, &Selection::default(), options).await;
    let Err(error @ ResolveError::BrokenReference { .. }) = whole else { return whole };
    let Some(lock) = lock_of(source, options).await? else { return Err(error) };
    let only = lock.components.iter().map(|component| ComponentVersion::new(&component.name, &component.version)).collect();
    let selection = Selection { only: Some(only), ..Selection::default() };
    let mut channel = inspect(source, &selection, options).await?;
    let left_out: usize =
        channel.closure.nodes.values().map(|node| node.descriptor.references.len() - node.references().count()).sum();
    channel.remarks.push(format!("it was made with a selection; component references left out: {left_out}"));
    Ok(channel)
}

/// The lock that a place says it was made from, where it is a bundle with one channel. Nobody has signed it.
pub async fn lock_at(place: &RepositoryRef, options: &Options) -> Result<Option<ReleaseLock>, ResolveError> {
    lock_of(&SourceRef::Registry(place.clone()), options).await
}

async fn lock_of(source: &SourceRef, options: &Options) -> Result<Option<ReleaseLock>, ResolveError> {
    let (root, repositories) = find_source_root(source, options).await?;
    for repository in &repositories {
        if let Some(origin) = at(repository.as_ref(), &root, &options.limits).await? {
            return Ok(Some(origin.lock));
        }
    }
    Ok(None)
}

/// The platforms that a bundle was made for, where the channel is in one; else all.
pub async fn kept_at(channel: &Channel) -> Result<Kept, ResolveError> {
    Ok(of(channel).await?.map(|origin| origin.kept).unwrap_or_default())
}

/// The same as texts, from the manifest of a lock.
pub(super) fn platforms(manifest: &Value) -> Vec<String> {
    let text = manifest.pointer("/annotations").and_then(|annotations| annotations.get(PLATFORMS)).and_then(Value::as_str);
    text.into_iter().flat_map(|text| text.split(',').map(str::to_owned)).collect()
}

pub(super) async fn of(channel: &Channel) -> Result<Option<Origin>, ResolveError> {
    let node = channel.closure.require(&channel.root)?;
    Ok(at(node.source.as_ref(), &channel.root, &channel.fetcher.limits).await?)
}

/// The same at a repository.
pub(super) async fn at(
    source: &dyn ComponentRepository,
    root: &ComponentVersion,
    limits: &Limits,
) -> Result<Option<Origin>, RepositoryError> {
    let store = source.artifacts();
    let base = source.location("");
    let repository = format!("{}{LOCK_REPOSITORY}/{}", base.trim_end_matches(&format!("{DESCRIPTORS}/")), root.name);
    let what = format!("the lock of {root}");
    let manifest = match store.manifest(&repository, &Pointer::Tag(to_tag(&root.version))).await {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let layers = Layers { store: store.as_ref(), repository: &repository, entries: manifest.entries("layers"), limits };
    let lock = layers.read(LOCK_TYPE, &what).await?;
    let lock = lock.ok_or_else(|| RepositoryError::malformed(&what, "its manifest has no layer with a lock"))?;
    let copies = layers.read(COPIES_TYPE, &what).await?.unwrap_or_default();
    let kept = Kept::parse(&platforms(&manifest.document)).unwrap_or_default();
    Ok(Some(Origin { lock, copies, kept }))
}

/// Of a bundle that was made with a selection from another, the lock names what is in it, and no more.
fn keep_what_is_there(lock: &mut ReleaseLock, there: &ReleaseLock) {
    let names: BTreeSet<(&str, &str)> =
        there.components.iter().map(|component| (component.name.as_str(), component.version.as_str())).collect();
    lock.components.retain(|component| names.contains(&(component.name.as_str(), component.version.as_str())));
    for component in &mut lock.components {
        let is_there = |target: &ReferenceTarget| names.contains(&(target.component_name.as_str(), target.version.as_str()));
        component.references.retain(|reference| is_there(&reference.target));
    }
}

struct Layers<'a> {
    store: &'a dyn ArtifactStore,
    repository: &'a str,
    entries: &'a [Value],
    limits: &'a Limits,
}

impl Layers<'_> {
    async fn read<T: serde::de::DeserializeOwned>(&self, kind: &str, what: &str) -> Result<Option<T>, RepositoryError> {
        let Some(layer) = self.entries.iter().find(|layer| media_type(layer) == kind) else { return Ok(None) };
        let stream = self.store.blob(self.repository, &entry_digest(layer, what)?).await?;
        let bytes = stream.read(self.limits.document_bytes).await?;
        crate::text::json(&bytes).map(Some).map_err(|error| RepositoryError::malformed(what, error))
    }
}

/// Puts the lock into a bundle of this channel. A bundle of a bundle remembers what the first one was made from, and the copies since.
pub(super) fn add(origin: Option<Origin>, channel: &Channel, kept: &Kept, contents: &mut Contents) {
    let mut layers = Vec::new();
    let fresh = || Origin { lock: channel.lock.clone(), copies: Copies::default(), kept: Kept::default() };
    let Origin { mut lock, mut copies, .. } = origin.unwrap_or_else(fresh);
    keep_what_is_there(&mut lock, &channel.lock);
    let first: BTreeMap<String, &str> =
        lock.components.iter().map(|component| (key(component), component.digest.as_str())).collect();
    for component in &channel.lock.components {
        let key = key(component);
        if first.get(&key) != Some(&component.digest.as_str()) {
            copies.entry(key).or_default().insert(component.digest.clone());
        }
    }
    layers.push(added(contents, serde_json::to_vec(&lock).expect("a lock is plain data"), LOCK_TYPE));
    if !copies.is_empty() {
        layers.push(added(contents, serde_json::to_vec(&copies).expect("plain data"), COPIES_TYPE));
    }
    let config = added(contents, b"{}".to_vec(), "application/vnd.oci.empty.v1+json");
    let mut manifest =
        json!({"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": LOCK_TYPE, "config": config, "layers": layers});
    if *kept != Kept::default() {
        manifest["annotations"] = json!({PLATFORMS: kept.text()});
    }
    let digest = contents.add_blob(serde_json::to_vec(&manifest).expect("plain data"));
    let repository = format!("{LOCK_REPOSITORY}/{}", channel.root.name);
    let tag = Some(to_tag(&channel.root.version));
    contents.artifacts.push(IndexEntry { repository, tag, digest, media_type: MANIFEST.to_owned() });
}
