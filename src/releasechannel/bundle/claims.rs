//! What an archive's index says, against its descriptors and its lock. An index is not signed: without this, whoever edits it would decide
//! what a mirror calls what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::names::{Called, clashes};
use super::signed::{Nodes, contradicted};
use super::{LOCK_REPOSITORY, origin, proof};
use crate::access::Access;
use crate::closure::Node;
use crate::ctf::{Contents, IndexEntry};
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::fetch::{expected_digest, is_manifest_type, prove};
use crate::options::Limits;
use crate::program;
use crate::repository::{ComponentRepository, ComponentVersion, Manifest, OciRepository, Pointer, entry_digest};
use crate::source::DESCRIPTORS;
use crate::versions::from_tag;

/// What keeps an archive from being published, each named by its entry of the index; empty where all of the index is founded: a component
/// version by its own descriptor and by the signed digests that lead to it, an ordinary name by the resource that is called so, and everything by the lock where there is one. What
/// the lock names must be there. No layer is read.
pub async fn unfounded(contents: &Contents, limits: &Limits) -> Vec<String> {
    let mut claims = Claims::new(contents, limits);
    claims.components().await;
    claims.locks().await;
    claims.wrong.extend(contradicted(&claims.nodes));
    claims.wrong.extend(clashes(&claims.called));
    let wrong: Vec<String> = contents.artifacts.iter().filter_map(|entry| claims.entry(entry)).collect();
    claims.wrong.extend(wrong);
    claims.all_names_are_listed();
    claims.wrong
}

/// The component versions that the index has a tag for and that can be read.
pub(super) async fn nodes(contents: &Contents, limits: &Limits) -> Nodes {
    let mut claims = Claims::new(contents, limits);
    claims.components().await;
    claims.nodes
}

struct Claims<'a> {
    contents: &'a Contents,
    limits: &'a Limits,
    repository: Arc<OciRepository>,
    nodes: Nodes,
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
        self.below(&entry.repository, &entry.digest).await?;
        for resource in &node.descriptor.resources {
            let Access::LocalBlob { reference, media_type, reference_name } = Access::read(&resource.access) else { continue };
            if !is_manifest_type(&media_type) {
                continue;
            }
            let what = format!("resource {} of {at}", resource.identity);
            let manifest = self.manifest(&entry.repository, &reference).await?;
            prove(expected_digest(resource, &what)?.as_ref(), &manifest, None, &what)?;
            let Some(called) = Called::new(what, &reference_name, reference) else { continue };
            self.below(&called.repository, &called.digest).await?;
            self.by_name.entry((called.repository.clone(), called.tag.clone())).or_insert(self.called.len());
            self.called.push(called);
        }
        self.nodes.insert(at.clone(), node);
        Ok(())
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
                    self.wrong.extend(component.resources.iter().filter_map(|known| proof::held(node, known, true).err()));
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
    fn all_names_are_listed(&mut self) {
        if self.locked.is_none() {
            return;
        }
        let listed: BTreeSet<(&String, &String)> =
            self.contents.artifacts.iter().filter_map(|entry| Some((&entry.repository, entry.tag.as_ref()?))).collect();
        for ((repository, tag), at) in self.by_name.iter().filter(|((repository, tag), _)| !listed.contains(&(repository, tag))) {
            let what = &self.called[*at].what;
            self.wrong.push(format!("{repository}:{tag}: {what} is called so, and it is not in the index"));
        }
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
