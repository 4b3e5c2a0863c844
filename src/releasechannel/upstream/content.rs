//! What a channel holds: blobs, images, charts, digests.

use std::process::Command;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{archive, channel, folder, plain};
use crate::assembly::{self, Blobs, MANIFEST, added};
use crate::bundle;
use crate::channel::Channel;
use crate::ctf::{Contents, IndexEntry};
use crate::descriptor::Descriptor;
use crate::digest::Digest;
use crate::error::{ErrorKind, ResolveError};
use crate::normalise::{Normalisation, normalise};
use crate::options::{Options, Verify};
use crate::registry::{Registries, push};
use crate::repository::{ComponentVersion, Manifest, Pointer};
use crate::source::RepositoryRef;
use crate::testing::{RealRegistry, offline};

/// Bundles a channel, and what the bundle holds when it is read again.
async fn bundled(channel: &Channel) -> (tempfile::TempDir, Contents, Channel) {
    let folder = tempfile::tempdir().unwrap();
    let bundle = bundle::create(channel, &folder.path().join("blobs"), &bundle::Kept::default()).await.unwrap();
    let path = folder.path().join("bundle.tgz");
    bundle.contents.write(&path, crate::Format::Tgz).unwrap();
    let again = super::channel(&format!("{}//{}", path.display(), channel.root), &offline()).await.unwrap();
    assert_eq!(bundle::missing(&again, &channel.lock).await.unwrap(), Vec::<String>::new());
    (folder, bundle.contents, again)
}

pub(super) async fn blob_without_layer() {
    let found = channel(&archive("hand/blob-not-a-layer", "acme.example/hand/notalayer:1.0.0"), &offline()).await.unwrap();
    let text = found.fetch(&found.root, "rgd").await.unwrap();
    let (_folder, contents, again) = bundled(&found).await;
    assert_eq!(again.fetch(&again.root, "rgd").await.unwrap(), text);
    let digest = Digest::of(&text).to_string();
    let is_named = |payload: &crate::ctf::Payload| {
        payload.read(1 << 20, "x").ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok()).is_some_and(|manifest| {
            manifest["layers"].as_array().is_some_and(|layers| layers.iter().any(|layer| layer["digest"] == digest.as_str()))
        })
    };
    assert!(contents.blobs.values().any(is_named), "no manifest of the bundle names the blob");
}

/// Adds a manifest with one layer; gives its digest and bytes.
fn artifact(contents: &mut Contents, at: (&str, Option<&str>), layer: &[u8], more: &Value) -> (Digest, Vec<u8>) {
    let layer = added(contents, layer.to_vec(), "application/octet-stream");
    let config = added(contents, b"{}".to_vec(), "application/vnd.oci.empty.v1+json");
    let mut manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
    manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let bytes = serde_json::to_vec(&manifest).unwrap();
    let digest = contents.add_blob(bytes.clone());
    let (repository, tag) = (at.0.to_owned(), at.1.map(str::to_owned));
    contents.artifacts.push(IndexEntry { repository, tag, digest: digest.clone(), media_type: MANIFEST.to_owned() });
    (digest, bytes)
}

async fn pushed(contents: &Contents, host: &str) {
    push(contents, &RepositoryRef::parse(host).unwrap(), &Registries::new(&plain(host)).unwrap()).await.unwrap();
}

async fn manifest_at(host: &str, repository: &str, pointer: Pointer) -> Manifest {
    let registries = Registries::new(&plain(host)).unwrap();
    registries.of_host(host, true).unwrap().manifest(repository, &pointer).await.unwrap()
}

fn one_resource(access: &Value, kind: &str, more: &str) -> String {
    format!(
        "components:\n- name: acme.example/x\n  version: 1.0.0\n  provider: {{name: acme}}\n  resources:\n  - {{name: thing, type: {kind}, version: 1.0.0, relation: external, access: {access}{more}}}\n"
    )
}

