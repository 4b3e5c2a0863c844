//! Options of requests: what the query of each verb may say (Kubernetes: `apimachinery`, validation of `CreateOptions`,
//! `UpdateOptions`, `PatchOptions`, `DeleteOptions` and `ListOptions`).

use serde_json::{Value, json};

use super::{
    patch::Form,
    problem::{FieldFault, Problem},
    route::QueryText,
    state::{Ask, Call},
};

/// Longest name of a field manager, in bytes.
const MAX_MANAGER: usize = 128;

/// Refuses options that a verb does not have. Those of a deletion may be in its body, and are checked there.
pub(super) fn check(call: &Call, verb: &str) -> Result<(), Problem> {
    let query = &call.query;
    let (kind, faults) = match verb {
        "create" => ("CreateOptions", written(query)),
        "update" => ("UpdateOptions", written(query)),
        "patch" => ("PatchOptions", patched(call)),
        "get" => return version(query),
        "list" | "watch" | "deletecollection" => {
            numbers(query, &["limit", "timeoutSeconds"])?;
            ("ListOptions", if verb == "watch" { watched(query) } else { listed(query) })
        }
        _ => return Ok(()),
    };
    refuse(kind, &faults)?;
    if verb == "list" { list_version(query) } else { Ok(()) }
}

/// The options of a deletion: those of the body, or of the query where there is no body.
pub(super) fn of_deletion(ask: &Ask<'_>) -> Result<Value, Problem> {
    let query = &ask.call.query;
    let options = if ask.call.body.is_empty() {
        numbers(query, &["gracePeriodSeconds"])?;
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        let orphan = query.get("orphanDependents").map(|_| query.is("orphanDependents"));
        json!({"propagationPolicy": query.some("propagationPolicy"), "dryRun": dry_run, "orphanDependents": orphan})
    } else {
        of_body(ask.json()?)?
    };
    let policy = &options["propagationPolicy"];
    let mut faults = Vec::new();
    if policy.is_string() && options["orphanDependents"].is_boolean() {
        let message = format!("Invalid value: {policy}: orphanDependents and deletionPropagation cannot be both set");
        faults.push(fault("FieldValueInvalid", "propagationPolicy", message));
    }
    if policy.as_str().is_some_and(|policy| !["Foreground", "Background", "Orphan"].contains(&policy)) {
        let supported = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
        faults.push(fault("FieldValueNotSupported", "propagationPolicy", format!("Unsupported value: {policy}: {supported}")));
    }
    let dry_run = options["dryRun"].as_array().map(Vec::as_slice).unwrap_or_default();
    faults.extend(dry_run_fault(&dry_run.iter().map(|value| value.as_str().unwrap_or_default()).collect::<Vec<_>>()));
    refuse("DeleteOptions", &faults)?;
    Ok(options)
}

/// A body that is read as options; the API server's own reader fails at another kind or type with an error of its own.
fn of_body(body: Value) -> Result<Value, Problem> {
    let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
    if kind != "DeleteOptions" {
        return Err(Problem::unmergeable(format!("{kind} is no DeleteOptions")));
    }
    let fits = |name: &str, is: fn(&Value) -> bool| body[name].is_null() || is(&body[name]);
    let typed = fits("dryRun", Value::is_array)
        && fits("orphanDependents", Value::is_boolean)
        && fits("propagationPolicy", Value::is_string)
        && fits("gracePeriodSeconds", Value::is_i64)
        && fits("preconditions", Value::is_object);
    if typed {
        Ok(body)
    } else {
        Err(Problem::unmergeable("json: cannot unmarshal the body into Go value of type v1.DeleteOptions"))
    }
}

fn refuse(kind: &str, faults: &[FieldFault]) -> Result<(), Problem> {
    if faults.is_empty() { Ok(()) } else { Err(Problem::invalid("meta.k8s.io", kind, "", faults)) }
}

fn fault(reason: &'static str, field: &str, message: impl Into<String>) -> FieldFault {
    FieldFault { reason, field: field.to_owned(), message: message.into() }
}

