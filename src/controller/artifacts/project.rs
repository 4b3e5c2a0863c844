//! From a channel to its Artifacts. Pure.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{
    Object,
    artifact::{ArtifactSpec, KIND, PullSecretRef},
    platform::API_VERSION,
};
use plinth_engine::naming::{keys, label_key_fault, label_value_fault};
use plinth_releasechannel::{
    Artifact, Channel, ComponentVersion,
    descriptor::{Descriptor, Label, Resource},
};
use serde_json::{Value, json};

use crate::delivery::image::Images;

/// The Artifacts of a channel, and what of it is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Projection {
    /// What is wanted, by `metadata.name`.
    pub artifacts: BTreeMap<String, Object>,
    /// Resources that would be the same Artifact, by its name; none of them is one.
    pub collisions: BTreeMap<String, Vec<String>>,
    /// Images and charts that are in no OCI registry.
    pub elsewhere: Vec<String>,
}

/// One artifact with what it takes to make an object of it.
struct Found<'a> {
    component: &'a ComponentVersion,
    resource: &'a Resource,
    labels: BTreeMap<String, String>,
    spec: ArtifactSpec,
}

/// All OCI artifacts of a channel for this Platform.
pub fn project(
    channel: &Channel,
    artifacts: &[Artifact],
    images: &dyn Images,
    secrets: &[PullSecretRef],
    platform: &Object,
) -> Projection {
    let mut projection = Projection::default();
    let mut found: BTreeMap<String, Vec<Found<'_>>> = BTreeMap::new();
    let mut components: BTreeSet<&ComponentVersion> = BTreeSet::new();
    components.extend(artifacts.iter().map(|artifact| &artifact.component));
    for component in components {
        let Some(descriptor) = channel.descriptor(component) else { continue };
        let of_component = artifacts.iter().filter(|artifact| artifact.component == *component);
        for (name, resource, url) in located(descriptor, component, of_component, images, &mut projection.elsewhere) {
            let labels = labels(descriptor.labels.iter().chain(&resource.labels));
            let spec = ArtifactSpec { name, version: component.version.clone(), url, pullsecrets: secrets.to_vec() };
            let key = object_name(&spec.name, &spec.version);
            found.entry(key).or_default().push(Found { component, resource, labels, spec });
        }
    }
    for (key, mut same) in found {
        match (same.pop(), same.as_slice()) {
            (Some(only), []) => drop(projection.artifacts.insert(key.clone(), object(&key, only, platform))),
            (Some(last), others) => {
                let all = others.iter().chain([&last]).map(|found| format!("{} of {}", found.resource.identity, found.component));
                projection.collisions.insert(key, all.collect());
            }
            (None, _) => {}
        }
    }
    projection
}

/// Names, resources and urls of the artifacts of one component that a node can pull.
fn located<'a>(
    descriptor: &'a Descriptor,
    component: &ComponentVersion,
    artifacts: impl Iterator<Item = &'a Artifact>,
    images: &dyn Images,
    elsewhere: &mut Vec<String>,
) -> Vec<(String, &'a Resource, String)> {
    let mut pulled = Vec::new();
    for artifact in artifacts {
        let is_it = |resource: &&Resource| resource.identity == artifact.resource && resource.version == artifact.version;
        let Some(resource) = descriptor.resources.iter().find(is_it) else { continue };
        match images.pullable(component, resource).or_else(|| artifact.reference.clone()) {
            Some(url) if !url.contains("://") => pulled.push((artifact.name.clone(), resource, url)),
            _ if is_artifact(&resource.kind) => elsewhere.push(format!("{} of {component}", resource.identity)),
            _ => {}
        }
    }
    pulled
}

/// Whether a consumer would look for it.
fn is_artifact(kind: &str) -> bool {
    let kind = kind.split('/').next().unwrap_or_default().to_ascii_lowercase();
    ["ociimage", "ociartifact", "helmchart"].contains(&kind.as_str())
}

fn object(key: &str, found: Found<'_>, platform: &Object) -> Object {
    let mut labels: BTreeMap<String, Value> = found.labels.into_iter().map(|(name, value)| (name, value.into())).collect();
    labels.insert(keys::MANAGED_BY.to_owned(), keys::MANAGED_BY_PLINTH.into());
    labels.insert(keys::PLATFORM.to_owned(), plinth_engine::naming::label_value(platform.name()).into());
    let owner = json!({"apiVersion": API_VERSION, "kind": "Platform", "name": platform.name(),
        "uid": platform.uid().unwrap_or_default(), "controller": true, "blockOwnerDeletion": false});
    Object::from_value(json!({
        "apiVersion": API_VERSION, "kind": KIND,
        "metadata": {"name": key, "labels": labels, "ownerReferences": [owner]},
        "spec": found.spec,
    }))
    .expect("a mapping was just written")
}

/// `metadata.name`: name and version, as far as an API server takes them. Different versions stay different, or collide visibly.
fn object_name(name: &str, version: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    let text: String = format!("{name}-{version}").chars().map(|c| if fits(c) { c.to_ascii_lowercase() } else { '-' }).collect();
    let text: String = text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).chars().take(253).collect();
    text.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

/// OCM labels that are labels for an API server too; the resource's win over the component's.
fn labels<'a>(labels: impl Iterator<Item = &'a Label>) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    };
    let is_ours = |name: &str| name.starts_with("plinth.dev/") || name == keys::MANAGED_BY;
    labels
        .filter(|label| label_key_fault(&label.name).is_none() && !is_ours(&label.name))
        .filter_map(|label| Some((label.name.clone(), text(&label.value).filter(|value| label_value_fault(value).is_none())?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_server_takes_becomes_a_label() {
        let label = |name: &str, value: Value| Label { name: name.to_owned(), value, signing: false };
        let all = [
            label("crossplane.io/type", json!("provider")),
            label("tier", json!(3)),
            label("org.opencontainers.image.source", json!("https://x.test/y")),
            label("nested", json!({"a": 1})),
            label("Bad.Domain/x", json!("v")),
            label("plinth.dev/artifact-name", json!("mine")),
            label("tier", json!("resource")),
            label("", json!("v")),
        ];
        let expected = [("crossplane.io/type", "provider"), ("tier", "resource")];
        assert_eq!(labels(all.iter()), expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn object_names_are_those_that_a_server_takes() {
        assert_eq!(object_name("flux-chart", "v2.8.8"), "flux-chart-v2.8.8");
        assert_eq!(object_name("Flux_chart", "2.0.0-rc.1+build.7"), "flux-chart-2.0.0-rc.1-build.7");
        assert_eq!(object_name("a", &"1".repeat(300)).len(), 253);
    }
}
