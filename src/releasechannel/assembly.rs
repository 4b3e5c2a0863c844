//! Putting a component version into a CTF: what local YAML and bundles have in common.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::ctf::{Contents, IndexEntry};
use crate::descriptor::Descriptor;
use crate::digest::Digest;
use crate::repository::embedded;
use crate::source::DESCRIPTORS;
use crate::versions::to_tag;

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.ocm.software.component.config.v1+json";
const DESCRIPTOR: &str = "application/vnd.ocm.software.component-descriptor.v2+json";
/// A manifest of this size stands in the index that names it, so that a component version costs two requests, not three.
const EMBEDDED: usize = 64 << 10;
const ARTIFACT_TYPE: &str = "application/vnd.ocm.software.component-descriptor.v2";

/// A blob or artifact that is in the contents and belongs to a resource or source.
pub(crate) struct Packed {
    pub(crate) digest: Digest,
    pub(crate) media_type: String,
    pub(crate) size: u64,
    /// `repository:tag` that an OCI artifact had.
    pub(crate) reference_name: Option<String>,
    /// Manifests of an OCI artifact, the main one first; empty for plain blobs.
    pub(crate) manifests: Vec<(Digest, String)>,
}

/// Local blobs of a component version, by digest, with the identities that use them.
#[derive(Default)]
pub(crate) struct Blobs {
    plain: BTreeMap<Digest, (Packed, Vec<Value>)>,
    artifacts: BTreeMap<Digest, (Packed, Vec<Value>)>,
}

impl Blobs {
    /// Adds what an element (a `resource` or `source`) uses.
    pub(crate) fn add(&mut self, packed: Packed, kind: &str, element: &Map<String, Value>) {
        let mut identity = element.get("extraIdentity").and_then(Value::as_object).cloned().unwrap_or_default();
        identity.insert("name".to_owned(), element.get("name").cloned().unwrap_or_default());
        let place = if packed.manifests.is_empty() { &mut self.plain } else { &mut self.artifacts };
        let entry = place.entry(packed.digest.clone()).or_insert_with(|| (packed, Vec::new()));
        entry.1.push(json!({"kind": kind, "identity": identity}));
    }
}

/// Adds a component version: its descriptor as these bytes, configuration, manifest and, with nested artifacts, an index (ocm.md 3.2).
pub(crate) fn store(contents: &mut Contents, read: &Descriptor, bytes: Vec<u8>, blobs: &Blobs) {
    let repository = format!("{DESCRIPTORS}/{}", read.name);
    let layer = added(contents, bytes, DESCRIPTOR);
    let config = json!({"componentDescriptorLayer": layer});
    let config = added(contents, serde_json::to_vec(&config).expect("plain data"), CONFIG);
    let plain = blobs.plain.values().map(|(packed, used_by)| entry(packed, used_by));
    let layers: Vec<Value> = std::iter::once(layer).chain(plain).collect();
    let annotations =
        json!({"software.ocm.componentversion": format!("{}:{}", read.name, read.version), "software.ocm.creator": "plinth"});
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": ARTIFACT_TYPE, "config": config, "layers": layers,
        "annotations": annotations});
    let manifest = serde_json::to_vec(&manifest).expect("plain data");
    let mut top = added(contents, manifest.clone(), MANIFEST);
    let mut list = |digest: &str, media_type: &str, tag: Option<String>| {
        let digest = digest.parse().expect("made by our own hash");
        contents.artifacts.push(IndexEntry { repository: repository.clone(), tag, digest, media_type: media_type.to_owned() });
    };
    let tag = Some(to_tag(&read.version));
    if blobs.artifacts.is_empty() {
        return list(top["digest"].as_str().unwrap_or_default(), MANIFEST, tag);
    }
    // Members of the index are listed without tag: one of the two OCM tools finds them only so.
    list(top["digest"].as_str().unwrap_or_default(), MANIFEST, None);
    for (packed, _) in blobs.artifacts.values() {
        packed.manifests.iter().for_each(|(digest, media_type)| list(digest.as_str(), media_type, None));
    }
    if manifest.len() <= EMBEDDED {
        embedded::embed(&mut top, &manifest);
    }
    top["artifactType"] = ARTIFACT_TYPE.into();
    top["annotations"] = annotations.clone();
    let members: Vec<Value> =
        std::iter::once(top).chain(blobs.artifacts.values().map(|(packed, used_by)| entry(packed, used_by))).collect();
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": members, "annotations": annotations});
    let index = added(contents, serde_json::to_vec(&index).expect("plain data"), INDEX);
    let digest = index["digest"].as_str().unwrap_or_default().parse().expect("made by our own hash");
    contents.artifacts.push(IndexEntry { repository, tag, digest, media_type: INDEX.to_owned() });
}

/// Adds bytes and gives the OCI descriptor for them.
pub(crate) fn added(contents: &mut Contents, bytes: Vec<u8>, media_type: &str) -> Value {
    let size = bytes.len();
    let digest = contents.add_blob(bytes);
    json!({"mediaType": media_type, "digest": digest.as_str(), "size": size})
}

fn entry(packed: &Packed, used_by: &[Value]) -> Value {
    let used_by = Value::from(used_by.to_vec()).to_string();
    json!({"mediaType": packed.media_type, "digest": packed.digest.as_str(), "size": packed.size,
        "annotations": {"software.ocm.artifact": used_by}})
}
