//! The schema of `metadata`, which CRDs leave open and which instances have.

use std::sync::Arc;

use crate::schema::{Schema, object_meta};

/// The schema of whole objects, `apiVersion`, `kind` and `metadata` described even where the kind's own schema leaves them out.
pub(super) fn complete(schema: &Arc<Schema>) -> Arc<Schema> {
    let described = schema.properties.get("metadata").is_some_and(|metadata| !metadata.properties.is_empty());
    if described && schema.properties.contains_key("apiVersion") && schema.properties.contains_key("kind") {
        return Arc::clone(schema);
    }
    let mut whole = Schema::clone(schema);
    for name in ["apiVersion", "kind"] {
        whole.properties.entry(name.to_owned()).or_insert_with(|| Arc::new(Schema::of_type("string")));
    }
    if !described {
        whole.properties.insert("metadata".to_owned(), object_meta());
    }
    Arc::new(whole)
}

/// The schema of the variable `schema`: an instance without its status; `metadata.namespace` only where instances have one.
pub(super) fn instance(spec: Schema, namespaced: bool) -> Arc<Schema> {
    let mut metadata = Schema::clone(&object_meta());
    if !namespaced {
        metadata.properties.remove("namespace");
    }
    Arc::new(Schema::object([
        ("apiVersion".to_owned(), Schema::of_type("string")),
        ("kind".to_owned(), Schema::of_type("string")),
        ("metadata".to_owned(), metadata),
        ("spec".to_owned(), spec),
    ]))
}
