//! Tests of the whole language; those of a part stand beside it.

use std::path::PathBuf;

use serde_json::Value;

mod bounds;
mod checks;
mod conformance;
mod corpus;
mod evaluation;
mod graphs;
mod speed;
mod vectors;

/// Where recorded data is; `None`, after saying so, where there is none.
pub(super) fn data(path: &str) -> Option<String> {
    let root = std::env::var_os("PLINTH_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let file = root.join(path);
    match std::fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(error) => {
            println!("NOT RUN {path}: {error}; set PLINTH_DATA");
            None
        }
    }
}

/// Whether two values are the same; numbers by size, since recorded results went through floats.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len() && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}
