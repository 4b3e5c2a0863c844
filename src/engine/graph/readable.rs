//! What can be read of a `spec` whose form has mistakes, so that the rest is judged too.

use serde_json::{Map, Value, json};

use super::document::Stray;
use crate::schema::{Segment, segments};

/// The spec without the fields that do not belong there and without the values that are none; `None` where it is no object.
///
/// What must be there and is not is empty, and so is an element that is none: those behind it keep their places.
pub(super) fn readable(spec: &Value, strays: &[Stray], wrong: &[String]) -> Option<Value> {
    let mut spec = spec.is_object().then(|| without_nulls(spec))?;
    for path in strays.iter().map(|stray| &stray.path).chain(wrong) {
        if let Some(path) = path.strip_prefix("spec.").and_then(segments) {
            blank(&mut spec, &path);
        }
    }
    if spec.get("schema").is_none() {
        spec["schema"] = json!({});
    }
    let schema = spec["schema"].as_object_mut()?;
    ["kind", "apiVersion"].into_iter().for_each(|name| empty(schema, name));
    let resources = spec.get_mut("resources").and_then(Value::as_array_mut).into_iter().flatten();
    resources.filter_map(Value::as_object_mut).for_each(|resource| empty(resource, "id"));
    Some(spec)
}

fn empty(fields: &mut Map<String, Value>, name: &str) {
    fields.entry(name).or_insert_with(|| json!(""));
}

/// Takes a field away; empties an element.
fn blank(spec: &mut Value, path: &[Segment]) {
    let Some((last, way)) = path.split_last() else { return };
    let mut here = Some(spec);
    for segment in way {
        here = match segment {
            Segment::Field(name) => here.and_then(|value| value.get_mut(name.as_str())),
            Segment::Index(index) => here.and_then(|value| value.get_mut(*index)),
        };
    }
    match (here, last) {
        (Some(Value::Object(fields)), Segment::Field(name)) => {
            fields.remove(name);
        }
        (Some(Value::Array(list)), Segment::Index(index)) => {
            if let Some(element) = list.get_mut(*index) {
                *element = emptied(element, way.last().and_then(Segment::name).unwrap_or_default());
            }
        }
        _ => {}
    }
}

/// An element of the list `of` that has the right form and says nothing; the names of iterators stay known.
fn emptied(element: &Value, of: &str) -> Value {
    match (of, element) {
        ("forEach", Value::Object(entries)) => {
            entries.iter().map(|(name, value)| (name.clone(), json!(value.as_str().unwrap_or_default()))).collect()
        }
        ("forEach" | "resources", _) => json!({}),
        _ => json!(""),
    }
}

/// A `null` field of the definition is an absent one; what is inside templates and schemas stays as it is.
fn without_nulls(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let clean = |value: Option<&mut Value>| {
        if let Some(Value::Object(map)) = value {
            map.retain(|_, value| !value.is_null());
        }
    };
    clean(Some(&mut spec));
    clean(spec.get_mut("schema"));
    clean(spec.pointer_mut("/schema/metadata"));
    for resource in spec.get_mut("resources").and_then(Value::as_array_mut).into_iter().flatten() {
        clean(Some(resource));
    }
    spec
}
