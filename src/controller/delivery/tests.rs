//! The kinds together, on a cluster in memory and a real archive.

use std::{path::Path, sync::Arc, time::Duration};

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

pub(super) struct Stage {
    pub(super) scene: Scene,
    delivery: Delivery,
    folder: tempfile::TempDir,
}

impl Stage {
    pub(super) fn set() -> Self {
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
        self.packed(name, &CHANNEL.replace("VERSION", version).replace("TEXT", &json!(manifests).to_string()))
    }

    /// Packs this channel.
    pub(super) fn packed(&self, name: &str, channel: &str) -> Value {
        let path = self.folder.path().join(format!("{name}.tgz"));
        self.pack_to(&path, channel);
        json!({"type": "CommonTransportFormat", "filePath": path})
    }

    /// Packs this channel into a folder and takes a component out of it again.
    pub(super) fn damaged(&self, name: &str, channel: &str, component: &str) -> Value {
        let path = self.folder.path().join(format!("{name}-damaged"));
        self.pack_to(&path, channel);
        let index = path.join("artifact-index.json");
        let mut document: Value = serde_json::from_slice(&std::fs::read(&index).unwrap()).unwrap();
        let artifacts = document["artifacts"].as_array_mut().unwrap();
        let before = artifacts.len();
        artifacts.retain(|artifact| !artifact["repository"].as_str().unwrap().ends_with(component));
        assert!(artifacts.len() < before, "{component} was not there");
        std::fs::write(&index, document.to_string()).unwrap();
        json!({"type": "CommonTransportFormat", "filePath": path})
    }

    fn pack_to(&self, path: &Path, channel: &str) {
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap();
        std::fs::write(folder.path().join("channel.yaml"), channel).unwrap();
        pack(folder.path(), &Limits::default()).unwrap().write(path, Format::of(path).unwrap()).unwrap();
    }

    pub(super) fn put(&self, kind: Kind, name: &str, spec: Value) -> ObjectKey {
        let mut metadata = json!({"name": name});
        if kind != Kind::Deployer {
            metadata["namespace"] = "n".into();
        }
        self.scene
            .twin
            .put(json!({"apiVersion": "delivery.ocm.software/v1alpha1", "kind": kind.name(), "metadata": metadata, "spec": spec}))
    }

    pub(super) async fn pass(&self, key: &ObjectKey) -> Outcome {
        self.delivery.reconcile(key).await.unwrap()
    }

    pub(super) fn status(&self, key: &ObjectKey) -> Value {
        self.scene.twin.object(key).unwrap().status().clone()
    }