pub(super) async fn attestation() {
    let (registry, mirror) = (RealRegistry::start().await, RealRegistry::start().await);
    let mut contents = Contents::default();
    let (image, bytes) = artifact(&mut contents, ("up/app", Some("1.0.0")), b"program", &json!({}));
    let subject = json!({"artifactType": "application/vnd.acme.attestation", "subject": {"mediaType": MANIFEST, "digest": image.as_str(), "size": bytes.len()}});
    let (digest, bytes) = artifact(&mut contents, ("up/app", None), b"signed by acme", &subject);
    pushed(&contents, &registry.host).await;

    let access = json!({"type": "ociArtifact", "imageReference": format!("{}/up/app@{digest}", registry.host)});
    let source = folder(&one_resource(&access, "attestation", ""));
    let found = channel(source.path().to_str().unwrap(), &plain(&registry.host)).await.unwrap();
    let (_folder, contents, _) = bundled(&found).await;
    pushed(&contents, &mirror.host).await;
    let there = manifest_at(&mirror.host, "component-descriptors/acme.example/x", Pointer::Digest(digest)).await;
    assert_eq!(there.bytes, bytes);
    assert_eq!(there.document["subject"]["digest"], image.as_str());
}

pub(super) async fn single_layer() {
    let registry = RealRegistry::start().await;
    let mut contents = Contents::default();
    artifact(&mut contents, ("up/tool", Some("1")), b"a tool", &json!({}));
    pushed(&contents, &registry.host).await;
    let digest = Digest::of(b"a tool");
    for field in ["ref", "imageReference"] {
        let access = json!({"type": "ociBlob", field: format!("http://{}/up/tool", registry.host), "mediaType": "text/plain",
            "digest": digest.as_str(), "size": 6});
        let source = folder(&one_resource(&access, "blob", ""));
        let found = channel(source.path().to_str().unwrap(), &plain(&registry.host)).await.unwrap();
        assert_eq!(&found.fetch(&found.root, "thing").await.unwrap()[..], b"a tool", "{field}");
        let (_folder, _, again) = bundled(&found).await;
        assert_eq!(&again.fetch(&again.root, "thing").await.unwrap()[..], b"a tool", "{field}");
    }
}

pub(super) async fn free_versions() {
    let text = one_resource(&json!({"type": "none"}), "blob", "")
        .replace("version: 1.0.0, relation", "version: ubuntu-20.04-v2024, relation");
    let source = folder(&text);
    let found = channel(source.path().to_str().unwrap(), &offline()).await.unwrap();
    assert_eq!(found.lock.components[0].resources[0].version, "ubuntu-20.04-v2024");
    bundled(&found).await;
}

/// The name that a chart has in the descriptor is where it is below the mirror, beside images under their own names.
pub(super) async fn chart_by_name() {
    let mirror = RealRegistry::start().await;
    let found = channel(&archive("v1-byval", "acme.example/services/gateway:1.3.0"), &offline()).await.unwrap();
    let (_folder, contents, _) = bundled(&found).await;
    push(
        &contents,
        &RepositoryRef::parse(&format!("{}/site", mirror.host)).unwrap(),
        &Registries::new(&plain(&mirror.host)).unwrap(),
    )
    .await
    .unwrap();
    for (repository, tag) in [
        ("site/acme.example/services/gateway/gateway-chart", "1.3.0"),
        ("site/upstream/charts/gateway-chart", "1.3.0"),
        ("site/upstream/gateway", "1.3.0"),
        ("site/upstream/multi", "1.0.0"),
    ] {
        manifest_at(&mirror.host, repository, Pointer::Tag(tag.to_owned())).await;
    }
}

