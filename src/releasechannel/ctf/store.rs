//! A CTF, or content in memory, as an OCI store.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{BoxStream, StreamExt};

use super::{Contents, IndexEntry, Payload, file_error};
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::options::Limits;
use crate::repository::{ArtifactStore, BlobStream, Manifest, Pointer};

const CHUNK: usize = 256 * 1024;

/// Answers from [`Contents`].
#[derive(Debug)]
pub struct ContentStore {
    contents: Contents,
    limits: Limits,
    /// Positions in the index by repository, so that a large archive is not searched for each manifest.
    by_repository: BTreeMap<String, Vec<usize>>,
}

impl ContentStore {
    pub(super) fn new(contents: Contents, limits: Limits) -> Self {
        let mut by_repository: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (position, entry) in contents.artifacts.iter().enumerate() {
            by_repository.entry(entry.repository.clone()).or_default().push(position);
        }
        Self { contents, limits, by_repository }
    }

    /// What it holds.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    fn entry(&self, repository: &str, pointer: &Pointer) -> Option<&IndexEntry> {
        self.entries(repository).find(|entry| match pointer {
            Pointer::Tag(tag) => entry.tag.as_ref() == Some(tag),
            Pointer::Digest(digest) => entry.digest == *digest,
        })
    }

    fn entries(&self, repository: &str) -> impl Iterator<Item = &IndexEntry> {
        self.by_repository.get(repository).into_iter().flatten().map(|position| &self.contents.artifacts[*position])
    }

    async fn read_manifest(&self, repository: &str, pointer: &Pointer) -> Result<Manifest, RepositoryError> {
        let entry = self.entry(repository, pointer);
        let digest = match (entry, pointer) {
            (Some(entry), _) => &entry.digest,
            // Members of an index need not be listed.
            (None, Pointer::Digest(digest)) => digest,
            (None, Pointer::Tag(_)) => return Err(self.not_found(format!("{repository}{pointer}"))),
        };
        let what = format!("{}: manifest {repository}{pointer}", self.contents.place);
        let bytes = self.open(&what, digest).await?.read(self.limits.manifest_bytes).await?;
        let media_type = entry.map(|entry| entry.media_type.as_str()).unwrap_or_default();
        Manifest::decode(bytes, digest.clone(), media_type, &what)
    }

    async fn open(&self, what: &str, digest: &Digest) -> Result<BlobStream, RepositoryError> {
        let payload = self.contents.blobs.get(digest).ok_or_else(|| self.not_found(format!("blob {digest}")))?;
        let (chunks, size) = open_payload(payload).await?;
        Ok(BlobStream::checked(what, Some(size), chunks, digest, self.limits.blob_bytes))
    }

    /// A blob by digest alone, for manifests on their way to a registry.
    pub(crate) async fn read_blob(&self, digest: &Digest) -> Result<Bytes, RepositoryError> {
        let what = format!("{}: {digest}", self.contents.place);
        self.open(&what, digest).await?.read(self.limits.manifest_bytes).await
    }

    fn not_found(&self, what: String) -> RepositoryError {
        RepositoryError::NotFound { what, place: self.contents.place.clone() }
    }
}

impl ArtifactStore for ContentStore {
    fn place(&self) -> String {
        self.contents.place.clone()
    }

    fn is_local(&self) -> bool {
        true
    }

    fn tags<'a>(&'a self, repository: &'a str) -> BoxFuture<'a, Result<Vec<String>, RepositoryError>> {
        let tags = self.entries(repository).filter_map(|entry| entry.tag.clone()).collect();
        async move { Ok(tags) }.boxed()
    }

    fn manifest<'a>(&'a self, repository: &'a str, pointer: &'a Pointer) -> BoxFuture<'a, Result<Manifest, RepositoryError>> {
        self.read_manifest(repository, pointer).boxed()
    }

    fn blob<'a>(&'a self, repository: &'a str, digest: &'a Digest) -> BoxFuture<'a, Result<BlobStream, RepositoryError>> {
        async move { self.open(&format!("{}: blob {digest} of {repository}", self.contents.place), digest).await }.boxed()
    }

    fn size<'a>(&'a self, _repository: &'a str, digest: &'a Digest) -> BoxFuture<'a, Result<Option<u64>, RepositoryError>> {
        async move { self.contents.blobs.get(digest).map(Payload::size).transpose() }.boxed()
    }

    fn repositories(&self) -> BoxFuture<'_, Result<Option<Vec<String>>, RepositoryError>> {
        let names = self.by_repository.keys().cloned().collect();
        async move { Ok(Some(names)) }.boxed()
    }
}

type Chunks = BoxStream<'static, Result<Bytes, RepositoryError>>;

/// Opens a blob's bytes, unchecked, with their size.
pub(crate) async fn open_payload(payload: &Payload) -> Result<(Chunks, u64), RepositoryError> {
    match payload {
        Payload::Bytes(bytes) => {
            let (bytes, size) = (bytes.clone(), bytes.len() as u64);
            Ok((futures::stream::once(async move { Ok(bytes) }).boxed(), size))
        }
        Payload::Range { file, offset, size } => Ok((range(Arc::clone(file), *offset, *size), *size)),
        Payload::File(path) => {
            let owned = path.clone();
            let opened = blocking(move || {
                let file = File::open(&owned)?;
                let size = file.metadata()?.len();
                Ok((file, size))
            });
            let (file, size) = opened.await.map_err(|cause| file_error("read", path, cause))?;
            Ok((range(Arc::new(file), 0, size), size))
        }
    }
}

/// Opens a part of a blob's bytes, unchecked: a digest says nothing of a part.
pub(crate) async fn open_part(payload: &Payload, from: u64, length: u64) -> Result<Chunks, RepositoryError> {
    match payload {
        Payload::Bytes(bytes) => {
            let end = usize::try_from(from + length).unwrap_or(usize::MAX).min(bytes.len());
            let part = bytes.slice(usize::try_from(from).unwrap_or(end).min(end)..end);
            Ok(futures::stream::once(async move { Ok(part) }).boxed())
        }
        Payload::Range { file, offset, .. } => Ok(range(Arc::clone(file), offset + from, length)),
        Payload::File(path) => {
            let owned = path.clone();
            let file = blocking(move || File::open(&owned)).await.map_err(|cause| file_error("read", path, cause))?;
            Ok(range(Arc::new(file), from, length))
        }
    }
}

fn range(file: Arc<File>, offset: u64, size: u64) -> Chunks {
    futures::stream::try_unfold((file, offset, size), |(file, offset, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let length = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let reader = Arc::clone(&file);
        let read = blocking(move || {
            let mut buffer = vec![0; length];
            reader.read_exact_at(&mut buffer, offset)?;
            Ok(buffer)
        });
        let buffer = read.await.map_err(|cause| file_error("read", std::path::Path::new("the archive"), cause))?;
        Ok(Some((Bytes::from(buffer), (file, offset + length as u64, left - length as u64))))
    })
    .boxed()
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
}
