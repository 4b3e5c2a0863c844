//! External references: their schema, and the rules on selectors (kro.md section 11).

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::{
    Diagnostic,
    cel::Type,
    naming::{label_key_fault, label_value_fault},
    schema::{Schema, Segment},
    template::{Text, Walked, path_text, walk as walk_by, walk_open},
    yaml::element,
};

static REFERENCE: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(reference()));

fn reference() -> Schema {
    let text = || Schema::of_type("string");
    let requirement = Schema::object([
        ("key".to_owned(), text()),
        ("operator".to_owned(), text()),
        ("values".to_owned(), Schema::array(text())),
    ]);
    let selector = Schema::object([
        ("matchLabels".to_owned(), Schema::map(text())),
        ("matchExpressions".to_owned(), Schema::array(requirement)),
    ]);
    let metadata = Schema::object([
        ("name".to_owned(), Schema::any()),
        ("namespace".to_owned(), Schema::any()),
        ("selector".to_owned(), selector),
    ]);
    Schema::object([("apiVersion".to_owned(), text()), ("kind".to_owned(), text()), ("metadata".to_owned(), metadata)])
}

/// Walks an external reference.
pub(super) fn walk(object: &Value, id: &str) -> Walked {
    let selector = object.pointer("/metadata/selector").filter(|selector| !selector.is_null());
    if let Some(fault) = selector.and_then(misshapen) {
        let mut walked = walk_open(object);
        let message = format!("invalid external ref metadata for resource {id}: {fault}");
        walked.findings.push(Diagnostic::error("metadata.selector", message));
        return walked;
    }
    let mut walked = walk_by(object, &REFERENCE);
    walked.findings.extend(selector.map(|selector| literal(selector, id)).unwrap_or_default());
    walked
}

fn misshapen(selector: &Value) -> Option<&'static str> {
    const SHAPE: &str = "selector must be a Kubernetes LabelSelector object or a CEL expression that resolves to one";
    let fits = match selector {
        Value::Object(_) => true,
        Value::String(text) => Text::read(text).is_ok_and(|text| text.is_some_and(|text| text.standalone)),
        _ => false,
    };
    (!fits).then_some(SHAPE)
}

/// A selector as Kubernetes checks it at admission; parts that are expressions are checked when they are known.
fn literal(selector: &Value, id: &str) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        let at = "metadata.selector.matchLabels".to_owned();
        faults.extend(label_key_fault(key).map(|why| (at.clone(), invalid(key, &why))));
        faults.extend(value.as_str().and_then(wrong_value).map(|why| (at, why)));
    }
    let list = selector.get("matchExpressions").and_then(Value::as_array);
    for (index, requirement) in list.into_iter().flatten().enumerate() {
        let at = |part: &str| format!("metadata.selector.matchExpressions[{index}].{part}");
        faults.extend(fault(requirement).map(|(part, why)| (at(part), why)));
        let key = key_of(requirement).filter(|key| !is_computed(key));
        faults.extend(key.and_then(|key| Some((at("key"), invalid(key, &label_key_fault(key)?)))));
        let values = requirement.get("values").and_then(Value::as_array).into_iter().flatten().enumerate();
        faults.extend(values.filter_map(|(index, value)| Some((element(&at("values"), index), wrong_value(value.as_str()?)?))));
    }
    let said = |(path, why): (String, String)| {
        let message = format!("invalid external ref metadata for resource {id}: invalid label selector: [{path}: {why}]");
        Diagnostic::error(path, message)
    };
    faults.into_iter().map(said).collect()
}

/// The key of a requirement; one that is not there is an empty one.
fn key_of(requirement: &Value) -> Option<&str> {
    match requirement.as_object()?.get("key") {
        None | Some(Value::Null) => Some(""),
        Some(key) => key.as_str(),
    }
}

fn wrong_value(value: &str) -> Option<String> {
    label_value_fault(value).filter(|_| !is_computed(value)).map(|why| invalid(value, why))
}

/// Whether a text is only known when its expressions are.
fn is_computed(text: &str) -> bool {
    !matches!(Text::read(text), Ok(None))
}

fn invalid(value: &str, why: &str) -> String {
    format!("Invalid value: {value:?}: {why}")
}

/// What is wrong with one requirement: the part and the fault.
pub(crate) fn fault(requirement: &Value) -> Option<(&'static str, String)> {
    let operator = requirement.get("operator").and_then(Value::as_str).unwrap_or_default();
    if requirement.as_str().is_some_and(is_computed) || is_computed(operator) {
        return None;
    }
    let count = requirement.get("values").and_then(Value::as_array).map_or(0, Vec::len);
    let open = requirement.get("values").is_some_and(Value::is_string);
    match operator {
        "In" | "NotIn" if count == 0 && !open => {
            Some(("values", "Required value: must be specified when `operator` is 'In' or 'NotIn'".to_owned()))
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            Some(("values", "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'".to_owned()))
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => None,
        other => Some(("operator", format!("Invalid value: {other:?}: not a valid selector operator"))),
    }
}

/// The type that kro asks of an expression in an external reference.
pub(super) fn expected(path: &[Segment]) -> Type {
    let path = path_text(path);
    match path.strip_prefix("metadata.selector") {
        Some("") => Type::map(Type::Dyn),
        Some(".matchLabels") => Type::map(Type::String),
        Some(".matchExpressions") => Type::list(Type::Dyn),
        Some(rest) if rest.starts_with(".matchLabels") => Type::String,
        None if path == "metadata.name" || path == "metadata.namespace" => Type::String,
        // kro looks at the parts of a requirement when they are known.
        _ => Type::Dyn,
    }
}
