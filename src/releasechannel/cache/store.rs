//! An OCI store with the cache before it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::StreamExt;

use super::entry::Writer;
use super::{ContentCache, RunMemory};
use crate::ctf::{Payload, open_payload};
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::options::Limits;
use crate::repository::{ArtifactStore, BlobStream, Manifest, Pointer};

/// Blobs up to this size are fetched to their end before they are given out, so that two who want the same one fetch it once.
const SMALL: u64 = 1 << 20;
/// Manifests and tags that a run remembers.
const REMEMBERED: usize = 20_000;

/// Asks the cache first. Tags are asked for at the registry, once within a run.
#[derive(Debug)]
pub(crate) struct CachedStore {
    inner: Arc<dyn ArtifactStore>,
    cache: Arc<ContentCache>,
    limits: Limits,
    run: Option<Run>,
    shared: Option<Arc<RunMemory>>,
    /// One at a time for each digest.
    busy: Mutex<BTreeMap<Digest, Weak<tokio::sync::Mutex<()>>>>,
}

/// What the registry said within this run: for those that end, not for a controller.
#[derive(Debug, Default)]
struct Run {
    tags: Mutex<BTreeMap<String, Vec<String>>>,
    manifests: Mutex<BTreeMap<(String, String), (Digest, String)>>,
}

impl CachedStore {
    /// `remembers` what tags lead to: for a run, which must see one state of a registry. `shared` is remembered together with others.
    pub(crate) fn new(
        inner: Arc<dyn ArtifactStore>,
        cache: Arc<ContentCache>,
        limits: Limits,
        remembers: bool,
        shared: Option<Arc<RunMemory>>,
    ) -> Arc<Self> {
        let run = remembers.then(Run::default);
        Arc::new(Self { inner, cache, limits, run, shared, busy: Mutex::default() })
    }

    /// What the tag led to before.
    fn remembered(&self, repository: &str, tag: &str) -> Option<(Digest, String)> {
        let own = self.run.as_ref().and_then(|run| locked(&run.manifests).get(&(repository.to_owned(), tag.to_owned())).cloned());
        let key = || (self.inner.place(), repository.to_owned(), tag.to_owned());
        own.or_else(|| locked(&self.shared.as_ref()?.manifests).get(&key()).cloned())
    }

    fn remember(&self, repository: &str, tag: &str, manifest: &Manifest) {
        let found = (manifest.digest.clone(), manifest.media_type.clone());
        if let Some(shared) = &self.shared {
            put(&shared.manifests, (self.inner.place(), repository.to_owned(), tag.to_owned()), found.clone());
        }
        if let Some(run) = &self.run {
            put(&run.manifests, (repository.to_owned(), tag.to_owned()), found);
        }
    }

    fn turn(&self, digest: &Digest) -> Arc<tokio::sync::Mutex<()>> {
        let mut busy = locked(&self.busy);
        if let Some(turn) = busy.get(digest).and_then(Weak::upgrade) {
            return turn;
        }
        busy.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(tokio::sync::Mutex::new(()));
        busy.insert(digest.clone(), Arc::downgrade(&turn));
        turn
    }

    async fn cached(&self, digest: &Digest) -> Option<(std::fs::File, u64)> {
        let (cache, digest) = (Arc::clone(&self.cache), digest.clone());
        tokio::task::spawn_blocking(move || cache.find(&digest)).await.ok().flatten()
    }

    async fn cached_bytes(&self, digest: &Digest, limit: u64, what: &str) -> Result<Option<Bytes>, RepositoryError> {
        match self.cached(digest).await {
            Some((file, size)) => stream_of(file, size, digest, what).await?.read(limit).await.map(Some),
            None => Ok(None),
        }
    }

    fn keep(&self, digest: &Digest, bytes: &[u8]) {
        let Some(mut writer) = self.cache.begin(digest, Some(bytes.len() as u64)) else { return };
        // What cannot be kept is fetched again some day.
        if writer.write(bytes).is_ok()
            && let Ok(written) = writer.commit()
        {
            self.cache.wrote(written);
        }
    }

