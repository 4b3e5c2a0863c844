//! A Platform from its spec to its status, on a cluster in memory and a real archive.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, crds, lock::LockedRef};
use plinth_engine::graph;
use plinth_manager::reconcile::{Outcome, Reconciler};
use plinth_releasechannel::{Format, Limits, Options, pack};
use serde_json::{Value, json};

use super::{Doors, Kept, Platforms};
use crate::{
    conditions,
    delivery::{image::SharedImages, sources::LiveSources},
    graphs::Graphs,
    instance::Instances,
    rgd::Definitions,
    twin::Scene,
};

const RGD: &str = "apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: app}
spec:
  schema: {group: x.test, apiVersion: v1, kind: App, spec: {text: string | default=hello}}
  resources:
    - {id: map, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: map}, data: {v: '${schema.spec.text}', release: RELEASE}}}
";
const INSTANCE: &str = "{apiVersion: x.test/v1, kind: App, metadata: {name: one, namespace: ns}, spec: {text: hello}}";

struct Stage {
    scene: Scene,
    platforms: Platforms,
    definitions: Definitions,
    instances: Arc<Instances>,
    folder: tempfile::TempDir,
}

impl Stage {
    fn set(installed: Option<&str>) -> Self {
        let scene = Scene::set();
        scene.twin.serve(&crds::PLATFORM.object());
        let applier = crate::start::layered(Arc::new(scene.twin.clone()), None, Some("default"));
        let (graphs, world) = (Arc::new(Graphs::default()), crate::world::World { applier, ..scene.world.clone() });
        let enqueue: Arc<dyn Fn(&ObjectKey) + Send + Sync> = Arc::new(|_| {});
        let definitions = Definitions::new(world.clone(), Arc::clone(&graphs), graph::Options::default(), Arc::clone(&enqueue));
        let instances = Arc::new(Instances::new(world.clone(), graphs, BTreeMap::new(), enqueue));
        let doors = Doors { access: Arc::new(scene.twin.clone()), schemas: Arc::new(scene.twin.clone()) };
        let sources = Arc::new(LiveSources::new(Options { no_user_config: true, ..Options::default() }));
        let installed = installed.map(|version| LockedRef { name: "acme.test/platform".into(), version: version.into() });
        let kept = Kept { name: "default".into(), installed, images: Arc::new(SharedImages::default()) };
        let platforms = Platforms::new(world, doors, sources, Arc::clone(&instances), kept);
        let stage = Self { scene, platforms, definitions, instances, folder: tempfile::tempdir().unwrap() };
        stage.pack();
        stage
    }

    fn pack(&self) {
        let resource = |name: &str, kind: &str, text: &str| {
            json!({"name": name, "type": kind, "version": "v1.0.0", "relation": "local",
                "input": {"type": "utf8", "mediaType": "application/x-yaml", "text": text}})
        };
        let component = |version: &str| {
            let rgd = RGD.replace("RELEASE", version);
            json!({"name": "acme.test/platform", "version": version, "provider": {"name": "acme"},
                "resources": [resource("rgd", "rgd", &rgd), resource("instance", "instance", INSTANCE)]})
        };
        let channel = ["v1.0.0", "v1.0.1", "v1.1.0", "v2.0.0"].map(component);
        let channel = json!({"components": channel});
        std::fs::write(self.folder.path().join("channel.yaml"), channel.to_string()).unwrap();
        let path = self.archive();
        pack(self.folder.path(), &Limits::default()).unwrap().write(&path, Format::of(&path).unwrap()).unwrap();
    }

    fn archive(&self) -> std::path::PathBuf {
        self.folder.path().join("channel.tgz")
    }

