//! One registry: requests with retries, redirects and logins, and the store that they make.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::future::{BoxFuture, FutureExt};
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use tokio::sync::Semaphore;
use url::Url;

use super::auth::{self, Sessions};
use super::http::{chain, speaks_no_tls, untrusted};
use super::list::List;
use super::patience::{Later, Patience, retry_after};
use super::{Shared, blob};
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::repository::{ArtifactStore, BlobStream, Manifest, Pointer};

pub(super) const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";
const HOPS: usize = 5;

/// One registry.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(super) shared: Arc<Shared>,
    /// `host[:port]` as it was written.
    pub(super) authority: String,
    pub(super) plain_http: bool,
    pub(super) base: Url,
    pub(super) sessions: Sessions,
    pub(super) slots: Arc<Semaphore>,
    /// Streams outlive the call that opened them.
    pub(super) me: Weak<Registry>,
}

/// A request that can be sent again.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
    pub(super) repository: &'a str,
    /// Names the thing in errors.
    pub(super) what: &'a str,
    /// Whether the answer may come from another host, which never gets credentials.
    pub(super) may_leave: bool,
}

impl<'a> Request<'a> {
    pub(super) fn get(url: Url, repository: &'a str, what: &'a str) -> Self {
        Self { method: Method::GET, url, headers: HeaderMap::new(), body: None, repository, what, may_leave: false }
    }

    /// Pulling and pushing have different tokens.
    fn scope(&self) -> String {
        format!("{} {}", self.actions(), self.repository)
    }

    fn actions(&self) -> &'static str {
        if matches!(self.method, Method::GET | Method::HEAD) { "pull" } else { "pull,push" }
    }
}

impl Registry {
    pub(super) fn new(shared: Arc<Shared>, host: &str, plain_http: bool) -> Arc<Self> {
        let real = if host == "docker.io" { "registry-1.docker.io" } else { host };
        let scheme = if plain_http { "http" } else { "https" };
        let base = Url::parse(&format!("{scheme}://{real}/v2/")).expect("hosts are checked where they are read");
        let slots = Arc::new(Semaphore::new(shared.options.limits.parallel.max(1)));
        Arc::new_cyclic(|me| Self {
            shared,
            authority: host.to_owned(),
            plain_http,
            base,
            sessions: Sessions::default(),
            slots,
            me: me.clone(),
        })
    }

    /// The address of something in a repository. Paths come from archives and descriptors too: one that would lead elsewhere is
    /// refused before anything is asked.
    pub(super) fn url(&self, repository: &str, tail: &str) -> Result<Url, RepositoryError> {
        let malformed =
            || RepositoryError::malformed(format!("{}/{repository}", self.authority), "that is not a repository path");
        if !crate::image::is_repository(repository) {
            return Err(malformed());
        }
        self.base.join(&format!("{repository}/{tail}")).map_err(|_| malformed())
    }

