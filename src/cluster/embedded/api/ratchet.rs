//! What an update leaves as it was is not held against it, so that objects from before a stricter schema can still be changed
//! (Kubernetes' ratcheting of custom resources, stable since 1.33).

use plinth_api::Object;
use plinth_engine::schema::Schema;
use serde_json::{Map, Value};

use super::{check::join, problem::FieldFault, validations::same_element};

/// Takes those faults away that lie in a value which the update leaves as it was.
pub(super) fn forgive(faults: &mut Vec<FieldFault>, object: &Object, old: &Object, schema: &Schema) {
    if faults.is_empty() {
        return;
    }
    let mut kept = Vec::new();
    fields(&object.0, &old.0, schema, "", &mut kept);
    faults.retain(|fault| !kept.iter().any(|path| is_within(&fault.field, path)));
}

/// Whether a field is the one at this path, or inside it.
fn is_within(field: &str, path: &str) -> bool {
    field.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Collects the paths of the outermost values that are as they were.
fn value(new: &Value, old: &Value, schema: &Schema, path: &str, kept: &mut Vec<String>) {
    if new == old {
        return kept.push(path.to_owned());
    }
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => fields(new, old, schema, path, kept),
        (Value::Array(new), Value::Array(old)) => elements(new, old, schema, path, kept),
        _ => {}
    }
}

fn fields(new: &Map<String, Value>, old: &Map<String, Value>, schema: &Schema, path: &str, kept: &mut Vec<String>) {
    for (name, inner) in new {
        if let (Some(before), Some(below)) = (old.get(name), schema.field(name)) {
            value(inner, before, below, &join(path, name), kept);
        }
    }
}

/// Only elements with keys can be told to be the same; other lists are kept as a whole or not at all.
fn elements(new: &[Value], old: &[Value], schema: &Schema, path: &str, kept: &mut Vec<String>) {
    let Some(items) = &schema.items else { return };
    for (index, element) in new.iter().enumerate() {
        if let Some(before) = same_element(schema, element, old) {
            value(element, before, items, &format!("{path}[{index}]"), kept);
        }
    }
}
