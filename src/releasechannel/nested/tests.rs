use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::ctf::{Contents, Format};
use crate::options::{Limits, Options, Verify};
use crate::resolve::inspect;
use crate::selection::Selection;
use crate::source::{DESCRIPTORS, SourceRef};
use crate::testing::{data, offline};

const CHANNEL: &str = "acme.example/releasechannel/stable:2026.11.0";
const SIGNED: [&str; 5] = ["v1-pkcs1-sha256", "v2-pkcs1-sha256", "v3-pkcs1-sha256", "v3-pkcs1-sha512", "v3-pss-sha256"];

fn proving() -> Options {
    let key = data().join("ocm/keys/acme.pub");
    Options { keys: [("acme-sig".to_owned(), key)].into(), verify: Some(Verify::Required), ..offline() }
}

async fn channel(path: &std::path::Path) -> Result<crate::Channel, ResolveError> {
    let source = SourceRef::parse(&format!("ctf::{}//{CHANNEL}", path.display())).unwrap();
    inspect(&source, &Selection::default(), &proving()).await
}

/// Moves every digest of a signed archive into the root's `nestedDigests`, as the older tool stores them when it must not write the
/// children. The signature stays as it is: it covers the same normal form.
async fn moved(name: &str, change: impl Fn(&mut Value)) -> tempfile::TempDir {
    let path = data().join("ocm/signed").join(name);
    let original = channel(&path).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut contents = Contents::open(&path, &Limits::default()).unwrap();
    contents.artifacts.clear();
    let mut nested = Vec::new();
    let mut documents = BTreeMap::new();
    for (at, node) in &original.closure.nodes {
        let mut document = node.descriptor.document.clone();
        let digest = original.closure.nodes.values().flat_map(|parent| &parent.descriptor.references).zip(
            original.closure.nodes.values().flat_map(|parent| {
                parent
                    .descriptor
                    .document
                    .pointer("/component/componentReferences")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
            }),
        );
        let digest = digest
            .filter(|(reference, _)| reference.component == at.name && reference.version == at.version)
            .find_map(|(_, element)| element.get("digest").cloned());
        let mut resources = Vec::new();
        if *at != original.root {
            for element in document.pointer_mut("/component/resources").and_then(Value::as_array_mut).into_iter().flatten() {
                let digest = element.as_object_mut().unwrap().remove("digest");
                resources.push(json!({"name": element["name"], "version": element["version"],
                    "extraIdentity": element.get("extraIdentity").cloned().unwrap_or_default(), "digest": digest}));
            }
            nested.push(json!({"name": at.name, "version": at.version, "digest": digest, "resourceDigests": resources}));
        }
        for element in document.pointer_mut("/component/componentReferences").and_then(Value::as_array_mut).into_iter().flatten()
        {
            element.as_object_mut().unwrap().remove("digest");
        }
        documents.insert(at.clone(), document);
    }
    documents.get_mut(&original.root).unwrap()["nestedDigests"] = nested.into();
    change(documents.get_mut(&original.root).unwrap());
    for (at, document) in documents {
        let read = Descriptor::from_value(document.clone()).unwrap();
        assert_eq!(at.name, read.name);
        crate::assembly::store(&mut contents, &read, serde_json::to_vec(&document).unwrap(), &crate::assembly::Blobs::default());
    }
    assert!(contents.artifacts.iter().all(|entry| entry.repository.starts_with(DESCRIPTORS)));
    let folder = tempfile::tempdir().unwrap();
    contents.write(&ctf(&folder), Format::Folder).unwrap();
    folder
}

fn ctf(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("ctf")
}

#[tokio::test]
async fn show_04_nested_digests() {
    let mut proven = 0;
    for name in SIGNED {
        let folder = moved(name, |_| ()).await;
        let channel = channel(&ctf(&folder)).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let verification = channel.verify_resources().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(verification.proven.len(), channel.lock.components.len(), "{name}: {verification:?}");
        assert!(verification.resources_read > 0, "{name}");
        proven += 1;
    }
    eprintln!("SHOW 04 nested-digests {proven}/{}", SIGNED.len());
}

/// They are not signed themselves: changing any one of them is found.
#[tokio::test]
async fn a_changed_nested_digest_is_refused() {
    let hex = "0".repeat(64);
    for pointer in ["/nestedDigests/0/digest/value", "/nestedDigests/1/resourceDigests/0/digest/value"] {
        let folder = moved("v3-pkcs1-sha256", |root| *root.pointer_mut(pointer).unwrap() = hex.clone().into()).await;
        let error = channel(&ctf(&folder)).await.unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Refused, "{pointer}: {error}");
    }
    let without = moved("v3-pkcs1-sha256", |root| *root.pointer_mut("/nestedDigests").unwrap() = json!([])).await;
    assert!(channel(&ctf(&without)).await.is_err());
}

#[test]
fn a_digest_that_is_there_must_be_the_same() {
    let mut document = json!({"resources": [{"name": "a", "digest": {"value": "x"}}]});
    let put = |document: &mut Value, digest: Value| put(document, "/resources/0", Some(&digest), || "it".to_owned());
    assert!(put(&mut document, json!({"value": "x"})).is_ok());
    assert!(put(&mut document, json!({"value": "y"})).is_err());
}
