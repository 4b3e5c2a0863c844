//! Is an archive or a mirror complete for a lock?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plinth_api::lock::{LockedResource, ReleaseLock};

use super::names::{self, Called};
use super::origin::{self, Origin};
use super::{Claims, Kept, proof, signed};
use crate::access::Access;
#[cfg(test)]
use crate::channel::Channel;
use crate::closure::{Closure, Node};
use crate::ctf::Contents;
use crate::descriptor::Resource;
use crate::error::{ErrorKind, RepositoryError, ResolveError};
use crate::fetch::{Artifact, Fetcher, Settled, is_manifest_type};
use crate::options::Options;
use crate::program;
use crate::registry::Registries;
use crate::repository::{ComponentRepository, ComponentVersion, Pointer, entry_digest};
use crate::resolve::locked_component;
use crate::selection::Selection;
use crate::signature::KeyRing;
use crate::source::{DESCRIPTORS, RepositoryRef, SourceRef};
use crate::verify::{CheckedSignature, findings};

/// What a place has of a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completeness {
    /// What it lacks, or has otherwise than the lock says, each named; empty where it is complete.
    pub missing: Vec<String>,
    /// What a person should know.
    pub remarks: Vec<String>,
    /// The root's signatures.
    pub signatures: Vec<CheckedSignature>,
    /// plinth itself, where the place has it beside the channel.
    pub program: Option<ComponentVersion>,
}

/// A fetcher that asks registries themselves: what a cache has says nothing of what is there.
fn asking_again(options: &Options) -> Result<(Fetcher, Options), ResolveError> {
    let options = Options { cache: None, run: None, ..options.clone() };
    Ok((Fetcher { registries: Registries::new(&options)?, limits: options.limits.clone() }, options))
}

/// Looks for everything of a lock in an archive or a mirror, which may lack anything, so that it cannot be resolved. All content is read and
/// hashed; descriptors are compared with the lock, references with their digests, signatures with the keys of the options; and images are
/// looked for under their ordinary names. Of an archive where nothing is missing, all that keeps it from being pushed is named, too
/// ([`Claims::unfounded`], and for a bundle [`super::signed`]). Nothing outside of the place counts as being there. An error is only what keeps
/// from looking, such as a registry that cannot be reached.
pub async fn missing_at(
    place: &RepositoryRef,
    lock: &ReleaseLock,
    kept: &Kept,
    options: &Options,
) -> Result<Completeness, ResolveError> {
    let mut looked = Look::open(place, kept, options).await?;
    looked.channel(lock).await?;
    looked.program(lock).await?;
    if looked.found.missing.is_empty() {
        looked.index().await?;
    }
    Ok(looked.found)
}

/// The same for the channel alone, where it was resolved.
#[cfg(test)]
pub(crate) async fn missing(channel: &Channel, lock: &ReleaseLock) -> Result<Vec<String>, ResolveError> {
    let place = RepositoryRef::from_value(&channel.closure.repositories[0].specification())?;
    let kept = Kept::default();
    let mut looked = Look::open(&place, &kept, channel.fetcher.registries.options()).await?;
    looked.channel(lock).await?;
    Ok(looked.found.missing)
}

/// Archives are scanned on a thread of their own, for they may be large.
async fn opened(
    place: &RepositoryRef,
    fetcher: &Fetcher,
    options: &Options,
) -> Result<(Arc<dyn ComponentRepository>, Option<Contents>), ResolveError> {
    let (reference, registries, options) = (place.clone(), Arc::clone(&fetcher.registries), options.clone());
    let open = move || match crate::open::contents(&reference, &options)? {
        Some(contents) => Ok((crate::open::of_contents(contents.clone(), &reference, &options), Some(contents))),
        None => Ok((crate::open::repository(&reference, &registries, &options)?, None)),
    };
    let opened = tokio::task::spawn_blocking(open).await;
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
struct Look<'a> {
    fetcher: Fetcher,
    keys: KeyRing,
    repository: Arc<dyn ComponentRepository>,
    /// Of an archive.
    contents: Option<Contents>,
    kept: &'a Kept,
    /// Whether references to other places can be followed; an archive has what is in it.
    leads_out: bool,
    /// Whether it was made by `bundle create`.
    is_ours: bool,
    images: Vec<Called>,
    found: Completeness,
}

