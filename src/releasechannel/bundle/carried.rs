//! plinth itself, which is in every bundle: as the component [`program::COMPONENT`], whose image is the static executable in one layer,
//! with the chart that installs it.

use std::path::Path;
use std::sync::Arc;

use super::survey::{Item, Survey, look};
use super::{Bundle, Kept, list_by_name, origin};
use crate::channel::Channel;
use crate::closure::Node;
use crate::ctf::Contents;
use crate::error::ResolveError;
use crate::program::{self, Added, Chart};
use crate::repository::ComponentVersion;
use crate::source::DESCRIPTORS;

/// plinth, packed.
pub struct Program {
    contents: Contents,
    added: Added,
    version: String,
    from: String,
}

impl Program {
    /// Packs an executable with its chart; the image's layer is a file of the folder `staging`. One that cannot run alone is refused.
    pub fn pack(executable: &Path, version: &str, chart: &Chart, staging: &Path) -> Result<Self, ResolveError> {
        std::fs::create_dir_all(staging).map_err(|error| crate::ctf::file_error("create", staging, error))?;
        let mut contents = Contents::default();
        let added = program::component(executable, version, chart, &program::Keep::Folder(staging), &mut contents)?;
        Ok(Self { contents, added, version: version.to_owned(), from: executable.display().to_string() })
    }

    /// As it stands in the list of what a bundle holds.
    pub fn items(&self) -> impl Iterator<Item = Item> {
        self.added.resources.iter().map(|(resource, kind, bytes)| Item {
            component: program::COMPONENT.to_owned(),
            version: self.version.clone(),
            resource: (*resource).to_owned(),
            kind: (*kind).to_owned(),
            bytes: Some(*bytes),
            from: self.from.clone(),
        })
    }

    /// Adds it. Where the channel has the component, the bundle says so and stays as it is.
    pub fn add_to(self, bundle: &mut Bundle) -> Result<(), ResolveError> {
        let repository = format!("{DESCRIPTORS}/{}", program::COMPONENT);
        if bundle.contents.artifacts.iter().any(|entry| entry.repository == repository) {
            bundle.remarks.push(format!("the channel brings {} itself", program::COMPONENT));
            return Ok(());
        }
        bundle.resources += self.added.resources.len();
        bundle.bytes += self.added.resources.iter().map(|(.., bytes)| bytes).sum::<u64>();
        bundle.contents.blobs.extend(self.contents.blobs);
        bundle.contents.artifacts.extend(self.contents.artifacts);
        let what = format!("resource {} of {}:{}", program::RESOURCE, program::COMPONENT, self.version);
        list_by_name(what, Some(&self.added.name), &self.added.manifests, bundle)?;
        bundle.contents.artifacts.sort();
        bundle.contents.artifacts.dedup();
        Ok(())
    }
}

/// plinth beside a channel that is in a bundle: the newest version that is there, where the channel does not bring it itself.
pub async fn survey_program(channel: &Channel, kept: &Kept) -> Result<Survey, ResolveError> {
    let is_brought = channel.closure.nodes.keys().any(|at| at.name == program::COMPONENT);
    if is_brought || origin::of(channel).await?.is_none() {
        return Ok(Survey::default());
    }
    let source = Arc::clone(&channel.closure.require(&channel.root)?.source);
    let versions = source.versions(program::COMPONENT).await?;
    let Some(version) = versions.last() else { return Ok(Survey::default()) };
    let at = ComponentVersion::new(program::COMPONENT, version);
    let found = source.descriptor(&at).await?;
    let node =
        Node { descriptor: found.descriptor, digest: found.digest, repository: 0, source, path: vec![at], kept: Vec::new() };
    let mut survey = Survey::default();
    for resource in super::carried(&node) {
        survey.add(look(&channel.fetcher, &node, resource, kept).await?);
    }
    Ok(survey)
}
