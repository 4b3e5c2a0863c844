//! `.ocmconfig`: the entries of `generic.config.ocm.software/v1` that concern a consumer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::consumer::{ClientCertificate, Consumer, glob};
use super::docker::DockerConfig;
use super::{Configuration, LIMIT};
use crate::error::{RepositoryError, ResolveError};
use crate::options::Credential;
use crate::source::RepositoryRef;
use crate::versions::{Constraint, Version};

/// Where to look for components that are not where their parent is (ocm.md section 13).
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    pub(crate) repository: RepositoryRef,
    pattern: Pattern,
    range: Option<Constraint>,
    priority: i64,
}

#[derive(Clone, Debug)]
enum Pattern {
    /// By segments of the name.
    Prefix(String),
    /// `*` crosses slashes, as measured.
    Glob(String),
}

/// Where a public key or certificate is.
#[derive(Clone, Debug)]
pub(crate) enum KeySource {
    File(PathBuf),
    Pem(String),
}

impl Resolver {
    /// Whether it is to be asked which versions of this component there are.
    pub(crate) fn knows(&self, name: &str) -> bool {
        match &self.pattern {
            Pattern::Prefix(prefix) => prefix.is_empty() || name == prefix || name.starts_with(&format!("{prefix}/")),
            Pattern::Glob(pattern) => glob(pattern.as_bytes(), name.as_bytes()),
        }
    }

    /// Whether it is to be asked for this component version.
    pub(crate) fn matches(&self, name: &str, version: &str) -> bool {
        let in_range = |range: &Constraint| Version::parse(version).is_some_and(|version| range.allows(&version));
        self.knows(name) && self.range.as_ref().is_none_or(in_range)
    }
}

/// Reads a file into the configuration. `folder` is what relative paths are taken from; without one the text comes from a cluster, and must
/// neither read files here nor start programs.
pub(super) fn read(
    configuration: &mut Configuration,
    bytes: &[u8],
    what: &str,
    folder: Option<&Path>,
) -> Result<(), ResolveError> {
    let refuse = |reason: String| ResolveError::from(RepositoryError::malformed(what, reason));
    let document: Value = crate::text::document(bytes).map_err(|error| refuse(error.to_string()))?;
    if document.is_null() {
        return Ok(());
    }
    let kind = text(&document, "type");
    let entries = if kind.starts_with("generic.config.ocm.software") {
        list(&document, "configurations")
    } else {
        std::slice::from_ref(&document)
    };
    for entry in entries {
        let kind = text(entry, "type");
        match kind.split('/').next().unwrap_or_default() {
            "credentials.config.ocm.software" => read_credentials(configuration, entry, what, folder)?,
            "ocm.config.ocm.software" | "resolvers.config.ocm.software" => read_resolvers(configuration, entry, folder, &refuse)?,
            "http.config.ocm.software" => read_tls(configuration, entry, folder),
            // Other entries (signing, transfer, logging, plugins) do not concern a reader.
            _ => {}
        }
    }
    // All resolvers with a higher priority come first; equal ones stay in order.
    configuration.resolvers.sort_by_key(|resolver| std::cmp::Reverse(resolver.priority));
    Ok(())
}

fn read_credentials(
    configuration: &mut Configuration,
    entry: &Value,
    what: &str,
    folder: Option<&Path>,
) -> Result<(), ResolveError> {
    for consumer in list(entry, "consumers") {
        let identities = consumer.get("identity").into_iter().chain(list(consumer, "identities"));
        for identity in identities {
            read_consumer(configuration, identity, consumer, what, folder);
        }
    }
    for repository in list(entry, "repositories") {
        let Some(repository) = repository.get("repository") else { continue };
        if !text(repository, "type").starts_with("DockerConfig") {
            continue;
        }
        let helpers = folder.map(|_| configuration.helper_time);
        let docker = match (text(repository, "dockerConfigFile"), repository.get("dockerConfig")) {
            (path, _) if !path.is_empty() => {
                let Some(path) = at(folder, path) else { continue };
                let bytes = crate::ctf::archive::read_file(&path, LIMIT)?;
                DockerConfig::read(&bytes, &path.display().to_string(), helpers)?
            }
            (_, Some(Value::String(text))) => DockerConfig::read(text.as_bytes(), what, helpers)?,
            (_, Some(object)) => DockerConfig::read(object.to_string().as_bytes(), what, helpers)?,
            _ => continue,
        };
        configuration.dockers.push(docker);
    }
    Ok(())
}

