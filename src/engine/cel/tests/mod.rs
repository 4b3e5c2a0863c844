//! Tests of the whole language; those of a part stand beside it.

use serde_json::Value;

mod bounds;
mod checks;
mod conformance;
mod corpus;
mod evaluation;
mod graphs;
mod vectors;

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
