//! Images at deploy time: original reference → verified digest → mirrored reference, applied by exact match (ocm.md section 15).
//!
//! An image that no resource describes is a leak: behind an air gap there is no place to pull it from.

mod apply;
mod build;
mod settle;
mod words;

use std::collections::{BTreeMap, BTreeSet};

pub use apply::Applied;

use crate::image::ImageReference;
use crate::repository::ComponentVersion;

/// Where each image of a channel is in a mirror. Without a mirror nothing is rewritten, and leaks are found all the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Localization {
    /// `host[/path]` of the mirror.
    base: Option<String>,
    images: Vec<Localized>,
    /// By every spelling of the reference.
    by_reference: BTreeMap<String, usize>,
    /// By path alone, for images whose host no lock remembers; `None` where two have the path.
    by_path: BTreeMap<String, Option<usize>>,
}

/// One image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Localized {
    /// The component version that describes it.
    pub component: ComponentVersion,
    /// Name of the resource.
    pub resource: String,
    /// Further attributes of the resource's identity.
    pub extra: BTreeMap<String, String>,
    /// The reference before it was mirrored; without a host where nothing remembers it.
    pub original: String,
    /// The reference that a pod can pull: `mirror/path:tag@sha256:…`, never with a scheme.
    pub mirrored: String,
    /// Where it may be in the mirror, the preferred place first.
    places: Vec<Place>,
    /// Why it cannot be pulled from the mirror.
    missing: Option<String>,
    /// Why its ordinary name in the mirror gives nodes something else, or nothing.
    unnamed: Option<String>,
}

/// A place in the mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// Path of the repository below the host.
    repository: String,
    /// What a pod would pull.
    mirrored: String,
}

impl Localization {
    /// The image that this text names, if the channel has it. Scheme, docker's defaults, and a tag beside a digest do not matter.
    pub fn find(&self, reference: &str) -> Option<&Localized> {
        let image = ImageReference::parse(reference)?;
        let found = &self.images[self.index(&image)?];
        // The same tag with another digest is another image.
        let is_same = image.digest.is_none_or(|digest| found.mirrored.ends_with(digest.as_str()));
        is_same.then_some(found)
    }

    /// The reference that a pod can pull for this resource, where it is an image of the channel and in the mirror.
    pub fn of_resource(&self, component: &ComponentVersion, resource: &str, extra: &BTreeMap<String, String>) -> Option<&str> {
        let is_it = |image: &&Localized| image.component == *component && image.resource == resource && image.extra == *extra;
        let found = self.images.iter().find(is_it).filter(|image| image.missing.is_none() && self.base.is_some());
        found.map(|image| image.mirrored.as_str())
    }

    /// All images of the channel, in the order of its lock.
    pub fn images(&self) -> &[Localized] {
        &self.images
    }

    /// The mirror, `host[/path]`.
    pub fn mirror(&self) -> Option<&str> {
        self.base.as_deref()
    }

    /// Images of these component versions that cannot be pulled from the mirror, each with its reason.
    pub fn missing(&self, wanted: impl Fn(&ComponentVersion) -> bool) -> Vec<String> {
        let said = |image: &Localized| {
            let reason = image.missing.as_ref()?;
            Some(format!("image {} of {} ({}): {reason}", image.resource, image.component, image.original))
        };
        self.images.iter().filter(|image| wanted(&image.component)).filter_map(said).collect()
    }

    /// Images of these component versions that pods can pull from beside their components, while nodes that pull by ordinary names cannot.
    pub fn unnamed(&self, wanted: impl Fn(&ComponentVersion) -> bool) -> Vec<String> {
        let said = |image: &Localized| {
            let reason = image.unnamed.as_ref().filter(|_| image.missing.is_none())?;
            Some(format!("image {} of {} ({}): {reason}", image.resource, image.component, image.original))
        };
        self.images.iter().filter(|image| wanted(&image.component)).filter_map(said).collect()
    }

    /// Images that nothing used: a remark, for an operator may pull them.
    pub fn unused<'a>(&'a self, used: &BTreeSet<(ComponentVersion, String)>) -> Vec<&'a Localized> {
        let is_used = |image: &&Localized| used.contains(&(image.component.clone(), image.resource.clone()));
        let mut unused: Vec<&Localized> = self.images.iter().filter(|image| !is_used(image)).collect();
        unused.sort_by(|a, b| (&a.component, &a.resource).cmp(&(&b.component, &b.resource)));
        unused.dedup_by(|a, b| (&a.component, &a.resource) == (&b.component, &b.resource));
        unused
    }

    fn index(&self, image: &ImageReference) -> Option<usize> {
        let spelled = build::spellings(image);
        let exact = spelled.iter().find_map(|spelling| self.by_reference.get(spelling));
        exact.copied().or_else(|| spelled.iter().find_map(|spelling| *self.by_path.get(build::path_of(spelling))?))
    }

    /// Whether a reference leads to the mirror already.
    fn is_at_mirror(&self, image: &ImageReference) -> bool {
        let Some(base) = &self.base else { return false };
        format!("{}/{}", image.host, image.repository).starts_with(&format!("{base}/"))
    }
}

#[cfg(test)]
mod tests;
