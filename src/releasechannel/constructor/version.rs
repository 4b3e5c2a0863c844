//! One component of a constructor becomes descriptor, configuration, manifest and, with nested artifacts, index (ocm.md 3.2).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Constructor;
use super::input::{self, Packed};
use crate::ctf::{Contents, IndexEntry};
use crate::descriptor::Descriptor;
use crate::digest::Digest;
use crate::error::ResolveError;
use crate::options::Limits;
use crate::repository::ComponentVersion;
use crate::source::DESCRIPTORS;
use crate::versions::to_tag;

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.ocm.software.component.config.v1+json";
const DESCRIPTOR: &str = "application/vnd.ocm.software.component-descriptor.v2+json";
const ARTIFACT_TYPE: &str = "application/vnd.ocm.software.component-descriptor.v2";

/// Adds a component version to the contents.
pub(super) fn add(
    constructor: &Constructor,
    component: &Value,
    contents: &mut Contents,
    limits: &Limits,
) -> Result<ComponentVersion, ResolveError> {
    let text = |key: &str| component.get(key).and_then(Value::as_str).unwrap_or_default();
    let at = ComponentVersion::new(text("name"), text("version"));
    if at.version.is_empty() {
        return Err(constructor.refuse_in(&at, "version is missing, or not text: quote it"));
    }
    let mut blobs = Blobs::default();
    let resources = elements(constructor, component, "resources", &at, contents, &mut blobs, limits)?;
    let sources = elements(constructor, component, "sources", &at, contents, &mut blobs, limits)?;
    let references =
        component.get("componentReferences").or_else(|| component.get("references")).cloned().unwrap_or_else(|| json!([]));
    let document = descriptor(component, &at, resources, sources, references);
    let read = Descriptor::from_value(document.clone()).map_err(|error| constructor.refuse_in(&at, error))?;
    let bytes = serde_json::to_vec(&document).expect("a descriptor is plain data");
    store(contents, &read, bytes, &blobs);
    Ok(at)
}

/// Local blobs of a component version, by digest, with the identities that use them.
#[derive(Default)]
struct Blobs {
    plain: BTreeMap<Digest, (Packed, Vec<Value>)>,
    artifacts: BTreeMap<Digest, (Packed, Vec<Value>)>,
}

fn elements(
    constructor: &Constructor,
    component: &Value,
    list: &str,
    at: &ComponentVersion,
    contents: &mut Contents,
    blobs: &mut Blobs,
    limits: &Limits,
) -> Result<Vec<Value>, ResolveError> {
    let items = match component.get(list) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(constructor.refuse_in(at, format!("{list} is not a list"))),
    };
    let mut elements = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(item) = item.as_object() else {
            return Err(constructor.refuse_in(at, format!("{list}[{index}] is not an object")));
        };
        let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
        let mut element = item.clone();
        element.entry("version").or_insert_with(|| at.version.clone().into());
        if let Some(input) = element.remove("input") {
            let packed = input::pack(constructor, &input, contents, limits);
            let packed = packed.map_err(|error| constructor.refuse_in(at, format!("{list}[{index}] `{name}`: {error}")))?;
            localize(&mut element, packed, &list[..list.len() - 1], blobs);
        } else if !element.get("access").is_some_and(Value::is_object) {
            return Err(constructor.refuse_in(at, format!("{list}[{index}] `{name}` has neither input nor access")));
        }
        if list == "resources" {
            let relation = if element["access"]["type"] == "localBlob" { "local" } else { "external" };
            element.entry("relation").or_insert_with(|| relation.into());
        }
        elements.push(Value::Object(element));
    }
    Ok(elements)
}

/// Gives an element the access and the digest of its packed input.
fn localize(element: &mut Map<String, Value>, packed: Packed, kind: &str, blobs: &mut Blobs) {
    let mut access = json!({"type": "localBlob", "localReference": packed.digest.as_str(), "mediaType": packed.media_type});
    if let Some(name) = &packed.reference_name {
        access["referenceName"] = name.as_str().into();
    }
    element.insert("access".to_owned(), access);
    if kind == "resource" {
        // The hash of a nested manifest's bytes is its digest, so both OCM tools agree with this name.
        let digest =
            json!({"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "genericBlobDigest/v1", "value": packed.digest.hex()});
        element.insert("digest".to_owned(), digest);
    }
    let mut identity = element.get("extraIdentity").and_then(Value::as_object).cloned().unwrap_or_default();
    identity.insert("name".to_owned(), element.get("name").cloned().unwrap_or_default());
    let place = if packed.manifests.is_empty() { &mut blobs.plain } else { &mut blobs.artifacts };
    let entry = place.entry(packed.digest.clone()).or_insert_with(|| (packed, Vec::new()));
    entry.1.push(json!({"kind": kind, "identity": identity}));
}

fn descriptor(component: &Value, at: &ComponentVersion, resources: Vec<Value>, sources: Vec<Value>, references: Value) -> Value {
    let mut inner = json!({"name": at.name, "version": at.version, "provider": provider(component.get("provider")), "repositoryContexts": [],
        "resources": resources, "sources": sources, "componentReferences": references});
    for key in ["labels", "creationTime"] {
        if let Some(value) = component.get(key).filter(|value| !value.is_null()) {
            inner[key] = value.clone();
        }
    }
    json!({"meta": {"schemaVersion": "v2"}, "component": inner})
}

/// Schema v2 keeps the provider as text: its name, or with labels an object as JSON.
fn provider(provider: Option<&Value>) -> Value {
    match provider {
        Some(Value::Object(object)) if object.contains_key("labels") => Value::Object(object.clone()).to_string().into(),
        Some(Value::Object(object)) => object.get("name").cloned().unwrap_or_else(|| "".into()),
        Some(other) => other.clone(),
        None => "".into(),
    }
}

fn store(contents: &mut Contents, read: &Descriptor, bytes: Vec<u8>, blobs: &Blobs) {
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
    let mut top = added(contents, serde_json::to_vec(&manifest).expect("plain data"), MANIFEST);
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
    top["artifactType"] = ARTIFACT_TYPE.into();
    top["annotations"] = annotations.clone();
    let members: Vec<Value> =
        std::iter::once(top).chain(blobs.artifacts.values().map(|(packed, used_by)| entry(packed, used_by))).collect();
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": members, "annotations": annotations});
    let index = added(contents, serde_json::to_vec(&index).expect("plain data"), INDEX);
    let digest = index["digest"].as_str().unwrap_or_default().parse().expect("made by our own hash");
    contents.artifacts.push(IndexEntry { repository, tag, digest, media_type: INDEX.to_owned() });
}

fn added(contents: &mut Contents, bytes: Vec<u8>, media_type: &str) -> Value {
    let size = bytes.len();
    let digest = contents.add_blob(bytes);
    json!({"mediaType": media_type, "digest": digest.as_str(), "size": size})
}

fn entry(packed: &Packed, used_by: &[Value]) -> Value {
    let used_by = Value::from(used_by.to_vec()).to_string();
    json!({"mediaType": packed.media_type, "digest": packed.digest.as_str(), "size": packed.size,
        "annotations": {"software.ocm.artifact": used_by}})
}
