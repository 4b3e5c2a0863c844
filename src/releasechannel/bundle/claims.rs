//! What an archive's index says, against its descriptors and its lock. An index is not signed: without this, whoever edits it would decide
//! what a mirror calls what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plinth_api::lock::LockedResource;
use serde_json::Value;

use super::names::{Called, clashes};
use super::signed::{Nodes, contradicted};
use super::{LOCK_REPOSITORY, origin, proof};
use crate::access::Access;
use crate::closure::Node;
use crate::ctf::{Contents, IndexEntry};
use crate::descriptor::Resource;
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::fetch::{Settled, expected_digest, is_manifest_type, settle_beside};
use crate::options::Limits;
use crate::program;
use crate::repository::{ComponentRepository, ComponentVersion, Manifest, OciRepository, Pointer, entry_digest};
use crate::source::DESCRIPTORS;
use crate::versions::from_tag;

/// An archive, read once for everything that is asked of it: its component versions, and what its lock says.
pub struct Claims<'a> {
    contents: &'a Contents,
    limits: &'a Limits,
    repository: Arc<OciRepository>,
    pub(super) nodes: Nodes,
    /// Images by their ordinary names.
    called: Vec<Called>,
    /// Positions in these by repository and tag.
    by_name: BTreeMap<(String, String), usize>,
    /// Manifests that may be listed without a tag.
    members: BTreeSet<(String, Digest)>,
    /// What the locks of the archive name; `None` where another tool has made it.
    locked: Option<BTreeSet<ComponentVersion>>,
    wrong: Vec<String>,
}

impl<'a> Claims<'a> {
    /// Reads descriptors and locks, and proves every resource that is in the archive by its digest. A layer is read only where nothing less
    /// proves it.
    pub async fn read(contents: &'a Contents, limits: &'a Limits) -> Self {
        let mut claims = Self::new(contents, limits);
        claims.components().await;
        claims.locks().await;
        claims
    }

    /// What keeps the archive from being published, each named by its entry of the index or its resource; empty where all of the index is
    /// founded: a component version by its own descriptor and by the signed digests that lead to it, content by the digest of the resource
    /// that leads to it, an ordinary name by the resource that is called so, and everything by the lock where there is one. What the lock
    /// names must be there.
    pub fn unfounded(&self) -> Vec<String> {
        let mut wrong = self.wrong.clone();
        wrong.extend(contradicted(&self.nodes));
        wrong.extend(clashes(&self.called));
        wrong.extend(self.contents.artifacts.iter().filter_map(|entry| self.entry(entry)));
        wrong.extend(self.unlisted_names());
        wrong
    }

    /// Resources whose content is elsewhere, each with its access.
    pub fn referred(&self) -> Vec<String> {
        let resources =
            self.nodes.iter().flat_map(|(at, node)| node.descriptor.resources.iter().map(move |resource| (at, resource)));
        let line = |(at, resource): (&ComponentVersion, &Resource)| {
            let place = super::complete::leads_out(&Access::read(&resource.access))?;
            Some(format!("{} of {at} ({place})", resource.identity))
        };
        resources.filter_map(line).collect()
    }

    fn new(contents: &'a Contents, limits: &'a Limits) -> Self {
        let store = contents.clone().into_store(limits.clone());
        let repository = Arc::new(OciRepository::new(store, "", Value::Null, limits.clone()));
        Self {
            contents,
            limits,
            repository,
            nodes: BTreeMap::new(),
            called: Vec::new(),
            by_name: BTreeMap::new(),
            members: BTreeSet::new(),
            locked: None,
            wrong: Vec::new(),
        }
    }

    /// Reads every component version that the index has a tag for.
    async fn components(&mut self) {
        for entry in &self.contents.artifacts {
            let Some(at) = component_of(entry) else { continue };
            if self.nodes.contains_key(&at) {
                continue;
            }
            if let Err(error) = self.component(&at, entry).await {
                self.wrong.push(format!("{}: {error}", name_of(entry)));
            }
        }
    }

