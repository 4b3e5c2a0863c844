//! Who we are to a registry: anonymous first, then what its challenge asks for, kept per repository.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::client::Registry;
use super::http::chain;
use super::patience::{Later, Patience, retry_after};
use crate::config::RequestedRepository;
use crate::error::RepositoryError;
use crate::options::Credential;

/// A challenge of `WWW-Authenticate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    Bearer { realm: String, service: String, scope: String },
}

/// `Authorization` headers by repository path and action, and how the registry asked the last time.
#[derive(Default)]
pub(super) struct Sessions(Mutex<Known>);

#[derive(Default)]
struct Known {
    headers: BTreeMap<String, String>,
    last: Option<Challenge>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions(hidden)")
    }
}

#[derive(Deserialize)]
struct Token {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
}

impl Sessions {
    pub(super) async fn header(&self, scope: &str) -> Option<String> {
        self.0.lock().await.headers.get(scope).cloned()
    }

    /// The challenge to expect for another repository, so that it need not be asked for: a request saved for each component.
    pub(super) async fn expected(&self, repository: &str, actions: &str) -> Option<Challenge> {
        match self.0.lock().await.last.clone()? {
            Challenge::Basic => Some(Challenge::Basic),
            Challenge::Bearer { realm, service, .. } => {
                Some(Challenge::Bearer { realm, service, scope: format!("repository:{repository}:{actions}") })
            }
        }
    }
}

impl Registry {
    /// Answers a challenge: gets the `Authorization` header for this scope and remembers it. `used` is the header that was refused.
    pub(super) async fn log_in(
        &self,
        scope: &str,
        repository: &str,
        challenge: &Challenge,
        used: Option<&str>,
    ) -> Result<(), RepositoryError> {
        // Held over the request, so that many requests at once log in once.
        let mut sessions = self.sessions.0.lock().await;
        if sessions.headers.get(scope).map(String::as_str) != used {
            return Ok(());
        }
        let credential = self.credential(repository).await?;
        let header = match (challenge, credential) {
            (_, Some(Credential::Bearer(token))) => format!("Bearer {token}"),
            (Challenge::Basic, Some(Credential::Basic { user, password })) => basic(&user, &password),
            (Challenge::Basic, _) => {
                return Err(self.denied(repository, "it wants a user and a password, and none are known for it"));
            }
            (Challenge::Bearer { realm, service, scope }, credential) => {
                format!("Bearer {}", self.token(repository, realm, service, scope, credential).await?)
            }
        };
        if used == Some(header.as_str()) {
            return Err(self.denied(repository, "the credentials that are known for it were not accepted"));
        }
        sessions.headers.insert(scope.to_owned(), header);
        sessions.last = Some(challenge.clone());
        Ok(())
    }

    async fn credential(&self, repository: &str) -> Result<Option<Credential>, RepositoryError> {
        let wanted = RequestedRepository::new(&self.authority, !self.plain_http, repository);
        let shared = std::sync::Arc::clone(&self.shared);
        // A helper is a program that may take its time.
        let found = tokio::task::spawn_blocking(move || shared.configuration.credential(&wanted)).await;
        match found {
            Ok(found) => found.map_err(|error| self.denied(repository, &error.to_string())),
            Err(error) => Err(self.denied(repository, &error.to_string())),
        }
    }

    async fn token(
        &self,
        repository: &str,
        realm: &str,
        service: &str,
        scope: &str,
        credential: Option<Credential>,
    ) -> Result<String, RepositoryError> {
        let url = url::Url::parse(realm).map_err(|_| self.denied(repository, "its token service is not a URL"))?;
        let is_ours = url.host_str() == self.base.host_str() && url.port_or_known_default() == self.base.port_or_known_default();
        // That one host is asked without encryption says nothing of another: each is named by --plain-http.
        let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let is_plain = self.plain_http && (is_ours || self.shared.options.plain_http.contains(authority));
        let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_plain);
        if !is_safe || (self.shared.options.mirror.is_some() && !is_ours) {
            return Err(self.denied(
                repository,
                &format!("its token service {} is not one that credentials may be sent to", url.origin().ascii_serialization()),
            ));
        }
        let request = || token_request(self.shared.http.of(&url), url.clone(), service, scope, credential.as_ref());
        let response = self.patiently(request).await?;
        if !response.status().is_success() {
            return Err(self.denied(repository, &format!("its token service answered {}", response.status())));
        }
        let bytes = self.body(response, 1 << 20, "the token service's answer").await?;
        let token: Token = serde_json::from_slice(&bytes)
            .map_err(|_| self.denied(repository, "its token service's answer is not JSON with a token"))?;
        let token = if token.token.is_empty() { token.access_token } else { token.token };
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if is_token { Ok(token) } else { Err(self.denied(repository, "its token service gave no token")) }
    }
}

