//! The three flows of seed 004, "Discoverable Components": by a Discovery (Approach A) and by Artifacts (Approach B).

use std::{collections::BTreeSet, time::Instant};

use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams},
};
use plinth_api::{Object, crds};
use plinth_support::{Identity, Registry, RegistryOptions};
use serde_json::{Value, json};

use super::{
    delivery::{is_ready, options, push, put},
    stage::{Stage, key},
};

const CHANNEL: &str = r"
components:
  - name: acme.example/services/crossplane
    version: v1.10.0
    provider: {name: acme.example}
    resources:
      - {name: crossplane, type: helmChart, version: 1.10.0, access: {type: ociArtifact, imageReference: 'one.example/charts/crossplane:1.10.0'}}
      - {name: image-crossplane, type: ociImage, version: v1.10.0, access: {type: ociArtifact, imageReference: 'one.example/crossplane:v1.10.0'}}
  - name: acme.example/services/crossplane
    version: v2.0.0
    provider: {name: acme.example}
    resources:
      - {name: crossplane, type: helmChart, version: 2.0.1, access: {type: ociArtifact, imageReference: 'two.example/charts/crossplane:2.0.1'}}
      - {name: image-crossplane, type: ociImage, version: v2.0.0, access: {type: ociArtifact, imageReference: 'two.example/crossplane:v2.0.0'}}
  - name: acme.example/channel
    version: v1.0.0
    provider: {name: acme.example}
    componentReferences:
      - {name: old, componentName: acme.example/services/crossplane, version: v1.10.0}
      - {name: new, componentName: acme.example/services/crossplane, version: v2.0.0}
";

/// A registry that asks for a login, the channel in it, the loop, and a Platform that wants Artifacts.
struct Flows {
    stage: Stage,
    _registry: Registry,
}

impl Flows {
    async fn set() -> Self {
        let login = Some(("ann".to_owned(), "secret".to_owned()));
        let registry = Registry::start_with(RegistryOptions { login, ..RegistryOptions::default() }).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("channel.yaml"), CHANNEL).unwrap();
        push(folder.path(), &registry).await;
        let mut stage = Stage::set().await;
        stage.apply(crds::PLATFORM.object()).await;
        stage.start(options(&registry));
        stage.apply(pull_secret(&registry)).await;
        let repository = json!({"type": "OCIRegistry", "baseUrl": format!("http://{}/channel", registry.host())});
        let config = json!([{"apiVersion": "v1", "kind": "Secret", "name": "pull", "policy": "Propagate"}]);
        put(&stage, "Repository", "repo", json!({"repositorySpec": repository, "interval": "1m", "ocmConfig": config})).await;
        let component =
            json!({"repositoryRef": {"name": "repo"}, "component": "acme.example/channel", "semver": "v1.0.0", "interval": "1m"});
        put(&stage, "Component", "releasechannel", component).await;
        let source = json!({"channel": "acme.example/channel", "repositories": [repository], "credentialsRef": {"name": "pull", "namespace": "default"}});
        let platform = json!({"apiVersion": "plinth.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "default"},
            "spec": {"source": source, "artifacts": true}});
        stage.apply(Object::from_value(platform).unwrap()).await;
        let platform = key("plinth.dev", "v1alpha1", "Platform", None, "default");
        let is_there = |platform: Option<&Object>| {
            let list = platform.and_then(|platform| platform.status()["conditions"].as_array().cloned()).unwrap_or_default();
            list.iter().any(|condition| condition["type"] == "ArtifactsReady" && condition["status"] == "True")
        };
        stage.until(&platform, "projected", is_there).await;
        Self { stage, _registry: registry }
    }

    /// Approach A.
    async fn discover(&self, name: &str, version: Option<&str>) -> Object {
        let mut identity = json!({"componentName": "acme.example/services/crossplane"});
        if let Some(version) = version {
            identity["version"] = version.into();
        }
        let spec = json!({"componentRef": {"name": "releasechannel"}, "referenceSelector": {"matchIdentity": identity},
            "resourceSelector": {"matchIdentity": {"name": "crossplane"}},
            "extract": {"byResources": {"version": "component.version", "url": "resource.access.imageReference"}}});
        let key = put(&self.stage, "Discovery", name, spec).await;
        self.stage.until(&key, "ready", is_ready).await.unwrap()
    }

    /// Approach B, by field selector as consumers ask.
    async fn artifacts(&self, fields: &str) -> Vec<Value> {
        let client = self.stage.server.client(Identity::Cluster).await;
        let gvk = kube::core::GroupVersionKind::gvk("plinth.dev", "v1alpha1", "Artifact");
        let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk_with_plural(&gvk, "artifacts"));
        let found = api.list(&ListParams::default().fields(fields)).await.unwrap();
        found.into_iter().map(|artifact| artifact.data["spec"].clone()).collect()
    }
}

