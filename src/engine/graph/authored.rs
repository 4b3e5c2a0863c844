//! `schema.status.conditions`: conditions that the author of a definition states (kro.md 15.3).

use std::{collections::BTreeMap, sync::LazyLock};

use regex::Regex;
use serde_json::Value;

use super::{
    check::{Types, typed},
    draft::standalone,
    edges::Names,
    findings::Findings,
    node::Condition,
};
use crate::{cel::Type, yaml::element};

const ROOT: &str = "spec.schema.status.conditions";
/// Conditions that can be read with `runtime.condition(schema, …)`.
pub(crate) const BUILT_IN: [&str; 4] = ["InstanceManaged", "GraphResolved", "ResourcesReady", "Ready"];
/// The bare words that are keys in `runtime.newCondition({…})`.
const KEYS: [&str; 4] = ["type", "status", "reason", "message"];

static TYPE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"[{,]\s*type\s*:\s*(?:'([^']*)'|"([^"]*)")\s*[,}]"#));
static STATUS: LazyLock<Regex> = LazyLock::new(|| pattern(r#"[{,]\s*status\s*:\s*(?:'([^']*)'|"([^"]*)")\s*[,}]"#));
static READ: LazyLock<Regex> = LazyLock::new(|| pattern(r#"runtime\.condition\(\s*schema\s*,\s*(?:'([^']*)'|"([^"]*)")"#));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is ours")
}

/// Text that a pattern finds in an expression. Where a text is computed nothing is found; then only the run can tell.
fn literals<'e>(pattern: &Regex, source: &'e str) -> Vec<&'e str> {
    let found = pattern.captures_iter(source);
    found.filter_map(|found| found.get(1).or(found.get(2))).map(|found| found.as_str()).collect()
}

/// The types of conditions that an expression states literally.
pub(crate) fn types_of(condition: &Condition) -> Vec<&str> {
    literals(&TYPE, condition.expression.source())
}

/// Compiles the block, if there is one.
pub(super) fn compile(block: Option<&Value>, names: &Names<'_>, types: &Types, findings: &mut Findings<'_>) -> Vec<Condition> {
    let list = match block {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(list)) => list,
        Some(other) => {
            let got = match other {
                Value::Object(_) => "map[string]interface {}",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "float64",
            };
            findings.error(ROOT, format!("status.conditions must be a list, got {got}"));
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
        findings.error(path, format!("status.conditions[{index}] must be a CEL expression string, got {entry}"));
        return None;
    };
    let (text, expression) = standalone(source, &path, findings)?;
    let known: Vec<&str> = KEYS.into_iter().chain(["runtime"]).collect();
    let before = findings.count();
    names.check(&path, &text, &expression, &known, findings);
    let mut scope = types.scope();
    scope.set("runtime", Type::Opaque("kro.run.Runtime".into()));
    let of = typed(&path, &text, &expression, &scope, findings);
    if let Some(of) = of.filter(|of| findings.count() == before && !is_condition(of)) {
        let message = format!("condition expressions must return runtime.newCondition(...) or a list of them, got \"{of}\"");
        findings.expression(&path, &text, 0, message, None);
    }
    Some((index, Condition { index, text, expression }))
}

fn is_condition(of: &Type) -> bool {
    match of {
        Type::Dyn => true,
        Type::List(element) => is_condition(element),
        Type::Struct(structure) => structure.name == "kro.run.Condition",
        _ => false,
    }
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
        for status in literals(&STATUS, source).iter().filter(|status| !["True", "False", "Unknown"].contains(*status)) {
            let message = format!(
                "runtime.newCondition: status must be one of True, False, Unknown (got {status:?}) in expression {source:?}"
            );
            findings.expression(&path, &condition.text, 0, message, None);
        }
        for read in literals(&READ, source).iter().filter(|read| !BUILT_IN.contains(*read)) {
            let why = if declared.contains_key(read) {
                "custom conditions cannot reference each other"
            } else {
                "unknown condition type; only kro's built-in types (InstanceManaged, GraphResolved, ResourcesReady, Ready) can be read from schema"
            };
            let message = format!("runtime.condition(schema, {read:?}): {why} in expression {source:?}");
            findings.expression(&path, &condition.text, 0, message, None);
        }
    }
}
