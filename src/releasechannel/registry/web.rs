//! Plain HTTP for what is in no registry: the same trust, patience and limits. A login is sent only where the configuration has one for
//! this kind of server, and only to the host that was asked for.

use std::sync::Arc;

use reqwest::header::HeaderValue;
use reqwest::{Response, StatusCode};
use tokio::sync::Semaphore;
use url::Url;

use super::Shared;
use super::auth::basic;
use super::http::{chain, proxy_fault, untrusted};
use super::patience::{Later, Patience, retry_after};
use crate::config::WebConsumer;
use crate::error::RepositoryError;
use crate::options::Credential;

const HOPS: usize = 5;

/// What is asked for, beside the URL.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// As whom.
    pub(crate) consumer: WebConsumer,
    /// Further headers.
    pub(crate) headers: Vec<(String, String)>,
    /// Whether redirects are followed.
    pub(crate) redirects: bool,
}

/// Gets URLs.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    pub(super) shared: Arc<Shared>,
}

impl Web {
    /// A successful answer to a GET, after as many attempts and redirects as are allowed. With a mirror nothing is fetched.
    pub(crate) async fn get(&self, url: &Url, asked: &Asked, what: &str) -> Result<Response, RepositoryError> {
        let place = url.host_str().unwrap_or_default();
        if let Some(mirror) = &self.shared.options.mirror {
            let reason = format!("with the mirror {mirror} no other host is contacted, and it is at {place}: bundle the channel");
            return Err(RepositoryError::Unsupported { what: what.to_owned(), reason });
        }
        if let Some(reason) = proxy_fault(url.scheme() == "https") {
            return Err(RepositoryError::Unsupported { what: what.to_owned(), reason });
        }
        let authorization = self.shared.configuration.web_credential(asked.consumer, url).map(|credential| header(&credential));
        let certificate = self.shared.configuration.web_certificate(asked.consumer, url);
        let own = certificate.map(|certificate| self.shared.http.certified(&certificate)).transpose();
        let login = Login { authorization, own: own.map_err(|error| RepositoryError::malformed(what, error))? };
        let slots = self.slots(place);
        let _slot = slots.acquire().await;
        let mut patience = Patience::new(&self.shared.options.limits, place, what);
        loop {
            match self.follow(url, asked, &login, what).await {
                Ok(response) => match retry_after(&response) {
                    Later::No => return judged(response, what, place),
                    Later::Yes(later) => patience.again(format!("it answered {}", response.status()), later).await?,
                },
                Err(Ok(cause)) => patience.again(cause, None).await?,
                Err(Err(error)) => return Err(error),
            }
        }
    }

    fn slots(&self, host: &str) -> Arc<Semaphore> {
        let mut slots = self.shared.web_slots.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let parallel = self.shared.options.limits.parallel.max(1);
        Arc::clone(slots.entry(host.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(parallel))))
    }

    /// `Err(Ok(cause))` is worth another attempt. Headers and login go to the host that was asked for, and to no other.
    async fn follow(
        &self,
        url: &Url,
        asked: &Asked,
        login: &Login,
        what: &str,
    ) -> Result<Response, Result<String, RepositoryError>> {
        let mut target = url.clone();
        for _ in 0..HOPS {
            let is_asked = target.origin() == url.origin();
            let own = login.own.as_ref().filter(|_| is_asked);
            let mut request = own.unwrap_or_else(|| self.shared.http.of(&target)).get(target.clone());
            if is_asked {
                for (key, value) in &asked.headers {
                    request = request.header(key, value);
                }
                if let Some(value) = login.authorization.as_ref().and_then(|text| HeaderValue::from_str(text).ok()) {
                    let mut value = value;
                    value.set_sensitive(true);
                    request = request.header("authorization", value);
                }
            }
            let patience = self.shared.options.limits.answer_time;
            let sent = tokio::time::timeout(patience, request.send()).await;
            let sent = sent.map_err(|_| Ok(format!("no answer within {} s", patience.as_secs_f64())))?;
            let response = sent.map_err(|error| match untrusted(&error) {
                Some(reason) => Err(RepositoryError::Untrusted {
                    what: what.to_owned(),
                    place: target.host_str().unwrap_or_default().to_owned(),
                    reason,
                }),
                None => Ok(chain(&error)),
            })?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            if !asked.redirects {
                return Err(Err(RepositoryError::malformed(what, "it redirects, and its access says not to follow")));
            }
            let location = response.headers().get("location").and_then(|value| value.to_str().ok()).unwrap_or_default();
            let next = target
                .join(location)
                .map_err(|_| Err(RepositoryError::malformed(what, "it redirects to something that is no URL")))?;
            if !matches!(next.scheme(), "http" | "https") {
                return Err(Err(RepositoryError::malformed(what, format!("it redirects to a {}: URL", next.scheme()))));
            }
            let stays_safe = next.scheme() == "https" || (next.scheme() == "http" && target.scheme() == "http");
            if !stays_safe {
                return Err(Err(RepositoryError::malformed(what, "it redirects to something that is not encrypted")));
            }
            target = next;
        }
        Err(Err(RepositoryError::malformed(what, format!("it redirects more than {HOPS} times"))))
    }
}

/// What the host that is asked for is shown, and no other.
struct Login {
    authorization: Option<String>,
    /// With a certificate of its own.
    own: Option<reqwest::Client>,
}

fn header(credential: &Credential) -> String {
    match credential {
        Credential::Basic { user, password } => basic(user, password),
        Credential::IdentityToken(token) | Credential::Bearer(token) => format!("Bearer {token}"),
    }
}

fn judged(response: Response, what: &str, place: &str) -> Result<Response, RepositoryError> {
    match response.status() {
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            Err(RepositoryError::NotFound { what: what.to_owned(), place: place.to_owned() })
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let reason = format!("it answered {}", response.status());
            Err(RepositoryError::Denied { what: what.to_owned(), place: place.to_owned(), reason })
        }
        status if status.is_success() => Ok(response),
        status => Err(RepositoryError::malformed(what, format!("{place} answered {status}"))),
    }
}
