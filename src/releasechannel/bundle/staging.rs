//! Fetching blobs into a folder, each once and proven; several at a time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::Kept;
use crate::access::Access;
use crate::assembly::Packed;
use crate::channel::Channel;
use crate::closure::Node;
use crate::ctf::{Payload, file_error};
use crate::descriptor::Resource;
use crate::digest::Digest;
use crate::error::{RepositoryError, ResolveError};
use crate::fetch::{Artifact, Fetcher, Found, Settled, expected_digest, is_manifest_type, is_packed};
use crate::image::ImageReference;
use crate::repository::{BlobStream, Manifest, Pointer, entry_digest, media_type};

/// A folder of blobs by digest.
pub(super) struct Staging<'a> {
    folder: PathBuf,
    fetcher: &'a Fetcher,
    kept: &'a Kept,
    /// One at a time for each blob, which several resources may share; the size of those that are whole.
    blobs: Mutex<BTreeMap<Digest, Arc<tokio::sync::Mutex<Option<u64>>>>>,
}

/// A resource that is in the folder.
pub(super) struct Fetched {
    /// What it has become.
    pub(super) packed: Packed,
    /// Everything that belongs to it, with sizes in bytes.
    pub(super) blobs: BTreeMap<Digest, (Payload, u64)>,
}

impl<'a> Staging<'a> {
    pub(super) fn new(folder: &Path, channel: &'a Channel, kept: &'a Kept) -> Result<Self, ResolveError> {
        std::fs::create_dir_all(folder).map_err(|error| file_error("create", folder, error))?;
        Ok(Self { folder: folder.to_owned(), fetcher: &channel.fetcher, kept, blobs: Mutex::default() })
    }

    /// Fetches a resource and says what it has become.
    pub(super) async fn fetch(&self, node: &Node, resource: &Resource) -> Result<Fetched, ResolveError> {
        let what = format!("resource {} of {}", resource.identity, node.at());
        let fetched = async {
            let Some(digest) = plain_digest(resource, &what)? else {
                return self.unknown(node, resource, &what).await;
            };
            let opened = async {
                match self.fetcher.settle(node, resource, &what).await? {
                    Settled::Blob(stream) => Ok(stream),
                    Settled::Artifact(_) => {
                        Err(RepositoryError::malformed(&what, "its media type is not that of an OCI artifact"))
                    }
                }
            };
            let size = self.once(&digest, opened).await?;
            Ok(self.plain(digest, size, resource))
        };
        fetched.await.map_err(|source| ResolveError::Repository { path: node.path.clone(), source })
    }

    /// What is known only when it has been opened. An artifact whose digest is that of its packed form stays packed: unpacked it would be
    /// another thing to whoever verifies it.
    async fn unknown(&self, node: &Node, resource: &Resource, what: &str) -> Result<Fetched, RepositoryError> {
        let stream = match self.fetcher.settle(node, resource, what).await? {
            Settled::Blob(stream) => stream,
            Settled::Artifact(artifact) => {
                let expected = expected_digest(resource, what)?;
                if expected.is_none_or(|expected| expected.matches(&artifact.manifest.bytes)) {
                    return self.artifact(&artifact, ordinary_name(resource, what)?, what).await;
                }
                match self.fetcher.open(node.source.as_ref(), &node.descriptor.name, resource, what).await? {
                    Found::Blob { stream, .. } => stream.also(what, expected_digest(resource, what)?.as_ref()),
                    Found::Artifact(_) => return Err(RepositoryError::malformed(what, "it is another thing than a moment ago")),
                }
            }
        };
        let (digest, size) = self.save_unknown(stream).await?;
        Ok(self.plain(digest, size, resource))
    }

    fn plain(&self, digest: Digest, size: u64, resource: &Resource) -> Fetched {
        let blobs = BTreeMap::from([(digest.clone(), (Payload::File(self.path(&digest)), size))]);
        let media_type = blob_type(resource);
        Fetched { packed: Packed { digest, media_type, size, reference_name: None, manifests: Vec::new() }, blobs }
    }

