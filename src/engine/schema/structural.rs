//! What an API server does to an object before it validates it: take away unknown fields, fill in defaults.

use serde_json::Value;

use super::Schema;

/// Fills in the defaults of absent fields, and of `null` where the schema is not nullable.
pub fn apply_defaults(_value: &mut Value, _schema: &Schema) {}

/// Takes unknown fields away and answers with their paths.
pub fn prune(_value: &mut Value, _schema: &Schema) -> Vec<String> {
    Vec::new()
}
