//! What a CustomResourceDefinition may say (Kubernetes: `apiextensions-apiserver`, `apis/apiextensions/validation`).
//!
//! Looked at when a CRD is written and its spec is another one than before; never when its objects are.

mod defaults;
mod found;
mod openapi;
mod path;
mod served;
mod structural;

use std::{collections::BTreeSet, sync::Arc};

use plinth_api::Object;
use plinth_engine::schema::Schema;
use serde_json::{Value, json};

use self::{
    found::{At, Found, list, says, text},
    openapi::Inside,
};
use super::{
    names::{Rule, kind_fault, name_fault},
    problem::FieldFault,
    validations::{BadRule, Rules},
};

const APPROVED: &str = "api-approved.kubernetes.io";

/// What is wrong with a CRD; `old` is the one it replaces.
pub(super) fn check(object: &Object, old: Option<&Object>) -> Vec<FieldFault> {
    let mut found = Found(old.map_or_else(Vec::new, |old| kept(object, old)));
    let expected = format!("{}.{}", text(&object.spec()["names"], "plural"), text(object.spec(), "group"));
    if object.name() != expected && old.is_none() {
        found.invalid(&At::root("metadata.name"), &json!(object.name()), "must be spec.names.plural+\".\"+spec.group");
    }
    approval(object, old, &mut found);
    if old.is_none_or(|old| old.spec() != object.spec()) {
        spec(object.spec(), old.map(Object::spec), &mut found);
    }
    stored_versions(object, &mut found);
    found.0
}

/// What a CRD keeps: its group and plural always, and what says where its objects are once it is served.
fn kept(object: &Object, old: &Object) -> Vec<FieldFault> {
    let conditions = list(old.status(), "conditions");
    let is_established = conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    let served: &[&str] = if is_established { &["scope", "names.kind"] } else { &[] };
    let changed = served.iter().chain(&["group", "names.plural"]).filter_map(|path| {
        let pointer = format!("/{}", path.replace('.', "/"));
        let value = |object: &Object| object.spec().pointer(&pointer).cloned().unwrap_or(json!(""));
        (value(object) != value(old)).then(|| super::rules::unchanged(&format!("spec.{path}"), &value(object)))
    });
    changed.collect()
}

