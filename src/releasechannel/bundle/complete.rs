//! Is an archive or a mirror complete for a lock?

use std::collections::BTreeSet;
use std::sync::Arc;

use plinth_api::lock::{LockedResource, ReleaseLock};

use super::Kept;
use crate::access::Access;
use crate::channel::Channel;
use crate::closure::Node;
use crate::descriptor::Resource;
use crate::error::{ErrorKind, RepositoryError, ResolveError};
use crate::fetch::{Artifact, Fetcher, Settled};
use crate::options::Options;
use crate::registry::Registries;
use crate::repository::{ComponentRepository, ComponentVersion, Pointer, entry_digest};
use crate::selection::Selection;
use crate::source::{RepositoryRef, SourceRef};

/// What a resolved archive or mirror lacks of a lock, each named; empty where it is complete. All content is read and hashed. An error is
/// only what keeps from looking, such as a registry that cannot be reached.
///
/// Descriptors are compared by what is in them: a bundle rewrites their access, so that their bytes differ.
pub async fn missing(channel: &Channel, lock: &ReleaseLock) -> Result<Vec<String>, ResolveError> {
    let (fetcher, options) = asking_again(channel.fetcher.registries.options())?;
    let sources =
        channel.closure.repositories.iter().map(|source| again(source, &fetcher, &options)).collect::<Result<Vec<_>, _>>()?;
    let mut search = Search { fetcher: &fetcher, kept: &Kept::default(), leads_out: true, missing: Vec::new() };
    for component in &lock.components {
        let at = ComponentVersion::new(&component.name, &component.version);
        match channel.closure.nodes.get(&at) {
            Some(node) => {
                let node = Node { source: Arc::clone(&sources[node.repository]), ..node.clone() };
                search.component(&node, &component.resources).await?;
            }
            None => search.missing.push(format!("component {at}")),
        }
    }
    Ok(search.missing)
}

/// A fetcher that asks registries themselves: what a cache has says nothing of what is there.
fn asking_again(options: &Options) -> Result<(Fetcher, Options), ResolveError> {
    let options = Options { cache: None, ..options.clone() };
    Ok((Fetcher { registries: Registries::new(&options)?, limits: options.limits.clone() }, options))
}

/// The same repository without what is remembered of it. An archive is its own memory.
fn again(
    source: &Arc<dyn ComponentRepository>,
    fetcher: &Fetcher,
    options: &Options,
) -> Result<Arc<dyn ComponentRepository>, ResolveError> {
    match RepositoryRef::from_value(&source.specification())? {
        RepositoryRef::Ctf(_) => Ok(Arc::clone(source)),
        registry @ RepositoryRef::Oci { .. } => crate::open::repository(&registry, &fetcher.registries, options),
    }
}

/// The same for a place that may lack anything, so that it cannot be resolved: every component version of the lock is looked for by
/// itself. Nothing outside of the place counts as being there.
pub async fn missing_at(
    place: &RepositoryRef,
    lock: &ReleaseLock,
    kept: &Kept,
    options: &Options,
) -> Result<Vec<String>, ResolveError> {
    let mut options = options.clone();
    if matches!(place, RepositoryRef::Oci { .. }) && options.mirror.is_none() {
        options.mirror = Some(place.to_string());
    }
    let (fetcher, options) = asking_again(&options)?;
    let repository = opened(place, &fetcher, &options).await?;
    let mut search =
        Search { fetcher: &fetcher, kept, leads_out: matches!(place, RepositoryRef::Oci { .. }), missing: Vec::new() };
    for component in &lock.components {
        let at = ComponentVersion::new(&component.name, &component.version);
        match repository.descriptor(&at).await {
            Ok(found) => {
                let node = Node {
                    kept: (0..found.descriptor.references.len()).collect(),
                    descriptor: found.descriptor,
                    digest: found.digest,
                    repository: 0,
                    source: Arc::clone(&repository),
                    path: vec![at],
                };
                search.component(&node, &component.resources).await?;
            }
            Err(error) => {
                let path = vec![at.clone()];
                search.lacks(format!("component {at}"), error).map_err(|source| ResolveError::Repository { path, source })?;
            }
        }
    }
    Ok(search.missing)
}

/// Archives are scanned on a thread of their own, for they may be large.
async fn opened(
    place: &RepositoryRef,
    fetcher: &Fetcher,
    options: &Options,
) -> Result<Arc<dyn ComponentRepository>, ResolveError> {
    let (reference, registries, options) = (place.clone(), Arc::clone(&fetcher.registries), options.clone());
    let opened = tokio::task::spawn_blocking(move || crate::open::repository(&reference, &registries, &options)).await;
    opened.unwrap_or_else(|error| {
        Err(ResolveError::Source { text: place.to_string(), reason: format!("opening it ended with {error}") })
    })
}

/// The source and selection that give a lock again: its repositories, its root, and of each component the one version that it has.
pub fn of_lock(lock: &ReleaseLock, mut selection: Selection) -> Result<(SourceRef, Selection), ResolveError> {
    let repositories = lock.repositories.iter().map(RepositoryRef::from_value).collect::<Result<Vec<_>, _>>()?;
    for component in &lock.components {
        let is_only = lock.components.iter().filter(|other| other.name == component.name).count() == 1;
        if is_only && component.name != lock.root.name {
            selection.select.entry(component.name.clone()).or_insert_with(|| component.version.clone());
        }
    }
    let (component, version) = (lock.root.name.clone(), Some(lock.root.version.clone()));
    Ok((SourceRef::Component { repositories, component, version }, selection))
}

