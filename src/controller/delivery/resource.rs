//! From a descriptor and a Resource's spec to its status. Pure.

use std::collections::BTreeMap;

use plinth_api::delivery::ByReference;
use plinth_releasechannel::{
    ComponentVersion, Digest, ImageReference,
    access::Access,
    descriptor::{Descriptor, DigestSpec, Identity, Reference, Resource, Schema},
    normalise,
};
use serde_json::{Map, Value, json};

use super::{
    image::{self, Images},
    report::{Failed, Reason},
};

/// The reference of `descriptor` that has this identity.
pub fn follow<'a>(descriptor: &'a Descriptor, identity: &BTreeMap<String, String>) -> Result<&'a Reference, Failed> {
    let candidates = descriptor.references.iter().map(|reference| (&reference.identity, reference.version.as_str()));
    let index = pick(candidates, identity).map_err(|found| {
        let message = format!("{}:{} has {found} component reference {}", descriptor.name, descriptor.version, shown(identity));
        Failed::wrong(Reason::GetReferenceFailed, message)
    })?;
    Ok(&descriptor.references[index])
}

/// A component version below a verified one is what the reference's digest says.
pub fn check_reference(reference: &Reference, found: &Descriptor) -> Result<(), Failed> {
    let refuse = |why: &str| {
        let message = format!("{}:{} is not verified: {why}", found.name, found.version);
        Err(Failed::repair(Reason::GetReferenceFailed, message))
    };
    match reference.digest.as_ref().map(|digest| normalise::has_digest(found, digest)) {
        None => refuse("the reference to it has no digest"),
        Some(Ok(true)) => Ok(()),
        Some(Ok(false)) => refuse("it has another digest than the reference to it says"),
        Some(Err(error)) => refuse(&error.to_string()),
    }
}

/// `verificationPolicy: Always`: what the access says of the bytes' digest is what the descriptor says. The bytes themselves are compared
/// when they are read.
pub fn check_digest(descriptor: &Descriptor, index: usize) -> Result<(), Failed> {
    let resource = &descriptor.resources[index];
    let Some(expected) = resource.digest.as_ref().and_then(DigestSpec::digest) else { return Ok(()) };
    let Some(said) = said_by_access(resource) else { return Ok(()) };
    let algorithm = |digest: &Digest| digest.as_str().split(':').next().unwrap_or_default().to_owned();
    if said == expected || algorithm(&said) != algorithm(&expected) {
        return Ok(());
    }
    let (name, version) = (&descriptor.name, &descriptor.version);
    let message = format!("resource {} of {name}:{version} leads to {said}, but its digest is {expected}", resource.identity);
    Err(Failed::repair(Reason::GetOcmResourceFailed, message))
}

fn said_by_access(resource: &Resource) -> Option<Digest> {
    match Access::read(&resource.access) {
        Access::OciArtifact { image } => ImageReference::parse(&image)?.digest,
        Access::LocalBlob { reference, .. } => {
            // The digest of an artifact that is packed into an archive is not that of the archive.
            let is_of_bytes = resource.digest.as_ref()?.normalisation.starts_with("genericBlobDigest");
            is_of_bytes.then_some(reference)
        }
        _ => None,
    }
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
pub fn component_info(component: &ComponentVersion, repository: &Value, digest: &DigestSpec) -> Value {
    json!({
        "repositorySpec": repository, "component": component.name, "version": component.version,
        "digest": {
            "hashAlgorithm": digest.hash, "normalisationAlgorithm": digest.normalisation, "value": digest.value,
        },
    })
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
        assert_eq!(follow(&descriptor, &identity("op")).unwrap().component, "acme.test/op");
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
    fn digests_are_compared_with_what_the_access_says() {
        let digest = |normalisation: &str, value: &str| json!({"hashAlgorithm": "SHA-256", "normalisationAlgorithm": normalisation, "value": value.repeat(64)});
        let pinned =
            |value: &str| json!({"type": "ociArtifact", "imageReference": format!("r.test/i:1@sha256:{}", value.repeat(64))});
        let blob =
            json!({"type": "localBlob", "localReference": format!("sha256:{}", "a".repeat(64)), "mediaType": "text/plain"});
        let cases = [
            (pinned("a"), digest("ociArtifactDigest/v1", "a"), true),
            (pinned("a"), digest("ociArtifactDigest/v1", "b"), false),
            (json!({"type": "ociArtifact", "imageReference": "r.test/i:1"}), digest("ociArtifactDigest/v1", "b"), true),
            (blob.clone(), digest("genericBlobDigest/v1", "a"), true),
            (blob.clone(), digest("genericBlobDigest/v1", "b"), false),
            (blob, digest("ociArtifactDigest/v1", "b"), true),
        ];
        for (access, digest, fits) in cases {
            let text = format!("{access} {digest}");
            let resource =
                json!({"name": "r", "version": "1", "type": "blob", "relation": "local", "access": access, "digest": digest});
            assert_eq!(check_digest(&descriptor(json!([resource]), json!([])), 0).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn a_step_below_a_verified_component_is_proven_by_its_parent() {
        let child = descriptor(json!([]), json!([]));
        let right = normalise::digest(&child);
        let reference = |digest: Option<DigestSpec>| Reference {
            identity: Identity { name: "c".into(), ..Identity::default() },
            component: child.name.clone(),
            version: child.version.clone(),
            digest,
            labels: Vec::new(),
        };
        assert_eq!(check_reference(&reference(Some(right.clone())), &child), Ok(()));
        let other = DigestSpec { value: "0".repeat(64), ..right.clone() };
        let unknown = DigestSpec { normalisation: "other/v1".into(), ..right };
        for (digest, words) in [(None, "no digest"), (Some(other), "another digest"), (Some(unknown), "other/v1")] {
            let failed = check_reference(&reference(digest), &child).unwrap_err();
            assert!(failed.message.contains(words), "{}", failed.message);
        }
    }

    #[test]
    fn a_component_version_is_proven_by_its_descriptor() {
        let digest =
            DigestSpec { hash: "SHA-256".into(), normalisation: "jsonNormalisation/v4alpha1".into(), value: "ab".into() };
        let info = component_info(&ComponentVersion::new("a.test/c", "1"), &json!({"type": "OCIRegistry"}), &digest);
        let expected = json!({"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "jsonNormalisation/v4alpha1", "value": "ab"});
        assert_eq!(info["digest"], expected);
    }
}
