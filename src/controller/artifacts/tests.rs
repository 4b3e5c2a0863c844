//! A Platform whose channel becomes Artifacts, on a cluster in memory.

use std::sync::Arc;

use plinth_api::{ClusterKey, Object, ObjectKey, crds};
use plinth_manager::reconcile::{Outcome, Reconciler};
use plinth_releasechannel::{Format, Limits, Options, pack};
use serde_json::{Value, json};

use super::{AGAIN, Artifacts, INTERVAL, SOON, artifact_gvk, selectors::Selectors};
use crate::{
    delivery::{image::NotMirrored, sources::LiveSources},
    twin::Scene,
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
      - name: crossplane
        type: helmChart
        version: 2.0.1
        digest: {hashAlgorithm: SHA-256, normalisationAlgorithm: ociArtifactDigest/v1, value: DIGEST}
        access: {type: ociArtifact, imageReference: 'two.example/charts/crossplane:2.0.1'}
      - {name: image-crossplane, type: ociImage, version: v2.0.0, access: {type: ociArtifact, imageReference: 'two.example/crossplane:v2.0.0'}}
  - name: acme.example/services/provider-helm
    version: v1.3.0
    provider: {name: acme.example}
    labels:
      - {name: crossplane.io/type, value: provider}
    resources:
      - {name: provider-helm, type: ociImage, version: v1.3.0, access: {type: ociArtifact, imageReference: 'two.example/provider-helm:v1.3.0'}}
      - {name: docs, type: helmChart, version: v1.3.0, access: {type: helm, helmRepository: 'https://charts.example', helmChart: 'docs:1.3.0'}}
  - name: acme.example/channel
    version: VERSION
    provider: {name: acme.example}
    componentReferences:
      - {name: old, componentName: acme.example/services/crossplane, version: v1.10.0}
      - {name: new, componentName: acme.example/services/crossplane, version: v2.0.0}
      - {name: helm, componentName: acme.example/services/provider-helm, version: v1.3.0}
";

struct Stage {
    scene: Scene,
    artifacts: Artifacts,
    folder: tempfile::TempDir,
}

impl Stage {
    fn set() -> Self {
        let scene = Scene::set();
        scene.twin.serve(&crds::PLATFORM.object());
        let sources = Arc::new(LiveSources::new(Options { no_user_config: true, ..Options::default() }));
        let artifacts = Artifacts::new(scene.world.clone(), sources, Arc::new(NotMirrored));
        Self { scene, artifacts, folder: tempfile::tempdir().unwrap() }
    }

    fn archive(&self, name: &str, channel: &str) -> String {
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap();
        let text = channel.replace("DIGEST", &"a".repeat(64)).replace("VERSION", "v1.0.0");
        std::fs::write(folder.path().join("channel.yaml"), text).unwrap();
        let path = self.folder.path().join(format!("{name}.tgz"));
        pack(folder.path(), &Limits::default()).unwrap().write(&path, Format::of(&path).unwrap()).unwrap();
        path.display().to_string()
    }

    fn platform(&self, archive: &str, artifacts: bool) -> ObjectKey {
        let credentials = json!({"name": "pull", "namespace": "openmcp-system"});
        self.scene
            .twin
            .put(json!({"apiVersion": "plinth.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "default", "uid": "p"},
            "spec": {"source": {"channel": archive, "credentialsRef": credentials}, "artifacts": artifacts}}))
    }

    async fn pass(&self, key: &ObjectKey) -> Outcome {
        self.artifacts.reconcile(key).await.unwrap()
    }

    /// A Platform with its Secret, after the kind came to be served.
    async fn served(&self, archive: &str) -> ObjectKey {
        let platform = self.platform(archive, true);
        assert_eq!(self.pass(&platform).await, Outcome::RequeueAfter(SOON), "the kind comes first");
        let auths = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, r#"{"auths": {}}"#);
        self.scene
            .twin
            .put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "namespace": "openmcp-system"},
            "data": {".dockerconfigjson": auths}}));
        assert_eq!(self.pass(&platform).await, Outcome::RequeueAfter(INTERVAL), "{:?}", self.condition(&platform));
        platform
    }

    fn artifact(&self, name: &str) -> Option<Object> {
        self.scene.twin.object(&key(name))
    }

    /// Status, reason and message of the condition.
    fn condition(&self, platform: &ObjectKey) -> Option<(String, String, String)> {
        let object = self.scene.twin.object(platform).unwrap();
        let found = crate::conditions::find(&object, "ArtifactsReady")?;
        let text = |field: &str| found[field].as_str().unwrap().to_owned();
        Some((text("status"), text("reason"), text("message")))
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey { cluster: ClusterKey::host(), gvk: artifact_gvk(), namespace: None, name: name.to_owned() }
}

fn selected(stage: &Stage, selectors: Value) -> Vec<String> {
    let selectors: Selectors = serde_json::from_value(selectors).unwrap();
    let names = [
        "crossplane-chart-v1.10.0",
        "crossplane-chart-v2.0.0",
        "crossplane-image-v1.10.0",
        "crossplane-image-v2.0.0",
        "provider-helm-image-v1.3.0",
    ];
    let all = names.iter().map(|name| stage.artifact(name).unwrap());
    all.filter(|artifact| selectors.matches(artifact)).map(|artifact| artifact.name().to_owned()).collect()
}

