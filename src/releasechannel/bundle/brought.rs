//! plinth's own image in a mirror, and what proves it (decision 0026).

use std::collections::BTreeMap;
use std::path::Path;

use crate::channel::Channel;
use crate::digest::Digest;
use crate::error::{ErrorKind, ResolveError};
use crate::options::{Options, Verify};
use crate::program;
use crate::resolve::inspect;
use crate::selection::Selection;
use crate::source::{RepositoryRef, SourceRef};

/// The image of this version of plinth in a mirror, as a pod pulls it; `None` where there is none. Where keys are given it must be proven as
/// everything else is, or be the image of `executable`, which is believed because it runs.
pub async fn program_at(
    mirror: &RepositoryRef,
    version: &str,
    executable: &Path,
    options: &Options,
) -> Result<Option<String>, ResolveError> {
    let (repositories, component) = (vec![mirror.clone()], program::COMPONENT.to_owned());
    let source = SourceRef::Component { repositories, component, version: Some(version.to_owned()) };
    let found = match inspect(&source, &Selection::default(), options).await {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(ResolveError::Unproven { path, reason }) => {
            let unsigned = Options { verify: Some(Verify::Off), ..options.clone() };
            let found = inspect(&source, &Selection::default(), &unsigned).await?;
            if !is_of(&found, executable, version).await {
                let reason = format!("{reason}; and its image is not that of the plinth that runs");
                return Err(ResolveError::Unproven { path, reason });
            }
            found
        }
        other => other?,
    };
    let images = found.localization(mirror).await?;
    Ok(images.of_resource(&found.root, program::RESOURCE, &BTreeMap::new()).map(str::to_owned))
}

/// Whether the image of the component is what the executable becomes.
async fn is_of(found: &Channel, executable: &Path, version: &str) -> bool {
    let resources = found.lock.components.iter().flat_map(|component| &component.resources);
    let recorded = resources.filter(|resource| resource.name == program::RESOURCE).find_map(|resource| resource.digest.clone());
    let (executable, version) = (executable.to_owned(), version.to_owned());
    let own = tokio::task::spawn_blocking(move || digest_of(&executable, &version)).await;
    recorded.is_some() && recorded == own.ok().flatten().map(|digest| digest.to_string())
}

/// `None` where the executable cannot be packed.
fn digest_of(executable: &Path, version: &str) -> Option<Digest> {
    let staging = tempfile::tempdir().ok()?;
    // The chart beside it is no part of the image.
    let (bundle, _) = super::of_program(executable, version, &program::Chart::default(), staging.path()).ok()?;
    bundle.called.into_iter().next().map(|called| called.digest)
}