    /// Somebody writes the Platform; fields of `more` go over those of the plain one.
    fn write(&self, version: &str, more: Value) -> ObjectKey {
        let repository = json!({"type": "CommonTransportFormat", "filePath": self.archive()});
        let mut spec = json!({"source": {"channel": "acme.test/platform", "version": version, "repositories": [repository]}});
        for (name, value) in more.as_object().unwrap() {
            match spec.pointer_mut(name) {
                Some(there) => *there = value.clone(),
                None => spec[name.trim_start_matches('/')] = value.clone(),
            }
        }
        let status = self.scene.twin.object(&key()).map(|platform| platform.status().clone()).unwrap_or_default();
        let mut object = json!({"apiVersion": "plinth.dev/v1alpha1", "kind": "Platform",
            "metadata": {"name": "default", "uid": "p"}, "spec": spec});
        if !status.is_null() {
            object["status"] = status;
        }
        let generation = self.scene.twin.object(&key()).map_or(0, |platform| platform.generation());
        object["metadata"]["generation"] = generation.into();
        self.scene.twin.put(object)
    }

    /// A pass, with the reconciler of definitions at work.
    async fn pass(&self) -> Outcome {
        let key = key();
        let mut pass = self.platforms.reconcile(&key);
        loop {
            tokio::select! {
                biased;
                ended = &mut pass => return ended.unwrap(),
                () = tokio::time::sleep(Duration::from_millis(2)) => self.define().await,
            }
        }
    }

    async fn define(&self) {
        let definition = definition();
        if self.scene.twin.object(&definition).is_some() {
            self.definitions.reconcile(&definition).await.unwrap();
            self.definitions.reconcile(&definition).await.unwrap();
            self.scene.clock.step(Duration::from_millis(100));
        }
    }

    /// What the other reconcilers do until nothing is left, and another pass.
    async fn settled(&self) -> Outcome {
        self.define().await;
        self.instances.reconcile(&instance()).await.unwrap();
        self.pass().await
    }

    fn platform(&self) -> Object {
        self.scene.twin.object(&key()).unwrap()
    }