/// Looks for things and writes down what is not there.
struct Search<'a> {
    fetcher: &'a Fetcher,
    kept: &'a Kept,
    /// Whether references to other places can be followed; an archive has what is in it.
    leads_out: bool,
    missing: Vec<String>,
}

impl Search<'_> {
    async fn component(&mut self, node: &Node, locked: &[LockedResource]) -> Result<(), ResolveError> {
        let at = node.at();
        let in_node = |source| ResolveError::Repository { path: node.path.clone(), source };
        self.found(node.source.prove_configuration(&at).await, format!("configuration of component {at}")).map_err(in_node)?;
        for resource in locked {
            let looked = self.resource(node, resource).await;
            looked.map_err(in_node)?;
        }
        Ok(())
    }

    async fn resource(&mut self, node: &Node, locked: &LockedResource) -> Result<(), RepositoryError> {
        let is_it = |resource: &&Resource| {
            resource.identity.name == locked.name
                && resource.identity.extra == locked.extra_identity
                && resource.version == locked.version
        };
        let mut name = format!("resource {} of {}", locked.name, node.at());
        let Some(resource) = node.descriptor.resources.iter().find(is_it) else {
            self.missing.push(name);
            return Ok(());
        };
        if let Some(digest) = &locked.digest {
            let found = resource.digest.as_ref().and_then(crate::descriptor::DigestSpec::digest);
            if found.as_ref().is_none_or(|found| found.as_str() != digest) {
                let found = found.map_or_else(|| "unknown".to_owned(), |found| found.to_string());
                self.missing.push(format!("{name}: its digest is {found}, not {digest}"));
                return Ok(());
            }
        }
        match Access::read(&resource.access) {
            Access::Nothing => return Ok(()),
            Access::LocalBlob { .. } | Access::Relative { .. } | Access::Other { .. } => {}
            access if !self.leads_out => {
                name.push_str(&format!(": it is only referred to, as {}", referred(&access)));
                self.missing.push(name);
                return Ok(());
            }
            _ => {}
        }
        match self.fetcher.settle(node, resource, &name).await {
            Ok(Settled::Blob(stream)) => self.found(stream.drain().await, name),
            Ok(Settled::Artifact(artifact)) => self.artifact(artifact, &name).await,
            Err(error) => self.lacks(name, error),
        }
    }

    /// Everything below a manifest, each blob and member by itself.
    async fn artifact(&mut self, artifact: Artifact, name: &str) -> Result<(), RepositoryError> {
        let mut left = vec![artifact.manifest.clone()];
        let mut seen = BTreeSet::new();
        while let Some(manifest) = left.pop() {
            if !seen.insert(manifest.digest.clone()) {
                continue;
            }
            super::staging::check_members(seen.len(), name)?;
            for member in manifest.entries("manifests").iter().filter(|member| self.kept.keeps(member)) {
                let digest = entry_digest(member, name)?;
                match artifact.store.manifest(&artifact.repository, &Pointer::Digest(digest.clone())).await {
                    Ok(below) => left.push(below),
                    Err(error) => self.lacks(format!("manifest {digest}{} of {name}", platform(member)), error)?,
                }
            }
            for blob in manifest.blobs() {
                let digest = entry_digest(blob, name)?;
                if !seen.insert(digest.clone()) {
                    continue;
                }
                let read = async { artifact.store.blob(&artifact.repository, &digest).await?.drain().await };
                self.found(read.await, format!("blob {digest} of {name}"))?;
            }
        }
        Ok(())
    }

    fn found(&mut self, result: Result<(), RepositoryError>, what: String) -> Result<(), RepositoryError> {
        result.or_else(|error| self.lacks(what, error))
    }

    /// What is not there is named; what could not be looked for is an error.
    fn lacks(&mut self, what: String, error: RepositoryError) -> Result<(), RepositoryError> {
        match error.kind() {
            ErrorKind::Unavailable => Err(error),
            ErrorKind::NotFound => {
                self.missing.push(what);
                Ok(())
            }
            ErrorKind::Refused => {
                self.missing.push(format!("{what}: {error}"));
                Ok(())
            }
        }
    }
}

fn referred(access: &Access) -> String {
    match access {
        Access::OciArtifact { image } => image.clone(),
        Access::OciBlob { repository, digest, .. } => format!("{repository}@{digest}"),
        Access::Wget { url, .. } => url.clone(),
        Access::Helm { repository, chart } => format!("{chart} in {repository}"),
        Access::LocalBlob { .. } | Access::Relative { .. } | Access::Nothing | Access::Other { .. } => String::new(),
    }
}

fn platform(member: &serde_json::Value) -> String {
    let of = |key: &str| member.pointer(&format!("/platform/{key}")).and_then(serde_json::Value::as_str);
    match (of("os"), of("architecture")) {
        (Some(os), Some(architecture)) => format!(" for {os}/{architecture}"),
        _ => String::new(),
    }
}