/// The options that all writes have.
fn written(query: &QueryText) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    let manager = query.get("fieldManager").unwrap_or_default();
    if manager.len() > MAX_MANAGER {
        let message = format!("Too long: may not be more than {MAX_MANAGER} bytes");
        faults.push(fault("FieldValueTooLong", "fieldManager", message));
    }
    for (at, letter) in manager.char_indices().filter(|(_, letter)| letter.is_control()) {
        let (code, shown) = (u32::from(letter), manager.escape_debug().to_string().replace("\\u{1}", "\\x01"));
        let message = format!("Invalid value: \"{shown}\": invalid character U+{code:04X} (at position {at})");
        faults.push(fault("FieldValueInvalid", "fieldManager", message));
    }
    faults.extend(dry_run_fault(&query.all("dryRun").collect::<Vec<_>>()));
    let validation = query.get("fieldValidation").unwrap_or_default();
    if !["", "Ignore", "Strict", "Warn"].contains(&validation) {
        let message = format!("Unsupported value: {validation:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
        faults.push(fault("FieldValueNotSupported", "fieldValidation", message));
    }
    faults
}

/// A dry run that is misspelt must not write.
fn dry_run_fault(values: &[&str]) -> Option<FieldFault> {
    let wrong = values.iter().any(|value| *value != "All");
    wrong.then(|| {
        let message = format!("Unsupported value: {}: supported values: \"All\"", json!(values));
        fault("FieldValueNotSupported", "dryRun", message)
    })
}

fn patched(call: &Call) -> Vec<FieldFault> {
    let query = &call.query;
    let mut faults = Vec::new();
    match Form::of(&call.content_type) {
        Some(Form::Apply) if query.some("fieldManager").is_none() => {
            faults.push(fault("FieldValueRequired", "fieldManager", "Required value: is required for apply patch"));
        }
        Some(Form::Json | Form::Merge) if query.get("force").is_some() => {
            faults.push(fault("FieldValueForbidden", "force", "Forbidden: may not be specified for non-apply patch"));
        }
        _ => {}
    }
    faults.extend(written(query));
    faults
}

const MATCH: &str = "resourceVersionMatch";

fn forbidden(field: &str, why: &str) -> FieldFault {
    fault("FieldValueForbidden", field, format!("Forbidden: {why}"))
}

fn listed(query: &QueryText) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    if let Some(wanted) = query.some(MATCH) {
        if query.some("resourceVersion").is_none() {
            faults.push(forbidden(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
        }
        if query.some("continue").is_some() {
            faults.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if !["Exact", "NotOlderThan"].contains(&wanted) {
            let message = format!("Unsupported value: {wanted:?}: supported values: \"Exact\", \"NotOlderThan\", \"\"");
            faults.push(fault("FieldValueNotSupported", MATCH, message));
        }
        if wanted == "Exact" && query.some("resourceVersion") == Some("0") {
            faults.push(forbidden(MATCH, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
        }
    }
    if query.get("sendInitialEvents").is_some() {
        faults.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    faults
}

fn watched(query: &QueryText) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    let wanted = query.some(MATCH);
    let initial = query.get("sendInitialEvents").is_some();
    if initial && wanted != Some("NotOlderThan") {
        faults.push(forbidden(MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
    }
    let Some(wanted) = wanted else { return faults };
    if !initial {
        faults.push(forbidden(MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
    }
    if wanted != "NotOlderThan" {
        let message = format!("Unsupported value: {wanted:?}: supported values: \"NotOlderThan\"");
        faults.push(fault("FieldValueNotSupported", MATCH, message));
    }
    if query.some("continue").is_some() {
        faults.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
    }
    faults
}

fn numbers(query: &QueryText, names: &[&str]) -> Result<(), Problem> {
    let wrong = names.iter().filter_map(|name| query.some(name)).find(|text| text.parse::<i64>().is_err());
    match wrong {
        Some(text) => Err(Problem::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))),
        None => Ok(()),
    }
}

/// What is wrong with the version that a request asks for.
fn version_fault(query: &QueryText) -> Option<String> {
    let text = query.some("resourceVersion").filter(|text| text.parse::<u64>().is_err())?;
    Some(bad_version(text))
}

/// What is said about a version that is no number.
pub(super) fn bad_version(text: &str) -> String {
    format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
}

/// Reading an object or watching finds a bad version late, and says so as an internal error.
fn version(query: &QueryText) -> Result<(), Problem> {
    version_fault(query).map_or(Ok(()), |fault| Err(Problem::unmergeable(fault)))
}

fn list_version(query: &QueryText) -> Result<(), Problem> {
    if query.some("continue").is_some() {
        return Ok(());
    }
    version_fault(query).map_or(Ok(()), |fault| Err(Problem::bad_request(format!("invalid resource version: {fault}"))))
}
