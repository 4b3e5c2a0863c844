//! Paths to fields of a schema, as rules and selectable fields name them: `.spec.replicas`, `.labels['a/b']`.

use serde_json::Value;

const NO_FIELD: &str = "does not refer to a valid field";

/// The schema that a path leads to; an error says why there is none. `keys` allows the notation with brackets.
pub(super) fn find<'a>(path: &str, schema: &'a Value, keys: bool) -> Result<&'a Value, String> {
    let (mut rest, mut schema) = (path, schema);
    while !rest.is_empty() {
        let (name, left) = part(rest, keys)?;
        schema = field(schema, &name).ok_or(NO_FIELD)?;
        rest = left;
    }
    Ok(schema)
}

/// The first name of a path, and what follows it.
fn part(path: &str, keys: bool) -> Result<(String, &str), String> {
    let end = |text: &str| text.find(['.', '[', ']']).unwrap_or(text.len());
    if let Some(rest) = path.strip_prefix('.') {
        if rest.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        let (name, left) = rest.split_at(end(rest));
        return Ok((name.to_owned(), left));
    }
    if !path.starts_with('[') {
        return Err(format!("expected [ or . but got: {}", &path[..end(path)]));
    }
    if !keys {
        return Err("array notation is not allowed".to_owned());
    }
    let quoted = path.strip_prefix("['").and_then(|rest| rest.split_once("']"));
    quoted.map(|(name, left)| (name.replace("\\'", "'"), left)).ok_or_else(|| "expected single quoted string".to_owned())
}

fn field<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    match schema.get("properties") {
        Some(properties) => properties.get(name),
        None => schema.get("additionalProperties").filter(|values| values.is_object()),
    }
}
