//! Pushing a CTF to a registry: manifests byte-identical, blobs that are there skipped, mounts where possible.

mod mend;
mod outgoing;
mod tags;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use reqwest::header::HeaderValue;
use reqwest::{Method, StatusCode};

use self::outgoing::Outgoing;
use super::Registries;
use super::client::{Failure, Registry, Request, said_digest};
use super::http::chain;
use super::patience::{Later, Patience, retry_after};
use crate::bundle::Kept;
use crate::ctf::{ContentStore, Contents, IndexEntry, open_payload};
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::repository::{BlobStream, Content, Manifest, entry_digest, media_type};
use crate::source::RepositoryRef;

/// How far a push may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PushRules {
    /// Whether tags that lead to other content are moved.
    pub move_tags: bool,
    /// Whether what is there already is read, and sent again where it is damaged.
    pub mend: bool,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Manifests and indexes put.
    pub manifests: usize,
    /// Manifests and indexes that were there already.
    pub unchanged: usize,
    /// Tags set.
    pub tags: usize,
    /// Tags that led there already.
    pub tags_unchanged: usize,
    /// Blobs sent.
    pub blobs: usize,
    /// Blobs that were there already, or were taken over from another repository of the registry.
    pub skipped: usize,
    /// Blobs and manifests that were there with other bytes than their digests say, and are right now.
    pub mended: usize,
    /// Tags that led elsewhere before, each with both digests.
    pub moved: Vec<String>,
}

/// Pushes everything that a CTF lists, and moves tags that lead elsewhere.
pub async fn push(contents: &Contents, target: &RepositoryRef, registries: &Registries) -> Result<Pushed, RepositoryError> {
    push_by(contents, target, registries, PushRules { move_tags: true, mend: false }).await
}

/// Pushes everything that a CTF lists below the target's path. The order is: blobs, manifests, indexes, and all tags last, so that a
/// reader never finds something incomplete. Where tags lead elsewhere and must not be moved, nothing is sent.
pub async fn push_by(
    contents: &Contents,
    target: &RepositoryRef,
    registries: &Registries,
    rules: PushRules,
) -> Result<Pushed, RepositoryError> {
    let RepositoryRef::Oci { host, sub_path, plain_http } = target else {
        return Err(RepositoryError::Unsupported {
            what: target.to_string(),
            reason: "only registries are pushed to".to_owned(),
        });
    };
    let registry = registries.registry(host, *plain_http)?;
    let limits = registries.shared.options.limits.clone();
    let store = contents.clone().into_store(limits);
    let mut push = Push {
        registry: &registry,
        store: &store,
        sub_path,
        kept: crate::bundle::kept_of(contents),
        rules,
        pushed: Pushed::default(),
        blobs: BTreeMap::new(),
        manifests: BTreeSet::new(),
    };
    contents.artifacts.iter().try_for_each(|entry| named_well(entry, target))?;
    let tags = push.tags(&contents.artifacts, target).await?;
    for entry in &contents.artifacts {
        let repository = push.repository(entry);
        push.manifest(&repository, &entry.digest, &entry.media_type).await?;
    }
    // A release is found by its tag only once all of it is there.
    for (entry, tagged) in tags {
        push.tag(entry, &tagged).await?;
    }
    Ok(push.pushed)
}

struct Push<'a> {
    registry: &'a Registry,
    store: &'a ContentStore,
    sub_path: &'a str,
    /// Platforms that the archive was made for.
    kept: Kept,
    rules: PushRules,
    pushed: Pushed,
    /// Where a blob is known to be, for mounts.
    blobs: BTreeMap<Digest, Vec<String>>,
    manifests: BTreeSet<(String, Digest)>,
}

/// Names come from an archive that anybody may have written: one that leads out of the target is refused before anything is sent.
fn named_well(entry: &IndexEntry, target: &RepositoryRef) -> Result<(), RepositoryError> {
    let tag = entry.tag.as_deref();
    if crate::image::is_repository(&entry.repository) && tag.is_none_or(crate::image::is_tag) {
        return Ok(());
    }
    let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
    let what = format!("push to {target}: {:?} in the archive's index", format!("{}{tag}", entry.repository));
    Err(RepositoryError::malformed(what, "that is no name of a repository with a tag"))
}