    async fn component(&mut self, at: &ComponentVersion, entry: &IndexEntry) -> Result<(), RepositoryError> {
        let found = self.repository.descriptor(at).await?;
        let source: Arc<dyn ComponentRepository> = self.repository.clone();
        let (kept, path) = ((0..found.descriptor.references.len()).collect(), vec![at.clone()]);
        let node = Node { descriptor: found.descriptor, digest: found.digest, repository: 0, source, path, kept };
        self.nodes.insert(at.clone(), node.clone());
        self.below(&entry.repository, &entry.digest).await?;
        for resource in &node.descriptor.resources {
            let what = format!("resource {} of {at}", resource.identity);
            if let Err(error) = self.resource(&node, resource, &what).await {
                self.wrong.push(format!("{what}: {error}"));
            }
        }
        Ok(())
    }

    /// What a resource leads to must be what its digest says: its access is signed by nobody.
    async fn resource(&mut self, node: &Node, resource: &Resource, what: &str) -> Result<(), RepositoryError> {
        let access = Access::read(&resource.access);
        if self.is_proven_by_name(resource, &access, what)? {
            return Ok(());
        }
        let (source, component) = (self.repository.as_ref(), node.descriptor.name.as_str());
        match settle_beside(source, component, resource, what, self.limits).await? {
            Some(Settled::Blob(stream)) if expected_digest(resource, what)?.is_some() => stream.drain().await?,
            Some(Settled::Blob(_)) | None => {}
            Some(Settled::Artifact(artifact)) => {
                let Access::LocalBlob { media_type, reference_name, .. } = access else { return Ok(()) };
                let digest = artifact.manifest.digest;
                let called = Called::new(what.to_owned(), &reference_name, digest).filter(|_| is_manifest_type(&media_type));
                let Some(called) = called else { return Ok(()) };
                self.below(&called.repository, &called.digest).await?;
                self.by_name.entry((called.repository.clone(), called.tag.clone())).or_insert(self.called.len());
                self.called.push(called);
            }
        }
        Ok(())
    }

    /// Whether a blob has the very digest that its resource says, so that it need not be read: whoever reads it hashes it.
    fn is_proven_by_name(&self, resource: &Resource, access: &Access, what: &str) -> Result<bool, RepositoryError> {
        let Access::LocalBlob { reference, media_type, .. } = access else { return Ok(false) };
        let is_there = self.contents.blobs.contains_key(reference);
        Ok(is_there && !is_manifest_type(media_type) && expected_digest(resource, what)?.as_ref() == Some(reference))
    }

    async fn manifest(&self, repository: &str, digest: &Digest) -> Result<Manifest, RepositoryError> {
        self.repository.artifacts().manifest(repository, &Pointer::Digest(digest.clone())).await
    }

    /// A manifest and, of an index, those of its members that are there. Layers are not looked at.
    async fn below(&mut self, repository: &str, top: &Digest) -> Result<(), RepositoryError> {
        let mut left = vec![top.clone()];
        let mut seen = 0;
        while let Some(digest) = left.pop() {
            let is_there = self.contents.blobs.contains_key(&digest) || digest == *top;
            if !is_there || !self.members.insert((repository.to_owned(), digest.clone())) {
                continue;
            }
            seen += 1;
            super::staging::check_members(seen, repository)?;
            for member in self.manifest(repository, &digest).await?.entries("manifests") {
                left.push(entry_digest(member, repository)?);
            }
        }
        Ok(())
    }

    /// Compares the component versions with every lock of the archive.
    async fn locks(&mut self) {
        for entry in &self.contents.artifacts {
            let Some(root) = root_of(entry) else { continue };
            match origin::at(self.repository.as_ref(), &root, self.limits).await {
                Ok(Some(origin)) => self.lock(entry, &root, &origin),
                Ok(None) => {}
                Err(error) => self.wrong.push(format!("{}: {error}", name_of(entry))),
            }
        }
        let Some(locked) = &self.locked else { return };
        let is_named = |at: &ComponentVersion| locked.contains(at) || at.name == program::COMPONENT;
        let unnamed = self.nodes.keys().filter(|at| !is_named(at));
        self.wrong.extend(unnamed.map(|at| format!("{DESCRIPTORS}/{at}: the archive's lock does not name it")));
        let programs = self.nodes.keys().filter(|at| at.name == program::COMPONENT).count();
        if programs != 1 && !locked.iter().any(|at| at.name == program::COMPONENT) {
            let component = program::COMPONENT;
            self.wrong.push(format!("{DESCRIPTORS}/{component}: a bundle has one version of it, and this index has {programs}"));
        }
    }

