//! SOURCE: the textual forms of "which channel, and where" (design.md section 4, ocm.md section 6).

use std::fmt;
use std::path::{Path, PathBuf};

use plinth_api::{login, platform::PlatformSource};
use serde_json::{Map, Value, json};

use crate::error::ResolveError;
use crate::image::is_segment;

/// Path under a repository where component versions are (ocm.md section 3.1).
pub(crate) const DESCRIPTORS: &str = "component-descriptors";

/// A SOURCE as it was written. What a path holds is found out when it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceRef {
    /// A component in one or more repositories, in order of preference.
    Component {
        /// Where to look, the preferred one first.
        repositories: Vec<RepositoryRef>,
        /// OCM component name.
        component: String,
        /// Version or range; the highest release where absent.
        version: Option<String>,
    },
    /// A registry with one channel, where it lets its content be listed.
    Registry(RepositoryRef),
    /// A CTF with one channel, a folder with `channel.yaml`, a constructor file, or a Platform file.
    Path(PathBuf),
}

/// A repository as text or specification.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RepositoryRef {
    /// An OCI registry.
    Oci {
        /// `host` or `host:port`.
        host: String,
        /// Path below the host, without slashes at the ends; may be empty.
        sub_path: String,
        /// Whether the reference itself says `http://`.
        plain_http: bool,
    },
    /// A CTF: folder, tar or tgz.
    Ctf(PathBuf),
}

impl SourceRef {
    /// Reads a SOURCE: `REGISTRY//COMPONENT[:VERSION or RANGE]`, `REGISTRY//` for the only channel there, `ctf::PATH//COMPONENT[:VERSION]`, `PATH//COMPONENT[:VERSION]` where
    /// the path looks like one, or a PATH.
    pub fn parse(text: &str) -> Result<Self, ResolveError> {
        let text = text.trim();
        let refuse = |reason: &str| ResolveError::Source { text: shortened(text), reason: reason.to_owned() };
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(refuse("it is empty or has control characters"));
        }
        if let Some((repository, component)) = split_component(text) {
            if component.is_empty() {
                return RepositoryRef::parse(repository).map(Self::only);
            }
            let (component, version) = split_version(component);
            if !is_component_name(component) {
                return Err(refuse("the part after `//` is not a component name such as acme.example/platform"));
            }
            let repository = RepositoryRef::parse(repository)?;
            return Ok(Self::Component {
                repositories: vec![repository],
                component: component.to_owned(),
                version: version.map(str::to_owned),
            });
        }
        match typed(text) {
            (Some(kind), path) if is_ctf(kind) && !path.is_empty() => Ok(Self::Path(path.into())),
            (Some(_), _) => Err(refuse("a registry needs `//COMPONENT` after it")),
            (None, path) if has_scheme(path) => Err(refuse("a registry needs `//COMPONENT` after it")),
            (None, path) if path.split('/').next().is_some_and(|start| start.contains(':')) && holds_login(path) => {
                Err(refuse(NO_LOGIN))
            }
            (None, path) => Ok(Self::Path(path.into())),
        }
    }

    /// The source that a Platform asks for; relative paths are taken from `base`.
    pub fn from_platform(source: &PlatformSource, base: &Path) -> Result<Self, ResolveError> {
        let mut parsed = if source.repositories.is_empty() {
            Self::parse(&source.channel)?
        } else {
            let repositories = source.repositories.iter().map(RepositoryRef::from_value).collect::<Result<_, _>>()?;
            Self::Component { repositories, component: source.channel.clone(), version: None }
        };
        match &mut parsed {
            Self::Path(path) => *path = base.join(&path),
            Self::Registry(_) => {}
            Self::Component { repositories, version, component } => {
                if !is_component_name(component) {
                    let reason = "with repositories, channel must be a component name".to_owned();
                    return Err(ResolveError::Source { text: shortened(component), reason });
                }
                if source.version.is_some() {
                    version.clone_from(&source.version);
                }
                for repository in repositories {
                    if let RepositoryRef::Ctf(path) = repository {
                        *path = base.join(&path);
                    }
                }
            }
        }
        Ok(parsed)
    }
}

impl SourceRef {
    fn only(repository: RepositoryRef) -> Self {
        match repository {
            RepositoryRef::Ctf(path) => Self::Path(path),
            registry @ RepositoryRef::Oci { .. } => Self::Registry(registry),
        }
    }
}

