//! The channel of a long day: one version at its beginning, and another one from when it is published.

use std::{
    path::Path,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
};

use plinth_api::platform::{PlatformSource, PlatformSpec};
use plinth_controller::delivery::{
    report::{Failed, Reason},
    sources::{Credentials, LiveSources, Sources, Versions},
};
use plinth_engine::ports::Answer;
use plinth_releasechannel::{
    Channel, ComponentRepository, Descriptor, Options, Selection, descriptor::Resource, localization::Localization,
};
use serde_json::Value;
use tempfile::TempDir;

/// The channel.
pub(super) const COMPONENT: &str = "plinth.test/platform";
/// The version that is there from the beginning.
pub(super) const FIRST: &str = "v1.0.0";
/// The version that is published in between.
pub(super) const SECOND: &str = "v1.0.1";

/// What is another in the second version: file, text, and the text that takes its place.
const CHANGES: [(&str, &str, &str); 4] = [
    ("channel.yaml", FIRST, SECOND),
    ("rgds/operator.yaml", "example.test/operator:v1", "example.test/operator:v2"),
    (
        "rgds/operator.yaml",
        "replicas: ${string(schema.spec.replicas)}",
        "replicas: ${string(schema.spec.replicas)}\n          release: two",
    ),
    ("rgds/parts.yaml", "text: ${schema.spec.text}", "text: ${schema.spec.text}\n          release: two"),
];

/// The second version, as a folder beside the first.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("rgds")).unwrap();
    let files =
        ["channel.yaml", "instance.yaml", "rgds/operator.yaml", "rgds/store.yaml", "rgds/parts.yaml", "rgds/platform.yaml"];
    for file in files {
        let text = std::fs::read_to_string(first().join(file)).unwrap();
        let changes = CHANGES.iter().filter(|(of, ..)| *of == file);
        let changed = changes.fold(text, |text, (_, from, to)| text.replace(from, to));
        std::fs::write(folder.path().join(file), changed).unwrap();
    }
    folder
});

fn first() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulation/platform")
}

/// Where the Platform of that day reads from. Reading takes no simulated time.
#[derive(Default)]
pub(super) struct Published {
    second: AtomicBool,
    reading: LiveSources,
}

impl Published {
    pub(super) fn new() -> Arc<Self> {
        LazyLock::force(&FOLDER);
        let options = Options { no_user_config: true, ..Options::default() };
        Arc::new(Self { second: AtomicBool::new(false), reading: LiveSources::new(options) })
    }

    /// From now on the second version is there too.
    pub(super) fn publish(&self) {
        self.second.store(true, Ordering::Relaxed);
    }

    fn versions(&self) -> Vec<String> {
        let second = self.second.load(Ordering::Relaxed).then_some(SECOND);
        [FIRST].into_iter().chain(second).map(str::to_owned).collect()
    }
}

/// The same Platform, with the folder of its version as its channel.
fn in_folder(platform: &PlatformSpec) -> PlatformSpec {
    let folder = if platform.source.version.as_deref() == Some(SECOND) { FOLDER.path().to_owned() } else { first() };
    let channel = folder.to_string_lossy().into_owned();
    PlatformSpec { source: PlatformSource { channel, ..PlatformSource::default() }, ..platform.clone() }
}

/// Runs it to its end, in a runtime and in a thread of its own: one runtime cannot wait inside another.
fn at_once<T: Send>(reading: impl Future<Output = T> + Send) -> T {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::scope(|scope| scope.spawn(|| runtime().block_on(reading)).join().unwrap())
}

impl Sources for Published {
    fn open(&self, _: &Value, _: &Credentials) -> Result<Arc<dyn ComponentRepository>, Failed> {
        Err(Failed::wrong(Reason::GetRepositoryFailed, "this platform has no delivery objects".to_owned()))
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
        let found = at_once(self.reading.channel(&in_folder(platform), base, credentials));
        Box::pin(async { found })
    }

    fn release<'a>(
        &'a self,
        platform: &'a PlatformSpec,
        selection: &'a Selection,
        base: &'a Path,
        credentials: &'a Credentials,
    ) -> Answer<'a, Result<Channel, Failed>> {
        let found = at_once(self.reading.release(&in_folder(platform), selection, base, credentials));
        Box::pin(async { found })
    }

    fn versions<'a>(
        &'a self,
        _: &'a PlatformSpec,
        _: &'a Path,
        _: &'a Credentials,
    ) -> Answer<'a, Result<Option<Versions>, Failed>> {
        let there = Some((COMPONENT.to_owned(), self.versions()));
        Box::pin(async { Ok(there) })
    }

    fn localization<'a>(&'a self, channel: &'a Channel) -> Answer<'a, Result<Localization, Failed>> {
        self.reading.localization(channel)
    }
}
