//! The CustomResourceDefinition of a graph's instances (reference/kro.md section 16).

use std::{collections::BTreeMap, sync::Arc};

use plinth_api::{
    Object,
    rgd::{RgdSchema, Scope},
};
use serde_json::{Map, Value, json};

use crate::{
    naming::{keys, label_value, resource_name},
    schema::Schema,
};

/// The graph that a generated CRD belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// Name of the ResourceGraphDefinition.
    pub name: &'a str,
    /// Its UID, empty offline.
    pub uid: &'a str,
    /// Its platform, where it belongs to one.
    pub platform: Option<&'a str>,
}

/// Name of the CRD of a graph's instances: plural and group.
pub fn name(schema: &RgdSchema) -> String {
    format!("{}.{}", resource_name(&schema.kind), schema.group)
}

/// The CRD of a graph's instances: `spec` from SimpleSchema, `status` as inferred; `state` and `conditions` are added to it
/// where absent. Identity is ours in the values of contracts entry 11, kro's in everything else.
pub fn generate(owner: Owner<'_>, schema: &RgdSchema, spec: Schema, status: Schema) -> Object {
    let version = json!({
        "name": schema.api_version,
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": instance_schema(spec, status)},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns(schema),
    });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata(owner, schema),
        "spec": {
            "group": schema.group,
            "names": names(schema),
            "scope": match schema.scope { Scope::Namespaced => "Namespaced", Scope::Cluster => "Cluster" },
            "versions": [version],
        },
    });
    Object::from_value(crd).expect("it is written as an object just above")
}

fn instance_schema(spec: Schema, status: Schema) -> Schema {
    let text = || Schema::of_type("string");
    Schema::object([
        ("apiVersion".to_owned(), text()),
        ("kind".to_owned(), text()),
        ("metadata".to_owned(), Schema::of_type("object")),
        ("spec".to_owned(), spec),
        ("status".to_owned(), with_own_fields(status)),
    ])
}

fn with_own_fields(mut status: Schema) -> Schema {
    status.kind.get_or_insert_with(|| "object".to_owned());
    status.properties.entry("state".to_owned()).or_insert_with(|| Arc::new(Schema::of_type("string")));
    status.properties.entry("conditions".to_owned()).or_insert_with(|| Arc::new(Schema::array(condition())));
    status
}

/// Nothing is required, as in kro: authors write conditions of their own.
fn condition() -> Schema {
    let text = ["type", "status", "reason", "message", "lastTransitionTime"];
    let fields = text.map(|name| (name.to_owned(), Schema::of_type("string")));
    Schema::object(fields.into_iter().chain([("observedGeneration".to_owned(), Schema::of_type("integer"))]))
}

fn names(schema: &RgdSchema) -> Value {
    let mut names = json!({
        "kind": schema.kind,
        "listKind": format!("{}List", schema.kind),
        "plural": resource_name(&schema.kind),
        "singular": schema.kind.to_lowercase(),
    });
    for (key, values) in [("shortNames", &schema.short_names), ("categories", &schema.categories)] {
        if !values.is_empty() {
            names[key] = json!(values);
        }
    }
    names
}

/// Columns that are given replace the default ones, they are not added to them.
fn columns(schema: &RgdSchema) -> Value {
    if !schema.additional_printer_columns.is_empty() {
        return schema.additional_printer_columns.iter().map(as_stored).collect();
    }
    json!([
        {"name": "State", "type": "string", "jsonPath": ".status.state", "description": "What the instance is doing"},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
            "description": "Whether all of the instance is ready"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "description": "Time since creation"},
    ])
}

/// API servers leave out what is empty; written otherwise, the CRD would differ from the stored one for ever.
fn as_stored(column: &Value) -> Value {
    let Value::Object(fields) = column else { return column.clone() };
    let kept = fields.iter().filter(|(_, value)| **value != json!(0) && **value != json!("") && !value.is_null());
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn metadata(owner: Owner<'_>, schema: &RgdSchema) -> Value {
    let mut labels: BTreeMap<String, String> = schema.metadata.labels.clone();
    let own = [
        (keys::OWNED, "true".to_owned()),
        (keys::VERSION, keys::VERSION_VALUE.to_owned()),
        (keys::RGD_NAME, label_value(owner.name)),
        (keys::RGD_ID, owner.uid.to_owned()),
        (keys::PLATFORM, owner.platform.unwrap_or_default().to_owned()),
    ];
    labels.extend(own.into_iter().filter(|(_, value)| !value.is_empty()).map(|(key, value)| (key.to_owned(), value)));
    let mut metadata = Map::from_iter([("name".to_owned(), json!(name(schema))), ("labels".to_owned(), json!(labels))]);
    if !schema.metadata.annotations.is_empty() {
        metadata.insert("annotations".to_owned(), json!(schema.metadata.annotations));
    }
    Value::Object(metadata)
}
