//! Are images also under their ordinary names? Nodes pull by those, and a mirror that has an image beside its component alone does not
//! give it to them.

use std::collections::{BTreeMap, BTreeSet};

use super::Kept;
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::repository::{ArtifactStore, Manifest, Pointer, entry_digest};

/// An image that is beside its component, and what it is called.
#[derive(Debug)]
pub(super) struct Named {
    /// The resource.
    pub(super) what: String,
    /// `repository:tag`, without host.
    pub(super) name: String,
    /// Its manifest.
    pub(super) digest: Digest,
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

/// Looks for every image by name, in `base` of the store. Of two with one name the first has it; the second is there by digest.
pub(super) async fn look(store: &dyn ArtifactStore, base: &str, all: &[Named], kept: &Kept) -> Result<Names, RepositoryError> {
    let mut owners: BTreeMap<&str, &Digest> = BTreeMap::new();
    let mut search = Search { store, kept, names: Names::default(), seen: BTreeSet::new() };
    for named in all {
        let Some((path, tag)) = named.name.rsplit_once(':').filter(|(_, tag)| crate::image::is_tag(tag)) else { continue };
        let repository = format!("{base}{path}");
        let owner = *owners.entry(&named.name).or_insert(&named.digest);
        let pointer = if *owner == named.digest { Pointer::Tag(tag.to_owned()) } else { Pointer::Digest(named.digest.clone()) };
        if search.seen.insert((format!("{repository}{pointer}"), named.digest.clone())) {
            search.image(&repository, &pointer, named).await?;
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
    async fn image(&mut self, repository: &str, pointer: &Pointer, named: &Named) -> Result<(), RepositoryError> {
        let what = format!("image {repository}{pointer}, the ordinary name of {}", named.what);
        self.names.wanted += 1;
        match self.store.manifest(repository, pointer).await {
            Ok(found) if found.digest == named.digest => {
                self.names.there += 1;
                self.below(repository, found, &what).await
            }
            Ok(found) => {
                self.names.missing.push(format!("{what}: it is {}, not {}", found.digest, named.digest));
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
