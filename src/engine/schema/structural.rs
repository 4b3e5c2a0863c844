//! What an API server does to an object before it validates it: take away unknown fields, fill in defaults.
//!
//! The rules are those of CRDs: <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/>.

use std::sync::Arc;

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
        if let Some(default) = absent(fields.get(name), property) {
            fields.insert(name.clone(), default.clone());
        }
    }
    for (name, value) in fields.iter_mut() {
        if let Some(below) = schema.field(name) {
            if let Some(default) = absent(Some(value), below) {
                *value = default.clone();
            }
            apply_defaults(value, below);
        }
    }
}

/// The default that stands for a field as it is.
fn absent<'a>(value: Option<&Value>, schema: &'a Schema) -> Option<&'a Value> {
    schema.default.as_ref().filter(|_| value.is_none_or(|value| value.is_null() && !schema.nullable))
}

/// Whether there is no default to fill in, in any field but this one.
fn has_defaults(fields: &Map<String, Value>, schema: &Schema, but: Option<&str>) -> bool {
    let counts = |name: &str| Some(name) != but;
    let is_there = |(name, property): (&String, &Arc<Schema>)| !counts(name) || absent(fields.get(name), property).is_none();
    schema.properties.iter().all(is_there)
        && fields.iter().filter(|(name, _)| counts(name)).all(|(name, value)| {
            schema.field(name).is_none_or(|below| absent(Some(value), below).is_none() && value_has_defaults(value, below))
        })
}

fn value_has_defaults(value: &Value, schema: &Schema) -> bool {
    match (value, &schema.items) {
        (Value::Object(fields), _) => has_defaults(fields, schema, None),
        (Value::Array(elements), Some(items)) => elements.iter().all(|element| value_has_defaults(element, items)),
        _ => true,
    }
}

/// Fills in the defaults of a whole object; its metadata is left alone. An object that lacks none stays shared.
pub fn apply_object_defaults(object: &mut Object, schema: &Schema) {
    if has_defaults(&object.0, schema, Some("metadata")) {
        return;
    }
    let metadata = object.0.remove("metadata");
    default_fields(&mut object.0, schema);
    if let Some(metadata) = metadata {
        object.0.insert("metadata".to_owned(), metadata);
    }
}

/// Takes unknown fields away and answers with their paths.
pub fn prune(value: &mut Value, schema: &Schema) -> Vec<String> {
    let mut unknown = Vec::new();
    find_unknown(value, schema, Place::Root, &mut unknown);
    unknown.iter().for_each(|steps| take_away(value, steps));
    unknown.iter().map(|steps| path(steps)).collect()
}

/// Takes unknown fields of a whole object away, its metadata apart, and answers with their paths. An object that has none stays
/// shared.
pub fn prune_object(object: &mut Object, schema: &Schema) -> Vec<String> {
    let mut unknown = Vec::new();
    find_unknown_fields(&object.0, schema, true, Place::Root, &mut unknown);
    if unknown.is_empty() {
        return Vec::new();
    }
    let mut value = std::mem::take(object).into_value();
    unknown.iter().for_each(|steps| take_away(&mut value, steps));
    *object = Object::from_value(value).expect("an object without some of its fields is one");
    unknown.iter().map(|steps| path(steps)).collect()
}

/// Where a walk is. Written out only for what is unknown, which is nothing as a rule.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root,
    Field(&'a Place<'a>, &'a str),
    Element(&'a Place<'a>, usize),
}

/// A step of a path.
enum Step {
    Field(String),
    Element(usize),
}

impl Place<'_> {
    fn steps(self) -> Vec<Step> {
        let (parent, step) = match self {
            Self::Root => return Vec::new(),
            Self::Field(parent, name) => (parent, Step::Field(name.to_owned())),
            Self::Element(parent, index) => (parent, Step::Element(index)),
        };
        let mut steps = parent.steps();
        steps.push(step);
        steps
    }
}

fn path(steps: &[Step]) -> String {
    steps.iter().fold(String::new(), |parent, step| match step {
        Step::Field(name) => field(&parent, name),
        Step::Element(index) => element(&parent, *index),
    })
}

fn find_unknown(value: &Value, schema: &Schema, place: Place<'_>, unknown: &mut Vec<Vec<Step>>) {
    match value {
        Value::Object(fields) => find_unknown_fields(fields, schema, schema.embedded_resource, place, unknown),
        Value::Array(elements) => {
            if let Some(items) = &schema.items {
                for (index, value) in elements.iter().enumerate() {
                    find_unknown(value, items, Place::Element(&place, index), unknown);
                }
            }
        }
        _ => {}
    }
}

fn find_unknown_fields(
    fields: &Map<String, Value>,
    schema: &Schema,
    whole: bool,
    place: Place<'_>,
    unknown: &mut Vec<Vec<Step>>,
) {
    for (name, value) in fields {
        if whole && OBJECT_FIELDS.contains(&name.as_str()) {
            continue;
        }
        let here = Place::Field(&place, name);
        match schema.field(name) {
            Some(below) => find_unknown(value, below, here, unknown),
            None if keeps_unknown(schema) => {}
            None => unknown.push(here.steps()),
        }
    }
}

/// Takes away what a path leads to.
fn take_away(value: &mut Value, steps: &[Step]) {
    match (value, steps) {
        (Value::Object(fields), [Step::Field(name)]) => drop(fields.remove(name)),
        (Value::Object(fields), [Step::Field(name), below @ ..]) => {
            fields.get_mut(name).into_iter().for_each(|value| take_away(value, below));
        }
        (Value::Array(elements), [Step::Element(index), below @ ..]) => {
            elements.get_mut(*index).into_iter().for_each(|value| take_away(value, below));
        }
        _ => {}
    }
}

/// Whether fields that the schema does not name are part of it.
pub(super) fn keeps_unknown(schema: &Schema) -> bool {
    let describes_nothing = schema.kind.is_none() && schema.properties.is_empty() && schema.additional_properties.is_none();
    schema.preserve_unknown_fields || describes_nothing || schema.additional_properties == Some(Additional::Allowed(true))
}
