//! What is there already, and is damaged.

use super::Push;
use crate::digest::Digest;
use crate::error::{ErrorKind, RepositoryError};
use crate::repository::{ArtifactStore, Content, Pointer};

impl Push<'_> {
    /// Reads what the registry has under a digest.
    pub(super) async fn is_whole(&self, repository: &str, digest: &Digest, content: Content) -> Result<bool, RepositoryError> {
        let read = match content {
            Content::Manifest => self.registry.manifest(repository, &Pointer::Digest(digest.clone())).await.map(drop),
            Content::Blob => match self.registry.blob(repository, digest).await {
                Ok(stream) => stream.drain().await,
                Err(error) => Err(error),
            },
        };
        match read {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Some registries believe that what is called by a digest has it, and throw away what is sent again.
    pub(super) async fn is_mended(&mut self, repository: &str, digest: &Digest, content: Content) -> Result<(), RepositoryError> {
        if self.is_whole(repository, digest, content).await? {
            self.pushed.mended += 1;
            return Ok(());
        }
        let what = self.registry.place_of(&format!("{digest} of {repository}"));
        let reason = "it is damaged there, and the registry keeps its damaged bytes when the right ones are sent: remove them where it stores them, then push again";
        Err(RepositoryError::malformed(what, reason))
    }
}