impl RepositoryRef {
    /// Reads `[type::]REGISTRY[/PATH]`, `[ctf::]PATH`, or a specification as JSON.
    pub fn parse(text: &str) -> Result<Self, ResolveError> {
        let (kind, rest) = typed(text);
        if rest.starts_with('{') {
            return Self::from_json(kind, rest);
        }
        let refuse = |reason: &str| ResolveError::Source { text: shortened(text), reason: reason.to_owned() };
        match kind {
            Some(kind) if is_ctf(kind) => return Ok(Self::Ctf(rest.into())),
            Some(kind) if !is_oci(kind) => return Err(refuse("the repository type is neither an OCI registry nor a CTF")),
            None if looks_like_path(rest) => return Ok(Self::Ctf(rest.into())),
            _ => {}
        }
        let (plain_http, rest) = strip_scheme(rest).ok_or_else(|| refuse("only http, https and oci registries can be read"))?;
        if holds_login(rest) {
            return Err(refuse(NO_LOGIN));
        }
        let (host, sub_path) = rest.split_once('/').unwrap_or((rest, ""));
        Self::oci(host, sub_path, plain_http).ok_or_else(|| refuse("that is not a registry host and path"))
    }

    /// `TYPE::{…}` says the type before the rest of the specification.
    fn from_json(kind: Option<&str>, text: &str) -> Result<Self, ResolveError> {
        let refuse = |reason: String| ResolveError::Source { text: shortened(text), reason };
        let mut object: Map<String, Value> = crate::text::json(text.as_bytes())
            .map_err(|error| refuse(format!("that is not a repository specification: {error}")))?;
        if let Some(kind) = kind {
            object.entry("type").or_insert_with(|| kind.into());
        }
        Self::from_value(&Value::Object(object))
    }

    /// Reads an OCM repository specification, or text.
    pub fn from_value(value: &Value) -> Result<Self, ResolveError> {
        let object = match value {
            Value::String(text) => return Self::parse(text),
            Value::Object(object) => object,
            _ => return Err(bad_specification(value, "it is neither text nor an object")),
        };
        let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
        if is_ctf(kind) {
            return match object.get("filePath").and_then(Value::as_str) {
                Some(path) if !path.is_empty() => Ok(Self::Ctf(path.into())),
                _ => Err(bad_specification(value, "filePath is missing")),
            };
        }
        if !is_oci(kind) {
            return Err(bad_specification(value, "the type is neither an OCI registry nor a CTF"));
        }
        Self::from_oci_specification(object, value)
    }

    /// The OCM repository specification, in the spelling that both OCM tools and the controllers read.
    pub fn specification(&self) -> Value {
        match self {
            Self::Ctf(path) => json!({"type": "CommonTransportFormat", "filePath": path.to_string_lossy()}),
            Self::Oci { host, sub_path, plain_http } => {
                let base = if *plain_http { format!("http://{host}") } else { host.clone() };
                let mut object = Map::from_iter([("type".into(), "OCIRegistry".into()), ("baseUrl".into(), base.into())]);
                if !sub_path.is_empty() {
                    object.insert("subPath".into(), sub_path.as_str().into());
                }
                Value::Object(object)
            }
        }
    }

    fn from_oci_specification(object: &Map<String, Value>, value: &Value) -> Result<Self, ResolveError> {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        if !matches!(text("componentNameMapping"), "" | "urlPath") {
            return Err(bad_specification(value, "componentNameMapping is not urlPath"));
        }
        let base = strip_scheme(text("baseUrl")).ok_or_else(|| bad_specification(value, "baseUrl is not http, https or oci"))?;
        let (host, below) = base.1.split_once('/').unwrap_or((base.1, ""));
        let sub_path = [below, text("subPath")].map(|part| part.trim_matches('/')).join("/");
        Self::oci(host, &sub_path, base.0)
            .ok_or_else(|| bad_specification(value, "baseUrl or subPath is not a registry host and path"))
    }

    fn oci(host: &str, sub_path: &str, plain_http: bool) -> Option<Self> {
        let sub_path = sub_path.trim_matches('/');
        let valid = is_host(host) && (sub_path.is_empty() || sub_path.split('/').all(is_segment));
        valid.then(|| Self::Oci { host: host.to_owned(), sub_path: sub_path.to_owned(), plain_http })
    }
}

