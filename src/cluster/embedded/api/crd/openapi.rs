//! What a schema may say besides its form (Kubernetes: `ValidateCustomResourceDefinitionOpenAPISchema`).

use serde_json::{Value, json};

use super::{
    found::{At, Found, fields, list, says, text},
    path,
};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// What OpenAPI has and structural schemas have not.
const UNSUPPORTED: [&str; 6] = ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];

/// Where a schema is.
#[derive(Clone, Copy, Default)]
pub(super) struct Inside<'a> {
    root: bool,
    /// In kind, version or metadata of a whole object.
    meta: bool,
    /// Why there may be no default.
    no_default: Option<&'a str>,
}

impl Inside<'_> {
    pub(super) const ROOT: Self = Self { root: true, meta: false, no_default: None };
}

/// What of a schema cannot be made structural at all, in the words of the API server.
pub(super) fn unsupported(schema: &Value) -> Option<String> {
    let name = ["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"]
        .into_iter()
        .find(|name| says(schema, name) || (*name == "additionalItems" && !schema[*name].is_null()));
    if let Some(name) = name {
        return Some(format!("OpenAPIV3Schema '{}' is not supported", name.replace("$schema", "schema")));
    }
    if schema["items"].is_array() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        return Some("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned());
    }
    below(schema).find_map(unsupported)
}

/// The schemas right below one.
fn below(schema: &Value) -> impl Iterator<Item = &Value> {
    let single = ["items", "additionalProperties", "not"].into_iter().map(|name| &schema[name]).filter(|part| part.is_object());
    let parts = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|name| list(schema, name));
    fields(schema, "properties").map(|(_, property)| property).chain(single).chain(parts)
}

/// What is wrong with a schema and with all below it.
pub(super) fn check(schema: &Value, inside: Inside<'_>, at: &At<'_>, found: &mut Found) {
    generic(schema, inside, at, found);
    maps(schema, at, found);
    lists(schema, at, found);
    rules(schema, at, found);
    let further = Inside { root: false, ..inside };
    let values = &schema["additionalProperties"];
    if values.is_object() {
        let why = "inside additionalProperties applying to object metadata";
        let inside = Inside { no_default: further.no_default.or(inside.meta.then_some(why)), ..further };
        check(values, inside, &at.field("additionalProperties"), found);
    }
    for (name, property) in fields(schema, "properties") {
        let meta = (inside.root || says(schema, "x-kubernetes-embedded-resource"))
            && ["metadata", "kind", "apiVersion"].contains(&name.as_str());
        let why = format!("in top-level {name}");
        let no_default = further.no_default.or((meta && inside.root).then_some(why.as_str()));
        let inside = Inside { root: false, meta: inside.meta || meta, no_default };
        check(property, inside, &at.field("properties").key(name), found);
    }
    for name in ["not", "items"].into_iter().filter(|name| schema[*name].is_object()) {
        check(&schema[name], further, &at.field(name), found);
    }
    for name in ["allOf", "oneOf", "anyOf"] {
        for (index, part) in list(schema, name).iter().enumerate() {
            check(part, further, &at.field(name).index(index), found);
        }
    }
}

fn generic(schema: &Value, inside: Inside<'_>, at: &At<'_>, found: &mut Found) {
    let kind = text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        found.unsupported(&at.field("type"), &schema["type"], &TYPES);
    }
    if kind == "null" {
        found.forbidden(&at.field("type"), "type cannot be set to null, use nullable as an alternative");
    }
    if let (false, Some(why)) = (schema["default"].is_null(), inside.no_default) {
        found.forbidden(&at.field("default"), &format!("must not be set {why}"));
    }
    for name in UNSUPPORTED.into_iter().filter(|name| !schema[*name].is_null()) {
        found.forbidden(&at.field(name), &format!("{name} is not supported"));
    }
    if schema["items"].is_array() {
        found.forbidden(&at.field("items"), "items must be a schema object and not an array");
    }
    if inside.meta && says(schema, "x-kubernetes-embedded-resource") {
        found.forbidden(&at.field("x-kubernetes-embedded-resource"), "must not be used inside of resource meta");
    }
    if says(schema, "uniqueItems") {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found.forbidden(&at.field("uniqueItems"), why);
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        found.invalid(&at.field("x-kubernetes-preserve-unknown-fields"), &json!(false), "must be true or undefined");
    }
}

fn maps(schema: &Value, at: &At<'_>, found: &mut Found) {
    let values = &schema["additionalProperties"];
    if says(schema, "properties") && (values.is_object() || *values == false) {
        found.forbidden(&at.field("additionalProperties"), "additionalProperties and properties are mutual exclusive");
    }
    let map_type = &schema["x-kubernetes-map-type"];
    if map_type.is_null() {
        return;
    }
    of_type(schema, "object", "x-kubernetes-map-type", at, found);
    if *map_type != "atomic" && *map_type != "granular" {
        found.unsupported(&at.field("x-kubernetes-map-type"), map_type, &["atomic", "granular"]);
    }
}

