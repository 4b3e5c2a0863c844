//! What jsonNormalisation/v1 covers (ocm.md 8.3). Depends on the schema.

use serde_json::{Map, Value, json};

use super::jcs::{always, copy, copy_identity, copy_time, defaulted, insert_digest, is_without_content, items, provider_object};
use crate::descriptor::{Descriptor, Schema, is_signing};

/// The covered fields in the shape of the descriptor's own schema.
pub(super) fn form(descriptor: &Descriptor) -> Value {
    match descriptor.schema {
        Schema::V2 => v2(&descriptor.document),
        Schema::V3Alpha1 => v3alpha1(&descriptor.document),
    }
}

fn v2(document: &Value) -> Value {
    let component = &document["component"];
    let mut out = Map::new();
    copy(&mut out, component, &["name", "version"]);
    copy_time(&mut out, component);
    let provider = match &component["provider"] {
        Value::String(text) if !text.trim_start().starts_with('{') => Value::from(text.as_str()),
        other => provider(other),
    };
    out.insert("provider".to_owned(), provider);
    labels(&mut out, component);
    let mut resources = items(&component["resources"]).to_vec();
    defaulted(&mut resources);
    out.insert("resources".to_owned(), resources.iter().map(|item| with_forced_identity(resource(item))).collect());
    let references = items(&component["componentReferences"]).iter();
    out.insert("componentReferences".to_owned(), references.map(|item| with_forced_identity(reference(item))).collect());
    json!({"meta": {"schemaVersion": "v2"}, "component": out})
}

fn v3alpha1(document: &Value) -> Value {
    let (metadata, spec) = (&document["metadata"], &document["spec"]);
    let mut meta = Map::new();
    copy(&mut meta, metadata, &["name", "version"]);
    copy_time(&mut meta, metadata);
    meta.insert("provider".to_owned(), provider(&metadata["provider"]));
    labels(&mut meta, metadata);
    let mut resources = items(&spec["resources"]).to_vec();
    defaulted(&mut resources);
    let mut out = Map::new();
    let lists = [
        ("resources", resources.iter().map(|item| Value::Object(resource(item))).collect::<Vec<_>>()),
        ("sources", items(&spec["sources"]).iter().map(|item| Value::Object(source(item))).collect()),
        ("references", items(&spec["references"]).iter().map(|item| Value::Object(reference(item))).collect()),
    ];
    for (key, list) in lists {
        if !list.is_empty() {
            out.insert(key.to_owned(), list.into());
        }
    }
    json!({"apiVersion": document["apiVersion"], "kind": document["kind"], "metadata": meta, "spec": out})
}

fn provider(provider: &Value) -> Value {
    let object = provider_object(provider);
    let mut out = Map::new();
    copy(&mut out, &object, &["name"]);
    labels(&mut out, &object);
    Value::Object(out)
}

fn resource(resource: &Value) -> Map<String, Value> {
    let mut out = element(resource, &["name", "version", "type"]);
    copy(&mut out, resource, &["relation"]);
    if !is_without_content(resource) {
        insert_digest(&mut out, resource);
    }
    out
}

fn source(source: &Value) -> Map<String, Value> {
    element(source, &["name", "version", "type"])
}

fn reference(reference: &Value) -> Map<String, Value> {
    let mut out = element(reference, &["name", "version", "componentName"]);
    insert_digest(&mut out, reference);
    out
}

fn element(element: &Value, keys: &[&str]) -> Map<String, Value> {
    let mut out = Map::new();
    always(&mut out, element, keys);
    copy_identity(&mut out, element);
    labels(&mut out, element);
    out
}

/// Schema v2 writes an absent identity as `null`.
fn with_forced_identity(mut element: Map<String, Value>) -> Value {
    element.entry("extraIdentity").or_insert(Value::Null);
    Value::Object(element)
}

fn labels(out: &mut Map<String, Value>, holder: &Value) {
    let label = |label: &Value| {
        let mut kept = Map::new();
        copy(&mut kept, label, &["name", "version"]);
        kept.insert("signing".to_owned(), label["signing"].clone());
        kept.extend(label.get("value").cloned().map(|value| ("value".to_owned(), value)));
        Value::Object(kept)
    };
    let labels: Vec<Value> =
        items(&holder["labels"]).iter().filter(|label| is_signing(label.get("signing"))).map(label).collect();
    if !labels.is_empty() {
        out.insert("labels".to_owned(), labels.into());
    }
}
