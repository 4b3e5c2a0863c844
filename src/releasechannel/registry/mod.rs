//! OCI registries over HTTP.

use std::sync::Arc;

use crate::error::{RepositoryError, ResolveError};
use crate::image::ImageReference;
use crate::options::Options;
use crate::repository::ArtifactStore;

/// Connections to registries, one per host, made when they are needed.
#[derive(Debug)]
pub struct Registries {
    options: Options,
}

impl Registries {
    /// Checks the options; nothing is contacted yet.
    pub fn new(options: &Options) -> Result<Arc<Self>, ResolveError> {
        Ok(Arc::new(Self { options: options.clone() }))
    }

    /// The registry of an image.
    pub(crate) fn of_image(&self, image: &ImageReference) -> Result<Arc<dyn ArtifactStore>, RepositoryError> {
        self.of_host(&image.host, image.plain_http)
    }

    /// The registry at a host.
    pub(crate) fn of_host(&self, host: &str, _plain_http: bool) -> Result<Arc<dyn ArtifactStore>, RepositoryError> {
        let _ = &self.options;
        Err(RepositoryError::Unsupported { what: host.to_owned(), reason: "registries follow in the next commit".to_owned() })
    }
}
