//! Conditions that the author of the definition states: they replace kro's own (kro.md 15.3).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    observation::Observation,
    status::{since, stamp},
    values::{Trouble, Values},
};
use crate::{
    cel::Evaluated,
    graph::{Graph, authored_types},
};

/// The author's conditions.
pub(super) struct Authored {
    pub(super) list: Vec<Value>,
    /// Whether an expression failed, or a type was stated twice.
    pub(super) faulty: bool,
}

/// Evaluates the author's conditions; `built_in` is what `runtime.condition(schema, …)` reads.
pub(super) fn conditions(graph: &Graph, seen: &Observation, values: &Values, built_in: &[Value]) -> Authored {
    let values = values.with("runtime", json!({"status": {"conditions": built_in}}), None);
    let before = seen.instance.at(&["status", "conditions"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let (mut found, mut faulty) = (Vec::new(), false);
    for condition in &graph.conditions {
        match values.evaluate(&condition.expression) {
            Ok(Evaluated::Value(Value::Array(list))) => found.extend(list.iter().map(|given| stated(seen, &before, given))),
            Ok(Evaluated::Value(given)) => found.push(stated(seen, &before, &given)),
            Ok(Evaluated::Omit) => {}
            // What is not known yet stays as it was.
            Err(Trouble::Pending { .. } | Trouble::Absent(_)) => {
                let types = authored_types(condition);
                found.extend(before.iter().filter(|old| old["type"].as_str().is_some_and(|kind| types.contains(&kind))).cloned());
            }
            Err(Trouble::Failed(_)) => faulty = true,
        }
    }
    let (mut once, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for condition in &found {
        let kind = condition["type"].to_string();
        if !once.insert(kind.clone()) {
            twice.insert(kind);
        }
    }
    found.retain(|condition| !twice.contains(&condition["type"].to_string()));
    Authored { list: found, faulty: faulty || !twice.is_empty() }
}

fn stated(seen: &Observation, before: &[Value], given: &Value) -> Value {
    let text = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default();
    let (kind, status) = (text("type"), text("status"));
    let mut condition = Map::new();
    for name in ["type", "status", "reason", "message"] {
        if !text(name).is_empty() {
            condition.insert(name.to_owned(), json!(text(name)));
        }
    }
    condition
        .insert("lastTransitionTime".to_owned(), json!(since(before, kind, status).map_or_else(|| stamp(seen), str::to_owned)));
    condition.insert("observedGeneration".to_owned(), json!(seen.instance.generation()));
    Value::Object(condition)
}