    /// Sends a request until it is answered for good: overload and broken connections are tried again, after as long as the registry
    /// says; a challenge is answered; redirects are followed as far as they may go.
    pub(super) async fn send(&self, request: &Request<'_>) -> Result<Response, RepositoryError> {
        let mut patience = Patience::new(&self.shared.options.limits, &self.authority, request.what);
        loop {
            match self.once(request).await {
                Ok(response) => match retry_after(&response) {
                    Later::No => return self.judged(response, request).await,
                    Later::Yes(asked) => patience.again(format!("it answered {}", response.status()), asked).await?,
                },
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Connection(cause, asked)) => patience.again(cause, asked).await?,
            }
        }
    }

    /// One attempt, with at most two logins in it (nobody, then a token that has run out).
    async fn once(&self, request: &Request<'_>) -> Result<Response, Failure> {
        let scope = request.scope();
        if self.sessions.header(&scope).await.is_none()
            && let Some(challenge) = self.sessions.expected(request.repository, request.actions()).await
        {
            // Where that does not work the registry still has its say below.
            let _ = self.log_in(&scope, request.repository, &challenge, None).await;
        }
        for _ in 0..3 {
            let header = self.sessions.header(&scope).await;
            let response = self.follow(request, header.as_deref()).await?;
            if response.status() != StatusCode::UNAUTHORIZED {
                return Ok(response);
            }
            let Some(challenge) = auth::challenge(response.headers()) else {
                return Err(Failure::Final(self.denied(request.what, "it answered 401 without saying how to log in")));
            };
            self.log_in(&scope, request.repository, &challenge, header.as_deref()).await.map_err(Failure::Final)?;
        }
        Err(Failure::Final(self.denied(request.what, "it keeps asking to log in")))
    }

    async fn follow(&self, request: &Request<'_>, authorization: Option<&str>) -> Result<Response, Failure> {
        let mut url = request.url.clone();
        for _ in 0..HOPS {
            let http = self.shared.http.of(&url);
            let mut builder = http.request(request.method.clone(), url.clone()).headers(request.headers.clone());
            if let (Some(authorization), true) = (authorization, url.origin() == self.base.origin()) {
                let mut value = HeaderValue::from_str(authorization)
                    .map_err(|_| Failure::Final(self.denied(request.what, "the credentials cannot be sent")))?;
                value.set_sensitive(true);
                builder = builder.header("authorization", value);
            }
            if let Some(body) = &request.body {
                builder = builder.body(body.clone());
            }
            let patience = self.shared.options.limits.answer_time;
            let sent = tokio::time::timeout(patience, builder.send()).await;
            let sent = sent.map_err(|_| Failure::Connection(format!("no answer within {} s", patience.as_secs_f64()), None))?;
            let response = sent.map_err(|error| self.broken(&error, request.what))?;
            let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
            if !is_redirect {
                return Ok(response);
            }
            url = self.target(&response, &url, request).map_err(Failure::Final)?;
        }
        Err(Failure::Final(RepositoryError::malformed(
            self.place_of(request.what),
            format!("the registry redirects more than {HOPS} times"),
        )))
    }

    fn broken(&self, error: &reqwest::Error, what: &str) -> Failure {
        if speaks_no_tls(error) {
            return Failure::Final(RepositoryError::Unencrypted { what: what.to_owned(), place: self.authority.clone() });
        }
        match untrusted(error) {
            Some(reason) => Failure::Final(self.untrusted(what, reason)),
            None => Failure::Connection(chain(error), None),
        }
    }

    /// Where a redirect leads, if it may lead there.
    fn target(&self, response: &Response, from: &Url, request: &Request<'_>) -> Result<Url, RepositoryError> {
        let refuse = |reason: String| RepositoryError::malformed(self.place_of(request.what), reason);
        let location = response.headers().get("location").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let target = from.join(location).map_err(|_| refuse("the registry redirects to something that is no URL".to_owned()))?;
        if !matches!(target.scheme(), "http" | "https") {
            return Err(refuse(format!("the registry redirects to a {}: URL, where no registry is", target.scheme())));
        }
        let origin = target.origin().ascii_serialization();
        if target.origin() == self.base.origin() {
            return Ok(target);
        }
        let is_reading = matches!(request.method, Method::GET | Method::HEAD);
        if !is_reading || !request.may_leave || self.shared.options.mirror.is_some() {
            return Err(refuse(format!("the registry redirects to another host, {origin}")));
        }
        let is_safe = target.scheme() == "https" || (target.scheme() == "http" && self.plain_http);
        if is_safe { Ok(target) } else { Err(refuse(format!("the registry redirects to {origin}, which is not encrypted"))) }
    }

    async fn judged(&self, response: Response, request: &Request<'_>) -> Result<Response, RepositoryError> {
        let status = response.status();
        match status {
            StatusCode::NOT_FOUND => {
                Err(RepositoryError::NotFound { what: request.what.to_owned(), place: self.authority.clone() })
            }
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Err(self.denied(request.what, &format!("it answered {status}"))),
            _ if status.is_success() => Ok(response),
            _ => {
                let body = self.body(response, 4096, request.what).await.unwrap_or_default();
                let text: String = String::from_utf8_lossy(&body).chars().filter(|c| !c.is_control()).take(200).collect();
                Err(RepositoryError::malformed(self.place_of(request.what), format!("the registry answered {status}: {text}")))
            }
        }
    }

    /// A small answer with its whole body. One whose connection breaks in the middle is asked for again.
    async fn answer(&self, request: &Request<'_>) -> Result<(HeaderMap, Bytes), RepositoryError> {
        let limits = &self.shared.options.limits;
        let mut patience = Patience::new(limits, &self.authority, request.what);
        loop {
            let response = self.send(request).await?;
            let headers = response.headers().clone();
            let read = self.whole_body(response, limits.manifest_bytes, request.what);
            match tokio::time::timeout(limits.answer_time, read).await {
                Ok(Err(RepositoryError::Unavailable { cause, .. })) => patience.again(cause, None).await?,
                Ok(read) => return Ok((headers, read?)),
                Err(_) => return Err(self.dripping(request.what)),
            }
        }
    }

    fn dripping(&self, what: &str) -> RepositoryError {
        let patience = self.shared.options.limits.answer_time.as_secs_f64();
        self.unavailable(what, 1, &format!("its answer did not end within {patience} s"))
    }

    /// A whole body, at most `limit` bytes, in no more time than a small answer may take: a byte now and then is no answer.
    pub(super) async fn body(&self, response: Response, limit: u64, what: &str) -> Result<Bytes, RepositoryError> {
        let patience = self.shared.options.limits.answer_time;
        match tokio::time::timeout(patience, self.whole_body(response, limit, what)).await {
            Ok(body) => body,
            Err(_) => Err(self.dripping(what)),
        }
    }

    async fn whole_body(&self, mut response: Response, limit: u64, what: &str) -> Result<Bytes, RepositoryError> {
        let over = || RepositoryError::Limit { what: self.place_of(what), limit, unit: "bytes" };
        if response.content_length().is_some_and(|length| length > limit) {
            return Err(over());
        }
        let mut all = BytesMut::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if (all.len() + chunk.len()) as u64 > limit => return Err(over()),
                Ok(Some(chunk)) => all.extend_from_slice(&chunk),
                Ok(None) => return Ok(all.freeze()),
                Err(error) => return Err(self.unavailable(what, 1, &chain(&error))),
            }
        }
    }

    async fn read_manifest(&self, repository: &str, pointer: &Pointer) -> Result<Manifest, RepositoryError> {
        let what = format!("{repository}{pointer}");
        let reference = match pointer {
            Pointer::Tag(tag) => tag.clone(),
            Pointer::Digest(digest) => digest.to_string(),
        };
        let mut request = Request::get(self.url(repository, &format!("manifests/{reference}"))?, repository, &what);
        request.headers.insert("accept", HeaderValue::from_static(MANIFESTS));
        let _slot = self.slots.acquire().await;
        let (headers, bytes) = self.answer(&request).await?;
        let media_type = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let digest = self.manifest_digest(pointer, said_digest(&headers).unwrap_or_default(), &bytes, &what)?;
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        Manifest::decode(bytes, digest, media_type, &self.place_of(&what))
    }

    /// What was asked for counts, then what the registry says; both must be what the bytes have.
    fn manifest_digest(&self, pointer: &Pointer, said: &str, bytes: &[u8], what: &str) -> Result<Digest, RepositoryError> {
        let expected = match pointer {
            Pointer::Digest(digest) => Some(digest.clone()),
            Pointer::Tag(_) => said.parse::<Digest>().ok(),
        };
        let Some(expected) = expected else { return Ok(Digest::of(bytes)) };
        let found = crate::fetch::hash_like(&expected, bytes);
        if found == expected {
            return Ok(expected);
        }
        Err(RepositoryError::Digest { what: self.place_of(what), expected, found })
    }

    /// All pages of the tag list; none where the repository is unknown.
    async fn list_tags(&self, repository: &str) -> Result<Vec<String>, RepositoryError> {
        let first = self.url(repository, "tags/list?n=1000")?;
        match self.list(first, repository, "tags", &format!("tags of {repository}")).await {
            Err(RepositoryError::NotFound { .. }) => Ok(Vec::new()),
            other => other,
        }
    }

    /// The catalogue; `None` where the registry has none.
    async fn list_repositories(&self) -> Result<Option<Vec<String>>, RepositoryError> {
        let first = self.base.join("_catalog?n=1000").expect("a plain word is a path");
        match self.list(first, "", "repositories", "the catalogue").await {
            Ok(mut names) => {
                names.sort();
                Ok(Some(names))
            }
            Err(RepositoryError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All pages of a list: the texts under `field`.
    async fn list(&self, first: Url, repository: &str, field: &'static str, what: &str) -> Result<Vec<String>, RepositoryError> {
        let mut list = List::new(self.shared.options.limits.tags, field, self.place_of(what));
        let mut next = Some(first);
        while let Some(url) = next.take() {
            let _slot = self.slots.acquire().await;
            let (headers, bytes) = match self.answer(&Request::get(url.clone(), repository, what)).await {
                Err(RepositoryError::NotFound { .. }) if list.is_begun() => {
                    return Err(RepositoryError::malformed(self.place_of(what), "its next page is not there"));
                }
                other => other?,
            };
            let link = headers.get("link").and_then(|value| value.to_str().ok()).and_then(next_page);
            next = link.map(|link| self.page(&url, &link, what)).transpose()?;
            list.add(url, &bytes, next.as_ref())?;
        }
        Ok(list.texts)
    }

    fn page(&self, from: &Url, link: &str, what: &str) -> Result<Url, RepositoryError> {
        let refuse = |reason: &str| RepositoryError::malformed(self.place_of(what), reason);
        let url = from.join(link).map_err(|_| refuse("the link to its next page is no URL"))?;
        if url.origin() != self.base.origin() {
            return Err(refuse("the link to its next page leads to another host"));
        }
        Ok(url)
    }

    pub(super) fn place_of(&self, what: &str) -> String {
        format!("{}: {what}", self.authority)
    }

    pub(super) fn denied(&self, what: &str, reason: &str) -> RepositoryError {
        // A registry's own list belongs to no repository.
        let what = if what.is_empty() { "the catalogue" } else { what };
        RepositoryError::Denied { what: what.to_owned(), place: self.authority.clone(), reason: reason.to_owned() }
    }

    fn untrusted(&self, what: &str, reason: String) -> RepositoryError {
        RepositoryError::Untrusted { what: what.to_owned(), place: self.authority.clone(), reason }
    }

    pub(super) fn unavailable(&self, what: &str, attempts: u32, cause: &str) -> RepositoryError {
        RepositoryError::Unavailable { what: what.to_owned(), place: self.authority.clone(), attempts, cause: cause.to_owned() }
    }
}

/// The digest that a registry says an answer has.
pub(super) fn said_digest(headers: &HeaderMap) -> Option<&str> {
    headers.get("docker-content-digest").and_then(|value| value.to_str().ok())
}

/// How one attempt ended.
pub(super) enum Failure {
    /// Worth another attempt, after this long where the registry says so.
    Connection(String, Option<Duration>),
    Final(RepositoryError),
}

impl From<RepositoryError> for Failure {
    fn from(error: RepositoryError) -> Self {
        Self::Final(error)
    }
}

/// `<url>; rel="next"`.
fn next_page(link: &str) -> Option<String> {
    link.split(',').find(|part| part.contains("rel=\"next\"") || part.contains("rel=next")).and_then(|part| {
        let (_, rest) = part.split_once('<')?;
        rest.split_once('>').map(|(url, _)| url.to_owned())
    })
}

impl ArtifactStore for Registry {
    fn place(&self) -> String {
        self.authority.clone()
    }

    fn tags<'a>(&'a self, repository: &'a str) -> BoxFuture<'a, Result<Vec<String>, RepositoryError>> {
        self.list_tags(repository).boxed()
    }

    fn manifest<'a>(&'a self, repository: &'a str, pointer: &'a Pointer) -> BoxFuture<'a, Result<Manifest, RepositoryError>> {
        self.read_manifest(repository, pointer).boxed()
    }

    fn blob<'a>(&'a self, repository: &'a str, digest: &'a Digest) -> BoxFuture<'a, Result<BlobStream, RepositoryError>> {
        blob::open(self, repository, digest).boxed()
    }

    fn size<'a>(&'a self, repository: &'a str, digest: &'a Digest) -> BoxFuture<'a, Result<Option<u64>, RepositoryError>> {
        blob::size(self, repository, digest).boxed()
    }

    fn repositories(&self) -> BoxFuture<'_, Result<Option<Vec<String>>, RepositoryError>> {
        self.list_repositories().boxed()
    }
}