    /// Status, reason and message of Ready.
    pub(super) fn ready(&self, key: &ObjectKey) -> (String, String, String) {
        let status = self.status(key);
        let ready =
            status["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == "Ready").unwrap().clone();
        let text = |field: &str| ready[field].as_str().unwrap().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// Repository and Component that are Ready.
    pub(super) async fn component(&self, repository: Value) -> (ObjectKey, ObjectKey) {
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

fn manifests_spec() -> Value {
    let mut spec = resource_spec("manifests", json!([]));
    spec["additionalStatusFields"] = Value::Null;
    spec
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

/// A pass comes before the index shows what the one before it wrote.
#[tokio::test]
async fn an_index_that_lags_causes_no_second_write() {
    let stage = Stage::set();
    stage.component(stage.archive("one", "1.2.0", MANIFESTS)).await;
    let manifests = stage.put(Kind::Resource, "manifests", manifests_spec());
    let deployer = stage.put(Kind::Deployer, "app", json!({"resourceRef": {"name": "manifests", "namespace": "n"}}));
    for key in [&manifests, &deployer] {
        stage.scene.twin.freeze();
        stage.pass(key).await;
        assert_eq!(stage.ready(key).0, "True", "{:?}", stage.ready(key));
        stage.scene.twin.writes();
        stage.pass(key).await;
        assert_eq!(stage.scene.twin.writes(), Vec::<String>::new(), "{key}");
        stage.scene.twin.thaw();
        stage.pass(key).await;
        assert_eq!(stage.scene.twin.writes(), Vec::<String>::new(), "{key}");
    }
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
async fn a_downgrade_is_refused_and_keys_are_read() {
    let stage = Stage::set();
    let (repository, component) = stage.component(stage.archive("one", "1.2.0", MANIFESTS)).await;
    let mut object = stage.scene.twin.object(&repository).unwrap();
    object.0["spec"]["repositorySpec"] = stage.archive("old", "1.1.0", MANIFESTS);
    stage.scene.twin.put(object.into_value());
    stage.pass(&repository).await;
    let mut object = stage.scene.twin.object(&component).unwrap();
    object.0["spec"]["semver"] = "1.1.0".into();
    stage.scene.twin.put(object.into_value());
    assert!(matches!(stage.pass(&component).await, Outcome::Invalid { .. }));
    assert!(stage.ready(&component).2.contains("downgradePolicy is Deny"));
    assert_eq!(stage.status(&component)["component"]["version"], "1.2.0");

    let spec = json!({"repositoryRef": {"name": "repo"}, "component": "acme.test/app", "semver": "1.1.0", "interval": "1m",
        "verify": [{"signature": "s", "value": "a2V5"}]});
    let signed = stage.put(Kind::Component, "signed", spec);
    assert!(matches!(stage.pass(&signed).await, Outcome::Invalid { .. }));
    let (ready, reason, message) = stage.ready(&signed);
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "GetComponentVersionFailed"), "Ready without proof would be a lie");
    assert!(message.contains("the key of \"s\" cannot be used"), "{message}");
}

/// In a range something higher may come; one version that is too low stays so.
#[tokio::test]
async fn a_downgrade_in_a_range_is_looked_at_again() {
    let stage = Stage::set();
    let (repository, component) = stage.component(stage.archive("one", "1.2.0", MANIFESTS)).await;
    let point_to = |archive: Value| {
        let mut object = stage.scene.twin.object(&repository).unwrap();
        object.0["spec"]["repositorySpec"] = archive;
        stage.scene.twin.put(object.into_value());
    };
    point_to(stage.archive("old", "1.1.0", MANIFESTS));
    stage.pass(&repository).await;
    assert_eq!(stage.pass(&component).await, Outcome::RequeueAfter(Duration::from_mins(1)));
    assert!(stage.ready(&component).2.contains("downgradePolicy is Deny"));
    assert_eq!(stage.status(&component)["component"]["version"], "1.2.0", "what is in use stays");
    point_to(stage.archive("new", "1.3.0", MANIFESTS));
    stage.pass(&repository).await;
    stage.pass(&component).await;
    assert_eq!(stage.status(&component)["component"]["version"], "1.3.0");
}

#[tokio::test]
async fn a_suspended_object_is_left_as_it_is_and_a_bad_interval_is_said() {
    let stage = Stage::set();
    let (repository, component) = stage.component(stage.archive("one", "1.2.0", MANIFESTS)).await;
    let mut object = stage.scene.twin.object(&component).unwrap();
    object.0["spec"]["suspend"] = true.into();
    object.0["spec"]["semver"] = ">=9".into();
    stage.scene.twin.put(object.clone().into_value());
    let before = stage.status(&component);
    stage.scene.twin.writes();
    assert!(matches!(stage.pass(&component).await, Outcome::Wait { .. }));
    assert_eq!((stage.status(&component), stage.scene.twin.writes()), (before, Vec::new()));
    object.0["spec"]["suspend"] = false.into();
    stage.scene.twin.put(object.into_value());
    stage.pass(&component).await;
    assert_eq!(stage.ready(&component).1, "CheckVersionFailed");

    let mut object = stage.scene.twin.object(&repository).unwrap();
    object.0["spec"]["interval"] = "soon".into();
    stage.scene.twin.put(object.into_value());
    assert!(matches!(stage.pass(&repository).await, Outcome::Invalid { .. }));
    assert!(stage.ready(&repository).2.contains("\"soon\" is not a duration"), "{:?}", stage.ready(&repository));
}

/// Signed archives of the OCM tools, with the key in the object, in a Secret, and wrong.
#[tokio::test]
async fn signatures_are_verified_before_a_version_is_taken() {
    let Some(data) = data() else {
        eprintln!("1 test did not run: PLINTH_DATA has no ocm/signed");
        return;
    };
    let stage = Stage::set();
    let key = |name: &str| std::fs::read_to_string(data.join("keys").join(name)).unwrap();
    let archive = |name: &str| json!({"type": "CommonTransportFormat", "filePath": data.join("signed").join(name)});
    let repository = |name: &str| stage.put(Kind::Repository, name, json!({"repositorySpec": archive(name), "interval": "1m"}));
    let component = |name: &str, repository: &str, verify: Value| {
        let spec = json!({"repositoryRef": {"name": repository}, "component": "acme.example/releasechannel/stable",
            "semver": "2026.11.0", "interval": "1m", "verify": verify});
        stage.put(Kind::Component, name, spec)
    };
    for name in ["v3-pkcs1-sha256", "v4alpha1-pss-sha256", "neg-signature-bit"] {
        stage.pass(&repository(name)).await;
    }
    let newer = component("newer", "v4alpha1-pss-sha256", json!([{"signature": "acme-sig", "value": key("acme.pub")}]));
    stage.pass(&newer).await;
    assert_eq!(stage.ready(&newer).0, "True", "{:?}", stage.ready(&newer));
    let signed = component("signed", "v3-pkcs1-sha256", json!([{"signature": "acme-sig", "value": key("acme.pub")}]));
    assert_eq!(stage.pass(&signed).await, Outcome::RequeueAfter(Duration::from_mins(1)), "{:?}", stage.ready(&signed));
    assert_eq!(stage.ready(&signed), ("True".into(), "Succeeded".into(), "Applied version 2026.11.0".into()));

    let other = component("other", "v3-pkcs1-sha256", json!([{"signature": "acme-sig", "value": key("other.pub")}]));
    let bit = component("bit", "neg-signature-bit", json!([{"signature": "acme-sig", "value": key("acme.pub")}]));
    for (key, words) in [(&other, "not made with the given key"), (&bit, "not verified: the signature \"acme-sig\"")] {
        assert!(matches!(stage.pass(key).await, Outcome::RequeueAfter(_)), "{key}");
        let (ready, reason, message) = stage.ready(key);
        assert_eq!((ready.as_str(), reason.as_str()), ("False", "GetComponentVersionFailed"));
        assert!(message.contains(words), "{message}");
        assert!(stage.status(key).get("component").is_none(), "what is not proven is not taken");
    }

    let by_secret = component("secret", "v3-pkcs1-sha256", json!([{"signature": "acme-sig", "secretRef": {"name": "keys"}}]));
    stage.pass(&by_secret).await;
    assert!(stage.ready(&by_secret).2.contains("Secret/n/keys does not exist"), "{:?}", stage.ready(&by_secret));
    let text = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, key("acme.pub"));
    stage.scene.twin.put(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "n"}, "data": {"acme-sig": text}}),
    );
    stage.pass(&by_secret).await;
    assert_eq!(stage.ready(&by_secret).0, "True", "{:?}", stage.ready(&by_secret));
}