impl fmt::Display for RepositoryRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ctf(path) => write!(f, "ctf::{}", path.display()),
            Self::Oci { host, sub_path, plain_http } => {
                let scheme = if *plain_http { "http://" } else { "" };
                let slash = if sub_path.is_empty() { "" } else { "/" };
                write!(f, "{scheme}{host}{slash}{sub_path}")
            }
        }
    }
}

impl fmt::Display for SourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Registry(repository) => write!(f, "{repository}//"),
            Self::Component { repositories, component, version } => {
                if let Some(first) = repositories.first() {
                    write!(f, "{first}//")?;
                }
                f.write_str(component)?;
                version.as_ref().map_or(Ok(()), |version| write!(f, ":{version}"))
            }
        }
    }
}

/// Whether the text has the form of an OCM component name: a DNS domain and at least one more segment, 255 characters at most.
pub(crate) fn is_component_name(name: &str) -> bool {
    let Some((domain, path)) = name.split_once('/') else { return false };
    let domain_is_good = domain.contains('.') && domain.split('.').all(is_segment);
    name.len() <= 255 && domain_is_good && path.split('/').all(is_segment)
}

/// The last `//` that does not belong to a scheme parts repository and component; the physical spelling with
/// `/component-descriptors/` does the same.
fn split_component(text: &str) -> Option<(&str, &str)> {
    // A specification ends with its brace, whatever is in it.
    let brace = typed(text).1.starts_with('{').then(|| text.rfind("}//")).flatten();
    let start = brace.or_else(|| text.find("://").map(|at| at + 3)).unwrap_or_default();
    if let Some(at) = text[start..].find("//") {
        return Some((&text[..start + at], &text[start + at + 2..]));
    }
    let marker = format!("/{DESCRIPTORS}/");
    text.split_once(&marker).filter(|(repository, _)| !repository.is_empty())
}

fn split_version(component: &str) -> (&str, Option<&str>) {
    match component.split_once(':') {
        Some((name, version)) if !version.trim().is_empty() => (name, Some(version.trim())),
        Some((name, _)) => (name, None),
        None => (component, None),
    }
}

fn typed(text: &str) -> (Option<&str>, &str) {
    match text.split_once("::") {
        Some((kind, rest))
            if kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'+')) && !kind.is_empty() =>
        {
            (Some(kind), rest)
        }
        _ => (None, text),
    }
}

fn is_ctf(kind: &str) -> bool {
    let name = kind.strip_suffix("/v1").unwrap_or(kind);
    // The form may be said too, as the older tool does; what is there decides.
    let name = ["+directory", "+tar", "+tgz"].iter().find_map(|form| name.strip_suffix(form)).unwrap_or(name);
    matches!(name, "ctf" | "CTF" | "CommonTransportFormat")
}

fn is_oci(kind: &str) -> bool {
    let name = kind.strip_suffix("/v1").unwrap_or(kind);
    matches!(name, "OCIRegistry" | "ociRegistry" | "oci" | "OCI" | "OCIRepository" | "ociRepository")
}

fn has_scheme(text: &str) -> bool {
    text.contains("://")
}

fn strip_scheme(text: &str) -> Option<(bool, &str)> {
    match text.split_once("://") {
        None => Some((false, text)),
        Some(("http", rest)) => Some((true, rest)),
        Some(("https" | "oci", rest)) => Some((false, rest)),
        Some(_) => None,
    }
}

fn looks_like_path(text: &str) -> bool {
    let ends_like_an_archive = [".tgz", ".tar", ".tar.gz", ".ctf"].iter().any(|end| text.ends_with(end));
    text.starts_with(['/', '.', '~']) || ends_like_an_archive
}

fn is_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    let is_ipv6 = name.starts_with('[')
        && name.ends_with(']')
        && name[1..name.len() - 1].bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
    let port_is_good = port.is_none_or(|port| port.parse::<u16>().is_ok());
    !name.is_empty() && (is_name || is_ipv6) && port_is_good
}

fn bad_specification(value: &Value, reason: &str) -> ResolveError {
    ResolveError::Source { text: shortened(&value.to_string()), reason: format!("as a repository specification, {reason}") }
}

/// Why a login is refused where a registry is named.
const NO_LOGIN: &str = "it holds a login; those come from --ocm-config and the docker config.json of the current user";

fn holds_login(reference: &str) -> bool {
    login::hidden_in_reference(reference) != reference
}

/// For messages: not everything, and no login.
fn shortened(text: &str) -> String {
    login::hidden_in_reference(text).chars().take(200).collect()
}

#[cfg(test)]
mod tests;
