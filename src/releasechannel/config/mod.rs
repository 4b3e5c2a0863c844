//! Credentials, trust and resolvers, from `.ocmconfig` and docker's `config.json` (ocm.md sections 11 and 13).

mod consumer;
mod docker;
mod helper;
mod ocm;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use consumer::{ClientCertificate, RequestedRepository, WebConsumer};
pub(crate) use ocm::{KeySource, Resolver};

use url::Url;

use crate::error::ResolveError;
use crate::options::{Credential, Options};

const LIMIT: u64 = 8 << 20;

/// What all configuration says together.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    consumers: Vec<consumer::Consumer>,
    certified: Vec<consumer::Consumer<ClientCertificate>>,
    dockers: Vec<docker::DockerConfig>,
    hosts: BTreeMap<String, Credential>,
    /// How long a credential helper may take.
    helper_time: Duration,
    pub(crate) resolvers: Vec<Resolver>,
    pub(crate) ca_files: Vec<PathBuf>,
    pub(crate) ca_pem: Vec<String>,
    /// Hosts whose certificate is not looked at.
    pub(crate) insecure_tls: BTreeSet<String>,
    /// Public keys and certificates by signature name.
    pub(crate) keys: Vec<(String, KeySource)>,
}

/// A credential could not be got, which is another thing than there being none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the credential helper {helper} could not be used: {reason}")]
pub(crate) struct HelperError {
    /// Name of the program.
    pub(crate) helper: String,
    /// What happened.
    pub(crate) reason: String,
}

impl Configuration {
    /// Reads everything that the options name, and without [`Options::no_user_config`] what the current user has.
    pub(crate) fn load(options: &Options) -> Result<Self, ResolveError> {
        let (hosts, insecure_tls) = (options.credentials.clone(), options.insecure_tls.clone());
        let helper_time = options.limits.helper_time;
        let mut configuration = Self { hosts, helper_time, insecure_tls, ..Self::default() };
        let home = if options.no_user_config { None } else { std::env::var_os("HOME").map(PathBuf::from) };
        for text in &options.ocm_config_texts {
            ocm::read(&mut configuration, text.as_bytes(), "an .ocmconfig from the cluster", None)?;
        }
        for path in ocm_files(options, home.as_deref()) {
            let bytes = crate::ctf::archive::read_file(&path, LIMIT)?;
            ocm::read(&mut configuration, &bytes, &path.display().to_string(), Some(&crate::resolve::folder_of(&path)))?;
        }
        for text in &options.docker_config_texts {
            configuration.dockers.push(docker::DockerConfig::read(
                text.as_bytes(),
                "a docker config.json from the cluster",
                None,
            )?);
        }
        if let Some(path) = docker_file(options, home.as_deref()) {
            let bytes = crate::ctf::archive::read_file(&path, LIMIT)?;
            configuration.dockers.push(docker::DockerConfig::read(&bytes, &path.display().to_string(), Some(helper_time))?);
        }
        Ok(configuration)
    }

    /// The credential for a repository: by host from the options, else the most specific consumer, else docker's. A wrong one is not
    /// followed by another (ocm.md section 11). Runs credential helpers, so it blocks.
    pub(crate) fn credential(&self, wanted: &RequestedRepository) -> Result<Option<Credential>, HelperError> {
        if let Some(credential) = self.hosts.get(&wanted.authority()).or_else(|| self.hosts.get(&wanted.host)) {
            return Ok(Some(credential.clone()));
        }
        if let Some(found) = consumer::best(&self.consumers, wanted, consumer::REGISTRY) {
            return Ok(Some(found.credential.clone()));
        }
        for docker in &self.dockers {
            if let Some(credential) = docker.credential(wanted)? {
                return Ok(Some(credential));
            }
        }
        Ok(None)
    }
}

impl Configuration {
    /// The credential for a file or chart at a URL: only consumers of that kind count, never those of registries.
    pub(crate) fn web_credential(&self, consumer: WebConsumer, url: &Url) -> Option<Credential> {
        consumer::best(&self.consumers, &requested(url)?, consumer.types()).map(|found| found.credential.clone())
    }

    /// The certificate that a client shows there.
    pub(crate) fn web_certificate(&self, consumer: WebConsumer, url: &Url) -> Option<ClientCertificate> {
        consumer::best(&self.certified, &requested(url)?, consumer.types()).map(|found| found.credential.clone())
    }

    /// Where the credential for a repository is, for people. Runs no helper, so a helper is named without knowing its answer.
    pub(crate) fn origin(&self, wanted: &RequestedRepository) -> Option<String> {
        if self.hosts.contains_key(&wanted.authority()) || self.hosts.contains_key(&wanted.host) {
            return Some("the options".to_owned());
        }
        let consumer = consumer::best(&self.consumers, wanted, consumer::REGISTRY).map(|consumer| consumer.origin.clone());
        consumer.or_else(|| self.dockers.iter().find_map(|docker| docker.origin(wanted)))
    }
}

fn requested(url: &Url) -> Option<RequestedRepository> {
    let (host, tls) = (url.host_str()?, url.scheme() == "https");
    let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Some(RequestedRepository::new(&authority, tls, url.path().trim_matches('/')))
}

fn ocm_files(options: &Options, home: Option<&Path>) -> Vec<PathBuf> {
    if let Some(path) = &options.ocm_config {
        return vec![path.clone()];
    }
    let Some(home) = home else { return Vec::new() };
    let from_environment = std::env::var_os("OCM_CONFIG").map(PathBuf::from);
    let base = std::env::var_os("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
    let candidates = [base.join("ocm/config"), base.join(".ocmconfig"), home.join(".ocm/config"), home.join(".ocmconfig")];
    from_environment.into_iter().chain(candidates).filter(|path| path.is_file()).collect()
}

fn docker_file(options: &Options, home: Option<&Path>) -> Option<PathBuf> {
    if let Some(path) = &options.docker_config {
        return Some(path.clone());
    }
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let path = home.map(|home| folder.unwrap_or_else(|| home.join(".docker")).join("config.json"))?;
    path.is_file().then_some(path)
}

#[cfg(test)]
pub(crate) mod tests;