pub(super) fn data() -> Option<std::path::PathBuf> {
    let default = || std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let folder = std::env::var_os("PLINTH_DATA").map_or_else(default, Into::into).join("ocm");
    folder.is_dir().then_some(folder)
}

/// What belongs to another set is left alone, and the rest is applied all the same.
#[tokio::test]
async fn an_object_of_somebody_else_is_left_alone() {
    let stage = Stage::set();
    stage.component(stage.archive("one", "1.0.0", MANIFESTS)).await;
    let resource = stage.put(Kind::Resource, "manifests", manifests_spec());
    stage.pass(&resource).await;
    let theirs = stage.scene.twin.put(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"v": "theirs"},
        "metadata": {"name": "one", "namespace": "default", "labels": {"applyset.kubernetes.io/part-of": "applyset-other-v1"}}}));
    let deployer = stage.put(Kind::Deployer, "d", json!({"resourceRef": {"name": "manifests", "namespace": "n"}}));
    assert!(matches!(stage.pass(&deployer).await, Outcome::RequeueAfter(_)));
    let (ready, reason, message) = stage.ready(&deployer);
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "ApplyFailed"));
    assert!(message.contains("ConfigMap/default/one belongs to the set applyset-other-v1 and is left alone"), "{message}");
    assert_eq!(stage.scene.twin.object(&theirs).unwrap().at(&["data", "v"]), Some(&json!("theirs")));
    assert!(stage.scene.twin.object(&config_map("other", "two")).is_some());
}

