//! Where component versions are, as the delivery kinds see it.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use plinth_api::platform::PlatformSpec;
use plinth_engine::ports::Answer;
use plinth_releasechannel::{
    Channel, ComponentRepository, Descriptor, ErrorKind, Options, RepositoryError, RepositoryRef, ResolveError, Selection,
    SourceRef, descriptor::Resource, inspect, localization::Localization, resolve, with_platform,
};
use serde_json::Value;

use super::report::{Failed, Reason};

/// Configuration texts from Secrets and ConfigMaps. Its `Debug` shows none of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// Texts of `.ocmconfig` files.
    pub ocm: Vec<String>,
    /// Texts of docker `config.json` files.
    pub docker: Vec<String>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({} files)", self.ocm.len() + self.docker.len())
    }
}

/// Opens repositories and reads what is in them.
pub trait Sources: Send + Sync {
    /// The repository of an OCM specification.
    fn open(&self, specification: &Value, credentials: &Credentials) -> Result<Arc<dyn ComponentRepository>, Failed>;

    /// The bytes of a resource, proven against its digest.
    fn read<'a>(
        &'a self,
        repository: &'a dyn ComponentRepository,
        descriptor: &'a Descriptor,
        resource: &'a Resource,
        credentials: &'a Credentials,
    ) -> Answer<'a, Result<Vec<u8>, Failed>>;

    /// The channel that a Platform asks for, with its signatures verified as it says. Relative paths are taken from `base`.
    fn channel<'a>(
        &'a self,
        platform: &'a PlatformSpec,
        base: &'a Path,
        credentials: &'a Credentials,
    ) -> Answer<'a, Result<Channel, Failed>>;

    /// The same with its documents, for bringing it up.
    fn release<'a>(
        &'a self,
        platform: &'a PlatformSpec,
        selection: &'a Selection,
        base: &'a Path,
        credentials: &'a Credentials,
    ) -> Answer<'a, Result<Channel, Failed>>;

    /// Which versions there are of the channel, in the first repository that has any; `None` where the source names no component.
    fn versions<'a>(
        &'a self,
        platform: &'a PlatformSpec,
        base: &'a Path,
        credentials: &'a Credentials,
    ) -> Answer<'a, Result<Option<Versions>, Failed>>;

    /// Where the images of a channel are; with a mirror each one is looked for there.
    fn localization<'a>(&'a self, channel: &'a Channel) -> Answer<'a, Result<Localization, Failed>>;
}

/// The component of a channel, and all its versions that a repository has.
pub type Versions = (String, Vec<String>);

/// How many opened repositories are kept: an archive is scanned once, not at every pass.
const KEPT: usize = 16;

/// Sources by way of the release channel's adapters.
#[derive(Default)]
pub struct LiveSources {
    options: Options,
    opened: Mutex<VecDeque<Opened>>,
}

struct Opened {
    specification: Value,
    credentials: Credentials,
    repository: Arc<dyn ComponentRepository>,
}

impl LiveSources {
    /// Sources that are reached as `options` say, with the credentials of each object on top.
    pub fn new(options: Options) -> Self {
        Self { options, opened: Mutex::default() }
    }

    fn options(&self, credentials: &Credentials) -> Options {
        let mut options = self.options.clone();
        options.ocm_config_texts.extend(credentials.ocm.iter().cloned());
        options.docker_config_texts.extend(credentials.docker.iter().cloned());
        options
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Opened>> {
        // A cache: whatever a panic left in it is usable.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sources for LiveSources {
    fn open(&self, specification: &Value, credentials: &Credentials) -> Result<Arc<dyn ComponentRepository>, Failed> {
        let same = |opened: &&Opened| opened.specification == *specification && opened.credentials == *credentials;
        if let Some(opened) = self.lock().iter().find(same) {
            return Ok(Arc::clone(&opened.repository));
        }
        let repository = plinth_releasechannel::repository_from_spec(specification, &self.options(credentials))
            .map_err(|error| resolve_failed(Reason::GetRepositoryFailed, &error))?;
        let mut kept = self.lock();
        kept.push_back(Opened {
            specification: specification.clone(),
            credentials: credentials.clone(),
            repository: Arc::clone(&repository),
        });
        if kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(repository)
    }

    fn read<'a>(
        &'a self,
        repository: &'a dyn ComponentRepository,
        descriptor: &'a Descriptor,
        resource: &'a Resource,
        credentials: &'a Credentials,
    ) -> Answer<'a, Result<Vec<u8>, Failed>> {
        Box::pin(async move {
            let options = self.options(credentials);
            let bytes = plinth_releasechannel::read_resource(repository, descriptor, resource, &options).await;
            bytes.map(|bytes| bytes.to_vec()).map_err(|error| resolve_failed(Reason::GetOcmResourceFailed, &error))
        })
    }

