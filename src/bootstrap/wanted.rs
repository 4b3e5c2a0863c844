//! The objects that the run itself writes; everything below them is the loop's.

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, delivery, lock::ReleaseLock, rbac::Rights};
use plinth_engine::naming;
use plinth_releasechannel::localization::Applied;
use serde_json::{Value, json};

use crate::{
    digest,
    distribution::Distribution,
    error::Error,
    install,
    release::{self, Begun, Releases},
    rights,
    settings::Settings,
    values,
};

/// One object that the run writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Where and what.
    pub key: ObjectKey,
    /// The fields that are set.
    pub object: Object,
    /// Digest of `object`.
    pub digest: String,
    /// Which step of the run writes it.
    pub step: Step,
}

/// The steps of the run itself, in their order: each needs what the one before brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// CRDs of definitions and delivery, the namespace, and what is kept of the release.
    Foundation,
    /// The controller in the cluster.
    Controller,
    /// The Repository and the definitions.
    Definitions,
    /// The top-level instance.
    Instance,
}

/// All objects that the run writes, in order.
pub fn assemble(distribution: &Distribution, settings: &Settings) -> Result<Vec<Wanted>, Error> {
    let instance = instance(distribution, settings);
    let namespace = namespace(distribution, settings);
    let mut wanted: Vec<Wanted> = settings.definitions.iter().map(|crd| made(crd.clone(), Step::Foundation, settings)).collect();
    // The Lease's namespace is there before anything else, and still belongs to what the run brings.
    let mut namespaces = vec![rights::NAMESPACE, namespace.as_str()];
    namespaces.dedup();
    for name in namespaces.into_iter().filter(|name| *name != "default") {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        wanted.push(made(object_of(object), Step::Foundation, settings));
    }
    if let Some(repository) = repository(&instance, &namespace, settings)? {
        wanted.push(made(repository, Step::Definitions, settings));
    }
    for rgd in &distribution.rgds {
        wanted.push(made(marked(without_status(rgd.object.clone()), settings), Step::Definitions, settings));
    }
    wanted.push(made(instance, Step::Instance, settings));
    Ok(wanted)
}

/// What installs the controller, where one is to be installed.
pub(crate) fn controller(settings: &Settings, rights: &Rights) -> Vec<Wanted> {
    let Some(controller) = &settings.controller else { return Vec::new() };
    let objects = install::objects(controller, &settings.platform, rights);
    objects.into_iter().map(|object| part(object, Step::Controller, settings)).collect()
}

/// What the cluster keeps of the release, where the run says what was asked for.
pub(crate) fn release(settings: &Settings, lock: &ReleaseLock, there: &Releases, begun: Begun) -> Result<Vec<Wanted>, Error> {
    if settings.asked.is_none() {
        return Ok(Vec::new());
    }
    Ok(release::kept(settings, lock, there, begun)?.into_iter().map(|object| part(object, Step::Foundation, settings)).collect())
}

/// A part of plinth itself.
fn part(mut object: Object, step: Step, settings: &Settings) -> Wanted {
    let labels = object.metadata_mut().entry("labels").or_insert_with(|| json!({}));
    labels[naming::keys::PART] = naming::keys::PART_CONTROLLER.into();
    made(object, step, settings)
}

/// The top-level instance with values and namespace.
pub fn instance(distribution: &Distribution, settings: &Settings) -> Object {
    localized_instance(distribution, settings).0
}

/// The same, with what was found of images in it.
pub(crate) fn localized_instance(distribution: &Distribution, settings: &Settings) -> (Object, Applied) {
    let mut instance = without_status(distribution.instance.clone());
    values::merge(&mut instance, &settings.values);
    if distribution.root().definition.spec.schema.scope == plinth_api::rgd::Scope::Namespaced {
        instance.metadata_mut().insert("namespace".into(), namespace(distribution, settings).into());
    } else {
        instance.metadata_mut().remove("namespace");
    }
    let (mut value, mut applied) = (instance.into_value(), Applied::default());
    distribution.images.map.apply(&mut value, &mut applied);
    (object_of(value), applied)
}

/// `-n`, else the namespace of the distribution's instance, else `default` (contracts 9).
pub fn namespace(distribution: &Distribution, settings: &Settings) -> String {
    settings.namespace.as_deref().or_else(|| distribution.instance.namespace()).unwrap_or("default").to_owned()
}

/// The Repository that the instance's `spec.ocmRepoName` names, with the source that the channel really came from (contracts 5).
fn repository(instance: &Object, namespace: &str, settings: &Settings) -> Result<Option<Object>, Error> {
    let Some(name) = instance.at(&["spec", "ocmRepoName"]).and_then(Value::as_str) else { return Ok(None) };
    let Some(specification) = &settings.repository else {
        let text = format!("the instance asks for Repository {name}, but the source has no repository that a cluster could read");
        return Err(Error::Unusable(text));
    };
    if settings.hands_over && specification.get("filePath").is_some() {
        let text = "what only this machine can read, an archive or a folder, cannot be handed over to a cluster: give --mirror REGISTRY, or --controller=none to stay with it";
        return Err(Error::Unusable(text.into()));
    }
    let object = json!({
        "apiVersion": format!("{}/{}", delivery::GROUP, delivery::VERSION),
        "kind": "Repository",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"repositorySpec": specification, "interval": "1m"},
    });
    Ok(Some(object_of(object)))
}

fn made(mut object: Object, step: Step, settings: &Settings) -> Wanted {
    label(&mut object, &settings.platform);
    let key = object.key(&ClusterKey::host()).expect("every object that is assembled here has a type");
    let digest = digest::of(object.as_value());
    Wanted { key, object, digest, step }
}

/// Says on the definitions what of the channel was not checked; the next run without that takes the words away.
fn marked(mut object: Object, settings: &Settings) -> Object {
    if !settings.unverified.is_empty() {
        annotate(&mut object, naming::keys::UNVERIFIED, &settings.unverified.join("; "));
    }
    object
}

fn annotate(object: &mut Object, name: &str, value: &str) {
    let annotations = object.metadata_mut().entry("annotations").or_insert_with(|| json!({}));
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[name] = value.into();
}

/// Marks an object as this platform's: `down` finds it by that.
fn label(object: &mut Object, platform: &str) {
    let labels = object.metadata_mut().entry("labels").or_insert_with(|| json!({}));
    if !labels.is_object() {
        *labels = json!({});
    }
    labels[naming::keys::PLATFORM] = naming::label_value(platform).into();
}

fn without_status(mut object: Object) -> Object {
    object.0.remove("status");
    object
}

fn object_of(value: Value) -> Object {
    Object::from_value(value).expect("a JSON object was just written")
}

/// The type of CustomResourceDefinitions.
pub fn crd_kind() -> GroupVersionKind {
    GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
}

/// The type of Namespaces.
pub fn namespace_kind() -> GroupVersionKind {
    GroupVersionKind::new("", "v1", "Namespace")
}
