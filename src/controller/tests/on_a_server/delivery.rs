//! Delivery on a real API server and a real registry: a new version rolls out, and seed 004's own manifests bring the platform up.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use plinth_api::{Object, ObjectKey};
use plinth_controller::{Options, delivery::sources::LiveSources};
use plinth_releasechannel::{Limits, Options as Access, pack};
use plinth_support::{Ctf, Identity, Registry, StandIn, scenario};
use serde_json::{Value, json};

use super::stage::{Stage, data, key, objects, of_seed_004, text_of_seed_004, workspace};

const DELIVERY: &str = "delivery.ocm.software";
/// How long a child may be away.
const BACK: Duration = Duration::from_secs(2);

/// Packs a folder with a channel and pushes it.
pub(crate) async fn push(folder: &Path, registry: &Registry) {
    let packed = tempfile::tempdir().unwrap();
    let path = packed.path().join("channel");
    pack(folder, &Limits::default()).unwrap().write(&path, plinth_releasechannel::Format::of(&path).unwrap()).unwrap();
    Ctf::open(&path).push(registry, "channel").await;
}

/// The loop, which reads this registry.
pub(crate) fn options(registry: &Registry) -> Options {
    let access = Access { no_user_config: true, plain_http: [registry.host()].into(), ..Access::default() };
    Options { platform: Some("default".into()), sources: Arc::new(LiveSources::new(access)), ..Options::default() }
}

pub(crate) fn delivery(kind: &str, name: &str) -> ObjectKey {
    let namespace = (kind != "Deployer").then_some("default");
    key(DELIVERY, "v1alpha1", kind, namespace, name)
}

pub(crate) fn is_ready(object: Option<&Object>) -> bool {
    ready(object).is_some_and(|(status, _)| status == "True")
}

fn ready(object: Option<&Object>) -> Option<(String, String)> {
    let list = object?.status()["conditions"].as_array()?;
    let found = list.iter().find(|condition| condition["type"] == "Ready")?;
    Some((found["status"].as_str()?.to_owned(), found["message"].as_str()?.to_owned()))
}

/// Applies an object of the delivery group.
pub(crate) async fn put(stage: &Stage, kind: &str, name: &str, spec: Value) -> ObjectKey {
    let key = delivery(kind, name);
    let mut metadata = json!({"name": name});
    if let Some(namespace) = &key.namespace {
        metadata["namespace"] = namespace.as_str().into();
    }
    let object = json!({"apiVersion": format!("{DELIVERY}/v1alpha1"), "kind": kind, "metadata": metadata, "spec": spec});
    stage.apply(Object::from_value(object).unwrap()).await;
    key
}

fn version_of_the_app(version: &str, manifests: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let channel = json!({"components": [{"name": "acme.test/app", "version": version, "provider": {"name": "acme"}, "resources": [
        {"name": "manifests", "type": "blob", "version": version, "relation": "local",
         "input": {"type": "utf8", "mediaType": "application/x-yaml", "text": manifests}}]}]});
    std::fs::write(folder.path().join("channel.yaml"), channel.to_string()).unwrap();
    folder
}

/// A new version inside the range, one outside it, and one that the filter leaves out.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn show_05_rollout() {
    let registry = Registry::start().unwrap();
    let one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {v: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: old}\n";
    push(version_of_the_app("1.0.0", one).path(), &registry).await;
    let mut stage = Stage::set().await;
    stage.start(options(&registry));
    let specification = json!({"type": "OCIRegistry", "baseUrl": format!("http://{}/channel", registry.host())});
    put(&stage, "Repository", "repo", json!({"repositorySpec": specification, "interval": "1s"})).await;
    let wanted = json!({"repositoryRef": {"name": "repo"}, "component": "acme.test/app", "semver": ">=1.0.0 <2", "semverFilter": "^[0-9.]+$", "interval": "1s"});
    let component = put(&stage, "Component", "app", wanted).await;
    let reference = json!({"componentRef": {"name": "app"}, "resource": {"byReference": {"resource": {"name": "manifests"}}}});
    put(&stage, "Resource", "manifests", reference).await;
    let deployer = put(&stage, "Deployer", "app", json!({"resourceRef": {"name": "manifests"}})).await;
    stage.until(&deployer, "ready", is_ready).await;
    let map = |name: &str| key("", "v1", "ConfigMap", Some("default"), name);
    let applied = stage.get(&map("one")).await.unwrap();
    assert_eq!(applied.label("app.kubernetes.io/version"), Some("1.0.0"));
    assert!(stage.get(&map("old")).await.is_some());

    let two = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {v: b}\n";
    for version in ["1.2.0-rc.1", "2.0.0"] {
        push(version_of_the_app(version, one).path(), &registry).await;
    }
    push(version_of_the_app("1.1.0", two).path(), &registry).await;
    let began = Instant::now();
    stage
        .until(&map("one"), "of the new version", |map| map.is_some_and(|map| map.at(&["data", "v"]) == Some(&json!("b"))))
        .await;
    stage.until(&map("old"), "pruned", |map| map.is_none()).await;
    let took = began.elapsed();
    stage.until(&deployer, "ready", is_ready).await;
    let found = stage.get(&component).await.unwrap();
    assert_eq!(found.status()["component"]["version"], "1.1.0");
    assert!(took < Duration::from_secs(10), "{took:?}");

    // Suspended, nothing rolls out, and what is there stays.
    let mut held = found.clone();
    held.0["spec"]["suspend"] = true.into();
    let held = json!({"apiVersion": "delivery.ocm.software/v1alpha1", "kind": "Component", "metadata": {"name": "app", "namespace": "default"}, "spec": held.spec()});
    stage.apply(Object::from_value(held).unwrap()).await;
    push(version_of_the_app("1.3.0", one).path(), &registry).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(stage.get(&component).await.unwrap().status()["component"]["version"], "1.1.0");

    stage.delete(&deployer).await;
    stage.until(&map("one"), "gone with its Deployer", |map| map.is_none()).await;
    stage.until(&deployer, "gone", |deployer| deployer.is_none()).await;
    stage.stop().await;
    eprintln!("SHOW 05 rollout {} ms from push to pruned, with an interval of 1 s", took.as_millis());
}

