//! Where the images really are: every one is looked for in the mirror, by digest, before anything is written.

use futures::stream::{self, StreamExt};

use super::{Localization, Localized, Place};
use crate::channel::Channel;
use crate::digest::Digest;
use crate::error::{ErrorKind, RepositoryError, ResolveError};
use crate::image::ImageReference;
use crate::repository::{ArtifactStore, Pointer};
use crate::source::RepositoryRef;

impl Channel {
    /// Where the images of this channel are in a mirror. Asks the mirror for the manifest of each; what is not there is in
    /// [`Localization::missing`]. An error is only what keeps from looking.
    pub async fn localization(&self, mirror: &RepositoryRef) -> Result<Localization, ResolveError> {
        let RepositoryRef::Oci { host, plain_http, .. } = mirror else {
            return Err(ResolveError::Option {
                option: format!("the mirror {mirror}"),
                reason: "it is not a registry".to_owned(),
            });
        };
        let original = crate::bundle::original_lock(self).await?;
        let mut map = Localization::new(&self.lock, original.as_ref(), mirror);
        // The registry itself: what a cache has says nothing of what is there.
        let store = self.fetcher.registries.registry(host, *plain_http)?;
        let looks = map.images.iter().map(|image| look(store.as_ref(), image)).collect::<Vec<_>>();
        let found: Vec<_> = stream::iter(looks).buffered(self.fetcher.limits.parallel.max(1)).collect().await;
        for (image, found) in map.images.iter_mut().zip(found) {
            let Found { place, unnamed } = found?;
            image.unnamed = unnamed;
            match place {
                Some(place) => image.mirrored.clone_from(&place.mirrored),
                None => image.missing = Some(image.missing.take().unwrap_or_else(|| "it is not in the mirror".to_owned())),
            }
        }
        Ok(map)
    }
}

/// Where an image was found.
#[derive(Default)]
struct Found {
    place: Option<Place>,
    /// Why its ordinary name is not the place.
    unnamed: Option<String>,
}

/// What a bundle has brought is under its ordinary name, which is asked first; by digest alone it can be pulled from beside its component.
async fn look(store: &dyn ArtifactStore, image: &Localized) -> Result<Found, RepositoryError> {
    let mut found = Found::default();
    let has_two = image.places.len() > 1;
    for place in &image.places {
        let Some(ImageReference { tag, digest: Some(digest), .. }) = ImageReference::parse(&place.mirrored) else { continue };
        if let Some(tag) = tag.filter(|_| has_two) {
            let name = format!("{}:{tag}", place.repository);
            match there(store, &place.repository, &Pointer::Tag(tag)).await? {
                Some(other) if other == digest => return Ok(Found { place: Some(place.clone()), unnamed: None }),
                Some(other) => found.unnamed = Some(format!("{name} in the mirror is {other}, not {digest}")),
                None => found.unnamed = Some(format!("{name} is not in the mirror")),
            }
        }
        if there(store, &place.repository, &Pointer::Digest(digest)).await?.is_some() {
            found.place = Some(place.clone());
            break;
        }
    }
    Ok(found)
}

async fn there(store: &dyn ArtifactStore, repository: &str, pointer: &Pointer) -> Result<Option<Digest>, RepositoryError> {
    match store.manifest(repository, pointer).await {
        Ok(manifest) => Ok(Some(manifest.digest)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
