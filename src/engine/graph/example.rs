//! Example values for what nobody knows before the run.

use serde_json::{Map, Value, json};

use crate::schema::{Additional, Schema, Segment};

/// Deepest example; schemas may contain themselves.
const MAX_DEPTH: usize = 8;
/// Greatest index that an example list is filled up to.
const MAX_INDEX: usize = 16;

/// A value that fits the schema, as far as types, enums, defaults and bounds say; text is `example-` and the field's name.
pub(super) fn of(schema: Option<&Schema>, field: &str) -> Value {
    schema.map_or_else(|| text(field), |schema| at_depth(schema, field, 0))
}

fn at_depth(schema: &Schema, field: &str, depth: usize) -> Value {
    // The zeros that Go types bring along as defaults are no examples.
    let default = schema.default.as_ref().filter(|value| !is_zero(value));
    if let Some(given) = default.or(schema.values.first()) {
        return given.clone();
    }
    match schema.kind.as_deref() {
        Some("integer") => json!(schema.minimum.filter(|least| *least > 1.0).map_or(1, ceil)),
        Some("number") => json!(schema.minimum.filter(|least| *least > 1.0).unwrap_or(1.0)),
        Some("boolean") => json!(true),
        Some("array") if depth < MAX_DEPTH => {
            schema.items.as_ref().map_or_else(|| json!([]), |items| json!([at_depth(items, field, depth + 1)]))
        }
        Some("object") if depth < MAX_DEPTH => object(schema, depth),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ if schema.int_or_string => json!(1),
        _ => formatted(schema.format.as_deref(), field),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "an example, saturating")]
fn ceil(least: f64) -> i64 {
    least.ceil() as i64
}

/// The required fields, or one entry of a map.
fn object(schema: &Schema, depth: usize) -> Value {
    let required = schema.required.iter().filter_map(|name| Some((name, schema.properties.get(name)?)));
    let mut fields: Map<String, Value> =
        required.map(|(name, schema)| (name.clone(), at_depth(schema, name, depth + 1))).collect();
    if let Some(Additional::Schema(values)) = &schema.additional_properties {
        fields.insert("example".to_owned(), at_depth(values, "value", depth + 1));
    }
    Value::Object(fields)
}

fn formatted(format: Option<&str>, field: &str) -> Value {
    match format {
        Some("date-time") => json!("2000-01-01T00:00:00Z"),
        Some("date") => json!("2000-01-01"),
        Some("byte") => json!("ZXhhbXBsZQ=="),
        _ => text(field),
    }
}

/// Text that is a DNS label, so that it fits most fields.
fn text(field: &str) -> Value {
    let letters: String = field.chars().filter(char::is_ascii_alphanumeric).take(48).collect();
    Value::String(if letters.is_empty() { "example".to_owned() } else { format!("example-{}", letters.to_ascii_lowercase()) })
}

/// Puts a value at a path, making what leads there. Whether that was possible: what is there already is never overwritten.
pub(super) fn put(into: &mut Value, path: &[Segment], value: Value) -> bool {
    let Some((first, rest)) = path.split_first() else {
        let free = into.is_null();
        if free {
            *into = value;
        }
        return free;
    };
    match first {
        Segment::Field(name) => {
            if into.is_null() {
                *into = json!({});
            }
            let Value::Object(map) = into else { return false };
            put(map.entry(name.clone()).or_insert(Value::Null), rest, value)
        }
        Segment::Index(index) => {
            if into.is_null() {
                *into = json!([]);
            }
            let Value::Array(list) = into else { return false };
            if *index > MAX_INDEX {
                return false;
            }
            if list.len() <= *index {
                list.resize(index + 1, if rest.is_empty() { value.clone() } else { Value::Null });
                if rest.is_empty() {
                    return true;
                }
            }
            put(&mut list[*index], rest, value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::segments;

    fn schema(value: Value) -> Schema {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn examples_fit_their_schema() {
        for (given, expected) in [
            (json!({"type": "string"}), json!("example-clusterip")),
            (json!({"type": "string", "enum": ["a", "b"]}), json!("a")),
            (json!({"type": "string", "format": "date-time"}), json!("2000-01-01T00:00:00Z")),
            (json!({"type": "integer", "minimum": 3}), json!(3)),
            (json!({"type": "integer", "default": 0}), json!(1)),
            (json!({"type": "integer", "default": 7}), json!(7)),
            (json!({"type": "array", "items": {"type": "boolean"}}), json!([true])),
            (json!({"x-kubernetes-int-or-string": true}), json!(1)),
            (
                json!({"type": "object", "required": ["host"], "properties": {"host": {"type": "string"}, "port": {"type": "integer"}}}),
                json!({"host": "example-host"}),
            ),
            (json!({"type": "object", "additionalProperties": {"type": "string"}}), json!({"example": "example-value"})),
        ] {
            assert_eq!(of(Some(&schema(given.clone())), "clusterIP"), expected, "{given}");
        }
        assert_eq!(of(None, ""), json!("example"));
    }

    #[test]
    fn a_value_is_put_where_nothing_is() {
        let mut value = json!({"status": {"ready": false}});
        assert!(put(&mut value, &segments("status.ports[1].nodePort").unwrap(), json!(1)));
        assert_eq!(value, json!({"status": {"ready": false, "ports": [null, {"nodePort": 1}]}}));
        assert!(!put(&mut value, &segments("status.ready").unwrap(), json!(true)), "it is known");
        assert!(!put(&mut value, &segments("status.ready.deep").unwrap(), json!(true)), "it is no object");
        assert!(!put(&mut value, &segments("status.many[999999]").unwrap(), json!(true)), "nobody fills a list that long");
    }
}
