//! Are images also under their ordinary names? Nodes pull by those, and a mirror that has an image beside its component alone does not
//! give it to them.

use std::collections::{BTreeMap, BTreeSet};

use super::Kept;
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::repository::{ArtifactStore, Manifest, Pointer, entry_digest};

/// An image that is beside its component, and its ordinary name: the one that it had, without the host.
#[derive(Debug)]
pub(super) struct Called {
    /// The resource.
    pub(super) what: String,
    pub(super) repository: String,
    pub(super) tag: String,
    /// Its manifest.
    pub(super) digest: Digest,
}

impl Called {
    /// `name` is `repository:tag`; one without a tag is none to pull by.
    pub(super) fn new(what: String, name: &str, digest: Digest) -> Option<Self> {
        let (repository, tag) = name.rsplit_once(':').filter(|(_, tag)| crate::image::is_tag(tag))?;
        Some(Self { what, repository: repository.to_owned(), tag: tag.to_owned(), digest })
    }
}

/// Names that two different artifacts want: which of them a node would get is chance, so that there can be no such mirror.
pub(super) fn clashes(all: &[Called]) -> Vec<String> {
    let mut owners: BTreeMap<(&str, &str), &Called> = BTreeMap::new();
    let mut clashes = Vec::new();
    for called in all {
        let owner = *owners.entry((&called.repository, &called.tag)).or_insert(called);
        if owner.digest != called.digest {
            clashes.push(clash(owner, called));
        }
    }
    clashes
}

/// Both of them.
pub(super) fn clash(owner: &Called, other: &Called) -> String {
    let Called { repository, tag, what, digest } = owner;
    format!("{repository}:{tag} would be the name of two artifacts: {digest} ({what}) and {} ({})", other.digest, other.what)
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// What is not there or is something else.
    pub(super) missing: Vec<String>,
    /// How many images were looked for, and how many are there.
    pub(super) wanted: usize,
    pub(super) there: usize,
}

/// Looks for every image by name, in `base` of the store.
pub(super) async fn look(store: &dyn ArtifactStore, base: &str, all: &[Called], kept: &Kept) -> Result<Names, RepositoryError> {
    let mut search = Search { store, kept, names: Names::default(), seen: BTreeSet::new() };
    for called in all {
        let repository = format!("{base}{}", called.repository);
        let pointer = Pointer::Tag(called.tag.clone());
        if search.seen.insert((format!("{repository}{pointer}"), called.digest.clone())) {
            search.image(&repository, &pointer, called).await?;
        }
    }
    Ok(search.names)
}

struct Search<'a> {
    store: &'a dyn ArtifactStore,
    kept: &'a Kept,
    names: Names,
    seen: BTreeSet<(String, Digest)>,
}

impl Search<'_> {
    async fn image(&mut self, repository: &str, pointer: &Pointer, called: &Called) -> Result<(), RepositoryError> {
        let what = format!("image {repository}{pointer}, the ordinary name of {}", called.what);
        self.names.wanted += 1;
        match self.store.manifest(repository, pointer).await {
            Ok(found) if found.digest == called.digest => {
                self.names.there += 1;
                self.below(repository, found, &what).await
            }
            Ok(found) => {
                self.names.missing.push(format!("{what}: it is {}, not {}", found.digest, called.digest));
                Ok(())
            }
            Err(error) => self.lacks(what, error),
        }
    }

    /// Members and blobs: in a registry each repository has its own.
    async fn below(&mut self, repository: &str, top: Manifest, what: &str) -> Result<(), RepositoryError> {
        let (mut left, mut members) = (vec![top], 0);
        while let Some(manifest) = left.pop() {
            members += manifest.entries("manifests").len();
            super::staging::check_members(members, what)?;
            for member in manifest.entries("manifests").iter().filter(|member| self.kept.keeps(member)) {
                let digest = entry_digest(member, what)?;
                if !self.seen.insert((repository.to_owned(), digest.clone())) {
                    continue;
                }
                match self.store.manifest(repository, &Pointer::Digest(digest.clone())).await {
                    Ok(below) => left.push(below),
                    Err(error) => self.lacks(format!("manifest {digest} of {what}"), error)?,
                }
            }
            for blob in manifest.blobs() {
                let digest = entry_digest(blob, what)?;
                if self.seen.insert((repository.to_owned(), digest.clone()))
                    && let Err(error) = self.store.size(repository, &digest).await
                {
                    self.lacks(format!("blob {digest} of {what}"), error)?;
                }
            }
        }
        Ok(())
    }

    fn lacks(&mut self, what: String, error: RepositoryError) -> Result<(), RepositoryError> {
        super::complete::lacks(&mut self.names.missing, what, error)
    }
}
