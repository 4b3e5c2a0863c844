//! The air gap: a channel with everything that it names as one archive, and the proof that an archive or mirror is complete.
//!
//! Fields that signatures cover are never touched: only `access` changes, and what it leads to is proven by the digest that was there.

mod brought;
mod carried;
mod claims;
mod complete;
mod held;
mod kept;
mod names;
mod origin;
mod proof;
mod signed;
mod staging;
mod survey;

use std::collections::BTreeMap;
use std::path::Path;

use futures::stream::{self, StreamExt};
use serde_json::{Map, Value, json};

pub use brought::program_at;
pub use carried::{Program, survey_program};
pub use claims::Claims;
#[cfg(test)]
pub(crate) use complete::missing;
pub use complete::{Completeness, missing_at, of_lock};
pub use held::{Held, hold};
pub use kept::Kept;
use names::{Called, clash};
pub use origin::{inspect_held, kept_at, lock_at, original_lock};
pub use signed::{Signed, signed};
use staging::{Fetched, Staging};
pub use survey::{Item, Survey, survey};

use crate::access::Access;
use crate::assembly::{Blobs, Packed, store};
use crate::channel::Channel;
use crate::closure::Node;
use crate::ctf::{Contents, IndexEntry};
use crate::descriptor::{Descriptor, Resource, Schema};
use crate::error::{RepositoryError, ResolveError};
use crate::normalise::{Normalisation, normalise};
use crate::program;

/// Repository, inside a bundle and a mirror, of the lock that the bundle was made from. It has the original references.
pub const LOCK_REPOSITORY: &str = "plinth.dev/lock";
/// Media type of the lock's layer.
pub const LOCK_TYPE: &str = "application/vnd.plinth.dev.lock.v1+json";

/// A channel by value.
#[derive(Debug)]
pub struct Bundle {
    /// Ready to be written as an archive, or to be pushed.
    pub contents: Contents,
    /// Resources that are in it.
    pub resources: usize,
    /// Bytes of all blobs.
    pub bytes: u64,
    /// What a person should know.
    pub remarks: Vec<String>,
    /// Images by their ordinary names.
    called: Vec<Called>,
}

impl Bundle {
    pub(crate) fn empty() -> Self {
        let contents = Contents { place: "bundle".to_owned(), ..Contents::default() };
        Self { contents, resources: 0, bytes: 0, remarks: Vec::new(), called: Vec::new() }
    }
}

/// Collects everything that a channel names. Blobs are put into the folder `staging` under their digests; what is there already, whole,
/// is not fetched again, so that a broken run goes on. The same lock gives the same bytes. Of an index that is not kept whole, the members
/// that are left out are in the archive neither as manifests nor with their layers; the index itself stays as it was signed.
pub async fn create(channel: &Channel, staging: &Path, kept: &Kept) -> Result<Bundle, ResolveError> {
    let staging = Staging::new(staging, channel, kept)?;
    crate::verify::configurations(&channel.closure).await?;
    let mut bundle = Bundle::empty();
    let wanted = channel.closure.nodes.values().flat_map(|node| carried(node).map(move |element| (node, element)));
    let fetches: Vec<_> = wanted.map(|(node, element)| staging.fetch(node, element)).collect();
    // In their order, so that the same lock gives the same bytes and the same first error.
    let mut fetches = stream::iter(fetches).buffered(channel.fetcher.limits.parallel.max(1));
    let mut sizes = BTreeMap::new();
    for node in channel.closure.nodes.values() {
        let mut fetched = Vec::new();
        for _ in carried(node) {
            let Fetched { packed, blobs } = fetches.next().await.expect("one for each element")?;
            for (digest, (payload, size)) in blobs {
                sizes.insert(digest.clone(), size);
                bundle.contents.blobs.insert(digest, payload);
            }
            fetched.push(packed);
        }
        let in_node = |source| ResolveError::Repository { path: node.path.clone(), source };
        add_component(node, fetched, &mut bundle).map_err(in_node)?;
    }
    // A bundle of a bundle remembers what the first one did.
    let origin = origin::of(channel).await?;
    origin::add(origin, channel, kept, &mut bundle.contents);
    bundle.contents.artifacts.sort();
    bundle.contents.artifacts.dedup();
    bundle.bytes = sizes.values().sum();
    Ok(bundle)
}

/// What of a component version is in a bundle: resources with content, and sources whose content is beside the descriptor.
fn carried(node: &Node) -> impl Iterator<Item = &Resource> {
    let resources = node.descriptor.resources.iter().filter(|resource| has_content(resource));
    resources.chain(node.descriptor.sources.iter().filter(|source| is_beside(source)))
}

fn has_content(resource: &Resource) -> bool {
    Access::read(&resource.access) != Access::Nothing
}

fn is_beside(source: &Resource) -> bool {
    matches!(Access::read(&source.access), Access::LocalBlob { .. })
}

/// Adds plinth itself, packed now, without its chart.
#[cfg(test)]
pub(crate) fn add_program(bundle: &mut Bundle, executable: &Path, version: &str, staging: &Path) -> Result<(), ResolveError> {
    Program::pack(executable, version, &program::Chart::default(), staging)?.add_to(bundle)
}