impl Push<'_> {
    fn repository(&self, entry: &IndexEntry) -> String {
        if self.sub_path.is_empty() { entry.repository.clone() } else { format!("{}/{}", self.sub_path, entry.repository) }
    }

    /// A manifest by digest, after everything that it names.
    fn manifest<'a>(
        &'a mut self,
        repository: &'a str,
        digest: &'a Digest,
        media_type: &'a str,
    ) -> BoxFuture<'a, Result<Manifest, RepositoryError>> {
        async move {
            let manifest = self.read(digest, media_type).await?;
            let key = (repository.to_owned(), digest.clone());
            if self.manifests.contains(&key) {
                return Ok(manifest);
            }
            let what = format!("manifest {digest}");
            for member in manifest.entries("manifests") {
                let member_digest = entry_digest(member, &what)?;
                if member_digest != *digest && self.kept.keeps(member) {
                    self.manifest(repository, &member_digest, crate::repository::media_type(member)).await?;
                }
            }
            for blob in manifest.blobs() {
                self.blob(repository, &entry_digest(blob, &what)?).await?;
            }
            let put = self.put(repository, &manifest).await;
            put.map_err(|error| self.explained(error, &manifest))?;
            self.manifests.insert(key);
            Ok(manifest)
        }
        .boxed()
    }

    async fn read(&self, digest: &Digest, media_type: &str) -> Result<Manifest, RepositoryError> {
        let bytes = self.store.read_blob(digest).await?;
        Manifest::decode(bytes, digest.clone(), media_type, &format!("manifest {digest}"))
    }

    /// Some registries refuse an index whose members are not all there.
    fn explained(&self, error: RepositoryError, manifest: &Manifest) -> RepositoryError {
        let left_out = manifest.entries("manifests").iter().filter(|member| !self.kept.keeps(member)).count();
        match error {
            RepositoryError::Malformed { what, reason } | RepositoryError::NotFound { what, place: reason } if left_out > 0 => {
                let kept = self.kept.text();
                let reason = format!(
                    "{reason}; the archive was made for {kept} and leaves {left_out} of its platforms out, which this registry does not take: make it with all"
                );
                RepositoryError::Malformed { what, reason }
            }
            other => other,
        }
    }

    /// A manifest under its digest, unless it is there.
    async fn put(&mut self, repository: &str, manifest: &Manifest) -> Result<(), RepositoryError> {
        let what = format!("manifest {} of {repository}", manifest.digest);
        let url = self.registry.url(repository, &format!("manifests/{}", manifest.digest))?;
        if self.said(&url, repository, &what).await?.as_deref() != Some(manifest.digest.as_str()) {
            self.send(repository, manifest.digest.as_str(), manifest).await?;
            self.pushed.manifests += 1;
            return Ok(());
        }
        if !self.rules.mend || self.is_whole(repository, &manifest.digest, Content::Manifest).await? {
            self.pushed.unchanged += 1;
            return Ok(());
        }
        self.send(repository, manifest.digest.as_str(), manifest).await?;
        self.pushed.manifests += 1;
        self.is_mended(repository, &manifest.digest, Content::Manifest).await
    }

    async fn send(&self, repository: &str, reference: &str, manifest: &Manifest) -> Result<(), RepositoryError> {
        let what = format!("manifest {reference} of {repository}");
        let url = self.registry.url(repository, &format!("manifests/{reference}"))?;
        let mut request =
            Request { method: Method::PUT, body: Some(manifest.bytes.clone()), ..Request::get(url, repository, &what) };
        let content_type =
            HeaderValue::from_str(manifest_type(manifest)).map_err(|error| RepositoryError::malformed(&what, error))?;
        request.headers.insert("content-type", content_type);
        let response = self.registry.send(&request).await?;
        stored(said_digest(response.headers()), &manifest.digest, || self.registry.place_of(&what))
    }

    async fn blob(&mut self, repository: &str, digest: &Digest) -> Result<(), RepositoryError> {
        let places = self.blobs.entry(digest.clone()).or_default();
        if places.iter().any(|place| place == repository) {
            return Ok(());
        }
        let elsewhere = places.first().cloned();
        places.push(repository.to_owned());
        if !self.exists(repository, digest).await? {
            return self.sent(repository, digest, elsewhere.as_deref()).await;
        }
        if !self.rules.mend || self.is_whole(repository, digest, Content::Blob).await? {
            self.pushed.skipped += 1;
            return Ok(());
        }
        self.sent(repository, digest, None).await?;
        self.is_mended(repository, digest, Content::Blob).await
    }

    /// Sends a blob, as often as it takes.
    async fn sent(&mut self, repository: &str, digest: &Digest, elsewhere: Option<&str>) -> Result<(), RepositoryError> {
        let registry = self.registry;
        let what = format!("blob {digest} of {repository}");
        let mut patience = Patience::new(&registry.shared.options.limits, &registry.authority, &what);
        loop {
            match self.upload(repository, digest, elsewhere, &what).await {
                Ok(is_mounted) => {
                    self.pushed.skipped += usize::from(is_mounted);
                    self.pushed.blobs += usize::from(!is_mounted);
                    return Ok(());
                }
                Err(Failure::Connection(cause, asked)) => patience.again(cause, asked).await?,
                Err(Failure::Final(error)) => return Err(error),
            }
        }
    }

    async fn exists(&self, repository: &str, digest: &Digest) -> Result<bool, RepositoryError> {
        let what = format!("blob {digest} of {repository}");
        let url = self.registry.url(repository, &format!("blobs/{digest}"))?;
        let request = Request { method: Method::HEAD, may_leave: true, ..Request::get(url, repository, &what) };
        match self.registry.send(&request).await {
            Ok(_) => Ok(true),
            Err(RepositoryError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// `true` where the registry could take the blob over from another of its repositories.
    async fn upload(&self, repository: &str, digest: &Digest, elsewhere: Option<&str>, what: &str) -> Result<bool, Failure> {
        let mut url = self.registry.url(repository, "blobs/uploads/")?;
        if let Some(from) = elsewhere {
            url.query_pairs_mut().append_pair("mount", digest.as_str()).append_pair("from", from);
        }
        let request = Request { method: Method::POST, body: Some(Bytes::new()), ..Request::get(url.clone(), repository, what) };
        let response = self.registry.send(&request).await?;
        if response.status() == StatusCode::CREATED {
            return Ok(true);
        }
        let location = response.headers().get("location").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut target =
            url.join(location).map_err(|_| RepositoryError::malformed(what, "the registry's upload location is no URL"))?;
        if target.origin() != self.registry.base.origin() {
            return Err(RepositoryError::malformed(what, "the registry wants the upload to go to another host").into());
        }
        target.query_pairs_mut().append_pair("digest", digest.as_str());
        self.registry.send_stream(target, repository, what, self.body(digest).await?).await?;
        Ok(false)
    }

    async fn body(&self, digest: &Digest) -> Result<Outgoing, RepositoryError> {
        let place = &self.store.contents().place;
        let payload = self.store.contents().blobs.get(digest);
        let payload =
            payload.ok_or_else(|| RepositoryError::NotFound { what: format!("blob {digest}"), place: place.clone() })?;
        let (chunks, size) = open_payload(payload).await?;
        let name = format!("{place}: blob {digest}");
        outgoing::body(BlobStream::checked(name, Some(size), chunks, digest, size), size).await
    }
}

/// A registry that says what it has stored must have stored what it was sent. One may count with another algorithm.
fn stored(said: Option<&str>, sent: &Digest, what: impl FnOnce() -> String) -> Result<(), RepositoryError> {
    let algorithm = |text: &str| text.split(':').next().map(str::to_owned);
    let Some(found) = said.and_then(|said| said.parse::<Digest>().ok()) else { return Ok(()) };
    if found == *sent || algorithm(found.as_str()) != algorithm(sent.as_str()) {
        return Ok(());
    }
    Err(RepositoryError::Digest { what: what(), expected: sent.clone(), found })
}

fn manifest_type(manifest: &Manifest) -> &str {
    let own = media_type(&manifest.document);
    match (own, manifest.media_type.as_str()) {
        ("", "") if manifest.is_index() => "application/vnd.oci.image.index.v1+json",
        ("", "") => "application/vnd.oci.image.manifest.v1+json",
        ("", given) => given,
        (own, _) => own,
    }
}

impl Registry {
    /// Sends a body that cannot be sent twice. The login of the request before is used.
    async fn send_stream(
        &self,
        url: url::Url,
        repository: &str,
        what: &str,
        Outgoing { body, size, proven }: Outgoing,
    ) -> Result<(), Failure> {
        let mut request = self
            .shared
            .http
            .of(&url)
            .put(url.clone())
            .header("content-type", "application/octet-stream")
            .header("content-length", size)
            .body(body);
        if let Some(header) = self.sessions.header(&format!("pull,push {repository}")).await {
            request = request.header("authorization", header);
        }
        let response = request.send().await;
        // What the archive has wrong counts before what the registry makes of it.
        let is_proven = proven.await.unwrap_or(Ok(false))?;
        let response = response.map_err(|error| Failure::Connection(chain(&error), None))?;
        let status = response.status();
        if status.is_success() {
            let early = || Failure::Connection("it answered before all of it was sent".to_owned(), None);
            return if is_proven { Ok(()) } else { Err(early()) };
        }
        let said = format!("it answered {status} to an upload");
        match (retry_after(&response), status) {
            (Later::Yes(asked), _) => Err(Failure::Connection(said, asked)),
            (Later::No, _) if status.is_server_error() => Err(Failure::Connection(said, None)),
            (Later::No, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(self.denied(what, &said).into()),
            (Later::No, _) => Err(RepositoryError::malformed(self.place_of(what), said).into()),
        }
    }
}
