//! From a descriptor and a Resource's spec to its status. Pure.

use std::collections::BTreeMap;

use plinth_api::delivery::ByReference;
use plinth_releasechannel::{
    ComponentVersion,
    descriptor::{Descriptor, Identity, Schema},
};
use serde_json::{Map, Value, json};

use super::{
    image::{self, Images},
    report::{Failed, Reason},
};

/// The component version that a reference of `descriptor` leads to.
pub fn follow(descriptor: &Descriptor, identity: &BTreeMap<String, String>) -> Result<ComponentVersion, Failed> {
    let candidates = descriptor.references.iter().map(|reference| (&reference.identity, reference.version.as_str()));
    let index = pick(candidates, identity).map_err(|found| {
        let message = format!("{}:{} has {found} component reference {}", descriptor.name, descriptor.version, shown(identity));
        Failed::wrong(Reason::GetReferenceFailed, message)
    })?;
    let reference = &descriptor.references[index];
    Ok(ComponentVersion::new(reference.component.as_str(), reference.version.as_str()))
}

/// The index of the resource that `wanted` means.
pub fn find(descriptor: &Descriptor, wanted: &ByReference) -> Result<usize, Failed> {
    let candidates = descriptor.resources.iter().map(|resource| (&resource.identity, resource.version.as_str()));
    pick(candidates, &wanted.resource).map_err(|found| {
        let message = format!("{}:{} has {found} resource {}", descriptor.name, descriptor.version, shown(&wanted.resource));
        Failed::wrong(Reason::GetOcmResourceFailed, message)
    })
}

/// Equal identities first (`version` counts only where it is asked for); else the only one that has all that is asked for.
/// Of several equal ones the first wins, as with the OCM controllers. The error is a word for the message.
fn pick<'a>(
    candidates: impl Iterator<Item = (&'a Identity, &'a str)>,
    wanted: &BTreeMap<String, String>,
) -> Result<usize, &'static str> {
    let mut partial = Vec::new();
    for (index, (identity, version)) in candidates.enumerate() {
        if !has_all(identity, version, wanted) {
            continue;
        }
        let extra = wanted.keys().filter(|key| *key != "name" && *key != "version").count();
        if extra == identity.extra.len() {
            return Ok(index);
        }
        partial.push(index);
    }
    match partial[..] {
        [only] => Ok(only),
        [] => Err("no"),
        _ => Err("more than one"),
    }
}

fn has_all(identity: &Identity, version: &str, wanted: &BTreeMap<String, String>) -> bool {
    wanted.contains_key("name")
        && wanted.iter().all(|(key, value)| match key.as_str() {
            "name" => identity.name == *value,
            "version" => version == value,
            key => identity.extra.get(key) == Some(value),
        })
}

fn shown(identity: &BTreeMap<String, String>) -> String {
    let name = identity.get("name").map_or("without a name", String::as_str);
    let rest = identity.iter().filter(|(key, _)| *key != "name").map(|(key, value)| format!(",{key}={value}"));
    format!("\"{name}{}\"", rest.collect::<String>())
}

/// What was found, ready for the status and for expressions.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// `status.resource`.
    pub status: Value,
    /// The variable `resource` of additional status fields: schema v2's form, its access completed.
    pub variable: Value,
    /// It is an image that nobody can pull.
    pub unreachable: bool,
}

/// Describes the resource at `index`, found in `repository`.
pub fn describe(descriptor: &Descriptor, index: usize, repository: &Value, images: &dyn Images) -> Found {
    let resource = &descriptor.resources[index];
    let component = ComponentVersion::new(descriptor.name.as_str(), descriptor.version.as_str());
    let located = image::locate(&component, resource, repository, images);
    let labels = raw(descriptor, index).get("labels").cloned().unwrap_or_else(|| json!([]));
    let mut status = Map::new();
    status.insert("name".into(), resource.identity.name.as_str().into());
    status.insert("type".into(), resource.kind.as_str().into());
    status.insert("version".into(), resource.version.as_str().into());
    status.insert("access".into(), located.access.clone());
    if !resource.identity.extra.is_empty() {
        status.insert("extraIdentity".into(), json!(resource.identity.extra));
    }
    if let Some(digest) = &resource.digest {
        let digest = json!({
            "hashAlgorithm": digest.hash, "normalisationAlgorithm": digest.normalisation, "value": digest.value,
        });
        status.insert("digest".into(), digest);
    }
    if labels.as_array().is_some_and(|labels| !labels.is_empty()) {
        status.insert("labels".into(), labels);
    }
    let mut variable = status.clone();
    if !resource.relation.is_empty() {
        variable.insert("relation".into(), resource.relation.as_str().into());
    }
    Found { status: Value::Object(status), variable: Value::Object(variable), unreachable: located.unreachable }
}