/// A parent that was signed above a child that could not be given digests: they are in the parent's `nestedDigests`.
pub(super) async fn nested_digests() {
    let resource = json!({"name": "tool", "version": "1", "type": "blob", "relation": "external", "access": {"type": "wget", "url": "http://127.0.0.1:9/x"}});
    let digest =
        json!({"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "genericBlobDigest/v1", "value": Digest::of(b"tool").hex()});
    let child = |resource: &Value| {
        json!({"meta": {"schemaVersion": "v2"}, "component": {"name": "acme.example/child", "version": "1.0.0", "provider": "acme",
            "repositoryContexts": [], "sources": [], "componentReferences": [], "resources": [resource]}})
    };
    let mut complete = resource.clone();
    complete["digest"] = digest.clone();
    let of_child = component_digest(&child(&complete));
    let reference = json!({"name": "child", "componentName": "acme.example/child", "version": "1.0.0", "digest": of_child});
    let nested = |resource_digest: &Value| {
        json!([{"name": "acme.example/child", "version": "1.0.0", "digest": of_child,
            "resourceDigests": [{"name": "tool", "version": "1", "digest": resource_digest}]}])
    };
    let root = |nested: &Value| {
        json!({"meta": {"schemaVersion": "v2"}, "nestedDigests": nested, "component": {"name": "acme.example/root", "version": "1.0.0",
            "provider": "acme", "repositoryContexts": [], "sources": [], "resources": [], "componentReferences": [reference]}})
    };
    let keys = Keys::new();
    let check = async |root: Value, child: Value| {
        let folder = tempfile::tempdir().unwrap();
        let mut contents = Contents::default();
        for document in [keys.signed(root), child] {
            let read = Descriptor::from_value(document).unwrap();
            let bytes = serde_json::to_vec(&read.document).unwrap();
            assembly::store(&mut contents, &read, bytes, &Blobs::default());
        }
        contents.write(folder.path(), crate::Format::Folder).unwrap();
        channel(&format!("ctf::{}//acme.example/root", folder.path().display()), &keys.options()).await
    };
    let found = check(root(&nested(&digest)), child(&resource)).await.unwrap();
    let at = ComponentVersion::new("acme.example/child", "1.0.0");
    assert!(found.verification.proven.contains(&at), "{:?}", found.verification);
    // From now on the bytes must have this digest.
    assert_eq!(found.descriptor(&at).unwrap().resources[0].digest.as_ref().unwrap().value, Digest::of(b"tool").hex());

    let mut wrong = digest.clone();
    wrong["value"] = Digest::of(b"other").hex().into();
    let mut other = resource.clone();
    other["type"] = "other".into();
    for (root, child) in
        [(root(&nested(&wrong)), child(&resource)), (root(&json!([])), child(&resource)), (root(&nested(&digest)), child(&other))]
    {
        let error = check(root, child).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Refused && error.to_string().contains("acme.example/child"), "{error}");
        assert!(matches!(error, ResolveError::Repository { .. } | ResolveError::Unproven { .. }), "{error}");
    }
}

fn component_digest(document: &Value) -> Value {
    let normal = normalise(&Descriptor::from_value(document.clone()).unwrap(), Normalisation::V3);
    json!({"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "jsonNormalisation/v3", "value": Digest::of(&normal).hex()})
}

/// A key pair for one test.
struct Keys(tempfile::TempDir);

impl Keys {
    fn new() -> Self {
        let keys = Self(tempfile::tempdir().unwrap());
        keys.openssl(&["genrsa", "-out", "key.pem", "2048"]);
        keys.openssl(&["rsa", "-in", "key.pem", "-pubout", "-out", "key.pub"]);
        keys
    }

    fn openssl(&self, arguments: &[&str]) {
        let output = Command::new("openssl").args(arguments).current_dir(self.0.path()).output();
        let output = output.expect("openssl makes the signature of this test: apt-get install openssl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn options(&self) -> Options {
        Options {
            keys: [("acme-sig".to_owned(), self.0.path().join("key.pub"))].into(),
            verify: Some(Verify::Required),
            ..offline()
        }
    }

    fn signed(&self, mut document: Value) -> Value {
        let digest = component_digest(&document);
        let normal = normalise(&Descriptor::from_value(document.clone()).unwrap(), Normalisation::V3);
        std::fs::write(self.0.path().join("normal"), normal).unwrap();
        self.openssl(&["dgst", "-sha256", "-sign", "key.pem", "-out", "signature", "normal"]);
        let signature: Bytes = std::fs::read(self.0.path().join("signature")).unwrap().into();
        let hex = signature.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        document["signatures"] = json!([{"name": "acme-sig", "digest": digest, "signature": {"algorithm": "RSASSA-PKCS1-V1_5",
            "mediaType": "application/vnd.ocm.signature.rsa", "value": hex}}]);
        document
    }
}
