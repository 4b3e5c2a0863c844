//! Digests of JSON: the same content gives the same digest, however its fields are ordered.

use std::fmt::Write;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// `sha256:…` over the value with the fields of every object sorted by name.
pub fn of(value: &Value) -> String {
    let mut hasher = Sha256::new();
    feed(value, &mut hasher);
    let mut text = String::from("sha256:");
    for byte in hasher.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Whether serde_json keeps the order of fields depends on features that other crates switch on, so it is sorted here.
fn feed(value: &Value, hasher: &mut Sha256) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            hasher.update(b"{");
            for (name, value) in fields {
                hasher.update(Value::String(name.clone()).to_string());
                hasher.update(b":");
                feed(value, hasher);
                hasher.update(b",");
            }
            hasher.update(b"}");
        }
        Value::Array(items) => {
            hasher.update(b"[");
            for item in items {
                feed(item, hasher);
                hasher.update(b",");
            }
            hasher.update(b"]");
        }
        scalar => hasher.update(scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn order_of_fields_does_not_count_and_content_does() {
        let a: Value = serde_json::from_str(r#"{"a": 1, "b": {"c": [1, 2], "d": "x"}}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"b": {"d": "x", "c": [1, 2]}, "a": 1}"#).unwrap();
        assert_eq!(of(&a), of(&b));
        for other in [json!({"a": "1"}), json!({"a": [1]}), json!([{"a": 1}]), json!({"a": {"b": 1}}), json!({"a:": 1})] {
            assert_ne!(of(&json!({"a": 1})), of(&other), "{other}");
        }
        assert_ne!(of(&json!(["a,b"])), of(&json!(["a", "b"])));
    }
}
