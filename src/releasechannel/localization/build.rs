//! The map, from a lock and a mirror.

use std::collections::BTreeMap;

use plinth_api::lock::{LockedComponent, LockedResource, ReleaseLock};
use serde_json::Value;

use super::{Localization, Localized, Place};
use crate::access::Access;
use crate::fetch::{is_manifest_type, is_packed};
use crate::image::ImageReference;
use crate::repository::ComponentVersion;
use crate::source::{DESCRIPTORS, RepositoryRef};

/// An image as its access names it.
struct Named {
    image: ImageReference,
    /// Whether the host is known: a copy by value keeps only path and tag.
    has_host: bool,
}

impl Localization {
    /// Builds the map from the lock of a channel. `original` is the lock before the channel was copied by value, where there is one: it
    /// remembers hosts. Nothing in it is believed but names, and only of resources with the same digest.
    pub fn new(lock: &ReleaseLock, original: Option<&ReleaseLock>, mirror: &RepositoryRef) -> Self {
        let RepositoryRef::Oci { host, sub_path, .. } = mirror else { return Self::default() };
        let base = if sub_path.is_empty() { host.clone() } else { format!("{host}/{sub_path}") };
        Self::build(lock, original, Some(base))
    }

    /// The map without a mirror: nothing is rewritten, leaks are found.
    pub fn describing(lock: &ReleaseLock) -> Self {
        Self::build(lock, None, None)
    }

    fn build(lock: &ReleaseLock, original: Option<&ReleaseLock>, base: Option<String>) -> Self {
        let mut map = Self { base, ..Self::default() };
        let key = |component: &LockedComponent| ComponentVersion::new(&component.name, &component.version);
        let originals: BTreeMap<ComponentVersion, &LockedComponent> =
            original.iter().flat_map(|lock| &lock.components).map(|component| (key(component), component)).collect();
        for component in &lock.components {
            let at = key(component);
            for resource in &component.resources {
                let before = originals.get(&at).and_then(|original| same(original, resource));
                map.add(&at, resource, before);
            }
        }
        map
    }

    fn add(&mut self, at: &ComponentVersion, resource: &LockedResource, before: Option<&Value>) {
        let Some(named) = before.and_then(named).or_else(|| named(&resource.access)) else { return };
        let digest = digest(resource);
        let places = digest.as_deref().map(|digest| self.places(at, resource, &named.image, digest)).unwrap_or_default();
        let missing = match (places.is_empty(), &digest) {
            (true, None) => Some("nothing says which bytes it must have".to_owned()),
            (true, Some(_)) => {
                Some("it is packed inside of the component: push the channel with `plinth bundle push`".to_owned())
            }
            (false, _) => None,
        };
        let path = named.image.to_string();
        let original = if named.has_host { path } else { path_of(&path).to_owned() };
        let mirrored = places.first().map_or_else(String::new, |place| place.mirrored.clone());
        let index = self.images.len();
        let (component, name) = (at.clone(), resource.name.clone());
        let extra = resource.extra_identity.clone();
        self.images.push(Localized { component, resource: name, extra, original, mirrored, places, missing, unnamed: None });
        for spelling in spellings(&named.image) {
            self.enter(&spelling, index, named.has_host);
        }
    }

    fn enter(&mut self, spelling: &str, index: usize, has_host: bool) {
        if has_host {
            self.by_reference.entry(spelling.to_owned()).or_insert(index);
            return;
        }
        let images = &self.images;
        let is_other = |known: &usize| images[*known].mirrored.rsplit('@').next() != images[index].mirrored.rsplit('@').next();
        let entry = self.by_path.entry(path_of(spelling).to_owned()).or_insert(Some(index));
        if entry.as_ref().is_some_and(is_other) {
            *entry = None;
        }
    }

