//! What no write changes: kind, name, namespace and UID of an object, and when it was made.

use plinth_api::Object;
use serde_json::{Value, json};

use super::{
    kinds::Served,
    problem::{FieldFault, Problem},
};

/// Takes over from the stored object what a writer may leave out or say otherwise without being refused.
pub(super) fn keep(object: &mut Object, old: &Object) {
    for name in [
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "name",
        "namespace",
    ] {
        match old.at(&["metadata", name]) {
            Some(value) => drop(object.metadata_mut().insert(name.to_owned(), value.clone())),
            None => drop(object.metadata_mut().remove(name)),
        }
    }
}

/// What an object says otherwise than the stored one, and nobody may say. Looked at before it is taken over.
pub(super) fn changed(object: &Object, old: &Object) -> Vec<FieldFault> {
    let changed = |name: &&str| {
        let wanted = object.at(&["metadata", name]).filter(|value| !value.is_null() && *value != "");
        let stored = old.at(&["metadata", name]);
        // Times of deletion that are there stay, whatever is said.
        let kept = *name == "deletionTimestamp" && stored.is_some();
        wanted.filter(|wanted| Some(*wanted) != stored && !kept).map(|wanted| FieldFault {
            reason: "FieldValueInvalid",
            field: format!("metadata.{name}"),
            message: format!("Invalid value: {wanted}: field is immutable"),
        })
    };
    ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"].iter().filter_map(changed).collect()
}

/// Whether the name is the one in the URL.
pub(super) fn same_name(object: &Object, name: &str) -> Result<(), Problem> {
    if object.name() == name {
        return Ok(());
    }
    if object.name().is_empty() {
        return Err(no_name(name));
    }
    Err(Problem::bad_request(format!("the name of the object ({}) does not match the name on the URL ({name})", object.name())))
}

fn no_name(name: &str) -> Problem {
    Problem::bad_request(format!("the name of the object ({name} based on URL) was undeterminable: name must be provided"))
}

/// Whether the namespace is the one in the URL; an object may leave it out.
pub(super) fn same_namespace(object: &Object, namespace: &str) -> Result<(), Problem> {
    if object.namespace().is_none_or(|own| own.is_empty() || own == namespace) {
        return Ok(());
    }
    Err(Problem::bad_request("the namespace of the provided object does not match the namespace sent on the request"))
}

/// Whether a patched object is still of its kind. Of built-in kinds the patch may take the kind away, which the path says.
pub(super) fn still_of_kind(object: &mut Object, name: &str, served: &Served) -> Result<(), Problem> {
    let text = |field: &str| object.0.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (wanted, wanted_kind) = (served.api_version(), &served.kind);
    if api_version == wanted && kind == *wanted_kind {
        return Ok(());
    }
    if served.builtin {
        return match (api_version.is_empty(), kind.is_empty()) {
            (true, _) => Err(no_name(name)),
            (false, true) if api_version == wanted => {
                object.0.insert("kind".to_owned(), json!(wanted_kind));
                Ok(())
            }
            _ => Err(unpatchable(object, &format!("no kind {kind:?} is registered for version {api_version:?}"))),
        };
    }
    if kind.is_empty() {
        let text = object.as_value();
        return Err(unpatchable(object, &format!("Object 'Kind' is missing in '{text}'")));
    }
    if api_version.is_empty() {
        let why = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
        return Err(Problem::internal(why));
    }
    let (field, got, must) =
        if kind == *wanted_kind { ("apiVersion", &api_version, &wanted) } else { ("kind", &kind, wanted_kind) };
    let message = format!("Invalid value: {got:?}: must be {must}");
    let fault = FieldFault { reason: "FieldValueInvalid", field: field.to_owned(), message };
    Err(Problem::invalid(&served.group, &kind, name, &[fault]))
}

/// Whether an applied configuration is of the kind and version that the path says.
pub(super) fn applies_to(config: &Object, served: &Served) -> Result<(), Problem> {
    let text = |field: &str| config.0.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let wanted = served.api_version();
    if api_version != wanted {
        let why =
            format!("Incorrect version specified in apply patch. Specified patch version: {api_version}, expected: {wanted}");
        return Err(Problem::bad_request(why));
    }
    if *kind != served.kind {
        let (group, version) = (&served.group, &served.version);
        return Err(Problem::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")));
    }
    Ok(())
}

fn unpatchable(object: &Object, why: &str) -> Problem {
    let text = object.as_value().to_string();
    let message = format!("Invalid value: {text:?}: {why}");
    Problem::invalid("", "", "", &[FieldFault { reason: "FieldValueInvalid", field: "patch".to_owned(), message }])
}
