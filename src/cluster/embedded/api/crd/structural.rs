//! What makes a schema structural (Kubernetes: `apiextensions-apiserver`, `schema/validation.go` and `schema/complete.go`).

use plinth_engine::cel::re2;
use serde_json::{Value, json};

use super::found::{At, Found, fields, list, says, text};

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Field,
    Item,
}

/// What breaks the form of a structural schema, everywhere in it.
pub(super) fn check(schema: &Value, at: &At<'_>, found: &mut Found) {
    node(schema, Level::Root, at, found);
    complete(schema, Some(schema), (at, at), found);
}

fn node(schema: &Value, level: Level, at: &At<'_>, found: &mut Found) {
    let (items, values) = (&schema["items"], &schema["additionalProperties"]);
    if schema["type"] == "array" && !items.is_object() {
        found.required(&at.field("items"), "must be specified");
    }
    if items.is_object() {
        node(items, Level::Item, &at.field("items"), found);
    }
    for (name, property) in fields(schema, "properties") {
        node(property, Level::Field, &at.field("properties").key(name), found);
    }
    if !values.is_null() && level == Level::Root {
        found.forbidden(&at.field("additionalProperties"), "must not be used at the root");
    }
    if values.is_object() {
        node(values, Level::Field, &at.field("additionalProperties"), found);
    }
    extensions(schema, at, found);
    validation(schema, at, found);
    typed(schema, level, at, found);
    meta(schema, level, at, found);
}

fn extensions(schema: &Value, at: &At<'_>, found: &mut Found) {
    if !says(schema, "x-kubernetes-int-or-string") {
        return;
    }
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if says(schema, name) {
            found.invalid(&at.field(name), &json!(true), "must be false if x-kubernetes-int-or-string is true");
        }
    }
}

fn typed(schema: &Value, level: Level, at: &At<'_>, found: &mut Found) {
    let kind = text(schema, "type");
    let (here, embedded) = (at.field("type"), says(schema, "x-kubernetes-embedded-resource"));
    let open = says(schema, "x-kubernetes-int-or-string") || says(schema, "x-kubernetes-preserve-unknown-fields");
    match kind {
        "object" => {}
        "" if embedded => found.required(&here, "must be object if x-kubernetes-embedded-resource is true"),
        kind if embedded => found.invalid(&here, &json!(kind), "must be object if x-kubernetes-embedded-resource is true"),
        "" if !open => {
            let what = match level {
                Level::Root => "at the root",
                Level::Item => "for specified array items",
                Level::Field => "for specified object fields",
            };
            found.required(&here, &format!("must not be empty {what}"));
        }
        _ => {}
    }
    if level == Level::Root && !["", "object"].contains(&kind) {
        found.invalid(&here, &json!(kind), "must be object at the root");
    }
    if !embedded {
        return;
    }
    if !schema["additionalProperties"].is_null() {
        found.forbidden(&at.field("additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set");
    }
    if !says(schema, "x-kubernetes-preserve-unknown-fields") && !says(schema, "properties") {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        found.required(&at.field("properties"), why);
    }
}

/// Kind, version and metadata of whole objects.
fn meta(schema: &Value, level: Level, at: &At<'_>, found: &mut Found) {
    let whole = level == Level::Root || says(schema, "x-kubernetes-embedded-resource");
    if !whole || !says(schema, "properties") {
        return;
    }
    let properties = &schema["properties"];
    let above = at.field("properties");
    for (name, must) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let kind = text(&properties[name], "type");
        if properties[name].is_object() && kind != must {
            found.invalid(&above.key(name).field("type"), &json!(kind), &format!("must be {must}"));
        }
    }
    let Some(metadata) = properties["metadata"].as_object().filter(|_| level == Level::Root) else { return };
    let other = |name: &String| match name.as_str() {
        "type" | "default" => false,
        "properties" => !fields(&properties["metadata"], name).all(|(name, _)| ["name", "generateName"].contains(&name.as_str())),
        name => says(&properties["metadata"], name),
    };
    if metadata.keys().any(other) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        found.forbidden(&above.key("metadata"), why);
    }
}

