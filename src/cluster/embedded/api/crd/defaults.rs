//! Defaults have to be values that the schema allows (Kubernetes: `schema/defaulting/validation.go`).

use std::sync::Arc;

use plinth_engine::schema::{Schema, prune};
use serde_json::Value;

use super::found::{At, Found};
use crate::embedded::api::{check, problem::FieldFault, validations::Rules};

/// What is wrong with the defaults of a schema and of all below it.
pub(super) fn check(schema: &Arc<Schema>, root: bool, at: &At<'_>, found: &mut Found) {
    if let Some(default) = schema.default.as_ref().filter(|default| !default.is_null()) {
        value(default, schema, root, &at.field("default"), found);
    }
    if let Some(items) = &schema.items {
        check(items, false, &at.field("items"), found);
    }
    for (name, property) in &schema.properties {
        check(property, false, &at.field("properties").key(name), found);
    }
}

fn value(default: &Value, schema: &Arc<Schema>, root: bool, at: &At<'_>, found: &mut Found) {
    if !prune(&mut default.clone(), schema).is_empty() {
        found.invalid(at, default, "must not have unknown fields");
    }
    let mut faults = Vec::new();
    if root || schema.embedded_resource {
        faults = check::whole(default, "");
    }
    if faults.is_empty() {
        faults = check::value(default, schema);
    }
    if faults.is_empty()
        && let (Some(rules), _) = Rules::below(schema)
    {
        faults = rules.check_value(default);
    }
    found.0.extend(faults.into_iter().map(|fault| FieldFault { field: placed(at, &fault.field), ..fault }));
}

/// The place of a fault in a default.
fn placed(at: &At<'_>, field: &str) -> String {
    match field {
        "" | "<nil>" => at.to_string(),
        field if field.starts_with('[') => format!("{at}{field}"),
        field => format!("{at}.{field}"),
    }
}
