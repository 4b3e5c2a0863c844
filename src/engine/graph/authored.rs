//! `schema.status.conditions`: conditions that the author of a definition states (kro.md 15.3).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    check::{Types, no_omit, typed},
    draft::standalone,
    edges::Names,
    findings::Findings,
    node::Condition,
};
use crate::{
    cel::{ConditionUse, Type},
    yaml::element,
};

const ROOT: &str = "spec.schema.status.conditions";
/// Conditions that can be read with `runtime.condition(schema, …)`.
pub(crate) const BUILT_IN: [&str; 4] = ["InstanceManaged", "GraphResolved", "ResourcesReady", "Ready"];

/// The types of conditions that an expression states literally.
pub(crate) fn types_of(condition: &Condition) -> Vec<&str> {
    let mut kinds = Vec::new();
    for used in &condition.expression.references().conditions {
        if let ConditionUse::Made { kind: Some(kind), .. } = used {
            kinds.push(kind.as_str());
        }
    }
    kinds
}

/// Compiles the block, if there is one.
pub(super) fn compile(block: Option<&Value>, names: &Names<'_>, types: &Types, findings: &mut Findings<'_>) -> Vec<Condition> {
    let list = match block {
        None => return Vec::new(),
        Some(Value::Array(list)) => list,
        Some(other) => {
            findings.error(ROOT, format!("status.conditions must be a list, got {}", go_type(other)));
            return Vec::new();
        }
    };
    let entries = list.iter().enumerate().filter_map(|(index, entry)| entry_of(index, entry, names, types, findings));
    let conditions: Vec<(usize, Condition)> = entries.collect();
    literal_rules(&conditions, findings);
    conditions.into_iter().map(|(_, condition)| condition).collect()
}

fn entry_of(
    index: usize,
    entry: &Value,
    names: &Names<'_>,
    types: &Types,
    findings: &mut Findings<'_>,
) -> Option<(usize, Condition)> {
    let path = element(ROOT, index);
    let Some(source) = entry.as_str() else {
        findings.error(path, format!("status.conditions[{index}] must be a CEL expression string, got {}", go_type(entry)));
        return None;
    };
    let (text, expression) = standalone(source, &path, findings)?;
    let before = findings.count();
    names.check(&path, &text, &expression, &["runtime"], findings);
    no_omit(&path, &text, &expression, findings);
    let mut scope = types.scope();
    scope.set("runtime", Type::Opaque("kro.run.Runtime".into()));
    let of = typed(&path, &text, &expression, &scope, findings);
    if let Some(of) = of.filter(|of| findings.count() == before && !is_condition(of)) {
        let message = format!("condition expressions must return runtime.newCondition(...) or a list of them, got \"{of}\"");
        findings.expression(&path, &text, 0, message, None);
    }
    Some((index, Condition { index, text, expression }))
}

/// Go's name of the type that a value has when it was read from YAML.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Whether a value of this type is a condition, or a list of them.
fn is_condition(of: &Type) -> bool {
    let is_one = |of: &Type| match of {
        Type::Dyn => true,
        Type::Struct(structure) => structure.name == "kro.run.Condition",
        _ => false,
    };
    if let Type::List(element) = of { is_one(element) } else { is_one(of) }
}

fn literal_rules(conditions: &[(usize, Condition)], findings: &mut Findings<'_>) {
    let mut declared: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, condition) in conditions {
        for kind in types_of(condition) {
            if declared.insert(kind, *index).is_some_and(|other| other != *index) {
                let message = format!("condition type {kind:?} is declared by more than one conditions entry");
                findings.expression(&element(ROOT, *index), &condition.text, 0, message, None);
            }
        }
    }
    for (index, condition) in conditions {
        let (path, source) = (element(ROOT, *index), condition.expression.source());
        let wrong = condition.expression.references().conditions.iter().filter_map(|used| fault(used, &declared));
        for fault in wrong {
            findings.expression(&path, &condition.text, 0, format!("{fault} in expression {source:?}"), None);
        }
    }
}

/// What is wrong with one use; `declared` are the types that the definition's own conditions have.
fn fault(used: &ConditionUse, declared: &BTreeMap<&str, usize>) -> Option<String> {
    match used {
        ConditionUse::Made { status: Some(status), .. } if !["True", "False", "Unknown"].contains(&status.as_str()) => {
            Some(format!("runtime.newCondition: status must be one of True, False, Unknown (got {status:?})"))
        }
        ConditionUse::Made { kind: Some(kind), .. } if kind.is_empty() => {
            Some("runtime.newCondition: type must not be empty".to_owned())
        }
        ConditionUse::Read { kind } if !BUILT_IN.contains(&kind.as_str()) => {
            let why = if declared.contains_key(kind.as_str()) {
                "custom conditions cannot reference each other"
            } else {
                "unknown condition type; only kro's built-in types (InstanceManaged, GraphResolved, ResourcesReady, Ready) can be read from schema"
            };
            Some(format!("runtime.condition(schema, {kind:?}): {why}"))
        }
        _ => None,
    }
}
