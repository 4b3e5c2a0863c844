//! Conditions as Kubernetes' own controllers write them.

use serde_json::{Map, Value, json};

/// What a condition says.
pub(super) struct Said<'a> {
    pub(super) kind: &'a str,
    pub(super) holds: bool,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

/// The conditions of a status with these in them; a time moves only where what it is about moves. `updated` for kinds whose
/// conditions have a `lastUpdateTime`.
pub(super) fn with(old: &Value, said: &[Said<'_>], now: &str, updated: bool) -> Value {
    let mut list: Vec<Value> = old["conditions"].as_array().cloned().unwrap_or_default();
    for said in said {
        let known = list.iter().position(|condition| condition["type"] == said.kind);
        let before = known.map(|at| list[at].clone()).unwrap_or_default();
        let next = one(said, &before, now, updated);
        match known {
            Some(at) => list[at] = next,
            None => list.push(next),
        }
    }
    Value::Array(list)
}

fn one(said: &Said<'_>, before: &Value, now: &str, updated: bool) -> Value {
    let status = if said.holds { "True" } else { "False" };
    let kept = |field: &str, same: bool| before[field].as_str().filter(|_| same).unwrap_or(now).to_owned();
    let same_status = before["status"] == status;
    let mut condition = Map::new();
    condition.insert("type".to_owned(), json!(said.kind));
    condition.insert("status".to_owned(), json!(status));
    if updated {
        let same = same_status && before["reason"] == said.reason && before["message"] == said.message;
        condition.insert("lastUpdateTime".to_owned(), json!(kept("lastUpdateTime", same)));
    }
    condition.insert("lastTransitionTime".to_owned(), json!(kept("lastTransitionTime", same_status)));
    for (field, text) in [("reason", said.reason), ("message", said.message)] {
        if !text.is_empty() {
            condition.insert(field.to_owned(), json!(text));
        }
    }
    Value::Object(condition)
}

/// One condition of a status.
pub(super) fn find<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Whether a condition is True.
pub(super) fn holds(status: &Value, kind: &str) -> bool {
    find(status, kind).is_some_and(|condition| condition["status"] == "True")
}

/// A status whose counts of zero are left out, as their types in Kubernetes say.
pub(super) fn counts(counts: &[(&str, usize)]) -> Map<String, Value> {
    counts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| ((*name).to_owned(), json!(count))).collect()
}