    fn channel<'a>(
        &'a self,
        platform: &'a PlatformSpec,
        base: &'a Path,
        credentials: &'a Credentials,
    ) -> Answer<'a, Result<Channel, Failed>> {
        Box::pin(async move {
            let (options, source) = self.asked(platform, base, credentials)?;
            let found = inspect(&source, &Selection::default(), &options).await;
            found.map_err(|error| resolve_failed(Reason::GetComponentVersionFailed, &error))
        })
    }

    fn release<'a>(
        &'a self,
        platform: &'a PlatformSpec,
        selection: &'a Selection,
        base: &'a Path,
        credentials: &'a Credentials,
    ) -> Answer<'a, Result<Channel, Failed>> {
        Box::pin(async move {
            let (options, source) = self.asked(platform, base, credentials)?;
            let found = resolve(&source, selection, &options).await;
            found.map_err(|error| resolve_failed(Reason::GetComponentVersionFailed, &error))
        })
    }

    fn versions<'a>(
        &'a self,
        platform: &'a PlatformSpec,
        base: &'a Path,
        credentials: &'a Credentials,
    ) -> Answer<'a, Result<Option<Versions>, Failed>> {
        Box::pin(async move {
            let (options, source) = self.asked(platform, base, credentials)?;
            let SourceRef::Component { repositories, component, .. } = source else { return Ok(None) };
            let mirror = options.mirror.as_deref().filter(|_| options.mirror_only).map(RepositoryRef::parse).transpose();
            let mirror = mirror.map_err(|error| resolve_failed(Reason::GetRepositoryFailed, &error))?;
            let places: Vec<RepositoryRef> = mirror.map_or(repositories, |mirror| vec![mirror]);
            for place in places {
                let repository = plinth_releasechannel::repository_from_spec(&place.specification(), &options)
                    .map_err(|error| resolve_failed(Reason::GetRepositoryFailed, &error))?;
                match repository.versions(&component).await {
                    Ok(versions) if !versions.is_empty() => return Ok(Some((component, versions))),
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(failed(Reason::GetComponentVersionFailed, &error)),
                }
            }
            Err(Failed::repair(Reason::GetComponentVersionFailed, format!("no repository has the channel {component}")))
        })
    }

    fn localization<'a>(&'a self, channel: &'a Channel) -> Answer<'a, Result<Localization, Failed>> {
        Box::pin(async move {
            let Some(mirror) = &self.options.mirror else { return Ok(Localization::describing(&channel.lock)) };
            let in_mirror = |error: ResolveError| resolve_failed(Reason::GetRepositoryFailed, &error);
            let mirror = RepositoryRef::parse(mirror).map_err(in_mirror)?;
            channel.localization(&mirror).await.map_err(in_mirror)
        })
    }
}

impl LiveSources {
    /// The options and the source of a Platform.
    fn asked(&self, platform: &PlatformSpec, base: &Path, credentials: &Credentials) -> Result<(Options, SourceRef), Failed> {
        let in_source = |error: ResolveError| resolve_failed(Reason::GetRepositoryFailed, &error);
        let options = with_platform(&self.options(credentials), Some(platform), base).map_err(in_source)?;
        Ok((options, SourceRef::from_platform(&platform.source, base).map_err(in_source)?))
    }
}

/// What an answer of a repository means for an object: what is not there may be published later, and what is refused is looked at again
/// when somebody may have repaired it. Only a repository or access of an unknown type stays so until the object is edited.
pub fn failed(reason: Reason, error: &RepositoryError) -> Failed {
    let message = error.to_string();
    match (error.kind(), error) {
        (_, RepositoryError::Unsupported { .. }) => Failed::wrong(reason, message),
        (ErrorKind::Refused, _) => Failed::repair(reason, message),
        (ErrorKind::Unavailable, _) => Failed::away(reason, message),
        (ErrorKind::NotFound, _) => Failed::retry(reason, message),
    }
}

fn resolve_failed(reason: Reason, error: &ResolveError) -> Failed {
    match error {
        ResolveError::Repository { source, .. } => {
            let cause = failed(reason, source);
            Failed { message: error.to_string(), ..cause }
        }
        ResolveError::Source { .. } => Failed::wrong(reason, error.to_string()),
        ResolveError::NoVersion { .. } => Failed::retry(Reason::CheckVersionFailed, error.to_string()),
        ResolveError::NotARange { .. } => Failed::wrong(Reason::CheckVersionFailed, error.to_string()),
        // Options come from Secrets and ConfigMaps.
        _ => Failed::repair(reason, error.to_string()),
    }
}