    fn lock(&mut self, entry: &IndexEntry, root: &ComponentVersion, origin: &origin::Origin) {
        let lock = &origin.lock;
        if (lock.root.name.as_str(), lock.root.version.as_str()) != (root.name.as_str(), root.version.as_str()) {
            self.wrong.push(format!("{}: it is the lock of {}:{}", name_of(entry), lock.root.name, lock.root.version));
        }
        for component in &lock.components {
            let at = ComponentVersion::new(&component.name, &component.version);
            match self.nodes.get(&at) {
                Some(node) => {
                    self.wrong.extend(proof::differences(node, component, Some(origin)));
                    self.wrong.extend(component.resources.iter().filter_map(|known| not_brought(node, known)));
                }
                None => self.wrong.push(format!("{DESCRIPTORS}/{at}: the archive's lock names it, and it is not in the index")),
            }
            self.locked.get_or_insert_default().insert(at);
        }
    }

    /// Why an entry must not be published.
    fn entry(&self, entry: &IndexEntry) -> Option<String> {
        let name = name_of(entry);
        if component_of(entry).is_some() || root_of(entry).is_some() {
            return None;
        }
        let is_member = self.members.contains(&(entry.repository.clone(), entry.digest.clone()));
        let Some(tag) = &entry.tag else {
            // Other tools keep the older manifest of a version that was signed again.
            let is_older = self.locked.is_none() && entry.repository.starts_with(&format!("{DESCRIPTORS}/"));
            return (!is_member && !is_older).then(|| format!("{name}: nothing in the archive names it"));
        };
        match self.by_name.get(&(entry.repository.clone(), tag.clone())).map(|at| &self.called[*at]) {
            None => Some(format!("{name}: no resource in the archive is called so")),
            Some(called) if called.digest != entry.digest => {
                Some(format!("{name}: the index leads to {}, and {} is {}", entry.digest, called.what, called.digest))
            }
            Some(_) => None,
        }
    }

    /// What a bundle has beside its component it also has by name.
    fn unlisted_names(&self) -> Vec<String> {
        if self.locked.is_none() {
            return Vec::new();
        }
        let listed: BTreeSet<(&String, &String)> =
            self.contents.artifacts.iter().filter_map(|entry| Some((&entry.repository, entry.tag.as_ref()?))).collect();
        let unlisted = self.by_name.iter().filter(|((repository, tag), _)| !listed.contains(&(repository, tag)));
        let line = |((repository, tag), at): (&(String, String), &usize)| {
            format!("{repository}:{tag}: {} is called so, and it is not in the index", self.called[*at].what)
        };
        unlisted.map(line).collect()
    }
}

/// What of a resource of the lock is otherwise here or was not brought along: whoever made the archive brought all of it.
fn not_brought(node: &Node, known: &LockedResource) -> Option<String> {
    match proof::held(node, known, true) {
        Ok(there) => {
            let place = super::complete::leads_out(&Access::read(&there.access))?;
            Some(format!("resource {} of {}: it is not in the archive, but elsewhere ({place})", known.name, node.at()))
        }
        Err(difference) => Some(difference),
    }
}

/// The component version that an entry is the tag of.
fn component_of(entry: &IndexEntry) -> Option<ComponentVersion> {
    let name = entry.repository.strip_prefix(DESCRIPTORS)?.strip_prefix('/')?;
    entry.tag.as_ref().map(|tag| ComponentVersion::new(name, from_tag(tag)))
}

/// The root whose lock an entry is.
fn root_of(entry: &IndexEntry) -> Option<ComponentVersion> {
    let name = entry.repository.strip_prefix(LOCK_REPOSITORY)?.strip_prefix('/')?;
    entry.tag.as_ref().map(|tag| ComponentVersion::new(name, from_tag(tag)))
}

fn name_of(entry: &IndexEntry) -> String {
    match &entry.tag {
        Some(tag) => format!("{}:{tag}", entry.repository),
        None => format!("{}@{}", entry.repository, entry.digest),
    }
}