#[tokio::test]
async fn a_channel_becomes_artifacts() {
    let stage = Stage::set();
    let platform = stage.served(&stage.archive("one", CHANNEL)).await;
    let chart = stage.artifact("crossplane-chart-v2.0.0").unwrap();
    let digest = "a".repeat(64);
    assert_eq!(
        chart.spec(),
        &json!({"name": "crossplane-chart", "version": "v2.0.0", "url": format!("two.example/charts/crossplane:2.0.1@sha256:{digest}"),
            "pullsecrets": [{"name": "pull", "namespace": "openmcp-system"}]})
    );
    assert_eq!(chart.at(&["metadata", "ownerReferences"]).unwrap()[0]["name"], "default");
    let all_versions = json!({"matchFields": [{"artifactName": "crossplane-chart"}]});
    assert_eq!(selected(&stage, all_versions), ["crossplane-chart-v1.10.0", "crossplane-chart-v2.0.0"]);
    assert_eq!(selected(&stage, json!({"matchLabels": {"crossplane.io/type": "provider"}})), ["provider-helm-image-v1.3.0"]);
    let (status, reason, message) = stage.condition(&platform).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Succeeded"));
    assert_eq!(
        message,
        "5 of acme.example/channel:v1.0.0; 1 images or charts are in no OCI registry: docs of acme.example/services/provider-helm:v1.3.0"
    );

    stage.scene.twin.writes();
    stage.pass(&platform).await;
    assert_eq!(stage.scene.twin.writes(), Vec::<String>::new(), "what is as wanted is not written");
}

#[tokio::test]
async fn edits_are_written_back_and_what_others_made_is_left_alone() {
    let stage = Stage::set();
    let theirs = json!({"apiVersion": "plinth.dev/v1alpha1", "kind": "Artifact", "metadata": {"name": "crossplane-image-v2.0.0"},
        "spec": {"name": "mine", "version": "v0", "url": "r.test/mine:1"}});
    stage.scene.twin.put(theirs.clone());
    let platform = stage.platform(&stage.archive("one", CHANNEL), true);
    stage.scene.twin.serve(&crds::ARTIFACT.object());
    assert_eq!(stage.pass(&platform).await, Outcome::RequeueAfter(AGAIN));
    assert_eq!(stage.condition(&platform).unwrap().1, "GetConfigurationFailed", "the Secret is missing, and nothing was written");
    assert!(stage.artifact("crossplane-chart-v2.0.0").is_none());
    stage
        .scene
        .twin
        .put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "namespace": "openmcp-system"},
        "data": {".dockerconfigjson": "e30="}}));
    assert_eq!(stage.pass(&platform).await, Outcome::RequeueAfter(AGAIN));
    let (status, _, message) = stage.condition(&platform).unwrap();
    assert_eq!(status, "False");
    assert!(message.contains("somebody else made crossplane-image-v2.0.0, which are left alone"), "{message}");
    assert_eq!(stage.artifact("crossplane-image-v2.0.0").unwrap().spec(), &theirs["spec"]);

    let mut edited = stage.artifact("crossplane-chart-v1.10.0").unwrap();
    let before = edited.spec().clone();
    edited.0["spec"]["url"] = "evil.test/x:1".into();
    stage.scene.twin.put(edited.into_value());
    stage.pass(&platform).await;
    assert_eq!(stage.artifact("crossplane-chart-v1.10.0").unwrap().spec(), &before);
}

#[tokio::test]
async fn what_the_channel_no_longer_has_goes_and_all_goes_with_the_wish() {
    let stage = Stage::set();
    let platform = stage.served(&stage.archive("one", CHANNEL)).await;
    let less = CHANNEL.replace("      - {name: old, componentName: acme.example/services/crossplane, version: v1.10.0}\n", "");
    stage.platform(&stage.archive("two", &less), true);
    stage.pass(&platform).await;
    assert!(stage.artifact("crossplane-chart-v1.10.0").is_none() && stage.artifact("crossplane-chart-v2.0.0").is_some());

    // A channel that cannot be read takes nothing away.
    stage.platform("/nowhere.tgz", true);
    assert_eq!(stage.pass(&platform).await, Outcome::RequeueAfter(AGAIN));
    assert_eq!(stage.condition(&platform).unwrap().0, "False");
    assert!(stage.artifact("crossplane-chart-v2.0.0").is_some());

    stage.platform("/nowhere.tgz", false);
    assert_eq!(stage.pass(&platform).await, Outcome::Done);
    assert!(stage.artifact("crossplane-chart-v2.0.0").is_none() && stage.condition(&platform).is_none());
}

#[tokio::test]
async fn resources_of_one_name_are_no_artifact() {
    let stage = Stage::set();
    let named = "type: ociImage, version: v1.3.0, labels: [{name: plinth.dev/artifact-name, value: crossplane-image}],";
    let same = CHANNEL.replace("type: ociImage, version: v1.3.0,", named).replace("version: v1.3.0\n", "version: v2.0.0\n");
    let same = same.replace("services/provider-helm, version: v1.3.0", "services/provider-helm, version: v2.0.0");
    let platform = stage.platform(&stage.archive("one", &same), true);
    stage.scene.twin.serve(&crds::ARTIFACT.object());
    stage
        .scene
        .twin
        .put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "namespace": "openmcp-system"},
        "data": {".dockerconfigjson": "e30="}}));
    stage.pass(&platform).await;
    let (status, reason, message) = stage.condition(&platform).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NameCollision"), "{message}");
    assert!(
        message
            .contains("crossplane-image-v2.0.0: image-crossplane of acme.example/services/crossplane:v2.0.0, provider-helm of"),
        "{message}"
    );
    assert!(stage.artifact("crossplane-image-v2.0.0").is_none() && stage.artifact("crossplane-image-v1.10.0").is_some());
}
