//! External references: their schema, and the rules on selectors (kro.md section 11).

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::{
    Diagnostic,
    cel::Type,
    schema::{Schema, Segment},
    template::{Text, Walked, path_text, walk as walk_by, walk_open},
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
    walked.findings.extend(selector.map(|selector| requirements(selector, id)).unwrap_or_default());
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

/// Requirements as Kubernetes checks them at admission; parts that are expressions are checked when they are known.
fn requirements(selector: &Value, id: &str) -> Vec<Diagnostic> {
    let list = selector.get("matchExpressions").and_then(Value::as_array);
    let mut findings = Vec::new();
    for (index, requirement) in list.into_iter().flatten().enumerate() {
        let path = format!("metadata.selector.matchExpressions[{index}]");
        if let Some((part, fault)) = fault(requirement) {
            let message =
                format!("invalid external ref metadata for resource {id}: invalid label selector: [{path}.{part}: {fault}]");
            findings.push(Diagnostic::error(path, message));
        }
    }
    findings
}

/// What is wrong with one requirement: the part and the fault.
pub(crate) fn fault(requirement: &Value) -> Option<(&'static str, String)> {
    let operator = requirement.get("operator").and_then(Value::as_str).unwrap_or_default();
    if operator.contains("${") {
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