impl<'a> Look<'a> {
    async fn open(place: &RepositoryRef, kept: &'a Kept, options: &Options) -> Result<Self, ResolveError> {
        let leads_out = matches!(place, RepositoryRef::Oci { .. });
        let mut options = options.clone();
        if leads_out && options.mirror.is_none() {
            options.mirror = Some(place.to_string());
        }
        let (fetcher, options) = asking_again(&options)?;
        let keys = KeyRing::load(&options, fetcher.registries.configuration())?;
        let (repository, contents) = opened(place, &fetcher, &options).await?;
        let (images, found) = (Vec::new(), Completeness::default());
        Ok(Self { fetcher, keys, repository, contents, kept, leads_out, is_ours: false, images, found })
    }

    /// Everything that the lock names.
    async fn channel(&mut self, lock: &ReleaseLock) -> Result<(), ResolveError> {
        let root = ComponentVersion::new(&lock.root.name, &lock.root.version);
        let nodes = self.nodes(lock, &root).await?;
        let original = self.original(&root).await?;
        self.is_ours = original.is_some();
        if let Some(original) = &original {
            self.found.remarks.extend(selected(&original.lock, lock));
        }
        let mut left_out = 0;
        for locked in &lock.components {
            let Some(node) = nodes.get(&ComponentVersion::new(&locked.name, &locked.version)) else { continue };
            left_out += node.descriptor.references.len().saturating_sub(locked.references.len());
            self.found.missing.extend(proof::differences(node, locked, original.as_ref()));
            self.component(node, &locked.resources).await?;
        }
        if left_out > 0 {
            self.found.remarks.push(format!(
                "{left_out} component references are not in the lock, as where it was made with a selection: what they lead to was not looked for"
            ));
        }
        let proven = findings(&nodes, &root, &self.keys, crate::resolve::now());
        self.found.missing.extend(proven.wrong);
        self.found.remarks.extend(proven.remarks);
        self.found.signatures = proven.signatures;
        self.names().await
    }

    /// The component versions that are there, as they are read for an installation.
    async fn nodes(
        &mut self,
        lock: &ReleaseLock,
        root: &ComponentVersion,
    ) -> Result<BTreeMap<ComponentVersion, Node>, ResolveError> {
        let mut closure = Closure { nodes: BTreeMap::new(), repositories: vec![Arc::clone(&self.repository)] };
        for component in &lock.components {
            let at = ComponentVersion::new(&component.name, &component.version);
            if let Some(node) = self.node(&at).await? {
                closure.nodes.insert(at, node);
            }
        }
        if closure.nodes.contains_key(root)
            && let Err(error) = crate::nested::fill(&mut closure, root)
        {
            self.found.missing.push(error.to_string());
        }
        Ok(closure.nodes)
    }

    async fn node(&mut self, at: &ComponentVersion) -> Result<Option<Node>, ResolveError> {
        let path = vec![at.clone()];
        match self.repository.descriptor(at).await {
            Ok(found) => {
                let kept = (0..found.descriptor.references.len()).collect();
                let (descriptor, digest, source) = (found.descriptor, found.digest, Arc::clone(&self.repository));
                Ok(Some(Node { kept, descriptor, digest, repository: 0, source, path }))
            }
            Err(error) => {
                let lacks = self.lacks(format!("component {at}"), error);
                lacks.map(|()| None).map_err(|source| ResolveError::Repository { path, source })
            }
        }
    }

    /// What the place itself says it was made from.
    async fn original(&mut self, root: &ComponentVersion) -> Result<Option<Origin>, ResolveError> {
        match origin::at(self.repository.as_ref(), root, &self.fetcher.limits).await {
            Ok(original) => Ok(original),
            Err(error) => {
                let lacks = self.lacks(format!("the lock that {root} was bundled from"), error);
                lacks.map(|()| None).map_err(|source| ResolveError::Repository { path: vec![root.clone()], source })
            }
        }
    }

    /// Images under their ordinary names. A place that somebody else has made has none of those.
    async fn names(&mut self) -> Result<(), ResolveError> {
        let location = self.repository.location("");
        let base = location.trim_end_matches(&format!("{DESCRIPTORS}/"));
        let (store, images) = (self.repository.artifacts(), std::mem::take(&mut self.images));
        self.found.missing.extend(names::clashes(&images));
        let names = names::look(store.as_ref(), base, &images, self.kept).await?;
        if self.is_ours || names.there > 0 {
            self.found.missing.extend(names.missing);
        } else if names.wanted > 0 {
            let place = store.place();
            self.found.remarks.push(format!(
                "{place} was not made by `plinth bundle`: its {} images are beside their components, and not under their ordinary names",
                names.wanted
            ));
        }
        Ok(())
    }

