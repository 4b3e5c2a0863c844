//! The four kinds together, on a cluster in memory and a real archive.

use std::sync::Arc;

use plinth_api::{ClusterKey, Object, ObjectKey};
use plinth_manager::reconcile::{Outcome, Reconciler};
use plinth_releasechannel::{
    Format, Limits, Options, RepositoryRef, Selection, SourceRef, inspect, localization::Localization, pack,
};
use plinth_run::EventKind;
use serde_json::{Value, json};

use super::{
    Delivery, Kind,
    image::{Images, NotMirrored},
    sources::LiveSources,
};
use crate::twin::Scene;

const CHANNEL: &str = r#"
components:
  - name: acme.test/leaf
    version: 1.0.0
    provider: {name: acme}
    resources:
      - {name: image, type: ociImage, version: 1.0.0, relation: external, access: {type: ociArtifact, imageReference: "http://reg.test/leaf:1.0.0"}}
      - {name: inside, type: ociImage, version: 1.0.0, relation: local, input: {type: utf8, text: "not an image", mediaType: application/vnd.oci.image.manifest.v1+json}}
  - name: acme.test/app
    version: VERSION
    provider: {name: acme}
    componentReferences:
      - {name: leaf, componentName: acme.test/leaf, version: 1.0.0}
    resources:
      - name: manifests
        type: blob
        version: 1.0.0
        relation: local
        input: {type: utf8, mediaType: application/x-yaml, text: TEXT}
"#;

const MANIFESTS: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {v: a}\n---\n\
    apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, namespace: other}\n";

struct Stage {
    scene: Scene,
    delivery: Delivery,
    folder: tempfile::TempDir,
}

impl Stage {
    fn set() -> Self {
        Self::with(Arc::new(NotMirrored))
    }

    fn with(images: Arc<dyn Images>) -> Self {
        let scene = Scene::set();
        let sources = Arc::new(LiveSources::new(Options { no_user_config: true, ..Options::default() }));
        let delivery = Delivery::new(scene.world.clone(), sources, images);
        Self { scene, delivery, folder: tempfile::tempdir().unwrap() }
    }

    /// Packs a channel into an archive of its own; answers with its specification.
    fn archive(&self, name: &str, version: &str, manifests: &str) -> Value {
        let folder = self.folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let text = CHANNEL.replace("VERSION", version).replace("TEXT", &json!(manifests).to_string());
        std::fs::write(folder.join("channel.yaml"), text).unwrap();
        let path = self.folder.path().join(format!("{name}.tgz"));
        pack(&folder, &Limits::default()).unwrap().write(&path, Format::of(&path)).unwrap();
        json!({"type": "CommonTransportFormat", "filePath": path})
    }

    fn put(&self, kind: Kind, name: &str, spec: Value) -> ObjectKey {
        let mut metadata = json!({"name": name});
        if kind != Kind::Deployer {
            metadata["namespace"] = "n".into();
        }
        self.scene
            .twin
            .put(json!({"apiVersion": "delivery.ocm.software/v1alpha1", "kind": kind.name(), "metadata": metadata, "spec": spec}))
    }

    async fn pass(&self, key: &ObjectKey) -> Outcome {
        self.delivery.reconcile(key).await.unwrap()
    }

    fn status(&self, key: &ObjectKey) -> Value {
        self.scene.twin.object(key).unwrap().status().clone()
    }

