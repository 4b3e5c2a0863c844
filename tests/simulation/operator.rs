//! The programs that would run on the cluster: one that makes Deployments available, and the platform's operator, which brings
//! a kind once its Deployment is available, and serves it.

use std::{sync::LazyLock, time::Duration};

use futures::StreamExt;
use plinth_api::Object;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

use crate::{door::Door, platform::documents, random::Random};

/// Where the late kind is.
pub(crate) const BUCKETS: &str = "/apis/storage.test/v1/buckets";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEPLOYMENTS: &str = "/apis/apps/v1/deployments";
/// The kind that comes late.
static BUCKET: LazyLock<Value> = LazyLock::new(|| documents(include_str!("platform/bucket.yaml")).remove(0));

/// How long each of them takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    available: Duration,
    registers: Option<Duration>,
    serves: Duration,
}

impl Pace {
    pub(crate) fn drawn(random: &mut Random) -> Self {
        Self { available: random.millis(0, 3000), registers: Some(random.millis(0, 3000)), serves: random.millis(0, 2000) }
    }

    /// The operator never brings its kind.
    pub(crate) fn without_kind(self) -> Self {
        Self { registers: None, ..self }
    }
}

/// Runs them until the set is dropped.
pub(crate) fn start(door: &Door, pace: Pace) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(deployments(door.clone(), pace));
    tasks.spawn(buckets(door.clone(), pace));
    tasks
}

/// Brings the late kind.
pub(crate) async fn register(door: &Door) {
    door.create(CRDS, &BUCKET).await;
}

async fn deployments(door: Door, pace: Pace) {
    let mut events = door.watch(DEPLOYMENTS);
    while let Some(event) = events.next().await {
        let object = &event.object;
        if event.kind == "DELETED" || object.status()["observedGeneration"] == object.generation() {
            continue;
        }
        sleep(pace.available).await;
        let path = path_of("/apis/apps/v1", "deployments", object);
        let Some(now) = door.get(&path).await else { continue };
        let replicas = now.spec()["replicas"].clone();
        let status = json!({
            "replicas": replicas, "availableReplicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas,
            "observedGeneration": now.generation(),
        });
        door.merge(&format!("{path}/status"), &json!({"status": status})).await;
        if let (Some(delay), Some("operator")) = (pace.registers, Some(object.name())) {
            sleep(delay).await;
            register(&door).await;
        }
    }
}

async fn buckets(door: Door, pace: Pace) {
    let mut events = door.watch(CRDS);
    while let Some(event) = events.next().await {
        if event.object.name() == "buckets.storage.test" {
            break;
        }
    }
    let mut events = door.watch(BUCKETS);
    while let Some(event) = events.next().await {
        let object = &event.object;
        if event.kind == "DELETED" || object.status()["observedGeneration"] == object.generation() {
            continue;
        }
        sleep(pace.serves).await;
        let path = path_of("/apis/storage.test/v1", "buckets", object);
        let Some(now) = door.get(&path).await else { continue };
        let endpoint = format!("s3.{}.size-{}", now.name(), now.spec()["size"]);
        let status = json!({"phase": "Ready", "endpoint": endpoint, "observedGeneration": now.generation()});
        door.merge(&format!("{path}/status"), &json!({"status": status})).await;
    }
}

fn path_of(root: &str, plural: &str, object: &Object) -> String {
    format!("{root}/namespaces/{}/{plural}/{}", object.namespace().unwrap_or_default(), object.name())
}
