//! OCI artifacts that carry a document: packed artifact sets, and the one layer that is meant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::Artifact;
use crate::ctf::{Contents, Payload, archive, file_error};
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::options::Limits;
use crate::repository::{ArtifactStore, BlobStream, Manifest, Pointer, annotation, entry_digest, media_type};

/// Names that writers of different age give to the index of an artifact set.
const INDEX_NAMES: [&str; 3] = ["index.json", "artifact-descriptor.json", "artifact-set-descriptor.json"];
/// Repository name inside an unpacked set; sets have no names of their own.
const UNNAMED: &str = "artifact";

/// Whether a blob of this media type is a packed OCI artifact (ocm.md 4.1).
pub(crate) fn is_packed(media_type: &str) -> bool {
    let packed_manifest = media_type.starts_with("application/vnd.oci.image.")
        || media_type.starts_with("application/vnd.docker.distribution.manifest.");
    let packed = [".v1+tar", ".v1+tar+gzip", ".v2+tar", ".v2+tar+gzip"].iter().any(|end| media_type.ends_with(end));
    (packed_manifest && packed && !media_type.contains(".layer."))
        || media_type.starts_with("application/vnd.ocm.software.oci.layout.v1+tar")
}

/// Unpacks an artifact set or OCI layout into a file without a name, and finds its main manifest. Also gives the hash of the packed form,
/// made as `expected` was.
pub(crate) async fn unpack(
    mut stream: BlobStream,
    expected: Option<&Digest>,
    what: &str,
    limits: &Limits,
) -> Result<(Digest, Artifact), RepositoryError> {
    let failed = |error| file_error("unpack", Path::new(what), error);
    let mut file = tokio::fs::File::from_std(tempfile::tempfile().map_err(failed)?);
    let mut hasher = expected.map_or_else(|| Digest::of(b"").hasher(), Digest::hasher);
    while let Some(chunk) = stream.next().await? {
        hasher.update(&chunk);
        file.write_all(&chunk).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    let file = file.into_std().await;
    let (place, limits) = (what.to_owned(), limits.clone());
    let unpacked = tokio::task::spawn_blocking(move || open_set(file, &place, &limits)).await;
    let artifact = unpacked.unwrap_or_else(|error| Err(RepositoryError::malformed(what, error)))?;
    Ok((hasher.finish(), artifact))
}

fn open_set(file: File, what: &str, limits: &Limits) -> Result<Artifact, RepositoryError> {
    let set = archive::open_set(file, what, limits, &INDEX_NAMES)?;
    let index: Value = crate::text::json(&set.index).map_err(|error| RepositoryError::malformed(what, error))?;
    let blob = |(name, payload): (String, Payload)| Some((blob_digest(&name)?, payload));
    let blobs: BTreeMap<Digest, Payload> = set.files.into_iter().filter_map(blob).collect();
    let main = main_entry(&index, &blobs, what, limits)?;
    let manifest = read_manifest(&blobs, &main, what, limits)?;
    let store = Contents { place: what.to_owned(), artifacts: Vec::new(), blobs }.into_store(limits.clone());
    Ok(Artifact { store, repository: UNNAMED.to_owned(), manifest })
}

/// `blobs/sha256.<hex>` (artifact set) and `blobs/sha256/<hex>` (OCI layout).
fn blob_digest(name: &str) -> Option<Digest> {
    let rest = name.strip_prefix("blobs/")?;
    rest.replacen(['.', '/'], ":", 1).parse().ok()
}

/// `software.ocm/main`, which is a digest or a tag; else the one that has a tag; else the only one; else the one that no other lists
/// (ocm.md 4.1). An artifact that is listed twice is one artifact.
fn main_entry(index: &Value, blobs: &BTreeMap<Digest, Payload>, what: &str, limits: &Limits) -> Result<Digest, RepositoryError> {
    let entries = index.get("manifests").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let of = |wanted: &dyn Fn(&Value) -> bool| -> Result<BTreeSet<Digest>, RepositoryError> {
        entries.iter().filter(|entry| wanted(entry)).map(|entry| entry_digest(entry, what)).collect()
    };
    let main = annotation(index, "software.ocm/main").or_else(|| annotation(index, "cloud.gardener.ocm/main"));
    let found = match main.map(|main| (main, main.parse::<Digest>())) {
        Some((_, Ok(digest))) => Some(digest),
        Some((tag, Err(_))) => only(of(&|entry| tags(entry).any(|own| own == tag))?),
        None => match only(of(&|entry| tags(entry).next().is_some())?).or(only(of(&|_| true)?)) {
            Some(digest) => Some(digest),
            None => only(unlisted(&of(&|_| true)?, blobs, what, limits)?),
        },
    };
    found.ok_or_else(|| {
        let reason = format!("the packed artifact has {} entries and none is the main one", entries.len());
        RepositoryError::malformed(what, reason)
    })
}

fn only(digests: BTreeSet<Digest>) -> Option<Digest> {
    let count = digests.len();
    digests.into_iter().next().filter(|_| count == 1)
}

/// Tags of an entry, as the older tool and as OCI layouts write them.
fn tags(entry: &Value) -> impl Iterator<Item = &str> {
    let lists = ["software.ocm/tags", "cloud.gardener.ocm/tags", "org.opencontainers.image.ref.name"];
    lists.into_iter().filter_map(|key| annotation(entry, key)).flat_map(|list| list.split(',')).filter(|tag| !tag.is_empty())
}

/// Those of the artifacts that are no member of an index among them.
fn unlisted(
    digests: &BTreeSet<Digest>,
    blobs: &BTreeMap<Digest, Payload>,
    what: &str,
    limits: &Limits,
) -> Result<BTreeSet<Digest>, RepositoryError> {
    const READ: usize = 1000;
    let mut left = digests.clone();
    for digest in digests.iter().take(READ) {
        let manifest = read_manifest(blobs, digest, what, limits)?;
        for member in manifest.entries("manifests") {
            left.remove(&entry_digest(member, what)?);
        }
    }
    Ok(left)
}

fn read_manifest(
    blobs: &BTreeMap<Digest, Payload>,
    digest: &Digest,
    what: &str,
    limits: &Limits,
) -> Result<Manifest, RepositoryError> {
    let payload = blobs.get(digest);
    let payload =
        payload.ok_or_else(|| RepositoryError::malformed(what, format!("the packed artifact lacks its manifest {digest}")))?;
    let bytes = Bytes::from(payload.read(limits.manifest_bytes, what)?);
    if !digest.matches(&bytes) {
        return Err(RepositoryError::malformed(
            what,
            format!("the packed artifact's manifest does not have the digest {digest}"),
        ));
    }
    Manifest::decode(bytes, digest.clone(), "", what)
}

/// Reads the layer with the document: the only one, or the only one that says it is YAML or JSON.
pub(crate) async fn document_layer(artifact: &Artifact, what: &str, limits: &Limits) -> Result<Bytes, RepositoryError> {
    let manifest = single_manifest(artifact, what).await?;
    let layers = manifest.entries("layers");
    let documents: Vec<&Value> = layers.iter().filter(|layer| is_document(layer)).collect();
    let layer = match (documents.as_slice(), layers) {
        ([layer], _) => *layer,
        ([], [layer]) => layer,
        _ => {
            let reason = format!("of its {} layers, {} look like a document", layers.len(), documents.len());
            return Err(RepositoryError::malformed(what, reason));
        }
    };
    let digest = entry_digest(layer, what)?;
    artifact.store.blob(&artifact.repository, &digest).await?.read(limits.document_bytes).await
}

/// An index with one member stands for that member.
async fn single_manifest(artifact: &Artifact, what: &str) -> Result<Manifest, RepositoryError> {
    if !artifact.manifest.is_index() {
        return Ok(artifact.manifest.clone());
    }
    match artifact.manifest.entries("manifests") {
        [entry] => {
            let pointer = Pointer::Digest(entry_digest(entry, what)?);
            let store: &Arc<dyn ArtifactStore> = &artifact.store;
            store.manifest(&artifact.repository, &pointer).await
        }
        several => {
            Err(RepositoryError::malformed(what, format!("it is an index of {} manifests, not one document", several.len())))
        }
    }
}

fn is_document(layer: &Value) -> bool {
    let title = annotation(layer, "org.opencontainers.image.title").unwrap_or_default();
    let kind = media_type(layer);
    let by_type = ["yaml", "json"]
        .iter()
        .any(|word| kind.ends_with(word) || kind.contains(&format!("{word}+")) || kind.contains(&format!("x-{word}")));
    let by_name = [".yaml", ".yml", ".json"].iter().any(|end| title.ends_with(end));
    by_type || by_name
}