    /// Status, reason and message of Ready.
    fn ready(&self, key: &ObjectKey) -> (String, String, String) {
        let status = self.status(key);
        let ready =
            status["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == "Ready").unwrap().clone();
        let text = |field: &str| ready[field].as_str().unwrap().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// Repository and Component that are Ready.
    async fn component(&self, repository: Value) -> (ObjectKey, ObjectKey) {
        let repository = self.put(Kind::Repository, "repo", json!({"repositorySpec": repository, "interval": "1m"}));
        assert!(matches!(self.pass(&repository).await, Outcome::RequeueAfter(_)), "{:?}", self.ready(&repository));
        let spec =
            json!({"repositoryRef": {"name": "repo"}, "component": "acme.test/app", "semver": ">=1.0.0", "interval": "1m"});
        let component = self.put(Kind::Component, "app", spec);
        assert!(matches!(self.pass(&component).await, Outcome::RequeueAfter(_)));
        (repository, component)
    }
}

fn config_map(namespace: &str, name: &str) -> ObjectKey {
    let gvk = plinth_api::GroupVersionKind::new("", "v1", "ConfigMap");
    ObjectKey { cluster: ClusterKey::host(), gvk, namespace: Some(namespace.into()), name: name.into() }
}

fn resource_spec(resource: &str, path: Value) -> Value {
    json!({"componentRef": {"name": "app"}, "resource": {"byReference": {"resource": {"name": resource}, "referencePath": path}},
        "additionalStatusFields": {"oci": "resource.access.toOCI()"}})
}

#[tokio::test]
async fn a_resource_is_found_through_its_references() {
    let stage = Stage::set();
    let image = stage.put(Kind::Resource, "image", resource_spec("image", json!([{"name": "leaf"}])));
    assert!(matches!(stage.pass(&image).await, Outcome::Wait { .. }));
    assert!(stage.ready(&image).2.contains("Component.delivery.ocm.software/n/app does not exist"));

    let (repository, component) = stage.component(stage.archive("one", "1.2.0", MANIFESTS)).await;
    assert_eq!(stage.ready(&repository).0, "True");
    let found = stage.status(&component);
    assert_eq!((found["component"]["version"].as_str(), &found["effectiveOCMConfig"]), (Some("1.2.0"), &json!([])));
    assert_eq!(found["component"]["digest"]["hashAlgorithm"], "SHA-256");

    assert_eq!(stage.pass(&image).await, Outcome::Done, "{:?}", stage.ready(&image));
    let status = stage.status(&image);
    assert_eq!(status["resource"]["access"]["imageReference"], "reg.test/leaf:1.0.0", "without the scheme that some tools write");
    assert_eq!(status["additional"]["oci"]["repository"], "leaf");
    assert_eq!(
        (status["component"]["component"].as_str(), status["effectiveOCMConfig"].clone()),
        (Some("acme.test/leaf"), json!([]))
    );
}

#[tokio::test]
async fn an_image_that_nobody_can_pull_is_not_ready() {
    let stage = Stage::set();
    stage.component(stage.archive("one", "1.0.0", MANIFESTS)).await;
    let image = stage.put(Kind::Resource, "inside", resource_spec("inside", json!([{"name": "leaf"}])));
    stage.pass(&image).await;
    let (status, reason, message) = stage.ready(&image);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ResourceNotSynced"));
    assert!(message.contains("no registry serves it"), "{message}");
    assert_eq!(stage.status(&image)["resource"]["name"], "inside", "what was found is shown all the same");
}

#[tokio::test]
async fn a_downgrade_is_refused_and_signatures_are_not_ignored() {
    let stage = Stage::set();
    let (repository, component) = stage.component(stage.archive("one", "1.2.0", MANIFESTS)).await;
    let mut object = stage.scene.twin.object(&repository).unwrap();
    object.0["spec"]["repositorySpec"] = stage.archive("old", "1.1.0", MANIFESTS);
    stage.scene.twin.put(object.into_value());
    stage.pass(&repository).await;
    assert!(matches!(stage.pass(&component).await, Outcome::Invalid { .. }));
    assert!(stage.ready(&component).2.contains("downgradePolicy is Deny"));
    assert_eq!(stage.status(&component)["component"]["version"], "1.2.0");

    let spec = json!({"repositoryRef": {"name": "repo"}, "component": "acme.test/app", "semver": "1.1.0", "interval": "1m",
        "verify": [{"signature": "s", "value": "a2V5"}]});
    let signed = stage.put(Kind::Component, "signed", spec);
    stage.pass(&signed).await;
    assert_eq!(stage.ready(&signed).0, "False", "Ready without having verified would be a lie");
}

#[tokio::test]
async fn manifests_are_applied_as_a_set_and_pruned() {
    let stage = Stage::set();
    let (repository, component) = stage.component(stage.archive("one", "1.0.0", MANIFESTS)).await;
    let mut spec = resource_spec("manifests", json!([]));
    spec["additionalStatusFields"] = Value::Null;
    let resource = stage.put(Kind::Resource, "manifests", spec);
    assert_eq!(stage.pass(&resource).await, Outcome::Done, "{:?}", stage.ready(&resource));
    // Contracts 18: the namespace is missing, and there is only one Resource of that name.
    let deployer = stage.put(Kind::Deployer, "d", json!({"resourceRef": {"name": "manifests"}}));
    assert_eq!(stage.pass(&deployer).await, Outcome::Done, "{:?}", stage.ready(&deployer));
    assert!(
        stage
            .scene
            .events()
            .iter()
            .any(|event| matches!(event, EventKind::Warning { reason, .. } if reason == "NamespaceMissing"))
    );
    assert!(stage.scene.twin.object(&config_map("default", "one")).is_some(), "namespaced objects without one go to default");
    assert_eq!(stage.status(&deployer)["deployed"].as_array().unwrap().len(), 2);

    stage.scene.twin.writes();
    stage.pass(&deployer).await;
    assert_eq!(stage.scene.twin.writes(), Vec::<String>::new(), "what is as applied needs no write");
    let mut tampered = stage.scene.twin.object(&config_map("default", "one")).unwrap();
    tampered.0["data"] = json!({"v": "other"});
    stage.scene.twin.put(tampered.into_value());
    stage.pass(&deployer).await;
    assert_eq!(stage.scene.twin.object(&config_map("default", "one")).unwrap().at(&["data", "v"]), Some(&json!("a")));

    let kept = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {v: b}\n";
    let mut object = stage.scene.twin.object(&repository).unwrap();
    object.0["spec"]["repositorySpec"] = stage.archive("two", "1.1.0", kept);
    stage.scene.twin.put(object.into_value());
    for key in [&repository, &component, &resource, &deployer] {
        stage.pass(key).await;
    }
    assert_eq!(stage.ready(&deployer).0, "True", "{:?}", stage.ready(&deployer));
    assert_eq!(stage.scene.twin.object(&config_map("default", "one")).unwrap().at(&["data", "v"]), Some(&json!("b")));
    assert!(stage.scene.twin.object(&config_map("other", "two")).is_none(), "what is no longer in the manifest goes");

    // Removal: nothing goes while something builds on it, and the set goes with its Deployer.
    let delete = |key: &ObjectKey| {
        let mut object = stage.scene.twin.object(key).unwrap();
        object.metadata_mut().insert("deletionTimestamp".into(), json!("2026-01-01T00:00:00Z"));
        stage.scene.twin.put(object.into_value());
    };
    delete(&resource);
    assert!(matches!(stage.pass(&resource).await, Outcome::Wait { .. }));
    assert!(stage.ready(&resource).2.contains("Deployer.delivery.ocm.software/d"));
    delete(&deployer);
    stage.pass(&deployer).await;
    assert!(stage.scene.twin.object(&config_map("default", "one")).is_none());
    assert!(stage.scene.twin.object(&deployer).is_none());
    stage.pass(&resource).await;
    assert!(stage.scene.twin.object(&resource).is_none());
}

/// A Component waits for the Resource that builds on it, and the Resource, which its graph wants, for the Component.
#[tokio::test]
async fn a_component_that_is_made_again_lets_go_of_its_resources() {
    let stage = Stage::set();
    let (_, component) = stage.component(stage.archive("one", "1.2.0", MANIFESTS)).await;
    let image = stage.put(Kind::Resource, "image", resource_spec("image", json!([{"name": "leaf"}])));
    assert_eq!(stage.pass(&image).await, Outcome::Done, "{:?}", stage.ready(&image));
    let found = stage.status(&image)["resource"].clone();
    let wanted = stage.scene.twin.object(&component).unwrap();
    let mut deleted = wanted.clone();
    deleted.metadata_mut().insert("deletionTimestamp".into(), json!("2026-01-01T00:00:00Z"));
    stage.scene.twin.put(deleted.into_value());

    assert!(matches!(stage.pass(&component).await, Outcome::Wait { .. }), "nobody makes it again");
    assert!(stage.ready(&component).2.contains("Resource.delivery.ocm.software/n/image"));
    stage.pass(&image).await;
    assert!(stage.ready(&image).2.contains("is being deleted"));

    let instance = ObjectKey { name: "instance".into(), ..component.clone() };
    stage.scene.world.awaited.declare(&instance, std::collections::BTreeSet::from([component.clone()]));
    assert_eq!(stage.pass(&component).await, Outcome::Done);
    assert!(stage.scene.twin.object(&component).is_none());
    stage.pass(&image).await;
    assert_eq!(stage.status(&image)["resource"], found, "what was found is kept meanwhile");

    stage.put(Kind::Component, "app", wanted.spec().clone());
    stage.pass(&component).await;
    assert_eq!(stage.pass(&image).await, Outcome::Done, "{:?}", stage.ready(&image));
}

#[tokio::test]
async fn objects_of_kinds_that_come_late_are_deferred() {
    let stage = Stage::set();
    let late = format!("{MANIFESTS}---\napiVersion: late.test/v1\nkind: Thing\nmetadata: {{name: t}}\n");
    stage.component(stage.archive("one", "1.0.0", &late)).await;
    let mut spec = resource_spec("manifests", json!([]));
    spec["additionalStatusFields"] = Value::Null;
    let resource = stage.put(Kind::Resource, "manifests", spec);
    stage.pass(&resource).await;
    let deployer = stage.put(Kind::Deployer, "d", json!({"resourceRef": {"name": "manifests", "namespace": "n"}}));
    assert!(matches!(stage.pass(&deployer).await, Outcome::Wait { .. }));
    assert!(stage.ready(&deployer).2.contains("Thing.late.test/v1 (t)"), "{:?}", stage.ready(&deployer));
    assert!(stage.scene.twin.object(&config_map("default", "one")).is_some(), "the others are applied");

    let gvk = plinth_api::GroupVersionKind::new("late.test", "v1", "Thing");
    assert_eq!(stage.delivery.waiting_for(&gvk), std::slice::from_ref(&deployer));
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.late.test"},
        "spec": {"group": "late.test", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"}, "versions": [{"name": "v1",
            "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    stage.scene.twin.serve(&Object::from_value(crd).unwrap());
    assert_eq!(stage.pass(&deployer).await, Outcome::Done, "{:?}", stage.ready(&deployer));
}

/// Contracts 17: with a mirror every image of the channel has its place there, also one that the channel holds itself; and manifests name
/// it there.
#[tokio::test]
async fn a_mirror_gives_the_images_and_manifests_name_them_there() {
    let manifests = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {image: \"reg.test/leaf:1.0.0\", strayImage: \"quay.test/stray:1\"}\n";
    let named = CHANNEL.replace("external, access", "external, digest: DIGEST, access");
    let digest = format!("{{hashAlgorithm: SHA-256, normalisationAlgorithm: ociArtifactDigest/v1, value: {}}}", "a".repeat(64));
    let text =
        |text: &str| text.replace("DIGEST", &digest).replace("VERSION", "1.0.0").replace("TEXT", &json!(manifests).to_string());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("channel.yaml"), text(&named)).unwrap();
    let source = SourceRef::parse(folder.path().to_str().unwrap()).unwrap();
    let options = Options { no_user_config: true, ..Options::default() };
    let channel = inspect(&source, &Selection::default(), &options).await.unwrap();
    let mirror = RepositoryRef::parse("mirror.test/site").unwrap();
    let stage = Stage::with(Arc::new(Localization::new(&channel.lock, None, &mirror)));
    let path = folder.path().join("channel.tgz");
    pack(folder.path(), &Limits::default()).unwrap().write(&path, Format::of(&path)).unwrap();
    stage.component(json!({"type": "CommonTransportFormat", "filePath": path})).await;

    let mirrored = format!("mirror.test/site/leaf:1.0.0@sha256:{}", "a".repeat(64));
    let image = stage.put(Kind::Resource, "image", resource_spec("image", json!([{"name": "leaf"}])));
    assert_eq!(stage.pass(&image).await, Outcome::Done, "{:?}", stage.ready(&image));
    assert_eq!(stage.status(&image)["resource"]["access"]["imageReference"], mirrored.as_str());
    assert_eq!(stage.status(&image)["additional"]["oci"]["registry"], "mirror.test");
    assert_eq!(stage.status(&image)["additional"]["oci"]["tag"], "1.0.0");

    let mut spec = resource_spec("manifests", json!([]));
    spec["additionalStatusFields"] = Value::Null;
    let resource = stage.put(Kind::Resource, "manifests", spec);
    stage.pass(&resource).await;
    let deployer = stage.put(Kind::Deployer, "d", json!({"resourceRef": {"name": "manifests", "namespace": "n"}}));
    for _ in 0..2 {
        assert_eq!(stage.pass(&deployer).await, Outcome::Done, "{:?}", stage.ready(&deployer));
    }
    let deployed = stage.scene.twin.object(&config_map("default", "one")).unwrap();
    assert_eq!(deployed.at(&["data", "image"]), Some(&json!(mirrored)));
    let is_leak = |event: &EventKind| matches!(event, EventKind::Warning { reason, message, .. } if reason == "Leak" && message.contains("quay.test/stray:1"));
    assert_eq!(stage.scene.events().iter().filter(|event| is_leak(event)).count(), 1);
}