    /// Status, reason and message of a condition.
    fn condition(&self, kind: &str) -> (String, String, String) {
        let platform = self.platform();
        let Some(found) = conditions::find(&platform, kind) else { return Default::default() };
        let text = |field: &str| found[field].as_str().unwrap().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    fn release(&self) -> Value {
        let map = ObjectKey {
            cluster: ClusterKey::host(),
            gvk: GroupVersionKind::new("", "v1", "ConfigMap"),
            namespace: Some("ns".into()),
            name: "map".into(),
        };
        self.scene.twin.object(&map).map(|map| map.0["data"]["release"].clone()).unwrap_or_default()
    }
}

fn key() -> ObjectKey {
    ObjectKey { cluster: ClusterKey::host(), gvk: crate::artifacts::platform_gvk(), namespace: None, name: "default".into() }
}

fn definition() -> ObjectKey {
    let gvk = GroupVersionKind::new("kro.run", "v1alpha1", "ResourceGraphDefinition");
    ObjectKey { cluster: ClusterKey::host(), gvk, namespace: None, name: "app".into() }
}

fn instance() -> ObjectKey {
    let gvk = GroupVersionKind::new("x.test", "v1", "App");
    ObjectKey { cluster: ClusterKey::host(), gvk, namespace: Some("ns".into()), name: "one".into() }
}

#[tokio::test]
async fn a_platform_is_brought_up_and_says_so() {
    let stage = Stage::set(None);
    stage.write("v1.0.0", json!({"values": {"text": "theirs"}}));
    stage.pass().await;
    assert_eq!(stage.condition("Applied").0, "True", "{:?}", stage.platform());
    assert_eq!(stage.condition("Ready").0, "False", "its instance has not been looked at");
    stage.settled().await;
    assert_eq!(stage.condition("Ready").0, "True", "{:?}", stage.platform().status());
    let platform = stage.platform();
    let status = platform.status();
    assert_eq!(status["release"], json!({"component": "acme.test/platform", "version": "v1.0.0"}));
    assert_eq!(status["nextUpgrade"], json!({"version": "v2.0.0"}), "an exact version stays, and higher ones are told");
    assert_eq!(status["instance"]["name"], "one");
    let component = &status["components"][0];
    assert_eq!((&component["name"], &component["health"]), (&json!("acme.test/platform"), &json!("ready")));
    assert!(component["digest"].as_str().unwrap().starts_with("sha256:"), "{component}");
    assert_eq!(status["lastRun"]["outcome"], "done");
    assert!(
        status["stages"].as_array().unwrap().iter().any(|stage| stage["title"] == "instance" && stage["ready"] == 1),
        "{status}"
    );
    assert_eq!(stage.release(), "v1.0.0");
    assert_eq!(stage.scene.twin.object(&instance()).unwrap().spec()["text"], "theirs");

    stage.scene.twin.writes();
    stage.pass().await;
    assert_eq!(stage.scene.twin.writes(), Vec::<String>::new(), "what is as wanted is not written");
    let mut edited = stage.scene.twin.object(&instance()).unwrap();
    edited.0["spec"]["text"] = "mine".into();
    stage.scene.twin.put(edited.into_value());
    stage.pass().await;
    assert_eq!(
        stage.scene.twin.object(&instance()).unwrap().spec()["text"],
        "theirs",
        "what is of the Platform is put back: {:?}",
        stage.platform().status()
    );
}

#[tokio::test]
async fn bad_input_is_a_condition_and_changes_nothing() {
    let stage = Stage::set(None);
    stage.write("v1.0.0", json!({}));
    stage.pass().await;
    stage.settled().await;
    assert_eq!(stage.condition("Ready").0, "True");
    let wrong_key = json!({"policy": "required", "keys": [{"signature": "acme", "value": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"}]});
    for (version, more, reason, words) in [
        ("v1.0.0", json!({"/source/channel": "acme.test/other"}), "GetComponentVersionFailed", "acme.test/other"),
        ("v3.0.0", json!({}), "CheckVersionFailed", "no version of acme.test/platform satisfies `v3.0.0`"),
        (">=3", json!({}), "CheckVersionFailed", "no version of acme.test/platform satisfies `>=3`; there are: v1.0.0"),
        ("newest", json!({}), "CheckVersionFailed", "`newest` is not a range of versions"),
        ("v1.0.0", json!({"verify": wrong_key}), "", "acme"),
        ("v1.0.0", json!({"verify": {"policy": "required"}}), "", "acme.test/platform"),
        ("v1.0.0", json!({"values": {"tekst": "x"}}), "ValuesInvalid", "tekst"),
        ("v1.0.0", json!({"upgrade": {"policy": "Always"}}), "MarshalFailed", "none of Manual, Patch, Minor"),
        ("v1.0.0", json!({"upgrade": {"policy": "Patch", "window": "now"}}), "MarshalFailed", "in UTC"),
        ("v1.0.0", json!({"distribution": {"name": "other"}}), "", "other"),
    ] {
        stage.write(version, more);
        stage.scene.twin.writes();
        stage.pass().await;
        let (status, found, message) = stage.condition("Ready");
        assert_eq!(status, "False", "{words}: {message}");
        assert!(reason.is_empty() || found == reason, "{words}: {found}: {message}");
        assert!(message.contains(words), "{words}: {found}: {message}");
        let writes = stage.scene.twin.writes();
        assert!(
            writes.iter().all(|line| line.starts_with("apply Platform.plinth.dev/default by plinth.dev/platform")),
            "{writes:?}"
        );
        assert_eq!(stage.platform().status()["release"]["version"], "v1.0.0", "the one that runs is told still");
    }
    let missing = json!({"/source": {"channel": "acme.test/platform", "repositories": [{"type": "CommonTransportFormat", "filePath": stage.archive()}],
        "credentialsRef": {"name": "pull"}}});
    stage.write("v1.0.0", missing);
    stage.pass().await;
    let (_, reason, message) = stage.condition("Ready");
    assert_eq!((reason.as_str(), message.as_str()), ("GetConfigurationFailed", "Secret/plinth-system/pull does not exist"));

    stage.write("v1.0.0", json!({}));
    stage.pass().await;
    assert_eq!(stage.condition("Ready").0, "True", "{:?}", stage.condition("Ready"));
}

#[tokio::test]
async fn upgrades_follow_the_policy_and_manual_ones_are_offered() {
    let stage = Stage::set(Some("v1.0.0"));
    let range = ">=1.0.0 <3";
    stage.write(range, json!({}));
    stage.pass().await;
    stage.settled().await;
    let next = |stage: &Stage| stage.platform().status()["nextUpgrade"]["version"].clone();
    assert_eq!((stage.release(), next(&stage)), (json!("v1.0.0"), json!("v2.0.0")), "by hand only");
    stage.write(range, json!({"upgrade": {"policy": "Patch"}}));
    stage.pass().await;
    stage.settled().await;
    assert_eq!((stage.release(), next(&stage)), (json!("v1.0.1"), json!("v2.0.0")));
    // The twin's clock begins on a Thursday, at midnight.
    stage.write(range, json!({"upgrade": {"policy": "Minor", "window": "Fri 01:00-02:00"}}));
    stage.pass().await;
    stage.settled().await;
    assert_eq!(stage.release(), "v1.0.1", "the window is closed");
    stage.scene.later(25 * 3600 + 60);
    stage.pass().await;
    stage.settled().await;
    assert_eq!((stage.release(), next(&stage)), (json!("v1.1.0"), json!("v2.0.0")));
    stage.write("v2.0.0", json!({}));
    stage.pass().await;
    stage.settled().await;
    assert_eq!((stage.release(), next(&stage)), (json!("v2.0.0"), Value::Null), "writing a version is agreeing to it");
    assert_eq!(stage.condition("Ready").0, "True");
}

#[tokio::test]
async fn a_right_that_is_missing_is_named_before_anything_is_written() {
    let stage = Stage::set(None);
    stage.scene.twin.lack("create configmaps map in namespace ns", true);
    stage.write("v1.0.0", json!({}));
    stage.scene.twin.writes();
    stage.pass().await;
    let writes = stage.scene.twin.writes();
    assert_eq!(writes.len(), 1, "{writes:?}");
    assert!(stage.condition("PermissionMissing").2.contains("may not create configmaps map in namespace ns: "));
    stage.scene.twin.lack("create configmaps map in namespace ns", false);
    stage.pass().await;
    stage.settled().await;
    assert_eq!((stage.condition("Ready").0.as_str(), stage.condition("PermissionMissing").0.as_str()), ("True", ""));
}

#[tokio::test]
async fn a_suspended_platform_is_let_alone_and_another_one_is_not_kept() {
    let stage = Stage::set(None);
    stage.write("v1.0.0", json!({}));
    stage.pass().await;
    stage.settled().await;
    stage.write("v2.0.0", json!({"suspend": true}));
    assert!(matches!(stage.pass().await, Outcome::Wait { .. }));
    assert_eq!((stage.condition("Suspended").0.as_str(), stage.condition("Ready").0.as_str()), ("True", "True"));
    assert_eq!(stage.platform().status()["release"]["version"], "v1.0.0");
    stage.write("v2.0.0", json!({}));
    stage.pass().await;
    stage.settled().await;
    assert_eq!((stage.release(), stage.condition("Suspended").0.as_str()), (json!("v2.0.0"), ""));

    let other =
        stage.scene.twin.put(json!({"apiVersion": "plinth.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "other"},
        "spec": {"source": {"channel": "acme.test/platform"}}}));
    stage.platforms.reconcile(&other).await.unwrap();
    let found = stage.scene.twin.object(&other).unwrap();
    assert_eq!(conditions::find(&found, "Ready").unwrap()["reason"], "NotKept");
}