/// Pull secrets follow from it: they must not go from what runs because a repository is away for a while.
#[tokio::test]
async fn configuration_stays_while_a_parent_is_not_ready() {
    let stage = Stage::set();
    let config = json!([{"apiVersion": "v1", "kind": "Secret", "name": "pull", "policy": "Propagate"}]);
    stage.scene.twin.put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "namespace": "n"},
        "data": {".dockerconfigjson": "e30="}}));
    let (repository, component) = stage.component(stage.archive("one", "1.0.0", MANIFESTS)).await;
    let mut object = stage.scene.twin.object(&repository).unwrap();
    object.0["spec"]["ocmConfig"] = config;
    stage.scene.twin.put(object.clone().into_value());
    let resource = stage.put(Kind::Resource, "manifests", manifests_spec());
    for key in [&repository, &component, &resource] {
        stage.pass(key).await;
        assert_eq!(stage.status(key)["effectiveOCMConfig"][0]["name"], "pull", "{key}");
    }
    object.0["spec"]["repositorySpec"]["filePath"] = "/nowhere.tgz".into();
    stage.scene.twin.put(object.into_value());
    for key in [&repository, &component, &resource] {
        stage.pass(key).await;
        assert_eq!(
            (stage.ready(key).0.as_str(), &stage.status(key)["effectiveOCMConfig"][0]["name"]),
            ("False", &json!("pull")),
            "{key}"
        );
    }
}

/// With the registry away nothing is Ready any more, and what was deployed is kept as it was all the same.
#[tokio::test]
async fn what_was_deployed_is_kept_while_the_repository_is_away() {
    let stage = Stage::set();
    let (repository, component) = stage.component(stage.archive("one", "1.0.0", MANIFESTS)).await;
    let resource = stage.put(Kind::Resource, "manifests", manifests_spec());
    let deployer = stage.put(Kind::Deployer, "d", json!({"resourceRef": {"name": "manifests", "namespace": "n"}}));
    for key in [&resource, &deployer] {
        assert_eq!(stage.pass(key).await, Outcome::Done);
    }
    let mut object = stage.scene.twin.object(&repository).unwrap();
    object.0["spec"]["repositorySpec"]["filePath"] = "/nowhere.tgz".into();
    stage.scene.twin.put(object.into_value());
    for key in [&repository, &component, &resource] {
        stage.pass(key).await;
        assert_eq!(stage.ready(key).0, "False", "{key}");
    }
    stage.scene.twin.remove(&config_map("default", "one"));
    assert!(matches!(stage.pass(&deployer).await, Outcome::Wait { .. }));
    assert_eq!(stage.ready(&deployer).0, "False", "a new version could not be seen");
    assert!(stage.scene.twin.object(&config_map("default", "one")).is_some());
}

