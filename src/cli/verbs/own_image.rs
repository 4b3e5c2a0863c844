//! plinth's own image behind a mirror: the one that a bundle brought there, else this executable (contracts 10).

use std::path::Path;

use plinth_api::platform::PlatformSpec;
use plinth_releasechannel::{
    Options, Registries, RepositoryRef, ResolveError,
    bundle::{of_program, program_at},
    program::{self, COMPONENT},
    push, with_platform,
};
use plinth_run::Outcome;

use super::own_chart;
use crate::{
    args::SourceArgs,
    exit::Failure,
    load::{self, refusal},
    out::Out,
};

/// The version that a bundle of this executable has.
pub(super) const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// What an image is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To be told: nothing is sent.
    Plan,
    /// To be run: the mirror gets it.
    Up,
}

/// The image by digest, as a pod pulls it. `asked` is the Platform, whose keys count as those of the command line do.
pub(super) async fn of_the_mirror(
    mirror: &str,
    (source, asked): (&SourceArgs, &PlatformSpec),
    purpose: Purpose,
    out: Out,
) -> Result<String, Failure> {
    let options = with_platform(&load::options(source), Some(asked), Path::new("")).map_err(|error| refusal(&error))?;
    let mirror = RepositoryRef::parse(mirror).map_err(|error| refusal(&error))?;
    let own = std::env::current_exe().map_err(|error| Failure::failed(format!("find the running executable: {error}")))?;
    match program_at(&mirror, VERSION, &own, &options).await {
        Ok(Some(image)) => Ok(image),
        Ok(None) => packed(&own, &mirror, &options, purpose, out).await,
        Err(error @ ResolveError::Unproven { .. }) => Err(refusal(&error).hint(format!(
            "sign {mirror}//{COMPONENT}:{VERSION} with one of the keys, have the channel refer to it, run the plinth that the bundle was made with, or give --controller-image REF@sha256:DIGEST"
        ))),
        Err(error) => Err(refusal(&error)),
    }
}

/// The image of the running executable.
async fn packed(own: &Path, mirror: &RepositoryRef, options: &Options, purpose: Purpose, out: Out) -> Result<String, Failure> {
    let RepositoryRef::Oci { host, sub_path, .. } = mirror else {
        return Err(Failure::refused(format!("--mirror {mirror}: that is no registry")));
    };
    program::check(own).map_err(|error| {
        let hint = "give --controller-image REF@DIGEST, or --controller none to do without";
        refusal(&error.into()).hint(hint)
    })?;
    let staging = tempfile::tempdir().map_err(|error| Failure::failed(format!("make a folder for plinth's image: {error}")))?;
    let (own, folder) = (own.to_owned(), staging.path().to_owned());
    let packing = tokio::task::spawn_blocking(move || of_program(&own, VERSION, &own_chart::files(), &folder)).await;
    let (bundle, name) = packing
        .map_err(|error| Failure::new(Outcome::Internal, format!("packing plinth's image ended with {error}")))?
        .map_err(|error| refusal(&error))?;
    if purpose == Purpose::Up {
        let registries = Registries::new(options).map_err(|error| refusal(&error))?;
        push(&bundle.contents, mirror, &registries).await.map_err(|error| refusal(&error.into()))?;
        out.talk(&format!("note: {COMPONENT} {VERSION} was not in the mirror; this executable was sent there"));
    }
    let place = [host.as_str(), sub_path].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    Ok(format!("{place}/{name}"))
}