    /// plinth itself is in every bundle: the newest version that is there.
    async fn program(&mut self, lock: &ReleaseLock) -> Result<(), ResolveError> {
        if !self.is_ours || lock.components.iter().any(|component| component.name == program::COMPONENT) {
            return Ok(());
        }
        let versions = self.repository.versions(program::COMPONENT).await?;
        let Some(version) = versions.last() else {
            self.found.missing.push(format!("component {}, which is in every bundle", program::COMPONENT));
            return Ok(());
        };
        let at = ComponentVersion::new(program::COMPONENT, version);
        if let Some(node) = self.node(&at).await? {
            self.component(&node, &locked_component(&node).resources).await?;
            self.names().await?;
            match super::signed::of_program(&node, &self.keys) {
                Ok(remark) => self.found.remarks.extend(remark),
                Err(wrong) => self.found.missing.push(wrong),
            }
            self.found.program = Some(at);
        }
        Ok(())
    }

    /// What keeps an archive from being pushed.
    async fn index(&mut self) -> Result<(), ResolveError> {
        let Some(contents) = &self.contents else { return Ok(()) };
        let claims = Claims::read(contents, &self.fetcher.limits).await;
        self.found.missing.extend(claims.unfounded());
        // Of what somebody else has made, more may be there than the lock is about.
        if self.is_ours {
            self.found.missing.extend(signed(&claims, &self.fetcher.registries)?.unproven);
        }
        Ok(())
    }

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
        let name = format!("resource {} of {}", locked.name, node.at());
        let resource = match proof::held(node, locked, self.is_ours) {
            Ok(resource) => resource,
            Err(missing) => {
                self.found.missing.push(missing);
                return Ok(());
            }
        };
        let access = Access::read(&resource.access);
        if access == Access::Nothing {
            return Ok(());
        }
        if let Some(place) = leads_out(&access).filter(|_| !self.leads_out) {
            self.found.missing.push(format!("{name}: it is only referred to, as {place}"));
            return Ok(());
        }
        match self.fetcher.settle(node, resource, &name).await {
            Ok(Settled::Blob(stream)) => self.found(stream.drain().await, name),
            Ok(Settled::Artifact(artifact)) => {
                self.images.extend(ordinary(resource, &artifact, &name));
                self.artifact(artifact, &name).await
            }
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

    fn lacks(&mut self, what: String, error: RepositoryError) -> Result<(), RepositoryError> {
        lacks(&mut self.found.missing, what, error)
    }
}

/// What the place says that it was made without. It is not believed: what the lock names is missing all the same.
fn selected(own: &ReleaseLock, lock: &ReleaseLock) -> Option<String> {
    let has =
        |of: &ReleaseLock, name: &str, version: &str| of.components.iter().any(|one| one.name == name && one.version == version);
    let left_out = lock.components.iter().filter(|one| !has(own, &one.name, &one.version)).count();
    (left_out > 0).then(|| {
        format!(
            "it says that it was made with a selection, without {left_out} of the lock's component versions: without --lock, or with a lock of that selection, it is verified for what it holds"
        )
    })
}

/// What is not there is named; what could not be looked for, as where nobody is let in, is an error.
pub(super) fn lacks(missing: &mut Vec<String>, what: String, error: RepositoryError) -> Result<(), RepositoryError> {
    match error.kind() {
        _ if matches!(error, RepositoryError::Denied { .. }) => return Err(error),
        ErrorKind::Unavailable => return Err(error),
        ErrorKind::NotFound => missing.push(what),
        ErrorKind::Refused => missing.push(format!("{what}: {error}")),
    }
    Ok(())
}

/// The ordinary name of an image that is beside its component.
fn ordinary(resource: &Resource, artifact: &Artifact, what: &str) -> Option<Called> {
    match Access::read(&resource.access) {
        Access::LocalBlob { media_type, reference_name, .. } if is_manifest_type(&media_type) => {
            Called::new(what.to_owned(), &reference_name, artifact.manifest.digest.clone())
        }
        _ => None,
    }
}

/// Where an access leads, if that is another place.
pub(super) fn leads_out(access: &Access) -> Option<String> {
    match access {
        Access::OciArtifact { image } => Some(image.clone()),
        Access::OciBlob { repository, digest, .. } => Some(format!("{repository}@{digest}")),
        Access::Wget { url, .. } => Some(url.clone()),
        Access::Helm { repository, chart, .. } => Some(format!("{chart} in {repository}")),
        Access::LocalBlob { .. } | Access::Relative { .. } | Access::Nothing | Access::Other { .. } => None,
    }
}

fn platform(member: &serde_json::Value) -> String {
    let of = |key: &str| member.pointer(&format!("/platform/{key}")).and_then(serde_json::Value::as_str);
    match (of("os"), of("architecture")) {
        (Some(os), Some(architecture)) => format!(" for {os}/{architecture}"),
        _ => String::new(),
    }
}
