//! Judging by conditions, as kstatus does: abnormal ones first, then the one that sums up.

use plinth_api::{Object, permission};
use serde_json::Value;

use super::verdict::{Health, Verdict};

/// A condition as it stands in an object; absent parts are empty.
pub(super) struct Seen<'a> {
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    pub(super) observed_generation: Option<i64>,
}

/// One condition of an object.
pub(super) fn find<'a>(object: &'a Object, kind: &str) -> Option<Seen<'a>> {
    let list = object.at(&["status", "conditions"])?.as_array()?;
    let found = list.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))?;
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
    let observed_generation = found.get("observedGeneration").and_then(Value::as_i64);
    Some(Seen { status: text("status"), reason: text("reason"), message: text("message"), observed_generation })
}

/// Judges by the conditions that controllers agree on; `None` where there is none of them.
pub(super) fn judge(object: &Object) -> Option<Verdict> {
    // Somebody has to grant them; whoever waits for that is not failing.
    for (kind, health) in
        [(permission::MISSING, Health::Waiting), ("Stalled", Health::Failed), ("Reconciling", Health::InProgress)]
    {
        if let Some(seen) = find(object, kind).filter(|seen| seen.status == "True") {
            let reason = if kind == permission::MISSING { kind } else { seen.reason };
            return Some(Seen { reason, ..seen }.verdict(health, kind));
        }
    }
    let summary = ["Ready", "Available", "Healthy"];
    let (kind, seen) = summary.iter().find_map(|kind| Some((*kind, find(object, kind)?)))?;
    if seen.observed_generation.is_some_and(|observed| observed < object.generation()) {
        return Some(Verdict::new(Health::InProgress, "Stale", format!("condition {kind} is about an earlier generation")));
    }
    match seen.status {
        "True" => Some(seen.verdict(Health::Current, kind)),
        // A kind that is not served yet is a state of the plan, not an error.
        _ if seen.reason == "Deferred" => Some(seen.verdict(Health::Waiting, kind)),
        _ => Some(seen.verdict(Health::InProgress, &format!("Not{kind}"))),
    }
}

/// The message of a Ready condition that is not True.
pub(super) fn why_not_ready(object: &Object) -> Option<String> {
    let seen = find(object, "Ready").filter(|seen| seen.status != "True" && !seen.message.is_empty())?;
    Some(seen.message.to_owned())
}

impl Seen<'_> {
    /// A verdict in the condition's own words.
    pub(super) fn verdict(&self, health: Health, fallback: &str) -> Verdict {
        let reason = if self.reason.is_empty() { fallback } else { self.reason };
        Verdict { observed_generation: self.observed_generation, ..Verdict::new(health, reason, self.message) }
    }
}
