//! One control plane in this process with the loop on it, and what tests do to it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, crds};
use plinth_cluster::{Cluster, embedded};
use plinth_controller::{Handle, Options, start};
use plinth_engine::ports::{Applier, Apply, Delete, Reader};
use plinth_run::memory::VecRecorder;
use serde_json::{Value, json};

/// How long anything may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_mins(1);
/// The namespace of everything.
pub(crate) const NAMESPACE: &str = "golden";

/// Counts what is asked of the control plane.
#[derive(Default)]
struct Requests(AtomicU64);

impl embedded::Witness for Requests {
    fn saw(&self, _: &embedded::api::state::Call, _: u16) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) struct Stage {
    requests: Arc<Requests>,
    cluster: Arc<Cluster>,
    handle: Handle,
}

impl Stage {
    /// A control plane with the platform's kinds and the loop.
    pub(crate) async fn set() -> Self {
        let requests = Arc::new(Requests::default());
        let witness = Some(Arc::clone(&requests) as _);
        let embedded = embedded::Embedded::new(&embedded::Options { witness, ..embedded::Options::default() });
        let cluster = Cluster::with_client(ClusterKey::host(), embedded.client());
        for crd in crds::platform() {
            write(&cluster, crd).await.unwrap();
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        write(&cluster, Object::from_value(namespace).unwrap()).await.unwrap();
        let options = Options { delivery: false, ..Options::default() };
        let handle = start([Arc::clone(&cluster)], Arc::new(VecRecorder::default()), options);
        Self { requests, cluster, handle }
    }

    /// Requests so far, those of the test too.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.0.load(Ordering::Relaxed)
    }

    pub(crate) async fn stop(self) {
        self.handle.stop().await;
    }

    /// Applies as a user would, as soon as the kind is served.
    pub(crate) async fn apply(&self, object: Value) -> Result<(), String> {
        let object = Object::from_value(object).ok_or("no object")?;
        let began = Instant::now();
        loop {
            match write(&self.cluster, object.clone()).await {
                Ok(()) => return Ok(()),
                Err(why) if began.elapsed() > PATIENCE => return Err(why),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Changes an object by a merge patch.
    pub(crate) async fn change(&self, key: &ObjectKey, change: impl Fn(&mut Value)) -> Result<(), String> {
        for _ in 0..50 {
            let object = self.get(key).await.ok_or(format!("{key} does not exist"))?;
            let mut value = object.into_value();
            change(&mut value);
            match self.cluster.replace(key, &Object::from_value(value).unwrap()).await {
                Ok(_) => return Ok(()),
                Err(plinth_engine::ports::WriteError::Conflict { .. }) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(format!("{key} is always in conflict"))
    }

    /// Writes a status as another controller would.
    pub(crate) async fn status(&self, key: &ObjectKey, status: &Value) -> Result<(), String> {
        let mut object =
            json!({"apiVersion": key.gvk.api_version(), "kind": key.gvk.kind, "metadata": {"name": key.name}, "status": status});
        if let Some(namespace) = &key.namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        let object = Object::from_value(object).unwrap();
        let apply = Apply { key: key.clone(), object, manager: "other".into(), force: true, subresource: Some("status") };
        self.cluster.apply(&apply).await.map(drop).map_err(|error| error.to_string())
    }

    pub(crate) async fn delete(&self, key: &ObjectKey) -> Result<(), String> {
        self.cluster.delete(&Delete { key: key.clone(), uid: None }).await.map_err(|error| error.to_string())
    }

    pub(crate) async fn get(&self, key: &ObjectKey) -> Option<Object> {
        self.cluster.get(key).await.ok().flatten()
    }

    /// Waits until an object is as wanted; else tells how it is.
    pub(crate) async fn until(&self, keys: &[ObjectKey], is_so: impl Fn(Option<&Object>) -> bool) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let mut seen = Vec::new();
            for key in keys {
                let object = self.get(key).await;
                if is_so(object.as_ref()) {
                    return Ok(());
                }
                seen.push(object.map(|object| without_fields(object).into_value()));
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("{keys:?} is {}", serde_json::to_string_pretty(&seen).unwrap()));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the loop has nothing to do, and has had nothing to do for a while.
    pub(crate) async fn rest(&self) {
        let mut quiet = 0;
        let began = Instant::now();
        while quiet < 5 && began.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(20)).await;
            quiet = if self.handle.is_settled() { quiet + 1 } else { 0 };
        }
    }
}

fn without_fields(mut object: Object) -> Object {
    object.metadata_mut().remove("managedFields");
    object
}

async fn write(cluster: &Cluster, object: Object) -> Result<(), String> {
    let key = object.key(&ClusterKey::host()).ok_or("an object without kind or name")?;
    let apply = Apply { key, object, manager: "user".into(), force: true, subresource: None };
    cluster.apply(&apply).await.map(drop).map_err(|error| error.to_string())
}

/// `ConfigMap/i1`, `R12/i1`, `@R35/i1`: kind and name, `@` before kinds of the cluster that a definition defines.
pub(crate) fn key(text: &str) -> ObjectKey {
    let (kind, name) = text.split_once('/').unwrap_or_else(|| panic!("{text} is no reference"));
    let (group, version, kind, namespaced) = match kind {
        "ConfigMap" | "Secret" | "Service" => ("", "v1", kind, true),
        "Deployment" => ("apps", "v1", kind, true),
        "Loose" | "Late" => ("probe.example.com", "v1", kind, true),
        "CustomResourceDefinition" => ("apiextensions.k8s.io", "v1", kind, false),
        "GraphRevision" => ("internal.kro.run", "v1alpha1", kind, false),
        "RGD" => ("kro.run", "v1alpha1", "ResourceGraphDefinition", false),
        _ => ("kro.run", "v1alpha1", kind.trim_start_matches('@'), !kind.starts_with('@')),
    };
    ObjectKey {
        cluster: ClusterKey::host(),
        gvk: GroupVersionKind::new(group, version, kind),
        namespace: namespaced.then(|| NAMESPACE.to_owned()),
        name: name.to_owned(),
    }
}
