//! Matching a repository with the consumers of an `.ocmconfig`.

use std::collections::BTreeMap;

use crate::options::Credential;

/// The repository that credentials are wanted for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestedRepository {
    /// Host without port.
    pub(crate) host: String,
    /// Port; the scheme's default where none was given.
    pub(crate) port: u16,
    /// Whether the request goes over TLS.
    pub(crate) tls: bool,
    /// Path of the OCI repository.
    pub(crate) path: String,
}

impl RequestedRepository {
    /// Takes `host[:port]` apart.
    pub(crate) fn new(authority: &str, tls: bool, path: &str) -> Self {
        let default = if tls { 443 } else { 80 };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !authority.ends_with(']') => (host, port.parse().unwrap_or(default)),
            _ => (authority, default),
        };
        Self { host: host.to_owned(), port, tls, path: path.to_owned() }
    }

    /// `host`, with the port where it is not the default one.
    pub(crate) fn authority(&self) -> String {
        let default = if self.tls { 443 } else { 80 };
        if self.port == default { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }
}

/// Who asks a server that is no registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WebConsumer {
    /// A file by URL.
    Wget,
    /// A chart.
    Helm,
}

/// Consumer types for registries, as measured: with a version, or as a repository, no tool takes it.
pub(super) const REGISTRY: &[&str] = &["OCIRegistry"];

impl WebConsumer {
    pub(super) fn types(self) -> &'static [&'static str] {
        match self {
            Self::Wget => &["Wget", "wget", "Wget/v1", "wget/v1"],
            Self::Helm => &["HelmChartRepository", "HelmChartRepository/v1"],
        }
    }
}

/// What a client shows of itself, PEM. Its `Debug` shows nothing of the key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ClientCertificate {
    /// The certificate, with its chain.
    pub(crate) certificate: String,
    /// Its key.
    pub(crate) key: String,
}

impl std::fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientCertificate(hidden)")
    }
}

/// One entry: which repositories it is for, and its properties.
#[derive(Debug)]
pub(super) struct Consumer<C = Credential> {
    pub(super) identity: BTreeMap<String, String>,
    pub(super) credential: C,
    /// The file that it is in, for people.
    pub(super) origin: String,
}

/// The most specific consumer that matches: longest path, then port, then scheme; among equals the last, because later files win.
pub(super) fn best<'a, C>(consumers: &'a [Consumer<C>], wanted: &RequestedRepository, types: &[&str]) -> Option<&'a Consumer<C>> {
    let is_of_type = |consumer: &&Consumer<C>| consumer.identity.get("type").is_some_and(|kind| types.contains(&kind.as_str()));
    let of_type = consumers.iter().filter(is_of_type);
    let matching = of_type.filter_map(|consumer| Some((specificity(&consumer.identity, wanted)?, consumer)));
    matching.max_by_key(|(specificity, _)| *specificity).map(|(_, consumer)| consumer)
}

/// The union of what the two OCM tools match: a missing port, scheme or path matches any; `pathprefix`, and `path` without a wildcard, are
/// prefixes by segments; `*` stays inside a segment. An entry for https is never used without TLS, though one tool does so.
fn specificity(identity: &BTreeMap<String, String>, wanted: &RequestedRepository) -> Option<(usize, bool, bool)> {
    let text = |key: &str| identity.get(key).map(String::as_str).filter(|text| !text.is_empty());
    if text("hostname") != Some(wanted.host.as_str()) {
        return None;
    }
    let port = text("port");
    if port.is_some_and(|port| port.parse() != Ok(wanted.port)) {
        return None;
    }
    let scheme = text("scheme");
    if scheme.is_some_and(|scheme| matches!(scheme, "https" | "oci") != wanted.tls) {
        return None;
    }
    let path = text("pathprefix").or_else(|| text("path")).map(|path| path.trim_matches('/'));
    if path.is_some_and(|path| !matches_path(path, &wanted.path)) {
        return None;
    }
    Some((path.map_or(0, |path| path.split('/').count()), port.is_some(), scheme.is_some()))
}

fn matches_path(pattern: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    pattern.split('/').all(|pattern| segments.next().is_some_and(|segment| glob(pattern.as_bytes(), segment.as_bytes())))
}

/// `*` is any text, `?` any character.
pub(crate) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match back {
                Some((star, from)) => {
                    back = Some((star, from + 1));
                    p = star + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}
