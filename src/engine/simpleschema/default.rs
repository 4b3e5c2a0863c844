//! The `default` marker: its text becomes JSON in kro's way, then the API server's rules are applied to it.

use serde_json::Value;

use super::scalar;
use crate::{
    schema::{Schema, apply_defaults, validate_default},
    yaml,
};

/// What is wrong with a default.
pub(super) enum Fault {
    /// kro refuses it.
    Error(String),
    /// kro accepts it and the API server cannot read the CRD.
    NotJson(String),
}

/// The value that kro writes into the CRD for this text.
///
/// kro puts a string between quotes without escaping, so that `\` starts a JSON escape; every other text is JSON as it stands.
pub(super) fn parse(text: &str, schema: &Schema) -> Result<Value, Fault> {
    let kind = schema.kind.as_deref().unwrap_or_default();
    let readable = match kind {
        "integer" => scalar::integer(text).is_ok(),
        "number" => scalar::float(text).is_ok(),
        "boolean" => scalar::boolean(text).is_ok(),
        _ => true,
    };
    if !readable {
        let wanted = if kind == "integer" {
            "a valid integer"
        } else if kind == "number" {
            "a valid number"
        } else {
            "a valid boolean"
        };
        return Err(Fault::Error(format!("default value must be {wanted}, got: {text}")));
    }
    // kro writes nothing where nothing is written, and that is accepted.
    if text.is_empty() && !matches!(kind, "string" | "integer" | "number" | "boolean") {
        return Ok(Value::Null);
    }
    let json = if kind == "string" { format!("\"{text}\"") } else { text.to_owned() };
    let value = serde_json::from_str(&json).map_err(|_| Fault::NotJson(format!("default value is not valid JSON: {json}")))?;
    Ok(as_stored(value))
}

/// API servers store `1.0` as `1`; written otherwise, the CRD would differ from the stored one for ever.
fn as_stored(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            yaml::whole(number.as_f64().unwrap_or_default()).filter(|_| number.is_f64()).unwrap_or(number).into()
        }
        Value::Array(elements) => elements.into_iter().map(as_stored).collect(),
        Value::Object(fields) => Value::Object(fields.into_iter().map(|(name, value)| (name, as_stored(value))).collect()),
        other => other,
    }
}

/// A word on a text default that became something else than what is written.
pub(super) fn oddity(text: &str, value: &Value) -> Option<String> {
    let value = value.as_str()?;
    if text.len() >= 2 && text.starts_with('\'') && text.ends_with('\'') {
        return Some(format!("the single quotes are part of the default: {value:?}"));
    }
    (value != text).then(|| format!("the backslash starts a JSON escape: the default is {value:?}"))
}

/// Why the API server refuses the CRD for this schema's default, `None` if it does not.
pub(super) fn refusal(schema: &Schema) -> Option<String> {
    let mut default = schema.default.clone()?;
    apply_defaults(&mut default, schema);
    let finding = validate_default(&default, schema).into_iter().next()?;
    let place = if finding.path.is_empty() { String::new() } else { format!(" at {}", finding.path) };
    Some(format!("default value does not fit the schema{place}: {}", finding.message))
}