    async fn find_manifest(&self, repository: &str, pointer: &Pointer) -> Result<Manifest, RepositoryError> {
        let what = format!("{}/{repository}{pointer}", self.inner.place());
        let known = match pointer {
            Pointer::Digest(digest) => Some((digest.clone(), String::new())),
            Pointer::Tag(tag) => self.remembered(repository, tag),
        };
        let turn = known.as_ref().map(|(digest, _)| self.turn(digest));
        let _turn = match &turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        if let Some((digest, media_type)) = &known
            && let Some(bytes) = self.cached_bytes(digest, self.limits.manifest_bytes, &what).await?
        {
            return Manifest::decode(bytes, digest.clone(), media_type, &what);
        }
        let manifest = self.inner.manifest(repository, pointer).await?;
        self.keep(&manifest.digest, &manifest.bytes);
        if let Pointer::Tag(tag) = pointer {
            self.remember(repository, tag, &manifest);
        }
        Ok(manifest)
    }

    async fn list_tags(&self, repository: &str) -> Result<Vec<String>, RepositoryError> {
        let Some(run) = &self.run else { return self.inner.tags(repository).await };
        if let Some(tags) = locked(&run.tags).get(repository) {
            return Ok(tags.clone());
        }
        let tags = self.inner.tags(repository).await?;
        locked(&run.tags).insert(repository.to_owned(), tags.clone());
        Ok(tags)
    }

    async fn find_blob(&self, repository: &str, digest: &Digest) -> Result<BlobStream, RepositoryError> {
        let what = format!("{}: blob {digest} of {repository}", self.inner.place());
        let turn = self.turn(digest);
        let _turn = turn.lock().await;
        if let Some((file, size)) = self.cached(digest).await {
            return stream_of(file, size, digest, &what).await;
        }
        let stream = self.inner.blob(repository, digest).await?;
        if stream.size().is_some_and(|size| size <= SMALL) {
            let bytes = stream.read(SMALL).await?;
            self.keep(digest, &bytes);
            return Ok(BlobStream::from_bytes(what, bytes, digest));
        }
        match self.cache.begin(digest, stream.size()) {
            Some(writer) => Ok(self.kept_on_the_way(stream, writer, digest, what)),
            None => Ok(stream),
        }
    }

    /// Passes the bytes on and writes them down; the entry counts only when the stream has come to its right end.
    fn kept_on_the_way(&self, stream: BlobStream, writer: Writer, digest: &Digest, what: String) -> BlobStream {
        let size = stream.size();
        let start = (stream, Some(writer), Arc::clone(&self.cache));
        let chunks = futures::stream::try_unfold(start, |(mut stream, mut writer, cache)| async move {
            if let Some(chunk) = stream.next().await? {
                writer = writer.and_then(|mut writer| writer.write(&chunk).is_ok().then_some(writer));
                return Ok::<_, RepositoryError>(Some((chunk, (stream, writer, cache))));
            }
            if let Some(Ok(written)) = writer.map(Writer::commit) {
                cache.wrote(written);
            }
            Ok(None)
        });
        BlobStream::checked(what, size, chunks.boxed(), digest, self.limits.blob_bytes)
    }
}

async fn stream_of(file: std::fs::File, size: u64, digest: &Digest, what: &str) -> Result<BlobStream, RepositoryError> {
    let payload = Payload::Range { file: Arc::new(file), offset: 0, size };
    let (chunks, size) = open_payload(&payload).await?;
    Ok(BlobStream::checked(what, Some(size), chunks, digest, size))
}

fn put<K: Ord, V>(all: &Mutex<BTreeMap<K, V>>, key: K, value: V) {
    let mut all = locked(all);
    if all.len() < REMEMBERED {
        all.insert(key, value);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl ArtifactStore for CachedStore {
    fn place(&self) -> String {
        self.inner.place()
    }

    fn tags<'a>(&'a self, repository: &'a str) -> BoxFuture<'a, Result<Vec<String>, RepositoryError>> {
        self.list_tags(repository).boxed()
    }

    fn manifest<'a>(&'a self, repository: &'a str, pointer: &'a Pointer) -> BoxFuture<'a, Result<Manifest, RepositoryError>> {
        self.find_manifest(repository, pointer).boxed()
    }

    fn blob<'a>(&'a self, repository: &'a str, digest: &'a Digest) -> BoxFuture<'a, Result<BlobStream, RepositoryError>> {
        self.find_blob(repository, digest).boxed()
    }

    fn size<'a>(&'a self, repository: &'a str, digest: &'a Digest) -> BoxFuture<'a, Result<Option<u64>, RepositoryError>> {
        self.inner.size(repository, digest)
    }

    fn repositories(&self) -> BoxFuture<'_, Result<Option<Vec<String>>, RepositoryError>> {
        self.inner.repositories()
    }
}