/// A Deployer that the OCM controllers looked after has a finalizer that nobody else takes off.
#[tokio::test]
async fn finalizers_of_the_ocm_controllers_are_taken_off() {
    let stage = Stage::set();
    let deployer = stage.put(Kind::Deployer, "d", json!({"resourceRef": {"name": "manifests", "namespace": "n"}}));
    let mut object = stage.scene.twin.object(&deployer).unwrap();
    object
        .metadata_mut()
        .insert("finalizers".into(), json!(["delivery.ocm.software/applyset-prune", "delivery.ocm.software/watch"]));
    object.metadata_mut().insert("deletionTimestamp".into(), json!("2026-01-01T00:00:00Z"));
    stage.scene.twin.put(object.into_value());
    assert_eq!(stage.pass(&deployer).await, Outcome::Done);
    assert!(stage.scene.twin.object(&deployer).is_none());
}

#[tokio::test]
async fn manifests_are_applied_as_a_set_and_pruned() {
    let stage = Stage::set();
    let (repository, component) = stage.component(stage.archive("one", "1.0.0", MANIFESTS)).await;
    let resource = stage.put(Kind::Resource, "manifests", manifests_spec());
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
    let resource = stage.put(Kind::Resource, "manifests", manifests_spec());
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
    pack(folder.path(), &Limits::default()).unwrap().write(&path, Format::of(&path).unwrap()).unwrap();
    stage.component(json!({"type": "CommonTransportFormat", "filePath": path})).await;

    let mirrored = format!("mirror.test/site/leaf:1.0.0@sha256:{}", "a".repeat(64));
    let image = stage.put(Kind::Resource, "image", resource_spec("image", json!([{"name": "leaf"}])));
    assert_eq!(stage.pass(&image).await, Outcome::Done, "{:?}", stage.ready(&image));
    assert_eq!(stage.status(&image)["resource"]["access"]["imageReference"], mirrored.as_str());
    assert_eq!(stage.status(&image)["additional"]["oci"]["registry"], "mirror.test");
    assert_eq!(stage.status(&image)["additional"]["oci"]["tag"], "1.0.0");

    let resource = stage.put(Kind::Resource, "manifests", manifests_spec());
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

/// What a Deployer applies is known only during the run, and so is what it takes.
#[tokio::test]
async fn a_deployer_names_the_rights_that_its_manifest_takes() {
    let stage = Stage::set();
    stage.component(stage.archive("one", "1.0.0", MANIFESTS)).await;
    let resource = stage.put(Kind::Resource, "manifests", manifests_spec());
    stage.pass(&resource).await;
    let deployer = stage.put(Kind::Deployer, "d", json!({"resourceRef": {"name": "manifests", "namespace": "n"}}));
    for right in ["create configmaps two in namespace other", "list configmaps"] {
        stage.scene.twin.lack(right, true);
    }
    assert!(matches!(stage.pass(&deployer).await, Outcome::RequeueAfter(after) if after >= Duration::from_secs(1)));
    let (status, reason, message) = stage.ready(&deployer);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "PermissionMissing"));
    let missing = plinth_api::permission::in_message(&message);
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    assert_eq!(missing, ["create configmaps two in namespace other", "list configmaps"]);
    let object = stage.scene.twin.object(&deployer).unwrap();
    assert!(crate::conditions::holds(&object, "PermissionMissing"));
    let is_waiting = |event: &EventKind| matches!(event, EventKind::HealthChanged { subject, health, .. } if subject.key == deployer && *health == plinth_run::Health::Waiting);
    assert!(stage.scene.events().iter().any(is_waiting));
    for right in ["create configmaps two in namespace other", "list configmaps"] {
        stage.scene.twin.lack(right, false);
    }
    stage.pass(&deployer).await;
    assert_eq!(stage.ready(&deployer).0, "True", "{:?}", stage.ready(&deployer));
    assert!(!crate::conditions::holds(&stage.scene.twin.object(&deployer).unwrap(), "PermissionMissing"));
}