fn pull_secret(registry: &Registry) -> Object {
    let text = std::fs::read(registry.docker_config().join("config.json")).unwrap();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "namespace": "default"},
        "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": String::from_utf8(text).unwrap()}});
    Object::from_value(secret).unwrap()
}

fn texts<'a>(list: impl IntoIterator<Item = &'a Value>, field: &str) -> BTreeSet<String> {
    list.into_iter().map(|value| value[field].as_str().unwrap().to_owned()).collect()
}

/// Flow 1: all versions of an artifact.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn show_05_versions() {
    let mut flows = Flows::set().await;
    let versions = BTreeSet::from(["v1.10.0".to_owned(), "v2.0.0".to_owned()]);
    let discovery = flows.discover("all", None).await;
    assert_eq!(texts(discovery.status()["discovery"].as_array().unwrap(), "version"), versions);
    let artifacts = flows.artifacts("spec.name=crossplane-chart").await;
    assert_eq!(texts(&artifacts, "version"), versions);

    // The channel is the only truth.
    let edited = key("plinth.dev", "v1alpha1", "Artifact", None, "crossplane-chart-v2.0.0");
    let mut object = flows.stage.get(&edited).await.unwrap();
    let url = object.spec()["url"].clone();
    let spec = json!({"name": "crossplane-chart", "version": "v2.0.0", "url": "evil.test/x:1"});
    object = Object::from_value(
        json!({"apiVersion": "plinth.dev/v1alpha1", "kind": "Artifact", "metadata": {"name": object.name()}, "spec": spec}),
    )
    .unwrap();
    flows.stage.apply(object).await;
    let began = Instant::now();
    flows.stage.until(&edited, "written back", |artifact| artifact.is_some_and(|artifact| artifact.spec()["url"] == url)).await;
    let back = began.elapsed();
    flows.stage.stop().await;
    eprintln!("SHOW 05 versions 2 by Discovery and by field selector; an edit is written back after {} ms", back.as_millis());
}

/// Flow 2: the pull secrets of an artifact at a version.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn show_05_pull_secrets() {
    let mut flows = Flows::set().await;
    let discovery = flows.discover("one", Some("v1.10.0")).await;
    assert_eq!(discovery.status()["discovery"].as_array().unwrap().len(), 1);
    let config = discovery.status()["effectiveOCMConfig"].as_array().unwrap().clone();
    let secrets: Vec<&Value> = config.iter().filter(|entry| entry["kind"] == "Secret").collect();
    assert_eq!(
        (texts(secrets.iter().copied(), "name"), texts(secrets.iter().copied(), "namespace")),
        (["pull".to_owned()].into(), ["default".to_owned()].into())
    );
    let artifacts = flows.artifacts("spec.name=crossplane-chart,spec.version=v1.10.0").await;
    assert_eq!(artifacts.len(), 1);
    assert_eq!(artifacts[0]["pullsecrets"], json!([{"name": "pull", "namespace": "default"}]));
    flows.stage.stop().await;
    eprintln!("SHOW 05 pull_secrets default/pull, by Discovery and by Artifact at v1.10.0");
}

/// Flow 3: versions from different registries.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn show_05_registries() {
    let mut flows = Flows::set().await;
    let hosts = |urls: BTreeSet<String>| urls.iter().map(|url| url.split('/').next().unwrap().to_owned()).collect::<Vec<_>>();
    let discovery = flows.discover("all", None).await;
    let expected = ["one.example", "two.example"];
    assert_eq!(hosts(texts(discovery.status()["discovery"].as_array().unwrap(), "url")), expected);
    let artifacts = flows.artifacts("spec.name=crossplane-chart").await;
    assert_eq!(hosts(texts(&artifacts, "url")), expected);
    flows.stage.stop().await;
    eprintln!("SHOW 05 registries {}", expected.join(", "));
}
