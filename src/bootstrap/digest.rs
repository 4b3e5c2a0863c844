//! Digests of JSON: the same content gives the same digest, however its fields are ordered.

use std::fmt::Write;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// `sha256:…` over the value with the fields of every object sorted by name.
pub fn of(value: &Value) -> String {
    let mut canonical = Vec::new();
    feed(value, &mut canonical);
    let mut text = String::from("sha256:");
    for byte in Sha256::digest(canonical) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Whether serde_json keeps the order of fields depends on features that other crates switch on, so it is sorted here.
fn feed(value: &Value, into: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            into.push(b'{');
            for (name, value) in fields {
                write(name, into);
                into.push(b':');
                feed(value, into);
                into.push(b',');
            }
            into.push(b'}');
        }
        Value::Array(items) => {
            into.push(b'[');
            for item in items {
                feed(item, into);
                into.push(b',');
            }
            into.push(b']');
        }
        scalar => write(scalar, into),
    }
}

fn write(value: &(impl serde::Serialize + ?Sized), into: &mut Vec<u8>) {
    serde_json::to_writer(into, value).expect("texts and scalars always serialize");
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