/// Groups of Kubernetes itself need a word that somebody agreed.
fn approval(object: &Object, old: Option<&Object>, found: &mut Found) {
    let group = text(object.spec(), "group");
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|owner| group.strip_suffix(owner).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    let word = |object: &Object| {
        let word = object.at(&["metadata", "annotations", APPROVED]).and_then(Value::as_str).unwrap_or_default();
        (word.to_owned(), approved(word))
    };
    let (word, state) = (word(object), old.map(|old| word(old).1));
    if !is_protected || state == Some(word.1) {
        return;
    }
    let at = format!("metadata.annotations[{APPROVED}]");
    let must = format!("protected groups must have approval annotation \"{APPROVED}\"");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match word.1 {
        Approval::Missing => found.required(&At::root(&at), &format!("{must}, {see}")),
        Approval::Invalid => {
            let why = format!("{must} with either a URL or a reason starting with \"unapproved\", {see}");
            found.invalid(&At::root(&at), &json!(word.0), &why);
        }
        Approval::Given => {}
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Approval {
    Missing,
    Invalid,
    Given,
}

fn approved(word: &str) -> Approval {
    let is_url = word.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    match word {
        "" => Approval::Missing,
        word if is_url || word.starts_with("unapproved") => Approval::Given,
        _ => Approval::Invalid,
    }
}

fn spec(spec: &Value, old: Option<&Value>, found: &mut Found) {
    let at = At::root("spec");
    group(spec, found);
    match text(spec, "scope") {
        "" => found.required(&at.field("scope"), ""),
        "Cluster" | "Namespaced" => {}
        _ => found.unsupported(&at.field("scope"), &spec["scope"], &["Cluster", "Namespaced"]),
    }
    if spec["preserveUnknownFields"] == true {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        found.invalid(&at.field("preserveUnknownFields"), &json!(true), why);
    }
    names(&spec["names"], &at.field("names"), found);
    served::conversion(&spec["conversion"], &at.field("conversion"), found);
    versions(spec, found);
    schemas(spec, old, found);
    served::check(spec, found);
}

fn group(spec: &Value, found: &mut Found) {
    let (group, at) = (text(spec, "group"), At::root("spec.group"));
    match name_fault(group, Rule::Subdomain) {
        _ if group.is_empty() => found.required(&at, ""),
        Some(why) => found.invalid(&at, &json!(group), &why),
        None if !group.contains('.') => found.invalid(&at, &json!(group), "should be a domain with at least one dot"),
        None => {}
    }
}

fn names(names: &Value, at: &At<'_>, found: &mut Found) {
    for name in ["plural", "singular", "kind", "listKind"] {
        let (here, value) = (at.field(name), text(names, name));
        if value.is_empty() {
            found.required(&here, "");
        } else if name.to_lowercase().ends_with("kind") {
            if let Some(why) = kind_fault(value) {
                found.invalid(&here, &json!(value), &why);
            }
        } else if let Some(why) = name_fault(value, Rule::Label1035) {
            found.invalid(&here, &json!(value), &why);
        }
    }
    for name in ["shortNames", "categories"] {
        for (index, value) in list(names, name).iter().enumerate() {
            if let Some(why) = name_fault(value.as_str().unwrap_or_default(), Rule::Label1035) {
                found.invalid(&at.field(name).index(index), value, &why);
            }
        }
    }
    if says(names, "kind") && names["kind"] == names["listKind"] {
        found.invalid(&at.field("listKind"), &names["listKind"], "kind and listKind may not be the same");
    }
}

/// Names of versions, and in which of them objects are stored.
fn versions(spec: &Value, found: &mut Found) {
    let (all, versions) = (&spec["versions"], list(spec, "versions"));
    let above = At::root("spec.versions");
    let names: Vec<&str> = versions.iter().map(|version| text(version, "name")).collect();
    for (index, name) in names.iter().enumerate() {
        let Some(why) = name_fault(name, Rule::Label1035) else { continue };
        // The first one is the version of old, too.
        if index == 0 {
            found.invalid(&At::root("spec.version"), &json!(name), &why);
        }
        found.invalid(&above.index(index).field("name"), &json!(name), &why);
    }
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        found.invalid(&above, all, "must contain unique version names");
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        found.invalid(&above, all, "must have exactly one version marked as storage version");
    }
}

fn stored_versions(object: &Object, found: &mut Found) {
    let at = At::root("status.storedVersions");
    let names: Vec<&Value> = list(object.spec(), "versions").iter().map(|version| &version["name"]).collect();
    let stored = list(object.status(), "storedVersions");
    if stored.is_empty() {
        return found.invalid(&at, &Value::Null, "must have at least one stored version");
    }
    for (index, name) in stored.iter().enumerate().filter(|(_, name)| !names.contains(name)) {
        let text = name.as_str().unwrap_or_default();
        let why = format!(
            "missing from spec.versions; {text} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {text} and removes {text} from status.storedVersions"
        );
        found.invalid(&at.index(index), name, &why);
    }
}

/// The schemas of all versions; those that are as before were looked at before.
fn schemas(spec: &Value, old: Option<&Value>, found: &mut Found) {
    let versions = list(spec, "versions");
    let shared = served::is_shared(versions, "schema");
    let has_status = |version: &Value| !version["subresources"]["status"].is_null();
    for (index, version) in versions.iter().enumerate() {
        if shared && index > 0 {
            break;
        }
        // The API server keeps a schema that all versions have in common in one place, and says so.
        let path = if shared { "spec.validation".to_owned() } else { format!("spec.versions[{index}].schema") };
        let at = At::root(&path);
        let before = old.and_then(|old| list(old, "versions").iter().find(|other| other["name"] == version["name"]));
        match version["schema"].get("openAPIV3Schema").filter(|schema| !schema.is_null()) {
            None => found.required(&At::root(&format!("spec.versions[{index}].schema.openAPIV3Schema")), ""),
            Some(_) if before.is_some_and(|before| before["schema"] == version["schema"]) => {}
            Some(written) => {
                let status = if shared { versions.iter().any(has_status) } else { has_status(version) };
                schema(written, status, &at.field("openAPIV3Schema"), found);
            }
        }
    }
}

fn schema(written: &Value, status: bool, at: &At<'_>, found: &mut Found) {
    let mut here = Found::default();
    root(written, status, at, &mut here);
    let unsupported = openapi::unsupported(written);
    let read = serde_json::from_value::<Schema>(written.clone()).ok().map(Arc::new);
    let mut form = Found::default();
    if unsupported.is_none() {
        structural::check(written, at, &mut form);
    }
    openapi::check(written, Inside::ROOT, at, &mut here);
    if unsupported.is_none()
        && form.0.is_empty()
        && let Some(read) = &read
    {
        defaults::check(read, true, at, &mut form);
    }
    here.0.append(&mut form.0);
    match (unsupported, &read) {
        (Some(why), _) if here.0.is_empty() => here.invalid(at, &json!(""), &why),
        // Expressions are about a schema that is right.
        (None, Some(read)) if here.0.is_empty() => {
            let told = |bad: BadRule| FieldFault { reason: bad.reason, field: format!("{at}{}", bad.path), message: bad.message };
            here.0.extend(Rules::of(read).1.into_iter().map(told));
        }
        _ => {}
    }
    found.0.append(&mut here.0);
}

/// What may not be at the root, where the status is a part of its own.
fn root(schema: &Value, status: bool, at: &At<'_>, found: &mut Found) {
    const NOT_WITH_STATUS: [&str; 13] = [
        "default",
        "enum",
        "maxProperties",
        "minProperties",
        "allOf",
        "oneOf",
        "anyOf",
        "not",
        "additionalProperties",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ];
    if says(schema, "nullable") {
        found.forbidden(&at.field("nullable"), "nullable cannot be true at the root");
    }
    if !status {
        return;
    }
    if schema["type"] != "object" && says(schema, "type") {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        found.invalid(&at.field("type"), &schema["type"], why);
    } else if NOT_WITH_STATUS.iter().any(|name| !schema[*name].is_null()) {
        let why = "only some fields are allowed at the root of the schema if the status subresource is enabled";
        found.invalid(at, schema, why);
    }
}
