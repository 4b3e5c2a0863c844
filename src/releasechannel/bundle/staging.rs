//! Fetching blobs into a folder, each once and proven.

use std::path::{Path, PathBuf};

use futures::future::{BoxFuture, FutureExt};
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::Kept;
use crate::access::Access;
use crate::assembly::Packed;
use crate::channel::Channel;
use crate::closure::Node;
use crate::ctf::{Contents, Payload, file_error};
use crate::descriptor::Resource;
use crate::digest::Digest;
use crate::error::{RepositoryError, ResolveError};
use crate::fetch::{Artifact, Fetcher, Settled};
use crate::image::ImageReference;
use crate::repository::{BlobStream, Manifest, Pointer, entry_digest, media_type};

/// A folder of blobs by digest.
pub(super) struct Staging<'a> {
    folder: PathBuf,
    fetcher: &'a Fetcher,
    kept: &'a Kept,
    /// Bytes of all blobs of this bundle.
    pub(super) bytes: u64,
}

impl<'a> Staging<'a> {
    pub(super) fn new(folder: &Path, channel: &'a Channel, kept: &'a Kept) -> Result<Self, ResolveError> {
        std::fs::create_dir_all(folder).map_err(|error| file_error("create", folder, error))?;
        Ok(Self { folder: folder.to_owned(), fetcher: &channel.fetcher, kept, bytes: 0 })
    }

    /// Fetches a resource and says what it has become.
    pub(super) async fn fetch(
        &mut self,
        node: &Node,
        resource: &Resource,
        contents: &mut Contents,
    ) -> Result<Packed, RepositoryError> {
        let what = format!("resource {} of {}", resource.identity, node.at());
        let found = self.fetcher.settle(node, resource, &what).await?;
        match found {
            Settled::Artifact(artifact) => self.artifact(&artifact, reference_name(resource), contents, &what).await,
            Settled::Blob(stream) => {
                let (digest, size) = self.save_unknown(stream).await?;
                contents.blobs.insert(digest.clone(), Payload::File(self.path(&digest)));
                Ok(Packed { digest, media_type: blob_type(resource), size, reference_name: None, manifests: Vec::new() })
            }
        }
    }

    /// A manifest with everything below it, byte-identical.
    async fn artifact(
        &mut self,
        artifact: &Artifact,
        reference_name: Option<String>,
        contents: &mut Contents,
        what: &str,
    ) -> Result<Packed, RepositoryError> {
        let mut manifests = Vec::new();
        self.manifest(artifact, &artifact.manifest, &mut manifests, contents, what).await?;
        let (digest, media_type) = manifests[0].clone();
        let size = artifact.manifest.bytes.len() as u64;
        Ok(Packed { digest, media_type, size, reference_name, manifests })
    }

    fn manifest<'b>(
        &'b mut self,
        artifact: &'b Artifact,
        manifest: &'b Manifest,
        manifests: &'b mut Vec<(Digest, String)>,
        contents: &'b mut Contents,
        what: &'b str,
    ) -> BoxFuture<'b, Result<(), RepositoryError>> {
        async move {
            if manifests.iter().any(|(digest, _)| *digest == manifest.digest) {
                return Ok(());
            }
            check_members(manifests.len(), what)?;
            let default = if manifest.is_index() { crate::assembly::INDEX } else { crate::assembly::MANIFEST };
            let kind = if manifest.media_type.is_empty() { default.to_owned() } else { manifest.media_type.clone() };
            manifests.push((manifest.digest.clone(), kind));
            contents.blobs.insert(manifest.digest.clone(), Payload::Bytes(manifest.bytes.clone()));
            self.bytes += manifest.bytes.len() as u64;
            for member in manifest.entries("manifests").iter().filter(|member| self.kept.keeps(member)) {
                let digest = entry_digest(member, what)?;
                let mut below = artifact.store.manifest(&artifact.repository, &Pointer::Digest(digest)).await?;
                if below.media_type.is_empty() {
                    media_type(member).clone_into(&mut below.media_type);
                }
                self.manifest(artifact, &below, manifests, contents, what).await?;
            }
            for blob in manifest.blobs() {
                self.layer(artifact, blob, contents, what).await?;
            }
            Ok(())
        }
        .boxed()
    }

    async fn layer(
        &mut self,
        artifact: &Artifact,
        blob: &Value,
        contents: &mut Contents,
        what: &str,
    ) -> Result<(), RepositoryError> {
        let digest = entry_digest(blob, what)?;
        if contents.blobs.contains_key(&digest) {
            return Ok(());
        }
        let path = self.path(&digest);
        if !self.is_whole(&path, &digest).await? {
            let stream = artifact.store.blob(&artifact.repository, &digest).await?;
            // More bytes than the manifest says are not this blob: no need to wait for their end.
            let said = blob.get("size").and_then(Value::as_u64);
            self.save(stream.at_most(said.unwrap_or(u64::MAX)), &path).await?;
        }
        self.bytes += path.metadata().map_err(|error| file_error("read", &path, error))?.len();
        contents.blobs.insert(digest, Payload::File(path));
        Ok(())
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

    async fn save_unknown(&mut self, stream: BlobStream) -> Result<(Digest, u64), RepositoryError> {
        let (partial, digest, size) = self.write_partial(stream).await?;
        let path = self.path(&digest);
        partial.persist(&path).map_err(|error| file_error("write", &path, error.error))?;
        self.bytes += size;
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

/// Members of an index, and indexes of indexes, are bounded.
pub(super) fn check_members(count: usize, what: &str) -> Result<(), RepositoryError> {
    const MEMBERS: usize = 1000;
    if count <= MEMBERS {
        return Ok(());
    }
    Err(RepositoryError::Limit { what: what.to_owned(), limit: MEMBERS as u64, unit: "manifests" })
}

/// `repository:tag`, without the host: what both OCM tools keep.
fn reference_name(resource: &Resource) -> Option<String> {
    match Access::read(&resource.access) {
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