/// Whether a schema has the type that an extension needs.
fn of_type(schema: &Value, must: &str, extension: &str, at: &At<'_>, found: &mut Found) {
    let (here, why) = (at.field("type"), format!("must be {must} if {extension} is specified"));
    match text(schema, "type") {
        kind if kind == must => {}
        "" => found.required(&here, &why),
        kind => found.invalid(&here, &json!(kind), &why),
    }
}

fn lists(schema: &Value, at: &At<'_>, found: &mut Found) {
    let list_type = &schema["x-kubernetes-list-type"];
    let keys = list(schema, "x-kubernetes-list-map-keys");
    let here = at.field("x-kubernetes-list-type");
    if !keys.is_empty() && *list_type != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        if list_type.is_null() { found.required(&here, why) } else { found.invalid(&here, list_type, why) }
    }
    if list_type.is_null() {
        return;
    }
    of_type(schema, "array", "x-kubernetes-list-type", at, found);
    let Some(kind) = list_type.as_str().filter(|kind| ["atomic", "set", "map"].contains(kind)) else {
        return found.unsupported(&here, list_type, &["atomic", "set", "map"]);
    };
    if kind == "map" && keys.is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        found.required(&at.field("x-kubernetes-list-map-keys"), why);
    }
    let (items, at_items) = (&schema["items"], at.field("items"));
    if !items.is_object() {
        if kind == "map" {
            found.required(&at_items, "must have a schema if x-kubernetes-list-type is map");
        }
        return;
    }
    if kind != "atomic" && says(items, "nullable") {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
        found.forbidden(&at_items.field("nullable"), &why);
    }
    match kind {
        "set" => set(schema, at, found),
        "map" if items["type"] != "object" => {
            let why = "must be object if parent array's x-kubernetes-list-type is map";
            found.invalid(&at_items.field("type"), &json!(text(items, "type")), why);
        }
        "map" => keyed(schema, at, found),
        _ => {}
    }
}

/// Elements of a set are compared as a whole.
fn set(schema: &Value, at: &At<'_>, found: &mut Found) {
    let (items, at) = (&schema["items"], at.field("items"));
    let (extension, wrong) = match text(items, "type") {
        "array" => ("x-kubernetes-list-type", !["", "atomic"].contains(&text(items, "x-kubernetes-list-type"))),
        "object" => ("x-kubernetes-map-type", items["x-kubernetes-map-type"] != "atomic"),
        _ => return,
    };
    if wrong && schema["type"] == "array" {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        found.invalid(&at.field(extension), &items["x-kubernetes-list-type"], why);
    }
}

/// Elements of a map are told apart by keys, which each of them has.
fn keyed(schema: &Value, at: &At<'_>, found: &mut Found) {
    let (items, keys) = (&schema["items"], &schema["x-kubernetes-list-map-keys"]);
    let (at_keys, at_items) = (at.field("x-kubernetes-list-map-keys"), at.field("items"));
    let above = at_items.field("properties");
    let names: Vec<&str> = list(schema, "x-kubernetes-list-map-keys").iter().filter_map(Value::as_str).collect();
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            found.invalid(&at_keys, keys, "must not contain duplicate entries");
        }
        let Some(property) = items["properties"].get(*name) else {
            found.invalid(&at_keys, keys, "entries must all be names of item properties");
            continue;
        };
        let here = above.key(name);
        if ["array", "object"].contains(&text(property, "type")) {
            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            found.invalid(&here.field("type"), &items["type"], why);
        }
        let why = "this property is in x-kubernetes-list-map-keys, so it";
        if !list(items, "required").contains(&json!(name)) && property["default"].is_null() {
            found.required(&here.field("default"), &format!("{why} must have a default or be a required property"));
        }
        if says(property, "nullable") {
            found.forbidden(&here.field("nullable"), &format!("{why} cannot be nullable"));
        }
    }
}

/// How rules are written; what their expressions say is looked at where they are compiled.
fn rules(schema: &Value, at: &At<'_>, found: &mut Found) {
    let above = at.field("x-kubernetes-validations");
    for (index, rule) in list(schema, "x-kubernetes-validations").iter().enumerate() {
        let here = above.index(index);
        let (expression, message, place) = (text(rule, "rule").trim(), text(rule, "message"), text(rule, "fieldPath"));
        let has_breaks = |text: &str| text.contains(['\n', '\r']);
        if expression.is_empty() {
            found.required(&here.field("rule"), "rule is not specified");
        } else if !message.is_empty() && message.trim().is_empty() {
            found.invalid(&here.field("message"), &rule["message"], "must be non-empty if specified");
        } else if has_breaks(message.trim()) {
            found.invalid(&here.field("message"), &rule["message"], "must not contain line breaks");
        } else if has_breaks(expression) && message.is_empty() {
            found.required(&here.field("message"), "message must be specified if rule contains line breaks");
        }
        if !place.is_empty() && path::find(place, schema, true).is_err() {
            found.invalid(&here.field("fieldPath"), &rule["fieldPath"], "must be a valid path");
        }
    }
}
