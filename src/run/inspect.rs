//! Objects made readable: YAML with managed fields folded, a description, and what differs from what is wanted.
//!
//! Invariant: nothing that leaves this module holds a secret. [`masked`] is applied to every object first.

mod describe;
mod diff;
#[cfg(test)]
mod tests;

use plinth_api::Object;
use serde_json::{Map, Value};

pub use describe::describe;
pub use diff::{Difference, differences};

/// What stands in place of a secret.
pub const MASK: &str = "(masked)";
/// The longest text that is shown of one object, in lines.
pub const MAX_LINES: usize = 5000;
/// kubectl keeps the whole object in this annotation, secrets included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The object without anything secret: values of Secrets, and the copy of the object that kubectl keeps in an annotation.
#[must_use]
pub fn masked(object: &Object) -> Object {
    let mut object = object.clone();
    if let Some(Value::Object(annotations)) = object.metadata_mut().get_mut("annotations") {
        annotations.remove(LAST_APPLIED);
    }
    if object.gvk().is_some_and(|gvk| gvk.group.is_empty() && gvk.kind == "Secret") {
        for field in ["data", "stringData"] {
            if let Some(Value::Object(values)) = object.0.get_mut(field) {
                values.values_mut().for_each(|value| *value = Value::String(MASK.to_owned()));
            }
        }
    }
    hide(&mut object.0);
    object
}

/// Fields whose names say that they hold a secret, anywhere in an object.
fn hide(map: &mut Map<String, Value>) {
    for (name, value) in map.iter_mut() {
        match value {
            Value::String(text) if is_secret(name) => MASK.clone_into(text),
            Value::Object(inner) => hide(inner),
            Value::Array(items) => items.iter_mut().filter_map(Value::as_object_mut).for_each(|item| {
                let named = item.get("name").and_then(Value::as_str).is_some_and(is_secret);
                if let Some(value) = item.get_mut("value").filter(|value| named && value.is_string()) {
                    *value = Value::String(MASK.to_owned());
                }
                hide(item);
            }),
            _ => {}
        }
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is = |end: &str| name == end || name.ends_with(end);
    is("password") || is("passwd") || is("token") || is("apikey") || is("privatekey") || is("clientsecret") || is("_secret")
}

/// The object as YAML, one element a line. Managed fields are folded into one line unless they are asked for.
pub fn yaml(object: &Object, managed_fields: bool) -> Vec<String> {
    let mut object = masked(object);
    let managers = object.at(&["metadata", "managedFields"]).and_then(Value::as_array).map_or(0, Vec::len);
    if managers > 0 && !managed_fields {
        let note = format!("(folded: {managers} managers)");
        object.metadata_mut().insert("managedFields".to_owned(), Value::String(note));
    }
    let text = serde_saphyr::to_string(&object.0).unwrap_or_else(|error| format!("it cannot be shown as YAML: {error}"));
    text.lines().take(MAX_LINES).map(str::to_owned).collect()
}
