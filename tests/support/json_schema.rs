//! As much of JSON Schema as docs/schema uses. Stricter than the standard in one thing: a property that the schema does not name is
//! an error, so that nothing is undocumented.

use serde_json::Value;

/// What does not fit, with its place; `root` holds the definitions.
pub fn check(schema: &Value, root: &Value, value: &Value, place: &str) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{place}: {what}: {value}"));
    if let Some(path) = schema["$ref"].as_str() {
        return check(root.pointer(path.trim_start_matches('#')).ok_or("no such definition")?, root, value, place);
    }
    if let Some(constant) = schema.get("const") {
        return if constant == value { Ok(()) } else { wrong("another constant") };
    }
    if let Some(words) = schema["enum"].as_array() {
        return if words.contains(value) { Ok(()) } else { wrong("not one of the words") };
    }
    match schema["type"].as_str() {
        None => Ok(()),
        Some("string") if value.is_string() => Ok(()),
        Some("boolean") if value.is_boolean() => Ok(()),
        Some("integer") if value.is_i64() || value.is_u64() => Ok(()),
        Some("array") => {
            let items = value.as_array().ok_or(format!("{place}: no list"))?;
            items.iter().try_for_each(|item| check(&schema["items"], root, item, &format!("{place}[]")))
        }
        Some("object") => object(schema, root, value, place),
        Some(_) => wrong("another type"),
    }
}

fn object(schema: &Value, root: &Value, value: &Value, place: &str) -> Result<(), String> {
    let fields = value.as_object().ok_or(format!("{place}: no object"))?;
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !fields.contains_key(*name)) {
        return Err(format!("{place}: lacks {missing}: {value}"));
    }
    fields.iter().try_for_each(|(name, field)| {
        let known = schema["properties"].get(name).or(schema.get("additionalProperties"));
        check(known.ok_or(format!("{place}.{name} is not in the schema"))?, root, field, &format!("{place}.{name}"))
    })
}
