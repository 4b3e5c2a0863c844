//! Where the delivery objects of a simulated platform read from: a repository in memory, whatever a Repository object says.

use std::{path::Path, sync::Arc};

use plinth_api::platform::PlatformSpec;
use plinth_controller::delivery::{
    report::Failed,
    sources::{Credentials, LiveSources, Sources, Versions},
};
use plinth_engine::ports::Answer;
use plinth_releasechannel::{
    Channel, ComponentRepository, Descriptor, Options, Selection, descriptor::Resource, localization::Localization,
    repository_from_spec,
};
use serde_json::Value;

/// One repository, opened once for all lives.
pub(crate) struct Shelf {
    repository: Arc<dyn ComponentRepository>,
    reading: LiveSources,
}

impl Shelf {
    /// The repository of an OCM specification.
    pub(crate) fn of(specification: &Value) -> Self {
        let options = Options { no_user_config: true, ..Options::default() };
        let repository = repository_from_spec(specification, &options).unwrap();
        Self { repository, reading: LiveSources::new(options) }
    }
}

impl Sources for Shelf {
    fn open(&self, _: &Value, _: &Credentials) -> Result<Arc<dyn ComponentRepository>, Failed> {
        Ok(Arc::clone(&self.repository))
    }

    fn read<'a>(
        &'a self,
        repository: &'a dyn ComponentRepository,
        descriptor: &'a Descriptor,
        resource: &'a Resource,
        credentials: &'a Credentials,
    ) -> Answer<'a, Result<Vec<u8>, Failed>> {
        self.reading.read(repository, descriptor, resource, credentials)
    }

    fn channel<'a>(
        &'a self,
        platform: &'a PlatformSpec,
        base: &'a Path,
        credentials: &'a Credentials,
    ) -> Answer<'a, Result<Channel, Failed>> {
        self.reading.channel(platform, base, credentials)
    }

    fn release<'a>(
        &'a self,
        platform: &'a PlatformSpec,
        selection: &'a Selection,
        base: &'a Path,
        credentials: &'a Credentials,
    ) -> Answer<'a, Result<Channel, Failed>> {
        self.reading.release(platform, selection, base, credentials)
    }

    fn versions<'a>(
        &'a self,
        platform: &'a PlatformSpec,
        base: &'a Path,
        credentials: &'a Credentials,
    ) -> Answer<'a, Result<Option<Versions>, Failed>> {
        self.reading.versions(platform, base, credentials)
    }

    fn localization<'a>(&'a self, channel: &'a Channel) -> Answer<'a, Result<Localization, Failed>> {
        self.reading.localization(channel)
    }
}
