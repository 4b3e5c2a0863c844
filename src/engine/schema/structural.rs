//! What an API server does to an object before it validates it: take away unknown fields, fill in defaults.
//!
//! The rules are those of CRDs: <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/>.

use plinth_api::Object;
use serde_json::{Map, Value};

use super::{Additional, Schema};
use crate::yaml::{element, field};

/// Fields of a whole object that its own schema does not describe.
pub(super) const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Fills in the defaults of absent fields, and of `null` where the schema is not nullable.
pub fn apply_defaults(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => default_fields(fields, schema),
        Value::Array(elements) => {
            if let Some(items) = &schema.items {
                for element in elements {
                    apply_defaults(element, items);
                }
            }
        }
        _ => {}
    }
}

fn default_fields(fields: &mut Map<String, Value>, schema: &Schema) {
    for (name, property) in &schema.properties {
        let Some(default) = &property.default else { continue };
        match fields.get_mut(name) {
            None => drop(fields.insert(name.clone(), default.clone())),
            Some(value) if value.is_null() && !property.nullable => *value = default.clone(),
            Some(_) => {}
        }
    }
    for (name, value) in fields.iter_mut() {
        if let Some(below) = schema.field(name) {
            if value.is_null()
                && !below.nullable
                && let Some(default) = &below.default
            {
                *value = default.clone();
            }
            apply_defaults(value, below);
        }
    }
}

/// Fills in the defaults of a whole object; its metadata is left alone.
pub fn apply_object_defaults(object: &mut Object, schema: &Schema) {
    let metadata = object.0.remove("metadata");
    default_fields(&mut object.0, schema);
    if let Some(metadata) = metadata {
        object.0.insert("metadata".to_owned(), metadata);
    }
}

/// Takes unknown fields away and answers with their paths.
pub fn prune(value: &mut Value, schema: &Schema) -> Vec<String> {
    let mut pruned = Vec::new();
    prune_value(value, schema, Place::Root, &mut pruned);
    pruned
}

/// Takes unknown fields of a whole object away, its metadata apart, and answers with their paths.
pub fn prune_object(object: &mut Object, schema: &Schema) -> Vec<String> {
    let mut pruned = Vec::new();
    prune_fields(&mut object.0, schema, true, Place::Root, &mut pruned);
    pruned
}

/// Where a walk is. Written out only for what is pruned, which is nothing as a rule.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root,
    Field(&'a Place<'a>, &'a str),
    Element(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn path(self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field(parent, name) => field(&parent.path(), name),
            Self::Element(parent, index) => element(&parent.path(), index),
        }
    }
}

fn prune_value(value: &mut Value, schema: &Schema, place: Place<'_>, pruned: &mut Vec<String>) {
    match value {
        Value::Object(fields) => prune_fields(fields, schema, schema.embedded_resource, place, pruned),
        Value::Array(elements) => {
            if let Some(items) = &schema.items {
                for (index, value) in elements.iter_mut().enumerate() {
                    prune_value(value, items, Place::Element(&place, index), pruned);
                }
            }
        }
        _ => {}
    }
}

fn prune_fields(fields: &mut Map<String, Value>, schema: &Schema, whole: bool, place: Place<'_>, pruned: &mut Vec<String>) {
    fields.retain(|name, value| {
        if whole && OBJECT_FIELDS.contains(&name.as_str()) {
            return true;
        }
        let here = Place::Field(&place, name);
        match schema.field(name) {
            Some(below) => prune_value(value, below, here, pruned),
            None if keeps_unknown(schema) => {}
            None => {
                pruned.push(here.path());
                return false;
            }
        }
        true
    });
}

/// Whether fields that the schema does not name are part of it.
pub(super) fn keeps_unknown(schema: &Schema) -> bool {
    let describes_nothing = schema.kind.is_none() && schema.properties.is_empty() && schema.additional_properties.is_none();
    schema.preserve_unknown_fields || describes_nothing || schema.additional_properties == Some(Additional::Allowed(true))
}