    /// Under its ordinary name, and beside its component.
    fn places(&self, at: &ComponentVersion, resource: &LockedResource, image: &ImageReference, digest: &str) -> Vec<Place> {
        let Some(base) = &self.base else { return vec![Place { repository: String::new(), mirrored: format!("{image}") }] };
        let (host, sub_path) = base.split_once('/').unwrap_or((base, ""));
        let below = |path: &str| if sub_path.is_empty() { path.to_owned() } else { format!("{sub_path}/{path}") };
        let place = |repository: String, tag: &str| Place { mirrored: format!("{host}/{repository}{tag}@{digest}"), repository };
        let tag = image.tag.as_ref().map(|tag| format!(":{tag}")).unwrap_or_default();
        match Access::read(&resource.access) {
            Access::LocalBlob { media_type, .. } if is_manifest_type(&media_type) => {
                let beside = place(below(&format!("{DESCRIPTORS}/{}", at.name)), "");
                vec![place(below(&image.repository), &tag), beside]
            }
            Access::LocalBlob { .. } => Vec::new(),
            _ if self.is_at_mirror(image) => vec![place(image.repository.clone(), &tag)],
            _ => vec![place(below(&image.repository), &tag)],
        }
    }
}

/// The access that a resource had before, if it is the same content.
fn same<'a>(component: &'a LockedComponent, resource: &LockedResource) -> Option<&'a Value> {
    let is_it = |other: &&LockedResource| {
        other.name == resource.name
            && other.version == resource.version
            && other.extra_identity == resource.extra_identity
            && other.digest == resource.digest
    };
    component.resources.iter().find(is_it).map(|resource| &resource.access)
}

/// The image that an access names; `None` where it is no image.
fn named(access: &Value) -> Option<Named> {
    match Access::read(access) {
        Access::OciArtifact { image } => Some(Named { image: ImageReference::parse(&image)?, has_host: true }),
        Access::Relative { reference } => Some(Named { image: without_host(&reference)?, has_host: false }),
        Access::LocalBlob { media_type, reference_name, .. }
            if !reference_name.is_empty() && (is_manifest_type(&media_type) || is_packed(&media_type)) =>
        {
            Some(Named { image: without_host(&reference_name)?, has_host: false })
        }
        _ => None,
    }
}

/// A path and a tag. The first segment is no host, whatever it looks like.
fn without_host(path: &str) -> Option<ImageReference> {
    ImageReference::parse(&format!("unknown.invalid/{}", path.trim_start_matches('/')))
}

/// The digest of the image's manifest: of the nested manifest, of the pin, of the descriptor.
fn digest(resource: &LockedResource) -> Option<String> {
    let pin = match Access::read(&resource.access) {
        Access::LocalBlob { reference, media_type, .. } if is_manifest_type(&media_type) => Some(reference),
        Access::OciArtifact { image } => ImageReference::parse(&image).and_then(|image| image.digest),
        Access::Relative { reference } => without_host(&reference).and_then(|image| image.digest),
        _ => None,
    };
    pin.map(|digest| digest.to_string()).or_else(|| resource.digest.clone())
}

/// How a reference may be written: with its tag, with its digest, with both.
pub(super) fn spellings(image: &ImageReference) -> Vec<String> {
    let with = |tag: bool, digest: bool| {
        let part = ImageReference {
            plain_http: false,
            tag: image.tag.clone().filter(|_| tag),
            digest: image.digest.clone().filter(|_| digest),
            ..image.clone()
        };
        part.to_string()
    };
    let mut spellings = match (&image.tag, &image.digest) {
        (Some(_), Some(_)) => vec![with(true, true), with(false, true), with(true, false)],
        (None, None) => vec![ImageReference { tag: Some("latest".to_owned()), ..image.clone() }.to_string()],
        _ => vec![with(true, true)],
    };
    spellings.dedup();
    spellings
}

/// A reference without its host.
pub(super) fn path_of(reference: &str) -> &str {
    reference.split_once('/').map_or(reference, |(_, path)| path)
}
