//! Docker's `config.json`: `auths`, `credHelpers`, `credsStore`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::helper::ask;
use super::{HelperError, RequestedRepository};
use crate::error::{RepositoryError, ResolveError};
use crate::options::Credential;

/// A docker configuration.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, Auth>,
    #[serde(default)]
    cred_helpers: BTreeMap<String, String>,
    #[serde(default)]
    creds_store: String,
    /// How long a helper may take; configurations from a cluster must not start programs here.
    #[serde(skip)]
    helpers: Option<Duration>,
    /// What helpers answered, by helper and server: each is asked once in a run, also where it failed.
    #[serde(skip)]
    answers: Mutex<BTreeMap<(String, String), Answer>>,
    /// The file that it is, for people.
    #[serde(skip)]
    origin: String,
}

type Answer = Result<Option<Credential>, HelperError>;

impl std::fmt::Debug for DockerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DockerConfig").field("hosts", &self.auths.keys()).finish_non_exhaustive()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Auth {
    #[serde(rename = "auth")]
    encoded: String,
    username: String,
    password: String,
    identitytoken: String,
    registrytoken: String,
}

impl DockerConfig {
    /// `helpers` is how long a helper may take; without it none is run.
    pub(super) fn read(bytes: &[u8], what: &str, helpers: Option<Duration>) -> Result<Self, ResolveError> {
        let config: Self = crate::text::json(bytes).map_err(|error| RepositoryError::malformed(what, error))?;
        Ok(Self { helpers, origin: what.to_owned(), ..config })
    }

    /// A helper for the host, else the store, else `auths`.
    pub(super) fn credential(&self, wanted: &RequestedRepository) -> Result<Option<Credential>, HelperError> {
        if let Some(patience) = self.helpers {
            if let Some((_, helper)) = self.cred_helpers.iter().find(|(key, _)| key_matches(key, wanted).is_some())
                && let Some(found) = self.ask(helper, wanted.authority(), patience)?
            {
                return Ok(Some(found));
            }
            if !self.creds_store.is_empty() {
                for server in servers(wanted) {
                    if let Some(found) = self.ask(&self.creds_store, server, patience)? {
                        return Ok(Some(found));
                    }
                }
            }
        }
        Ok(self.auth(wanted).and_then(Auth::credential))
    }

    fn ask(&self, helper: &str, server: String, patience: Duration) -> Answer {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers.entry((helper.to_owned(), server));
        answer.or_insert_with_key(|(helper, server)| ask(helper, server, patience)).clone()
    }

    /// Where it would look for the credential of a repository.
    pub(super) fn origin(&self, wanted: &RequestedRepository) -> Option<String> {
        if self.helpers.is_some() {
            if let Some((_, helper)) = self.cred_helpers.iter().find(|(key, _)| key_matches(key, wanted).is_some()) {
                return Some(format!("docker-credential-{helper} by {}", self.origin));
            }
            if !self.creds_store.is_empty() {
                return Some(format!("docker-credential-{} by {}", self.creds_store, self.origin));
            }
        }
        self.auth(wanted).and_then(Auth::credential).map(|_| self.origin.clone())
    }

    fn auth(&self, wanted: &RequestedRepository) -> Option<&Auth> {
        let matching = self.auths.iter().filter_map(|(key, auth)| Some((key_matches(key, wanted)?, auth)));
        matching.max_by_key(|(specificity, _)| *specificity).map(|(_, auth)| auth)
    }
}

/// What a store may know the registry by.
fn servers(wanted: &RequestedRepository) -> Vec<String> {
    let mut servers = vec![wanted.authority(), wanted.host.clone()];
    if is_docker_hub(&wanted.host) {
        servers.insert(0, "https://index.docker.io/v1/".to_owned());
    }
    servers.dedup();
    servers
}

fn is_docker_hub(host: &str) -> bool {
    matches!(host, "docker.io" | "index.docker.io" | "registry-1.docker.io")
}

/// How well a key matches: `[scheme://]host[:port][/path]`. A key without port matches every port.
fn key_matches(key: &str, wanted: &RequestedRepository) -> Option<(usize, bool)> {
    let (scheme, rest) = key.split_once("://").map_or((None, key), |(scheme, rest)| (Some(scheme), rest));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = path.trim_matches('/');
    let path = if matches!(path, "v1" | "v2") { "" } else { path };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !authority.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let same_host = host == wanted.host || (is_docker_hub(host) && is_docker_hub(&wanted.host));
    let same_port = port.is_none_or(|port| port.parse() == Ok(wanted.port));
    // Credentials kept for https are not sent in the clear.
    let same_scheme = scheme != Some("https") || wanted.tls;
    let is_below = path.is_empty() || wanted.path == path || wanted.path.starts_with(&format!("{path}/"));
    let segments = if path.is_empty() { 0 } else { path.split('/').count() };
    (same_host && same_port && same_scheme && is_below).then_some((segments, port.is_some()))
}

impl Auth {
    fn credential(&self) -> Option<Credential> {
        if !self.registrytoken.is_empty() {
            return Some(Credential::Bearer(self.registrytoken.clone()));
        }
        if !self.identitytoken.is_empty() {
            return Some(Credential::IdentityToken(self.identitytoken.clone()));
        }
        if !self.username.is_empty() {
            return Some(Credential::Basic { user: self.username.clone(), password: self.password.clone() });
        }
        let decoded = STANDARD.decode(self.encoded.trim()).ok()?;
        let text = String::from_utf8(decoded).ok()?;
        let (user, password) = text.split_once(':')?;
        Some(Credential::Basic { user: user.to_owned(), password: password.trim_end_matches('\0').to_owned() })
    }
}