    /// A manifest with everything below it, byte-identical.
    async fn artifact(&self, artifact: &Artifact, name: Option<String>, what: &str) -> Result<Fetched, RepositoryError> {
        let (mut manifests, mut blobs) = (Vec::<(Digest, String)>::new(), BTreeMap::new());
        let mut left = vec![artifact.manifest.clone()];
        while let Some(manifest) = left.pop() {
            if manifests.iter().any(|(digest, _)| *digest == manifest.digest) {
                continue;
            }
            check_members(manifests.len(), what)?;
            let size = manifest.bytes.len() as u64;
            manifests.push((manifest.digest.clone(), kind(&manifest)));
            blobs.insert(manifest.digest.clone(), (Payload::Bytes(manifest.bytes.clone()), size));
            for blob in manifest.blobs() {
                let digest = entry_digest(blob, what)?;
                let size = self.layer(artifact, blob, &digest).await?;
                blobs.insert(digest.clone(), (Payload::File(self.path(&digest)), size));
            }
            let mut below = self.members(artifact, &manifest, what).await?;
            below.reverse();
            left.append(&mut below);
        }
        let (digest, media_type) = manifests[0].clone();
        let size = artifact.manifest.bytes.len() as u64;
        Ok(Fetched { packed: Packed { digest, media_type, size, reference_name: name, manifests }, blobs })
    }

    async fn members(&self, artifact: &Artifact, manifest: &Manifest, what: &str) -> Result<Vec<Manifest>, RepositoryError> {
        let mut members = Vec::new();
        for member in manifest.entries("manifests").iter().filter(|member| self.kept.keeps(member)) {
            let pointer = Pointer::Digest(entry_digest(member, what)?);
            let mut below = artifact.store.manifest(&artifact.repository, &pointer).await?;
            if below.media_type.is_empty() {
                media_type(member).clone_into(&mut below.media_type);
            }
            members.push(below);
        }
        Ok(members)
    }

    async fn layer(&self, artifact: &Artifact, blob: &Value, digest: &Digest) -> Result<u64, RepositoryError> {
        // More bytes than the manifest says are not this blob: no need to wait for their end.
        let said = blob.get("size").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let opened = async { Ok(artifact.store.blob(&artifact.repository, digest).await?.at_most(said)) };
        self.once(digest, opened).await
    }

    /// A blob that is there already, or is fetched now; its size.
    async fn once(
        &self,
        digest: &Digest,
        open: impl Future<Output = Result<BlobStream, RepositoryError>>,
    ) -> Result<u64, RepositoryError> {
        let turn = self.turn(digest);
        let mut known = turn.lock().await;
        if let Some(size) = *known {
            return Ok(size);
        }
        let path = self.path(digest);
        if !self.is_whole(&path, digest).await? {
            self.save(open.await?, &path).await?;
        }
        let size = path.metadata().map_err(|error| file_error("read", &path, error))?.len();
        *known = Some(size);
        Ok(size)
    }

    fn turn(&self, digest: &Digest) -> Arc<tokio::sync::Mutex<Option<u64>>> {
        let mut blobs = self.blobs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(blobs.entry(digest.clone()).or_default())
    }

