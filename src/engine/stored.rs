//! What an API server keeps of what it is sent: where that is there, applying it again changes nothing.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::{cel::encode_base64, quantity::same_quantity};

/// Fields that map names to quantities, in kinds of Kubernetes itself.
const QUANTITIES: [&str; 5] = ["requests", "limits", "capacity", "hard", "overhead"];

/// Folds a Secret's `stringData` into its `data`, as a server does when it takes the Secret.
pub fn fold_texts(secret: &mut Value) {
    let Some(Value::Object(texts)) = secret.as_object_mut().and_then(|fields| fields.remove("stringData")) else { return };
    if !secret["data"].is_object() {
        secret["data"] = json!({});
    }
    for (name, text) in texts {
        secret["data"][name] = encode_base64(text.as_str().unwrap_or_default().as_bytes()).into();
    }
}

/// The whole object, with its parts where a server keeps them.
pub fn kept(object: &Value) -> Cow<'_, Value> {
    if object["kind"] != "Secret" || object["apiVersion"] != "v1" || object.get("stringData").is_none() {
        return Cow::Borrowed(object);
    }
    let mut folded = object.clone();
    fold_texts(&mut folded);
    Cow::Owned(folded)
}

/// Whether an object's kind is one of Kubernetes itself: such a server writes what it keeps in forms of its own.
pub fn is_of_kubernetes(object: &Value) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    !version.is_empty() && (!group.contains('.') || group.ends_with(".k8s.io"))
}

/// Whether a value that is no list and no mapping is kept as `live`. `within` is the mapping that it is in, `of_kubernetes` whether the
/// kind is one of Kubernetes itself.
pub fn is_kept_as(wanted: &Value, live: &Value, within: &str, of_kubernetes: bool) -> bool {
    match (wanted, live) {
        (wanted, live) if wanted == live => true,
        // It asks for nothing.
        (Value::Null, _) => true,
        (Value::Number(wanted), Value::Number(live)) => wanted.as_f64() == live.as_f64(),
        // What is zero is left out.
        (zero, Value::Null) if of_kubernetes => *zero == json!("") || *zero == json!(false) || *zero == json!(0),
        (wanted, Value::String(live)) if of_kubernetes && QUANTITIES.contains(&within) => match wanted {
            Value::String(wanted) => same_quantity(wanted, live),
            Value::Number(wanted) => same_quantity(&wanted.to_string(), live),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_secret_are_kept_as_data() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "YQ=="}, "stringData": {"b": "b", "a": "c"}});
        assert_eq!(kept(&secret)["data"], json!({"a": "Yw==", "b": "Yg=="}));
        assert_eq!(kept(&secret).get("stringData"), None);
        let other = json!({"apiVersion": "a.test/v1", "kind": "Secret", "stringData": {"b": "b"}});
        assert_eq!(*kept(&other), other);
    }

    #[test]
    fn a_value_is_kept_in_the_form_of_its_server() {
        for (wanted, live, within, expected) in [
            (json!("1000m"), json!("1"), "limits", true),
            (json!(1), json!("1"), "requests", true),
            (json!("1024Mi"), json!("1Gi"), "limits", true),
            (json!("1000m"), json!("2"), "limits", false),
            (json!("1000m"), json!("1"), "data", false),
            (json!(""), Value::Null, "env", true),
            (json!("x"), Value::Null, "env", false),
            (json!(1.0), json!(1), "spec", true),
            (Value::Null, json!("a"), "spec", true),
        ] {
            assert_eq!(is_kept_as(&wanted, &live, within, true), expected, "{wanted} {live}");
        }
        assert!(!is_kept_as(&json!(""), &Value::Null, "spec", false), "a custom resource keeps an empty text");
        assert!(!is_kept_as(&json!("1000m"), &json!("1"), "limits", false), "and a text as it is");
    }
}
