//! Where the images really are: every one is looked for in the mirror, by digest, before anything is written.

use futures::stream::{self, StreamExt};

use super::{Localization, Localized, Place};
use crate::channel::Channel;
use crate::digest::Digest;
use crate::error::{ErrorKind, RepositoryError, ResolveError};
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
            match found? {
                Some(place) => image.mirrored.clone_from(&place.mirrored),
                None => image.missing = Some(image.missing.take().unwrap_or_else(|| "it is not in the mirror".to_owned())),
            }
        }
        Ok(map)
    }
}

async fn look(store: &dyn ArtifactStore, image: &Localized) -> Result<Option<Place>, RepositoryError> {
    for place in &image.places {
        let Some(digest) = place.mirrored.rsplit_once('@').and_then(|(_, digest)| digest.parse::<Digest>().ok()) else {
            continue;
        };
        match store.manifest(&place.repository, &Pointer::Digest(digest)).await {
            Ok(_) => return Ok(Some(place.clone())),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
