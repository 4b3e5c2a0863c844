//! OCI registries over HTTP: two requests for a component version, bounded bodies, digests checked while streaming, redirects that
//! never carry credentials elsewhere (docs/decisions/0005-registry-client.md).

mod auth;
mod blob;
mod client;
mod http;
mod list;
mod pace;
mod patience;
mod push;
mod trust;
mod web;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

pub use push::{PushRules, Pushed, push, push_by};
use tokio::sync::Semaphore;

use crate::cache::{CachedStore, ContentCache};
use crate::config::Configuration;
use crate::error::{RepositoryError, ResolveError};
use crate::image::ImageReference;
use crate::options::Options;
use crate::repository::ArtifactStore;

pub(crate) use client::Registry;
pub(crate) use http::chain;
pub(crate) use pace::Pace;
pub(crate) use web::{Asked, Web};

/// Connections to registries, one per host, made when they are needed.
#[derive(Debug)]
pub struct Registries {
    shared: Arc<Shared>,
    hosts: Mutex<BTreeMap<String, Both>>,
    cache: Option<Arc<ContentCache>>,
    /// Whether what a tag leads to is asked for only once.
    remembers: bool,
    remarks: Vec<String>,
}

/// A registry for those who write, and with the cache before it for those who read.
type Both = (Arc<Registry>, Arc<dyn ArtifactStore>);

/// What all registries use.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) http: http::Clients,
    pub(crate) configuration: Configuration,
    pub(crate) options: Options,
    /// Requests at a time, for hosts that are no registries.
    web_slots: Mutex<BTreeMap<String, Arc<Semaphore>>>,
}

impl Registries {
    /// Reads configuration and certificates; nothing is contacted yet.
    pub fn new(options: &Options) -> Result<Arc<Self>, ResolveError> {
        Self::open(options, false)
    }

    /// The same for a run that ends: what a registry said once is not asked again.
    pub(crate) fn for_run(options: &Options) -> Result<Arc<Self>, ResolveError> {
        Self::open(options, true)
    }

    fn open(options: &Options, remembers: bool) -> Result<Arc<Self>, ResolveError> {
        let configuration = Configuration::load(options)?;
        let http = http::Clients::new(options, &configuration)?;
        let shared = Arc::new(Shared { http, configuration, options: options.clone(), web_slots: Mutex::default() });
        let (cache, remarks) = match &options.run {
            Some(run) => (run.cache(), Vec::new()),
            None if remembers || options.cache.is_some() => {
                let (cache, remarks) = ContentCache::open(options.cache.as_ref());
                (cache.map(Arc::new), remarks)
            }
            None => (None, Vec::new()),
        };
        Ok(Arc::new(Self { shared, hosts: Mutex::default(), cache, remembers, remarks }))
    }

    /// What a person should know of the cache.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let found = self.cache.as_ref().map(|cache| cache.remarks()).unwrap_or_default();
        self.remarks.iter().cloned().chain(found).collect()
    }

    /// What they were made with.
    pub(crate) fn options(&self) -> &Options {
        &self.shared.options
    }

    /// What the configuration files say.
    pub(crate) fn configuration(&self) -> &Configuration {
        &self.shared.configuration
    }

    /// For what is in no registry.
    pub(crate) fn web(&self) -> Web {
        Web { shared: Arc::clone(&self.shared) }
    }

    /// Where an image is pulled from: its own registry, or with a mirror the same path there, and nowhere else.
    pub(crate) fn locate(&self, image: &ImageReference) -> Result<(Arc<dyn ArtifactStore>, String), RepositoryError> {
        let Some(mirror) = &self.shared.options.mirror else {
            return Ok((self.of_host(&image.host, image.plain_http)?, image.repository.clone()));
        };
        let (plain_http, host, sub_path) = parts_of(mirror);
        let is_below = sub_path.is_empty() || image.repository.starts_with(&format!("{sub_path}/"));
        let repository = match (image.host == host && is_below, sub_path) {
            (true, _) | (false, "") => image.repository.clone(),
            (false, sub_path) => format!("{sub_path}/{}", image.repository),
        };
        Ok((self.of_host(host, plain_http)?, repository))
    }

    /// The registry at a host, with the cache before it.
    pub(crate) fn of_host(&self, host: &str, plain_http: bool) -> Result<Arc<dyn ArtifactStore>, RepositoryError> {
        Ok(self.both(host, plain_http)?.1)
    }

    /// The registry itself, for those who write.
    pub(crate) fn registry(&self, host: &str, plain_http: bool) -> Result<Arc<Registry>, RepositoryError> {
        Ok(self.both(host, plain_http)?.0)
    }

    fn both(&self, host: &str, plain_http: bool) -> Result<Both, RepositoryError> {
        let options = &self.shared.options;
        if let Some(mirror) = &options.mirror
            && parts_of(mirror).1 != host
        {
            let reason = format!("with the mirror {mirror} no other registry is contacted");
            return Err(RepositoryError::Unsupported { what: host.to_owned(), reason });
        }
        let plain_http = plain_http || is_listed(&options.plain_http, host);
        if let Some(reason) = http::proxy_fault(!plain_http) {
            return Err(RepositoryError::Unsupported { what: host.to_owned(), reason });
        }
        let mut hosts = self.hosts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = format!("{plain_http} {host}");
        let both = hosts.entry(key).or_insert_with(|| {
            let registry = Registry::new(Arc::clone(&self.shared), host, plain_http);
            let read: Arc<dyn ArtifactStore> = match &self.cache {
                Some(cache) => {
                    let limits = options.limits.clone();
                    CachedStore::new(registry.clone(), Arc::clone(cache), limits, self.remembers, options.run.clone())
                }
                None => registry.clone(),
            };
            (registry, read)
        });
        Ok(both.clone())
    }
}

/// Hosts are listed with or without their port.
fn is_listed(hosts: &BTreeSet<String>, host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    hosts.contains(host) || hosts.contains(name)
}

/// Whether a mirror's text says plain HTTP, its host, and the path below it.
fn parts_of(mirror: &str) -> (bool, &str, &str) {
    let (scheme, rest) = mirror.split_once("://").unwrap_or(("", mirror));
    let (host, sub_path) = rest.split_once('/').unwrap_or((rest, ""));
    (scheme == "http", host, sub_path.trim_matches('/'))
}

#[cfg(test)]
mod tests;