fn read_consumer(configuration: &mut Configuration, identity: &Value, consumer: &Value, what: &str, folder: Option<&Path>) {
    let identity: BTreeMap<String, String> =
        identity.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), plain(value))).collect();
    for credential in list(consumer, "credentials") {
        // Typed credentials of the newer tool have their fields beside the type.
        let properties = credential.get("properties").unwrap_or(credential);
        if identity.get("type").is_some_and(|kind| kind.starts_with("RSA")) {
            read_key(configuration, &identity, properties, folder);
            continue;
        }
        match text(properties, "certificateAuthority") {
            "" => {}
            pem => configuration.ca_pem.push(pem.to_owned()),
        }
        let (certificate, key) = (text(properties, "certificate").to_owned(), text(properties, "privateKey").to_owned());
        if !certificate.is_empty() && !key.is_empty() {
            let credential = ClientCertificate { certificate, key };
            configuration.certified.push(Consumer { identity: identity.clone(), credential, origin: what.to_owned() });
        }
        if let Some(credential) = credential_of(properties) {
            configuration.consumers.push(Consumer { identity: identity.clone(), credential, origin: what.to_owned() });
        }
    }
}

fn read_key(configuration: &mut Configuration, identity: &BTreeMap<String, String>, properties: &Value, folder: Option<&Path>) {
    let Some(signature) = identity.get("signature") else { return };
    let key = match (
        text(properties, "public_key_pem_file"),
        text(properties, "publicKeyPEMFile"),
        text(properties, "public_key_pem"),
        text(properties, "publicKey"),
    ) {
        ("", "", "", "") => return,
        ("", "", "", pem) | ("", "", pem, _) => KeySource::Pem(pem.to_owned()),
        ("", path, _, _) | (path, _, _, _) => match at(folder, path) {
            Some(path) => KeySource::File(path),
            None => return,
        },
    };
    configuration.keys.push((signature.clone(), key));
}

fn credential_of(properties: &Value) -> Option<Credential> {
    let (user, password) = (text(properties, "username"), text(properties, "password"));
    if !user.is_empty() {
        return Some(Credential::Basic { user: user.to_owned(), password: password.to_owned() });
    }
    for key in ["identityToken", "refreshToken"] {
        if !text(properties, key).is_empty() {
            return Some(Credential::IdentityToken(text(properties, key).to_owned()));
        }
    }
    let token = text(properties, "accessToken");
    (!token.is_empty()).then(|| Credential::Bearer(token.to_owned()))
}

fn read_resolvers(
    configuration: &mut Configuration,
    entry: &Value,
    folder: Option<&Path>,
    refuse: &dyn Fn(String) -> ResolveError,
) -> Result<(), ResolveError> {
    for resolver in list(entry, "resolvers") {
        let specification = resolver.get("repository").unwrap_or(&Value::Null);
        let mut repository = RepositoryRef::from_value(specification)?;
        if let RepositoryRef::Ctf(path) = &mut repository {
            let Some(real) = at(folder, &path.to_string_lossy()) else { continue };
            *path = real;
        }
        let glob = text(resolver, "componentNamePattern");
        let pattern = if glob.is_empty() {
            Pattern::Prefix(text(resolver, "prefix").trim_matches('/').to_owned())
        } else {
            Pattern::Glob(glob.to_owned())
        };
        let range = match text(resolver, "versionConstraint") {
            "" => None,
            range => Some(Constraint::parse(range).map_err(|error| refuse(error.to_string()))?),
        };
        let priority = resolver.get("priority").and_then(Value::as_i64).unwrap_or_default();
        configuration.resolvers.push(Resolver { repository, pattern, range, priority });
    }
    Ok(())
}

fn read_tls(configuration: &mut Configuration, entry: &Value, folder: Option<&Path>) {
    for authority in entry.get("tls").map_or(&[][..], |tls| list(tls, "rootCAs")) {
        match (text(authority, "pemFile"), text(authority, "pem")) {
            ("", "") => {}
            ("", pem) => configuration.ca_pem.push(pem.to_owned()),
            (path, _) => configuration.ca_files.extend(at(folder, path)),
        }
    }
    // What comes from a cluster may add trust in an authority, never take checks away.
    let hosts = entry.get("hosts").and_then(Value::as_object).filter(|_| folder.is_some());
    for (host, settings) in hosts.into_iter().flatten() {
        if settings.get("insecureSkipVerify").and_then(Value::as_bool) == Some(true) {
            configuration.insecure_tls.insert(host.clone());
        }
    }
}

/// `~` is the home folder; everything else relative is taken from the file's folder.
fn at(folder: Option<&Path>, path: &str) -> Option<PathBuf> {
    let folder = folder?;
    match path.strip_prefix("~/") {
        Some(rest) => std::env::var_os("HOME").map(|home| PathBuf::from(home).join(rest)),
        None => Some(folder.join(path)),
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Ports are sometimes written without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
