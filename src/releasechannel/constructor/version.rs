//! One component of a constructor becomes descriptor, configuration, manifest and, with nested artifacts, index (ocm.md 3.2).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Constructor;
use super::input;
use crate::assembly::{Blobs, Packed, store};
use crate::ctf::Contents;
use crate::descriptor::{Descriptor, Resource};
use crate::error::ResolveError;
use crate::options::Limits;
use crate::repository::ComponentVersion;
use crate::versions::Version;

/// Adds a component version to the contents; what was added, as a reader will find it.
pub(super) fn add(
    constructor: &Constructor,
    component: &Value,
    contents: &mut Contents,
    limits: &Limits,
) -> Result<Descriptor, ResolveError> {
    let text = |key: &str| component.get(key).and_then(Value::as_str).unwrap_or_default();
    let at = ComponentVersion::new(text("name"), text("version"));
    if at.version.is_empty() {
        return Err(constructor.refuse_in(&at, "version is missing, or not text: quote it"));
    }
    if Version::parse(&at.version).is_none() {
        return Err(constructor.refuse_in(&at, "its version is no semantic one, such as 1.2.3 or v1.2.3-rc.1"));
    }
    let mut blobs = Blobs::default();
    let mut place = Place { constructor, at: &at, contents, blobs: &mut blobs, limits };
    let resources = place.elements(component, "resources")?;
    let sources = place.elements(component, "sources")?;
    let references =
        component.get("componentReferences").or_else(|| component.get("references")).cloned().unwrap_or_else(|| json!([]));
    let document = descriptor(component, &at, &resources, &sources, &references);
    let read = Descriptor::from_value(document.clone()).map_err(|error| constructor.refuse_in(&at, error))?;
    if let Some(twin) = twin(&read) {
        return Err(constructor.refuse_in(&at, format!("{twin} is there twice: give one another name, version or extraIdentity")));
    }
    let bytes = serde_json::to_vec(&document).expect("a descriptor is plain data");
    store(contents, &read, bytes, &blobs);
    Ok(read)
}

/// What has the identity of another element of its list: nobody could ask for it (ocm.md section 2).
fn twin(descriptor: &Descriptor) -> Option<String> {
    let elements = |kind: &'static str, list: &[Resource]| {
        list.iter().map(|element| format!("{kind} {} {}", element.identity, element.version)).collect::<Vec<_>>()
    };
    let references =
        descriptor.references.iter().map(|reference| format!("reference {} {}", reference.identity, reference.version));
    let mut names = elements("resource", &descriptor.resources);
    names.extend(elements("source", &descriptor.sources));
    names.extend(references);
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(name.clone()))
}

/// Where the elements of a component go.
struct Place<'a> {
    constructor: &'a Constructor,
    at: &'a ComponentVersion,
    contents: &'a mut Contents,
    blobs: &'a mut Blobs,
    limits: &'a Limits,
}

impl Place<'_> {
    fn elements(&mut self, component: &Value, list: &str) -> Result<Vec<Value>, ResolveError> {
        let items = match component.get(list) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(self.constructor.refuse_in(self.at, format!("{list} is not a list"))),
        };
        items.iter().enumerate().map(|(index, item)| self.element(item, list, index)).collect()
    }

    fn element(&mut self, item: &Value, list: &str, index: usize) -> Result<Value, ResolveError> {
        let (constructor, at) = (self.constructor, self.at);
        let refuse = |reason: String| constructor.refuse_in(at, reason);
        let Some(item) = item.as_object() else { return Err(refuse(format!("{list}[{index}] is not an object"))) };
        let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
        let mut element = item.clone();
        element.entry("version").or_insert_with(|| at.version.clone().into());
        if let Some(input) = element.remove("input") {
            let packed = input::pack(constructor, &input, self.contents, self.limits);
            let packed = packed.map_err(|error| refuse(format!("{list}[{index}] `{name}`: {error}")))?;
            localize(&mut element, packed, &list[..list.len() - 1], self.blobs);
        } else if !element.get("access").is_some_and(Value::is_object) {
            return Err(refuse(format!("{list}[{index}] `{name}` has neither input nor access")));
        }
        if list == "resources" {
            let relation = if element["access"]["type"] == "localBlob" { "local" } else { "external" };
            element.entry("relation").or_insert_with(|| relation.into());
        }
        Ok(Value::Object(element))
    }
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
    blobs.add(packed, kind, element);
}

fn descriptor(component: &Value, at: &ComponentVersion, resources: &[Value], sources: &[Value], references: &Value) -> Value {
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
