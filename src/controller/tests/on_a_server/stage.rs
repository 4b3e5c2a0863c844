//! One API server with the loop running on it, and what tests do to it.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, crds};
use plinth_cluster::Cluster;
use plinth_controller::{Handle, Options, start};
use plinth_engine::{
    ports::{Applier, Apply, Delete, Reader},
    yaml,
};
use plinth_releasechannel::{Limits, pack};
use plinth_run::{EventKind, Recorder};
use plinth_support::{ApiServer, Identity};

/// How long anything may take on a machine that is busy with other tests.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// What was told, and when.
#[derive(Default)]
pub(crate) struct Told(Mutex<Vec<(Instant, EventKind)>>);

impl Recorder for Told {
    fn record(&self, kind: EventKind) {
        self.0.lock().unwrap().push((Instant::now(), kind));
    }
}

pub(crate) struct Stage {
    pub(crate) server: ApiServer,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) recorder: Arc<Told>,
    pub(crate) handle: Option<Handle>,
}

impl Stage {
    /// A server with the CRDs of definitions and delivery, and the loop.
    pub(crate) async fn set() -> Self {
        let server = ApiServer::start().unwrap();
        let client = server.client(Identity::Admin).await;
        let cluster = Cluster::with_client(ClusterKey::host(), client.clone());
        let stage = Self { cluster, recorder: Arc::default(), handle: None, server };
        for crd in crds::platform() {
            stage.apply(crd).await;
        }
        stage
    }

    pub(crate) fn start(&mut self, options: Options) {
        let recorder = Arc::clone(&self.recorder) as _;
        self.handle = Some(start([Arc::clone(&self.cluster)], recorder, options));
    }

    pub(crate) async fn stop(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.stop().await;
        }
    }

    /// Applies as a user would.
    pub(crate) async fn apply(&self, object: Object) -> Object {
        let key = object.key(&ClusterKey::host()).unwrap();
        let apply = Apply { key, object, manager: "user".into(), force: true, subresource: None };
        let began = Instant::now();
        loop {
            match self.cluster.apply(&apply).await {
                Ok(object) => return object,
                Err(error) if began.elapsed() > PATIENCE => panic!("{error}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    pub(crate) async fn delete(&self, key: &ObjectKey) {
        self.cluster.delete(&Delete { key: key.clone(), uid: None }).await.unwrap();
    }

    pub(crate) async fn get(&self, key: &ObjectKey) -> Option<Object> {
        self.cluster.get(key).await.ok().flatten()
    }

    /// Waits until an object is as wanted; tells how it is where that takes too long.
    pub(crate) async fn until(&self, key: &ObjectKey, what: &str, is_so: impl Fn(Option<&Object>) -> bool) -> Option<Object> {
        let began = Instant::now();
        loop {
            let object = self.get(key).await;
            if is_so(object.as_ref()) {
                return object;
            }
            if began.elapsed() > PATIENCE {
                let shown = object.map(|object| serde_json::to_string_pretty(&object).unwrap());
                panic!("{key}: not {what} after {PATIENCE:?}: {}", shown.unwrap_or_default());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn events(&self) -> Vec<EventKind> {
        self.recorder.0.lock().unwrap().iter().map(|(_, event)| event.clone()).collect()
    }

    /// What was told from a moment on, one line an event.
    pub(crate) fn timeline(&self, from: Instant) -> Vec<String> {
        let told = self.recorder.0.lock().unwrap();
        let late = told.iter().filter(|(at, _)| *at >= from);
        late.map(|(at, event)| format!("{:>6} ms {event:?}", at.duration_since(from).as_millis())).collect()
    }

    pub(crate) fn is_ready(&self, key: &ObjectKey) -> bool {
        self.handle.as_ref().is_some_and(|handle| handle.instances.is_ready(key) == Some(true))
    }
}

pub(crate) fn key(group: &str, version: &str, kind: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey {
        cluster: ClusterKey::host(),
        gvk: GroupVersionKind::new(group, version, kind),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    }
}

pub(crate) fn objects(text: &str) -> Vec<Object> {
    let documents = yaml::documents(text).unwrap();
    documents.into_iter().map(|document| Object::from_value(document.value).unwrap()).collect()
}

pub(crate) fn object(text: &str) -> Object {
    objects(text).remove(0)
}

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn data(path: &str) -> PathBuf {
    let default = || workspace().join("../shared/data");
    std::env::var_os("PLINTH_DATA").map_or_else(default, PathBuf::from).join(path)
}

/// The sample's components as an archive.
pub(crate) fn archive(folder: &Path) -> PathBuf {
    let contents = pack(&workspace().join("distributions/open-control-plane-kind"), &Limits::default()).unwrap();
    let path = folder.join("channel.tgz");
    contents.write(&path, plinth_releasechannel::Format::of(&path).unwrap()).unwrap();
    path
}

/// A definition as the document prints it.
pub(crate) fn of_seed_004(name: &str) -> Option<String> {
    text_of_seed_004("apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\n", name)
}

/// YAML of the document that begins so and has an object of this name.
pub(crate) fn text_of_seed_004(begin: &str, name: &str) -> Option<String> {
    let folder = data("../seeds");
    let path = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let path = path.into_iter().find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("004")))?;
    let text = std::fs::read_to_string(path).unwrap();
    let cut = |start: usize| {
        let rest = &text[start..];
        // Prose begins at the margin with a capital; YAML there begins with a field.
        let end =
            rest.match_indices('\n').map(|(at, _)| at + 1).find(|at| rest[*at..].starts_with(|c: char| c.is_ascii_uppercase()));
        rest[..end.unwrap_or(rest.len())].to_owned()
    };
    let mut texts = text.match_indices(begin).map(|(at, _)| cut(at));
    texts.find(|text| text.contains(&format!("\n  name: {name}\n")))
}