/// Whether alternatives are those of a number or text, which may say their types.
fn is_int_or_string(any_of: &Value) -> bool {
    any_of.as_array().is_some_and(
        |parts| matches!(parts.as_slice(), [a, b] if *a == json!({"type": "integer"}) && *b == json!({"type": "string"})),
    )
}

fn validation(schema: &Value, at: &At<'_>, found: &mut Found) {
    let first_may = is_int_or_string(&schema["allOf"][0]["anyOf"]);
    junctors(schema, is_int_or_string(&schema["anyOf"]), first_may, at, found);
}

/// `anyOf`, `allOf`, `oneOf`, `not` and `pattern`.
fn junctors(schema: &Value, any_may: bool, first_may: bool, at: &At<'_>, found: &mut Found) {
    for name in ["anyOf", "allOf", "oneOf"] {
        if name == "anyOf" && any_may {
            continue;
        }
        for (index, part) in list(schema, name).iter().enumerate() {
            nested(part, first_may && name == "allOf" && index == 0, &at.field(name).index(index), found);
        }
    }
    if schema["not"].is_object() {
        nested(&schema["not"], false, &at.field("not"), found);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Err(error) = re2(pattern)
    {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        found.invalid(&at.field("pattern"), &json!(pattern), &why);
    }
}

/// A part of an alternative only says what values are, not of what form.
fn nested(schema: &Value, any_may: bool, at: &At<'_>, found: &mut Found) {
    const FORBIDDEN: [(&str, &str); 11] = [
        ("type", "empty"),
        ("additionalProperties", "undefined"),
        ("default", "undefined"),
        ("title", "empty"),
        ("description", "empty"),
        ("nullable", "false"),
        ("x-kubernetes-preserve-unknown-fields", "false"),
        ("x-kubernetes-embedded-resource", "false"),
        ("x-kubernetes-int-or-string", "false"),
        ("x-kubernetes-list-map-keys", "empty"),
        ("x-kubernetes-validations", "empty"),
    ];
    junctors(schema, any_may, false, at, found);
    if schema["items"].is_object() {
        nested(&schema["items"], false, &at.field("items"), found);
    }
    for (name, property) in fields(schema, "properties") {
        nested(property, false, &at.field("properties").key(name), found);
    }
    let zero = |name: &str| ["additionalProperties", "default"].contains(&name) && !schema[name].is_null();
    for (name, must) in FORBIDDEN.into_iter().filter(|(name, _)| says(schema, name) || zero(name)) {
        found.forbidden(&at.field(name), &format!("must be {must} to be structural"));
    }
    for name in ["x-kubernetes-list-type", "x-kubernetes-map-type"].into_iter().filter(|name| !schema[*name].is_null()) {
        found.forbidden(&at.field(name), "must be undefined to be structural");
    }
    if schema["properties"]["metadata"].is_object() {
        found.forbidden(&at.field("properties").key("metadata"), "must not be specified in a nested context");
    }
}

/// Whether what the root's alternatives speak of is there; `ats` are the places of form and alternative.
fn complete(alternative: &Value, form: Option<&Value>, ats: (&At<'_>, &At<'_>), found: &mut Found) {
    for name in ["allOf", "anyOf", "oneOf"] {
        for (index, part) in list(alternative, name).iter().enumerate() {
            nested_complete(part, form, (ats.0, &ats.1.field(name).index(index)), found);
        }
    }
    if alternative["not"].is_object() {
        nested_complete(&alternative["not"], form, (ats.0, &ats.1.field("not")), found);
    }
}

fn nested_complete(part: &Value, form: Option<&Value>, ats: (&At<'_>, &At<'_>), found: &mut Found) {
    let Some(form) = form else { return found.required(ats.0, &format!("because it is defined in {}", ats.1)) };
    complete(part, Some(form), ats, found);
    if part["items"].is_object() {
        let items = form.get("items").filter(|items| items.is_object());
        nested_complete(&part["items"], items, (&ats.0.field("items"), &ats.1.field("items")), found);
    }
    for (name, property) in fields(part, "properties") {
        let (form_at, part_at) = (ats.0.field("properties"), ats.1.field("properties"));
        nested_complete(property, form["properties"].get(name), (&form_at.key(name), &part_at.key(name)), found);
    }
}
