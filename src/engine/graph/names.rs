//! Rules on names (kro.md section 6, step 1).

use std::collections::BTreeMap;

use plinth_api::rgd::RgdSpec;
use serde_json::Value;

use super::{compiled::Options, findings::Findings};
use crate::{
    cel,
    naming::is_subdomain,
    schema::crd::{COLUMN_FORMATS, COLUMN_TYPES},
    yaml::element,
};

/// Words that cannot be ids besides CEL's own.
const RESERVED: [&str; 32] = [
    "apiVersion",
    "context",
    "dependency",
    "dependencies",
    "each",
    "externalRef",
    "externalReference",
    "externalRefs",
    "externalReferences",
    "graph",
    "instance",
    "item",
    "items",
    "kind",
    "kro",
    "metadata",
    "object",
    "resource",
    "resourcegraphdefinition",
    "resourceGraphDefinition",
    "resources",
    "root",
    "runtime",
    "schema",
    "self",
    "serviceAccountName",
    "spec",
    "status",
    "this",
    "variables",
    "vars",
    "version",
];

/// Checks the kind, the ids and the iterators.
pub(super) fn check(spec: &RgdSpec, options: &Options, findings: &mut Findings<'_>) {
    let kind = &spec.schema.kind;
    if !is_name(kind, u8::is_ascii_uppercase) && !findings.refused_in("spec.schema.kind") && !findings.refused_at("spec.schema") {
        findings.error(
            "spec.schema.kind",
            format!("naming convention violation: kind '{kind}' is not a valid KRO kind name: must be UpperCamelCase"),
        );
    }
    group(&spec.schema.group, findings);
    columns(&spec.schema.additional_printer_columns, findings);
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, resource) in spec.resources.iter().enumerate() {
        let resource_path = element("spec.resources", index);
        let path = format!("{resource_path}.id");
        if resource.id.is_empty() && (findings.refused_in(&path) || findings.refused_at(&resource_path)) {
            continue;
        }
        id(&resource.id, &path, findings);
        if let Some(first) = seen.get(resource.id.as_str()) {
            let hint = Some(format!("the first is {}", element("spec.resources", *first)));
            findings.hinted(&path, format!("found duplicate resource IDs {}", resource.id), hint);
        } else {
            seen.insert(&resource.id, index);
        }
    }
    for (index, resource) in spec.resources.iter().enumerate() {
        let path = format!("{}.forEach", element("spec.resources", index));
        let names: Vec<&str> = resource.for_each.iter().flat_map(|dimension| dimension.keys().map(String::as_str)).collect();
        iterators(&resource.id, &names, &path, &seen, options, findings);
    }
}

/// As API servers take it of a CRD.
fn group(group: &str, findings: &mut Findings<'_>) {
    if !(is_subdomain(group) && group.contains('.')) {
        let message = format!("group {group:?} is not valid: it must be a DNS subdomain with a dot");
        findings.error("spec.schema.group", message);
    }
}

/// What API servers refuse of a printer column only when the CRD is written.
fn columns(columns: &[Value], findings: &mut Findings<'_>) {
    for (index, column) in columns.iter().enumerate() {
        let path = element("spec.schema.additionalPrinterColumns", index);
        for (field, known) in [("type", &COLUMN_TYPES[..]), ("format", &COLUMN_FORMATS[..])] {
            let is_unset = |text: &str| field == "format" && text.is_empty();
            let Some(text) = column[field].as_str().filter(|text| !known.contains(text) && !is_unset(text)) else { continue };
            let hint = findings.near(text, known.iter().copied());
            let message = format!("unsupported {field} {text:?} of a printer column: supported are {}", known.join(", "));
            findings.hinted(format!("{path}.{field}"), message, hint);
        }
        if let Some(json_path) = column["jsonPath"].as_str().filter(|json_path| !json_path.starts_with('.')) {
            let hint = Some("as in .spec.name".to_owned());
            let message = format!("jsonPath {json_path:?} of a printer column must begin with a dot");
            findings.hinted(format!("{path}.jsonPath"), message, hint);
        }
    }
}

fn id(id: &str, path: &str, findings: &mut Findings<'_>) {
    if is_reserved(id) {
        findings.error(path, format!("naming convention violation: id {id} is a reserved keyword in KRO"));
    } else if !is_name(id, u8::is_ascii_lowercase) {
        findings
            .error(path, format!("naming convention violation: id {id} is not a valid KRO resource id: must be lower camelCase"));
    }
}

fn iterators(id: &str, names: &[&str], path: &str, ids: &BTreeMap<&str, usize>, options: &Options, findings: &mut Findings<'_>) {
    let most = options.max_dimensions;
    if names.len() > most {
        findings.error(path, format!("resource {id:?}: forEach cannot have more than {most} dimensions, got {}", names.len()));
    }
    for (index, name) in names.iter().enumerate() {
        let fault = if is_reserved(name) {
            format!("iterator name {name:?} is a reserved keyword")
        } else if !is_name(name, u8::is_ascii_lowercase) {
            format!("iterator name {name:?} is not valid: must be lowerCamelCase")
        } else if ids.contains_key(name) {
            format!("iterator name {name:?} conflicts with resource ID")
        } else if names[..index].contains(name) {
            format!("duplicate forEach iterator name {name:?}")
        } else {
            continue;
        };
        findings.error(element(path, index), format!("resource {id:?}: forEach {fault}"));
    }
}

fn is_reserved(name: &str) -> bool {
    cel::RESERVED.contains(&name) || RESERVED.contains(&name)
}

fn is_name(name: &str, first: fn(&u8) -> bool) -> bool {
    name.as_bytes().first().is_some_and(first) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
