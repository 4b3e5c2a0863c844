//! plinth's own image behind a mirror: the one that a bundle brought there, else this executable (contracts 10).

use std::collections::BTreeMap;

use plinth_releasechannel::{
    ErrorKind, Options, Registries, RepositoryRef, Selection, SourceRef,
    bundle::of_program,
    inspect,
    program::{self, COMPONENT, RESOURCE},
    push,
};
use plinth_run::Outcome;

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

/// The image by digest, as a pod pulls it.
pub(super) async fn of_the_mirror(mirror: &str, source: &SourceArgs, purpose: Purpose, out: Out) -> Result<String, Failure> {
    let options = load::options(source);
    let mirror = RepositoryRef::parse(mirror).map_err(|error| refusal(&error))?;
    match brought(&mirror, &options).await? {
        Some(image) => Ok(image),
        None => packed(&mirror, &options, purpose, out).await,
    }
}

/// The image of this version that is in the mirror.
async fn brought(mirror: &RepositoryRef, options: &Options) -> Result<Option<String>, Failure> {
    let (repositories, version) = (vec![mirror.clone()], Some(VERSION.to_owned()));
    let source = SourceRef::Component { repositories, component: COMPONENT.to_owned(), version };
    let found = match inspect(&source, &Selection::default(), options).await {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| refusal(&error))?,
    };
    let images = found.localization(mirror).await.map_err(|error| refusal(&error))?;
    Ok(images.of_resource(&found.root, RESOURCE, &BTreeMap::new()).map(str::to_owned))
}

/// The image of the running executable.
async fn packed(mirror: &RepositoryRef, options: &Options, purpose: Purpose, out: Out) -> Result<String, Failure> {
    let RepositoryRef::Oci { host, sub_path, .. } = mirror else {
        return Err(Failure::refused(format!("--mirror {mirror}: that is no registry")));
    };
    let own = std::env::current_exe().map_err(|error| Failure::failed(format!("find the running executable: {error}")))?;
    program::check(&own).map_err(|error| {
        let hint = "give --controller-image REF@DIGEST, or --controller none to do without";
        refusal(&error.into()).hint(hint)
    })?;
    let staging = tempfile::tempdir().map_err(|error| Failure::failed(format!("make a folder for plinth's image: {error}")))?;
    let folder = staging.path().to_owned();
    let packing = tokio::task::spawn_blocking(move || of_program(&own, VERSION, &folder)).await;
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
