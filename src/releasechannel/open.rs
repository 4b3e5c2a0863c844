//! Finding out what a SOURCE is, and opening it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plinth_api::platform::PlatformSpec;

use crate::ctf::{Contents, INDEX_FILE};
use crate::error::ResolveError;
use crate::options::Options;
use crate::registry::Registries;
use crate::repository::{ComponentRepository, OciRepository};
use crate::resolve::{folder_of, platform_file};
use crate::source::{RepositoryRef, SourceRef};

/// A source that has been opened.
#[derive(Debug)]
pub(crate) struct Opened {
    /// In order of preference, at least one.
    pub(crate) repositories: Vec<Arc<dyn ComponentRepository>>,
    /// The component, where the source names one.
    pub(crate) component: Option<String>,
    /// Version or range, where the source names one.
    pub(crate) version: Option<String>,
    /// The Platform file that the source was.
    pub(crate) platform: Option<PlatformSpec>,
    /// For messages.
    pub(crate) place: String,
}

/// Opens a source. Archives are scanned and folders read on a thread of their own, for they may be large.
pub(crate) async fn open(source: &SourceRef, registries: &Arc<Registries>, options: &Options) -> Result<Opened, ResolveError> {
    let (source, registries, options) = (source.clone(), Arc::clone(registries), options.clone());
    let place = source.to_string();
    let opened = tokio::task::spawn_blocking(move || open_blocking(&source, &registries, &options)).await;
    opened.unwrap_or_else(|error| Err(ResolveError::Source { text: place, reason: format!("opening it ended with {error}") }))
}

fn open_blocking(source: &SourceRef, registries: &Arc<Registries>, options: &Options) -> Result<Opened, ResolveError> {
    let SourceRef::Path(path) = source else { return open_component(source, registries, options) };
    let Some(platform) = platform_file(path)? else { return open_path(path, options) };
    let inner = SourceRef::from_platform(&platform.source, &folder_of(path))?;
    let mut opened = match &inner {
        SourceRef::Component { .. } | SourceRef::Registry(_) => open_component(&inner, registries, options)?,
        SourceRef::Path(inner) => open_path(inner, options)?,
    };
    opened.version = opened.version.or_else(|| platform.source.version.clone());
    opened.platform = Some(platform);
    Ok(opened)
}

/// A repository at a reference.
pub(crate) fn repository(
    reference: &RepositoryRef,
    registries: &Arc<Registries>,
    options: &Options,
) -> Result<Arc<dyn ComponentRepository>, ResolveError> {
    let specification = reference.specification();
    let limits = options.limits.clone();
    match reference {
        // A Repository that was made for a local channel points at its folder: the same path means the same content here.
        RepositoryRef::Ctf(path) if is_local(path) => local(path, options),
        RepositoryRef::Ctf(path) => Ok(of_contents(Contents::open(path, &limits)?, reference, options)),
        RepositoryRef::Oci { host, sub_path, plain_http } => {
            let store = registries.of_host(host, *plain_http)?;
            Ok(Arc::new(OciRepository::new(store, sub_path, specification, limits)))
        }
    }
}

/// What is in the archive at a reference, where it is one.
pub(crate) fn contents(reference: &RepositoryRef, options: &Options) -> Result<Option<Contents>, ResolveError> {
    match reference {
        RepositoryRef::Ctf(path) if !is_local(path) => Ok(Some(Contents::open(path, &options.limits)?)),
        RepositoryRef::Ctf(_) | RepositoryRef::Oci { .. } => Ok(None),
    }
}

/// The repository that an archive is. `reference` is what it is called.
pub(crate) fn of_contents(contents: Contents, reference: &RepositoryRef, options: &Options) -> Arc<dyn ComponentRepository> {
    let store = contents.into_store(options.limits.clone());
    Arc::new(OciRepository::new(store, "", reference.specification(), options.limits.clone()))
}

fn open_component(source: &SourceRef, registries: &Arc<Registries>, options: &Options) -> Result<Opened, ResolveError> {
    let (repositories, component, version) = match source {
        SourceRef::Component { repositories, component, version } => (repositories.as_slice(), Some(component), version.as_ref()),
        SourceRef::Registry(repository) => (std::slice::from_ref(repository), None, None),
        SourceRef::Path(_) => {
            return Err(ResolveError::Source { text: source.to_string(), reason: "it names no component".to_owned() });
        }
    };
    let mirror = mirror_of(options)?;
    let repositories = mirror.as_ref().map_or(repositories, std::slice::from_ref);
    let place = repositories.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let repositories =
        repositories.iter().map(|reference| repository(reference, registries, options)).collect::<Result<_, _>>()?;
    Ok(Opened { repositories, component: component.cloned(), version: version.cloned(), platform: None, place })
}

/// With a mirror for everything, what a source was read from gives way to it.
pub(crate) fn at_mirror(
    repositories: Vec<Arc<dyn ComponentRepository>>,
    registries: &Arc<Registries>,
    options: &Options,
) -> Result<Vec<Arc<dyn ComponentRepository>>, ResolveError> {
    match mirror_of(options)? {
        Some(mirror) => Ok(vec![repository(&mirror, registries, options)?]),
        None => Ok(repositories),
    }
}

fn mirror_of(options: &Options) -> Result<Option<RepositoryRef>, ResolveError> {
    let Some(mirror) = options.mirror.as_ref().filter(|_| options.mirror_only) else { return Ok(None) };
    match RepositoryRef::parse(mirror)? {
        RepositoryRef::Ctf(_) => {
            Err(ResolveError::Option { option: format!("the mirror {mirror}"), reason: "it is not a registry".to_owned() })
        }
        registry @ RepositoryRef::Oci { .. } => Ok(Some(registry)),
    }
}

/// A folder with `artifact-index.json` is a CTF, one with `channel.yaml` a local channel; a file is a constructor where it is YAML, else
/// an archive (contracts 6).
fn open_path(path: &Path, options: &Options) -> Result<Opened, ResolveError> {
    let place = path.display().to_string();
    let repository = if is_local(path) {
        local(path, options)?
    } else {
        if path.is_dir() && !path.join(INDEX_FILE).is_file() {
            let reason = format!("the folder has neither {INDEX_FILE} nor channel.yaml");
            return Err(ResolveError::Source { text: place, reason });
        }
        let contents = Contents::open(path, &options.limits)?;
        of_contents(contents, &RepositoryRef::Ctf(absolute(path)), options)
    };
    Ok(Opened { repositories: vec![repository], component: None, version: None, platform: None, place: format!("ctf::{place}") })
}

/// Whether a path is a local channel: a constructor, or a folder with one.
fn is_local(path: &Path) -> bool {
    let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    path.join("channel.yaml").is_file() || (is_yaml && path.is_file())
}

fn local(path: &Path, options: &Options) -> Result<Arc<dyn ComponentRepository>, ResolveError> {
    let contents = crate::constructor::pack(path, &options.limits)?;
    Ok(of_contents(contents, &RepositoryRef::Ctf(absolute(path)), options))
}

/// The lock and a Repository object must mean the same file from everywhere.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