/// The document's graphs in the sample's folder, and its manifests with the other three components.
fn seed(registry: &Registry) -> Option<(tempfile::TempDir, Vec<Object>)> {
    let folder = tempfile::tempdir().unwrap();
    let sample = workspace().join("distributions/open-control-plane-kind");
    std::fs::create_dir(folder.path().join("rgds")).unwrap();
    for file in
        ["channel.yaml", "instance.yaml", "scenario.yaml", "rgds/cluster-provider-kind.yaml", "rgds/platform-service.yaml"]
    {
        std::fs::copy(sample.join(file), folder.path().join(file)).unwrap();
    }
    for name in ["openmcp-operator", "open-control-plane-platform"] {
        std::fs::write(folder.path().join(format!("rgds/{name}.yaml")), of_seed_004(name)?).unwrap();
    }
    let begin = "apiVersion: delivery.ocm.software/v1alpha1\nkind: Repository\n";
    let text = text_of_seed_004(begin, "open-control-plane-platform")?;
    let text =
        text.replace("baseUrl: ghcr.io/openmcp-project/components", &format!("baseUrl: http://{}/channel", registry.host()));
    let mut manifests = objects(&text);
    let kinds: Vec<String> = manifests.iter().map(|object| object.gvk().unwrap().kind).collect();
    assert_eq!(kinds, ["Repository", "Component", "Resource", "Deployer", "OpenControlPlanePlatform"]);
    let instance = manifests.pop().unwrap();
    let document = serde_json::to_string(&manifests[1..]).unwrap();
    for name in ["openmcp-operator-rgd", "cluster-provider-kind-rgd", "platform-service-rgd"] {
        let named = document.replace("open-control-plane-platform", name).replace("v0.0.4", "v0.0.2");
        manifests.extend(serde_json::from_str::<Vec<Object>>(&named).unwrap());
    }
    manifests.push(instance);
    for object in manifests.iter_mut().filter(|object| object.gvk().is_some_and(|gvk| gvk.kind != "Deployer")) {
        object.metadata_mut().insert("namespace".into(), "default".into());
    }
    Some((folder, manifests))
}

/// Where only the loop runs, the manifests of the document bring the platform up in one go; and the cluster keeps itself without its
/// registry, also after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn show_05_seed() {
    let registry = Registry::start().unwrap();
    let Some((folder, manifests)) = seed(&registry) else {
        eprintln!("1 test did not run: PLINTH_DATA has no seeds/004 beside it");
        return;
    };
    push(folder.path(), &registry).await;
    let mut stage = Stage::set().await;
    stage.start(options(&registry));
    let followed = scenario::read(&folder.path().join("scenario.yaml")).unwrap();
    let followed = scenario::with_registered(followed, &data("openmcp/crds/history/v0.19.1")).unwrap();
    let _stand_in = StandIn::start(stage.server.client(Identity::Cluster).await, followed);
    let began = Instant::now();
    let count = manifests.len();
    for object in manifests {
        // As kubectl does it: each object once, the instance as soon as its kind is there.
        stage.apply(object).await;
    }
    let root = key("bootstrap.open-control-plane.io", "v1alpha1", "OpenControlPlanePlatform", Some("default"), "default");
    stage.until(&root, "ready", |_| stage.is_ready(&root)).await;
    let took = began.elapsed();
    let deployer = stage.get(&delivery("Deployer", "open-control-plane-platform-rgd")).await.unwrap();
    let (status, message) = ready(Some(&deployer)).unwrap();
    assert!(status == "True" && message.contains("resourceRef.namespace is missing"), "{message}");

    let deployment = key("apps", "v1", "Deployment", Some("default"), "openmcp-operator");
    let rgd = key("kro.run", "v1alpha1", "ResourceGraphDefinition", None, "platform-service");
    drop(registry);
    let running = back(&stage, &deployment).await;
    stage.stop().await;
    stage.start(Options { platform: Some("default".into()), ..Options::default() });
    let settled = Instant::now();
    while !stage.handle.as_ref().unwrap().is_settled() {
        assert!(settled.elapsed() < Duration::from_mins(1), "the loop does not settle without its registry");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let restarted = back(&stage, &deployment).await;
    assert!(running < BACK && restarted < BACK, "{running:?}, {restarted:?}");
    assert!(stage.get(&rgd).await.is_some_and(|rgd| !rgd.is_terminating()), "nothing goes because a registry is away");
    stage.stop().await;
    eprintln!(
        "SHOW 05 seed {count} manifests, ready after {} ms; without the registry a child is back after {} ms, after a restart {} ms",
        took.as_millis(),
        running.as_millis(),
        restarted.as_millis()
    );
}

/// Deletes an object; how long it takes until there is another of that name.
async fn back(stage: &Stage, key: &ObjectKey) -> Duration {
    let before = stage.get(key).await.unwrap().uid().unwrap().to_owned();
    stage.delete(key).await;
    let began = Instant::now();
    stage.until(key, "back", |object| object.is_some_and(|object| object.uid() != Some(before.as_str()))).await;
    began.elapsed()
}
