//! How a CRD's objects are served: conversion, subresources, columns, fields to select by, warnings.

use std::collections::BTreeSet;

use plinth_engine::schema::crd::{COLUMN_FORMATS, COLUMN_TYPES};
use serde_json::{Value, json};

use super::{
    found::{At, Found, list, text},
    path,
};

/// Most fields of a version that objects can be selected by.
const MAX_SELECTABLE: usize = 8;

/// Whether all versions say the same, which the API server then keeps and names in one place.
pub(super) fn is_shared(versions: &[Value], name: &str) -> bool {
    let said = |version: &Value| match &version[name] {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        _ => true,
    };
    versions.iter().all(|version| said(version) && version[name] == versions[0][name])
}

/// What is said of each version.
pub(super) fn check(spec: &Value, found: &mut Found) {
    let versions = list(spec, "versions");
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        deprecation(version, &At::root(&path), found);
        for (name, check) in [
            ("subresources", scale as fn(&Value, &At<'_>, &mut Found)),
            ("additionalPrinterColumns", columns),
            ("selectableFields", selectable),
        ] {
            let shared = is_shared(versions, name);
            if !shared || index == 0 {
                check(version, &At::root(if shared { "spec" } else { &path }), found);
            }
        }
    }
}

fn deprecation(version: &Value, at: &At<'_>, found: &mut Found) {
    let Some(warning) = version["deprecationWarning"].as_str() else { return };
    let why = if version["deprecated"] == true {
        match warning {
            "" => "must not be an empty string",
            warning if warning.len() > 256 => "must be <= 256 characters long",
            _ => return,
        }
    } else {
        "can only be set for deprecated versions"
    };
    found.invalid(&at.field("deprecationWarning"), &json!(warning), why);
}

fn scale(version: &Value, at: &At<'_>, found: &mut Found) {
    let scale = &version["subresources"]["scale"];
    if !scale.is_object() {
        return;
    }
    let (above, at_selector) = (at.field("subresources"), "scale.labelSelectorPath");
    for (name, below, place) in
        [("specReplicasPath", ".spec.", "scale.specReplicasPath"), ("statusReplicasPath", ".status.", "scale.statusReplicasPath")]
    {
        let (path, here) = (text(scale, name), above.field(place));
        if path.is_empty() {
            found.required(&here, "");
        } else if is_simple(path, &here, found) && !path.starts_with(below) {
            found.invalid(&here, &json!(path), &format!("should be a json path under {}", below.trim_end_matches('.')));
        }
    }
    let (path, here) = (text(scale, "labelSelectorPath"), above.field(at_selector));
    if !path.is_empty() && is_simple(path, &here, found) && !path.starts_with(".spec.") && !path.starts_with(".status.") {
        found.invalid(&here, &json!(path), "should be a json path under either .spec or .status");
    }
}

fn is_simple(path: &str, at: &At<'_>, found: &mut Found) -> bool {
    let simple = path.starts_with('.');
    if !simple {
        found.invalid(at, &json!(path), "must be a simple json path starting with .");
    }
    simple
}

fn columns(version: &Value, at: &At<'_>, found: &mut Found) {
    let above = at.field("additionalPrinterColumns");
    for (index, column) in list(version, "additionalPrinterColumns").iter().enumerate() {
        let here = above.index(index);
        if text(column, "name").is_empty() {
            found.required(&here.field("name"), "");
        }
        let must = format!("must be one of {}", COLUMN_TYPES.join(","));
        match text(column, "type") {
            "" => found.required(&here.field("type"), &must),
            kind if !COLUMN_TYPES.contains(&kind) => found.invalid(&here.field("type"), &json!(kind), &must),
            _ => {}
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
            found.invalid(&here.field("format"), &json!(format), &why);
        }
        match text(column, "jsonPath") {
            "" => found.required(&here.field("JSONPath"), ""),
            path => drop(is_simple(path, &here.field("JSONPath"), found)),
        }
    }
}

fn selectable(version: &Value, at: &At<'_>, found: &mut Found) {
    let above = at.field("selectableFields");
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut known = BTreeSet::new();
    for (index, entry) in list(version, "selectableFields").iter().enumerate() {
        let indexed = above.index(index);
        let (here, wanted, value) = (indexed.field("jsonPath"), text(entry, "jsonPath"), &entry["jsonPath"]);
        if wanted.is_empty() {
            found.required(&here, "");
            continue;
        }
        let leads_to = match path::find(wanted, schema, false) {
            Ok(leads_to) => leads_to,
            Err(why) => {
                found.invalid(&here, value, &format!("is an invalid path: {why}"));
                continue;
            }
        };
        if wanted.starts_with(".metadata") {
            found.invalid(&here, value, "must not point to fields in metadata");
        }
        if !["string", "boolean", "integer"].contains(&text(leads_to, "type")) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            found.invalid(&here, value, why);
        }
        if !known.insert(wanted) {
            found.duplicate(&here, value);
        }
    }
    if known.len() > MAX_SELECTABLE {
        found.too_many(&above, known.len(), MAX_SELECTABLE);
    }
}

/// How objects are converted between versions. The places are those of the API server's own form.
pub(super) fn conversion(conversion: &Value, at: &At<'_>, found: &mut Found) {
    if !conversion.is_object() {
        return;
    }
    let (at_client, at_versions) = (at.field("webhookClientConfig"), at.field("conversionReviewVersions"));
    let (client, versions) = (&conversion["webhook"]["clientConfig"], &conversion["webhook"]["conversionReviewVersions"]);
    match text(conversion, "strategy") {
        "" => found.required(&at.field("strategy"), ""),
        "None" | "Webhook" => {}
        _ => found.unsupported(&at.field("strategy"), &conversion["strategy"], &["None", "Webhook"]),
    }
    if conversion["strategy"] != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if !client.is_null() {
            found.forbidden(&at_client, why);
        }
        if versions.as_array().is_some_and(|list| !list.is_empty()) {
            found.forbidden(&at_versions, why);
        }
        return;
    }
    match (client.is_null(), client["url"].is_null() == client["service"].is_null()) {
        (true, _) => found.required(&at_client, "required when strategy is set to Webhook"),
        (_, true) => found.required(&at_client, "exactly one of url or service is required"),
        _ => url(&client["url"], &at_client.field("url"), found),
    }
    let known = list(&conversion["webhook"], "conversionReviewVersions");
    if known.is_empty() {
        found.required(&at_versions, "");
    } else if !known.iter().any(|version| version == "v1" || version == "v1beta1") {
        found.invalid(&at_versions, versions, "must include at least one of v1, v1beta1");
    }
}

fn url(url: &Value, at: &At<'_>, found: &mut Found) {
    let Some(url) = url.as_str() else { return };
    let form = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        found.invalid(at, &json!(scheme), &format!("'https' is the only allowed URL scheme{form}"));
    }
    if rest.starts_with('/') || rest.is_empty() {
        found.invalid(at, &json!(""), &format!("host must be specified{form}"));
    }
}