/// The resource as the descriptor's document has it.
fn raw(descriptor: &Descriptor, index: usize) -> &Value {
    let elements = match descriptor.schema {
        Schema::V2 => &descriptor.document["component"],
        Schema::V3Alpha1 => &descriptor.document["spec"],
    };
    &elements["resources"][index]
}

/// `status.component` of Component and Resource.
pub fn component_info(component: &ComponentVersion, repository: &Value, descriptor_digest: &str) -> Value {
    let mut info = json!({"repositorySpec": repository, "component": component.name, "version": component.version});
    if let Some((algorithm, value)) = descriptor_digest.split_once(':') {
        info["digest"] = json!({
            "hashAlgorithm": if algorithm == "sha512" { "SHA-512" } else { "SHA-256" },
            "normalisationAlgorithm": "genericBlobDigest/v1",
            "value": value,
        });
    }
    info
}

#[cfg(test)]
mod tests {
    use super::{super::image::NotMirrored, *};

    fn descriptor(resources: Value, references: Value) -> Descriptor {
        Descriptor::from_value(json!({"meta": {"schemaVersion": "v2"}, "component": {
            "name": "acme.test/c", "version": "1.0.0", "provider": "acme", "repositoryContexts": [], "sources": [],
            "resources": resources, "componentReferences": references}}))
        .unwrap()
    }

    fn wanted(pairs: &[(&str, &str)]) -> ByReference {
        let resource = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ByReference { resource, reference_path: Vec::new() }
    }

    fn image(version: &str, extra: Value) -> Value {
        json!({"name": "image", "version": version, "type": "ociImage", "relation": "external", "extraIdentity": extra,
            "access": {"type": "ociArtifact", "imageReference": "r.test/i:1"},
            "labels": [{"name": "l", "value": {"a": 1}, "version": "v1"}]})
    }

    #[test]
    fn identities_are_matched_as_upstream_and_ambiguity_is_said() {
        let arm = json!({"architecture": "arm64"});
        let amd = json!({"architecture": "amd64"});
        let both = descriptor(json!([image("1.0.0", arm.clone()), image("2.0.0", amd.clone())]), json!([]));
        let cases = [
            (&both, wanted(&[("name", "image"), ("architecture", "amd64")]), Ok(1)),
            (&both, wanted(&[("name", "image"), ("version", "1.0.0")]), Ok(0)),
            (&both, wanted(&[("name", "image")]), Err("more than one resource \"image\"")),
            (&both, wanted(&[("name", "other"), ("os", "linux")]), Err("no resource \"other,os=linux\"")),
            (&both, wanted(&[]), Err("without a name")),
        ];
        for (descriptor, wanted, expected) in cases {
            match (find(descriptor, &wanted), expected) {
                (found, Ok(index)) => assert_eq!(found, Ok(index)),
                (Err(failed), Err(words)) => assert!(failed.message.contains(words), "{}", failed.message),
                (Ok(index), Err(words)) => panic!("found {index} instead of {words}"),
            }
        }
        let only = descriptor(json!([image("1.0.0", arm)]), json!([]));
        assert_eq!(find(&only, &wanted(&[("name", "image")])), Ok(0));
    }

    #[test]
    fn references_lead_to_component_versions() {
        let descriptor = descriptor(json!([]), json!([{"name": "op", "componentName": "acme.test/op", "version": "0.1.0"}]));
        let identity = |name: &str| BTreeMap::from([("name".to_owned(), name.to_owned())]);
        assert_eq!(follow(&descriptor, &identity("op")).unwrap(), ComponentVersion::new("acme.test/op", "0.1.0"));
        let failed = follow(&descriptor, &identity("no")).unwrap_err();
        assert_eq!(failed.reason, Reason::GetReferenceFailed);
    }

    #[test]
    fn the_status_has_all_that_expressions_read() {
        let descriptor = descriptor(json!([image("1.0.0", json!({"os": "linux"}))]), json!([]));
        let found = describe(&descriptor, 0, &Value::Null, &NotMirrored);
        let expected = json!({"name": "image", "type": "ociImage", "version": "1.0.0", "extraIdentity": {"os": "linux"},
            "access": {"type": "ociArtifact", "imageReference": "r.test/i:1"},
            "labels": [{"name": "l", "value": {"a": 1}, "version": "v1"}]});
        assert_eq!(found.status, expected);
        assert_eq!(found.variable["relation"], "external");
        assert!(!found.unreachable);
    }

    #[test]
    fn a_component_version_is_proven_by_its_descriptor() {
        let info = component_info(&ComponentVersion::new("a.test/c", "1"), &json!({"type": "OCIRegistry"}), "sha256:ab");
        assert_eq!(info["digest"]["value"], "ab");
        assert_eq!(info["digest"]["hashAlgorithm"], "SHA-256");
    }
}
