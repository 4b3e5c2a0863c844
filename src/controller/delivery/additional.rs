//! `spec.additionalStatusFields` of a Resource: named expressions whose values go to `status.additional`. Pure, bounded.

use plinth_engine::cel::{self, Activation, Dialect, Evaluated, Expression, Limits};
use serde_json::{Map, Value};

use super::report::{Failed, Reason};

/// Deepest nesting of field maps.
const DEEPEST: usize = 16;
/// Most expressions of one Resource.
const MOST: usize = 256;

/// Evaluates every expression over `resource` (a resource in schema v2's form, its access completed).
///
/// A field whose value is `omit()` is left out; the first field that fails is named in the error.
pub fn evaluate(fields: &Value, resource: &Value) -> Result<Value, Failed> {
    let activation = Activation::new().with("resource", resource.clone(), None);
    let mut left = MOST;
    match walk(fields, "", &activation, DEEPEST, &mut left)? {
        Some(value) => Ok(value),
        None => Ok(Value::Object(Map::new())),
    }
}

fn walk(field: &Value, path: &str, activation: &Activation, depth: usize, left: &mut usize) -> Result<Option<Value>, Failed> {
    let wrong = |message: &str| Failed::wrong(Reason::StatusSetFailed, format!("additionalStatusFields{path}: {message}"));
    match field {
        Value::Null if path.is_empty() => Ok(None),
        Value::Object(_) if depth == 0 => Err(wrong("is nested too deeply")),
        Value::Object(map) => {
            let mut values = Map::new();
            for (name, field) in map {
                if let Some(value) = walk(field, &format!("{path}.{name}"), activation, depth - 1, left)? {
                    values.insert(name.clone(), value);
                }
            }
            Ok(Some(Value::Object(values)))
        }
        Value::String(_) if *left == 0 => Err(wrong("are too many expressions")),
        Value::String(text) => {
            *left -= 1;
            one(text, activation).map_err(|message| wrong(&message))
        }
        _ => Err(wrong("is neither an expression nor a map of them")),
    }
}

fn one(text: &str, activation: &Activation) -> Result<Option<Value>, String> {
    let expression = Expression::parse_as(text, Dialect::Delivery).map_err(|error| error.to_string())?;
    match cel::evaluate(&expression, activation, &Limits::default()) {
        Ok(Evaluated::Value(value)) => Ok(Some(value)),
        Ok(Evaluated::Omit) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource() -> Value {
        json!({"name": "image", "version": "1.0.0", "type": "ociImage", "access": {
            "type": "ociArtifact", "imageReference": "reg.test/a/b:1.0.0"}})
    }

    #[test]
    fn fields_are_computed_and_nested() {
        let fields = json!({"v": "resource.version", "deep": {"n": "resource.name + '!'"}, "list": "[1, 2].map(x, x * 2)"});
        let expected = json!({"v": "1.0.0", "deep": {"n": "image!"}, "list": [2, 4]});
        assert_eq!(evaluate(&fields, &resource()), Ok(expected));
        assert_eq!(evaluate(&Value::Null, &resource()), Ok(json!({})));
    }

    #[test]
    fn an_image_is_taken_apart() {
        let fields = json!({"oci": "resource.access.toOCI()"});
        let found = evaluate(&fields, &resource()).unwrap();
        assert_eq!(found["oci"]["registry"], "reg.test");
        assert_eq!(found["oci"]["repository"], "a/b");
        assert_eq!(found["oci"]["tag"], "1.0.0");
    }

    #[test]
    fn the_field_at_fault_is_named() {
        let mut deep = json!("1");
        for _ in 0..20 {
            deep = json!({"d": deep});
        }
        let many: Map<String, Value> = (0..300).map(|n| (format!("f{n}"), json!("1"))).collect();
        let cases = [
            (json!({"a": {"b": "resource.nothing"}}), "additionalStatusFields.a.b: "),
            (json!({"a": "1 +"}), "additionalStatusFields.a: "),
            (json!({"a": 3}), "neither an expression nor a map"),
            (deep, "nested too deeply"),
            (Value::Object(many), "too many expressions"),
        ];
        for (fields, words) in cases {
            let failed = evaluate(&fields, &resource()).unwrap_err();
            assert!(failed.message.contains(words), "{}", failed.message);
        }
    }
}
