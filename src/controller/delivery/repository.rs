//! Repository: whether components can be read from there.

use plinth_api::delivery::RepositorySpec;
use plinth_releasechannel::RepositoryError;

use super::{
    reconcile::{Delivery, Pass, spec},
    report::{End, Reason},
    sources::failed,
};

/// A component that nobody has: asking for its versions reaches the registry and costs one request.
const NOBODYS: &str = "plinth.dev/ping";

impl Delivery {
    /// Ready says that the repository answers; a registry that wants other credentials answers too (ocm.md section 16).
    pub(super) async fn repository(&self, pass: &mut Pass<'_>) -> End {
        let spec: RepositorySpec = spec(pass.object)?;
        let credentials = self.credentials(pass, None).await?;
        let repository = self.sources.open(&spec.repository_spec, &credentials)?;
        match repository.versions(NOBODYS).await {
            Ok(_) | Err(RepositoryError::NotFound { .. } | RepositoryError::Denied { .. }) => {
                Ok("the repository answers".to_owned())
            }
            Err(error) => Err(failed(Reason::GetRepositoryFailed, &error)),
        }
    }
}
