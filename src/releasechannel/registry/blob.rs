//! Blobs from a registry: streamed, and taken up again where a connection broke.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::StreamExt;
use reqwest::header::HeaderValue;
use reqwest::{Method, Response, StatusCode};

use super::client::{Registry, Request};
use super::http::chain;
use super::pace::Pace;
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::repository::BlobStream;

/// Opens a blob. Its answer may come from a blob store on another host, which sees no credentials.
pub(super) async fn open(registry: &Registry, repository: &str, digest: &Digest) -> Result<BlobStream, RepositoryError> {
    let what = format!("blob {digest} of {repository}");
    let response = {
        let _slot = registry.slots.acquire().await;
        get(registry, repository, digest, &what, 0).await?
    };
    let size = response.content_length();
    let download = Download {
        registry: registry.me.upgrade().expect("a registry that is being used is alive"),
        repository: repository.to_owned(),
        digest: digest.clone(),
        what: what.clone(),
        response,
        offset: 0,
        skip: 0,
        pace: Pace::new(&registry.shared.options.limits),
        attempts: registry.shared.options.limits.attempts,
    };
    let chunks =
        futures::stream::try_unfold(
            download,
            |mut download| async move { Ok(download.next().await?.map(|chunk| (chunk, download))) },
        );
    Ok(BlobStream::checked(registry.place_of(&what), size, chunks.boxed(), digest, registry.shared.options.limits.blob_bytes))
}

/// The size that the registry says, by HEAD.
pub(super) async fn size(registry: &Registry, repository: &str, digest: &Digest) -> Result<Option<u64>, RepositoryError> {
    let what = format!("blob {digest} of {repository}");
    let url = registry.url(repository, &format!("blobs/{digest}"))?;
    let request = Request { method: Method::HEAD, may_leave: true, ..Request::get(url, repository, &what) };
    let _slot = registry.slots.acquire().await;
    let response = registry.send(&request).await?;
    let length = response.headers().get("content-length").and_then(|value| value.to_str().ok());
    Ok(length.and_then(|text| text.parse().ok()))
}

async fn get(
    registry: &Registry,
    repository: &str,
    digest: &Digest,
    what: &str,
    offset: u64,
) -> Result<Response, RepositoryError> {
    let mut request = Request::get(registry.url(repository, &format!("blobs/{digest}"))?, repository, what);
    request.may_leave = true;
    if offset > 0 {
        let range = HeaderValue::from_str(&format!("bytes={offset}-")).expect("digits are a header");
        request.headers.insert("range", range);
    }
    registry.send(&request).await
}

struct Download {
    registry: Arc<Registry>,
    repository: String,
    digest: Digest,
    what: String,
    response: Response,
    /// Bytes given out.
    offset: u64,
    /// Bytes that come again because the registry does not know ranges.
    skip: u64,
    pace: Pace,
    attempts: u32,
}

impl Download {
    async fn next(&mut self) -> Result<Option<Bytes>, RepositoryError> {
        loop {
            let chunk = self.pace.wait(self.response.chunk()).await;
            match chunk.map_err(|cause| self.registry.unavailable(&self.what, 1, &cause))? {
                Ok(Some(chunk)) => {
                    let again = self.skip.min(chunk.len() as u64);
                    self.skip -= again;
                    let fresh = chunk.slice(usize::try_from(again).unwrap_or(chunk.len())..);
                    self.offset += fresh.len() as u64;
                    if !fresh.is_empty() {
                        return Ok(Some(fresh));
                    }
                }
                Ok(None) => return Ok(None),
                Err(error) => self.resume(&chain(&error)).await?,
            }
        }
    }

    async fn resume(&mut self, cause: &str) -> Result<(), RepositoryError> {
        self.attempts = self.attempts.saturating_sub(1);
        if self.attempts == 0 {
            return Err(self.registry.unavailable(&self.what, self.registry.shared.options.limits.attempts, cause));
        }
        tracing::warn!(registry = %self.registry.authority, what = %self.what, offset = self.offset, %cause, "the download broke, going on");
        tokio::time::sleep(self.registry.shared.options.limits.backoff).await;
        self.response = get(&self.registry, &self.repository, &self.digest, &self.what, self.offset).await?;
        let range = self.response.headers().get("content-range").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let goes_on =
            self.response.status() == StatusCode::PARTIAL_CONTENT && range.starts_with(&format!("bytes {}-", self.offset));
        self.skip = if goes_on { 0 } else { self.offset };
        Ok(())
    }
}
