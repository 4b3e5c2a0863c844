//! What differs between an object as it is and as it is wanted: only fields that are wanted count.

use plinth_api::Object;
use serde_json::Value;

use super::{MAX_LINES, masked};

/// One field that is not as it is wanted. Values are JSON, secrets masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Path from the root, such as `spec.replicas` or `spec.containers[0].image`.
    pub path: String,
    /// What is there; `None` where nothing is.
    pub live: Option<String>,
    /// What is wanted.
    pub desired: String,
}

/// Fields of `desired` that `live` has in another way, in the order of `desired`. A secret that differs is named, its values are not.
pub fn differences(live: &Object, desired: &Object) -> Vec<Difference> {
    let mut found = Vec::new();
    let shown = (masked(live), masked(desired));
    let (shown_live, shown_desired) = (shown.0.as_value(), shown.1.as_value());
    walk(
        &mut found,
        "",
        &Pair { real: Some(live.as_value()), shown: Some(shown_live) },
        &Pair { real: Some(desired.as_value()), shown: Some(shown_desired) },
    );
    found.truncate(MAX_LINES);
    found
}

/// A value and how it may be shown.
struct Pair<'a> {
    real: Option<&'a Value>,
    shown: Option<&'a Value>,
}

impl<'a> Pair<'a> {
    fn field(&self, name: &str) -> Pair<'a> {
        Pair { real: self.real.and_then(|value| value.get(name)), shown: self.shown.and_then(|value| value.get(name)) }
    }

    fn item(&self, index: usize) -> Pair<'a> {
        Pair { real: self.real.and_then(|value| value.get(index)), shown: self.shown.and_then(|value| value.get(index)) }
    }
}

fn walk(found: &mut Vec<Difference>, path: &str, live: &Pair<'_>, desired: &Pair<'_>) {
    match (live.real, desired.real) {
        (live, desired) if live == desired => {}
        (Some(Value::Object(_)), Some(Value::Object(fields))) => {
            for name in fields.keys() {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(found, &path, &live.field(name), &desired.field(name));
            }
        }
        (Some(Value::Array(have)), Some(Value::Array(want))) if have.len() == want.len() => {
            for index in 0..want.len() {
                walk(found, &format!("{path}[{index}]"), &live.item(index), &desired.item(index));
            }
        }
        // kubectl's copy is no field of anybody.
        (_, Some(_)) if desired.shown.is_none() => {}
        (_, Some(_)) => found.push(Difference {
            path: path.to_owned(),
            live: live.shown.map(ToString::to_string),
            desired: desired.shown.map_or_else(String::new, ToString::to_string),
        }),
        (_, None) => {}
    }
}