impl Registry {
    /// A token service that is busy is asked again, as the registry itself is.
    async fn patiently(&self, request: impl Fn() -> reqwest::RequestBuilder) -> Result<reqwest::Response, RepositoryError> {
        let mut patience = Patience::new(&self.shared.options.limits, &self.authority, "a token");
        loop {
            match request().send().await {
                Ok(response) => match retry_after(&response) {
                    Later::No => return Ok(response),
                    Later::Yes(asked) => patience.again(format!("it answered {}", response.status()), asked).await?,
                },
                Err(error) => patience.again(chain(&error), None).await?,
            }
        }
    }
}

fn token_request(
    http: &reqwest::Client,
    mut url: url::Url,
    service: &str,
    scope: &str,
    credential: Option<&Credential>,
) -> reqwest::RequestBuilder {
    if let Some(Credential::IdentityToken(token)) = credential {
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "refresh_token")
            .append_pair("service", service)
            .append_pair("scope", scope)
            .append_pair("client_id", "plinth")
            .append_pair("refresh_token", token)
            .finish();
        return http.post(url).header("content-type", "application/x-www-form-urlencoded").body(form);
    }
    url.query_pairs_mut().append_pair("service", service).append_pair("scope", scope);
    let request = http.get(url);
    match credential {
        Some(Credential::Basic { user, password }) => request.header("authorization", basic(user, password)),
        _ => request,
    }
}

pub(super) fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Reads a challenge; Bearer is preferred where both are offered.
pub(super) fn challenge(headers: &reqwest::header::HeaderMap) -> Option<Challenge> {
    let texts = headers.get_all("www-authenticate").iter().filter_map(|value| value.to_str().ok());
    let challenges: Vec<Challenge> = texts.filter_map(one_challenge).collect();
    challenges.iter().find(|challenge| matches!(challenge, Challenge::Bearer { .. })).or(challenges.first()).cloned()
}

fn one_challenge(text: &str) -> Option<Challenge> {
    let (scheme, parameters) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let parameters = parameters_of(parameters);
    let get = |key: &str| parameters.get(key).cloned().unwrap_or_default();
    (!get("realm").is_empty()).then(|| Challenge::Bearer { realm: get("realm"), service: get("service"), scope: get("scope") })
}

/// `key="value", key=value`: values in quotes may hold commas.
fn parameters_of(text: &str) -> BTreeMap<String, String> {
    let mut parameters = BTreeMap::new();
    let mut rest = text;
    while let Some((key, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        parameters.insert(key.trim_matches([' ', ',']).to_ascii_lowercase(), value.to_owned());
        rest = after;
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_challenges() {
        let read =
            one_challenge(r#"Bearer realm="https://auth.example/token",service="r",scope="repository:a/b:pull,push""#).unwrap();
        let expected = Challenge::Bearer {
            realm: "https://auth.example/token".into(),
            service: "r".into(),
            scope: "repository:a/b:pull,push".into(),
        };
        assert_eq!(read, expected);
        assert_eq!(one_challenge("basic realm=\"x\""), Some(Challenge::Basic));
        assert_eq!(one_challenge("Negotiate"), None);
        assert_eq!(one_challenge("Bearer"), None);
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,60}", near in "(Bearer|basic) [a-z=\", ]{0,40}") {
            let _ = one_challenge(&text);
            let _ = one_challenge(&near);
        }
    }
}