    /// What an earlier run left is only used if its digest is right.
    async fn is_whole(&self, path: &Path, digest: &Digest) -> Result<bool, RepositoryError> {
        if !path.is_file() {
            return Ok(false);
        }
        let (chunks, size) = crate::ctf::open_payload(&Payload::File(path.to_owned())).await?;
        let mut stream = BlobStream::checked("staged blob", Some(size), chunks, digest, size);
        loop {
            match stream.next().await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(true),
                Err(RepositoryError::Digest { .. } | RepositoryError::Limit { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes beside, and renames when the digest is right.
    async fn save(&self, stream: BlobStream, path: &Path) -> Result<(), RepositoryError> {
        let partial = self.write_partial(stream).await?.0;
        partial.persist(path).map_err(|error| file_error("write", path, error.error))?;
        Ok(())
    }

    async fn save_unknown(&self, stream: BlobStream) -> Result<(Digest, u64), RepositoryError> {
        let (partial, digest, size) = self.write_partial(stream).await?;
        let path = self.path(&digest);
        partial.persist(&path).map_err(|error| file_error("write", &path, error.error))?;
        Ok((digest, size))
    }

    async fn write_partial(&self, mut stream: BlobStream) -> Result<(tempfile::NamedTempFile, Digest, u64), RepositoryError> {
        let failed = |error| file_error("write", &self.folder, error);
        let partial = tempfile::NamedTempFile::new_in(&self.folder).map_err(failed)?;
        let mut file = tokio::fs::File::from_std(partial.reopen().map_err(failed)?);
        let mut hasher = Digest::of(b"").hasher();
        let mut size = 0;
        while let Some(chunk) = stream.next().await? {
            hasher.update(&chunk);
            size += chunk.len() as u64;
            file.write_all(&chunk).await.map_err(failed)?;
        }
        file.flush().await.map_err(failed)?;
        Ok((partial, hasher.finish(), size))
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.file_name())
    }
}

fn kind(manifest: &Manifest) -> String {
    let default = if manifest.is_index() { crate::assembly::INDEX } else { crate::assembly::MANIFEST };
    if manifest.media_type.is_empty() { default.to_owned() } else { manifest.media_type.clone() }
}

/// Members of an index, and indexes of indexes, are bounded.
pub(super) fn check_members(count: usize, what: &str) -> Result<(), RepositoryError> {
    const MEMBERS: usize = 1000;
    if count <= MEMBERS {
        return Ok(());
    }
    Err(RepositoryError::Limit { what: what.to_owned(), limit: MEMBERS as u64, unit: "manifests" })
}

/// The digest of a blob that is known before it is read, and is what the resource's own digest says.
fn plain_digest(resource: &Resource, what: &str) -> Result<Option<Digest>, RepositoryError> {
    let (digest, media_type) = match Access::read(&resource.access) {
        Access::LocalBlob { reference, media_type, .. } => (reference, media_type),
        Access::OciBlob { digest, media_type, .. } => (digest, media_type),
        _ => return Ok(None),
    };
    let is_plain = !is_manifest_type(&media_type) && !is_packed(&media_type);
    let is_expected = expected_digest(resource, what)?.is_none_or(|expected| expected == digest);
    Ok(Some(digest).filter(|_| is_plain && is_expected))
}

/// The name that an image goes to a mirror under. It is no part of what is signed, so that one that leads elsewhere is refused.
fn ordinary_name(resource: &Resource, what: &str) -> Result<Option<String>, RepositoryError> {
    let name = reference_name_of(&resource.access);
    match &name {
        Some(text) if ImageReference::parse(&format!("relative.invalid/{text}")).is_none() => {
            Err(RepositoryError::malformed(what, format!("its referenceName {text:?} is no repository with a tag")))
        }
        _ => Ok(name),
    }
}

/// `repository:tag`, without the host: what both OCM tools keep.
pub(super) fn reference_name_of(access: &Value) -> Option<String> {
    match Access::read(access) {
        Access::LocalBlob { reference_name, .. } => Some(reference_name).filter(|name| !name.is_empty()),
        Access::OciArtifact { image } => name_of(&image),
        Access::Relative { reference } => name_of(&format!("relative.invalid/{}", reference.trim_start_matches('/'))),
        _ => None,
    }
}

fn name_of(image: &str) -> Option<String> {
    let image = ImageReference::parse(image)?;
    Some(format!("{}:{}", image.repository, image.tag?))
}

fn blob_type(resource: &Resource) -> String {
    match Access::read(&resource.access) {
        Access::LocalBlob { media_type, .. } | Access::OciBlob { media_type, .. } | Access::Wget { media_type, .. }
            if !media_type.is_empty() =>
        {
            media_type
        }
        Access::Helm { .. } => "application/vnd.cncf.helm.chart.content.v1.tar+gzip".to_owned(),
        _ => "application/octet-stream".to_owned(),
    }
}