/// plinth alone, as a bundle has it, with the ordinary name of its image: for a mirror that no bundle brought it to.
pub fn of_program(
    executable: &Path,
    version: &str,
    chart: &program::Chart,
    staging: &Path,
) -> Result<(Bundle, String), ResolveError> {
    let mut bundle = Bundle::empty();
    Program::pack(executable, version, chart, staging)?.add_to(&mut bundle)?;
    let image = bundle.contents.artifacts.iter().find(|entry| entry.repository == program::COMPONENT && entry.tag.is_some());
    let name = image.map(|image| format!("{}:{version}@{}", image.repository, image.digest));
    let name =
        name.ok_or_else(|| RepositoryError::malformed(program::COMPONENT, format!("`{version}` is no tag for its image")))?;
    Ok((bundle, name))
}

/// `fetched` is what the node's [`carried`] elements have become, in order.
fn add_component(node: &Node, fetched: Vec<Packed>, bundle: &mut Bundle) -> Result<(), RepositoryError> {
    let mut document = node.descriptor.document.clone();
    let (resources, sources) = match node.descriptor.schema {
        Schema::V2 => ("/component/resources", "/component/sources"),
        Schema::V3Alpha1 => ("/spec/resources", "/spec/sources"),
    };
    let (mut blobs, mut fetched) = (Blobs::default(), fetched.into_iter());
    for (element, read) in elements(&mut document, resources, &node.descriptor.resources).filter(|(_, read)| has_content(read)) {
        let packed = fetched.next().expect("one for each resource with content");
        bundle.resources += 1;
        let what = format!("resource {} of {}", read.identity, node.at());
        list_by_name(what, packed.reference_name.as_ref(), &packed.manifests, bundle)?;
        localize(element, &packed);
        blobs.add(packed, "resource", element);
    }
    for (element, _) in elements(&mut document, sources, &node.descriptor.sources).filter(|(_, read)| is_beside(read)) {
        let packed = fetched.next().expect("one for each source with content");
        localize(element, &packed);
        blobs.add(packed, "source", element);
    }
    let what = node.at().to_string();
    let read = Descriptor::from_value(document.clone()).map_err(|error| RepositoryError::malformed(&what, error))?;
    // What was signed must be what is written.
    if Normalisation::ALL.iter().any(|form| normalise(&read, *form) != normalise(&node.descriptor, *form)) {
        return Err(RepositoryError::malformed(what, "bundling would change fields that signatures cover"));
    }
    let bytes = serde_json::to_vec(&document).expect("a descriptor is plain data");
    store(&mut bundle.contents, &read, bytes, &blobs);
    Ok(())
}

/// The elements of a list of the document, each with how it was read.
fn elements<'a>(
    document: &'a mut Value,
    list: &str,
    read: &'a [Resource],
) -> impl Iterator<Item = (&'a mut Map<String, Value>, &'a Resource)> {
    let found = document.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    found.filter_map(Value::as_object_mut).zip(read)
}

fn localize(element: &mut Map<String, Value>, packed: &Packed) {
    let mut access = json!({"type": "localBlob", "localReference": packed.digest.as_str(), "mediaType": packed.media_type});
    if let Some(name) = &packed.reference_name {
        access["referenceName"] = name.as_str().into();
    }
    element.insert("access".to_owned(), access);
}

/// An image is also there under its ordinary name, so that a mirror can be pulled from like any registry. Two hosts may have had the same
/// name for different content: then there is no mirror that could have both.
fn list_by_name(
    what: String,
    name: Option<&String>,
    manifests: &[(crate::Digest, String)],
    bundle: &mut Bundle,
) -> Result<(), RepositoryError> {
    let Some((digest, _)) = manifests.first() else { return Ok(()) };
    let Some(called) = name.and_then(|name| Called::new(what, name, digest.clone())) else { return Ok(()) };
    let is_same = |other: &&Called| other.repository == called.repository && other.tag == called.tag;
    if let Some(owner) = bundle.called.iter().find(is_same).filter(|owner| owner.digest != called.digest) {
        return Err(RepositoryError::Clash { what: clash(owner, &called) });
    }
    let entry = |tag: Option<String>, (digest, media_type): &(crate::Digest, String)| IndexEntry {
        repository: called.repository.clone(),
        tag,
        digest: digest.clone(),
        media_type: media_type.clone(),
    };
    let artifacts = &mut bundle.contents.artifacts;
    artifacts.push(entry(Some(called.tag.clone()), &manifests[0]));
    // One of the two OCM tools finds members of an index only where they are listed beside it.
    artifacts.extend(manifests[1..].iter().map(|member| entry(None, member)));
    bundle.called.push(called);
    Ok(())
}

/// Whether an archive says what it was made from.
pub fn has_lock(contents: &Contents) -> bool {
    contents.artifacts.iter().any(|entry| entry.repository.starts_with(LOCK_REPOSITORY))
}

/// Which platforms an archive was made for, as its lock says. An archive of somebody else is one with all.
pub(crate) fn kept_of(contents: &Contents) -> Kept {
    let locks = contents.artifacts.iter().filter(|entry| entry.repository.starts_with(LOCK_REPOSITORY));
    let documents = locks.filter_map(|entry| {
        let bytes = contents.blobs.get(&entry.digest)?.read(1 << 20, "the lock's manifest").ok()?;
        serde_json::from_slice::<Value>(&bytes).ok()
    });
    let texts: Vec<String> = documents.flat_map(|document| origin::platforms(&document)).collect();
    Kept::parse(&texts).unwrap_or_default()
}

#[cfg(test)]
mod roundtrip;
#[cfg(test)]
mod tests;
