//! What a person asks first about an object.

use jiff::{SignedDuration, Timestamp};
use plinth_api::Object;
use plinth_engine::health::judge;
use serde_json::Value;

use super::masked;
use crate::{duration, health, present::one_line};

/// Name, labels, owner, verdict and conditions, one a line. `now` is what ages are counted to.
pub fn describe(object: &Object, now: Timestamp) -> Vec<String> {
    let object = masked(object);
    let verdict = judge(&object);
    let mut lines = vec![
        field("kind", &object.gvk().map_or_else(String::new, |gvk| gvk.to_string())),
        field("name", object.name()),
        field("namespace", object.namespace().unwrap_or("–")),
        field("state", &format!("{}  {}  {}", health::word(verdict.health), verdict.reason, verdict.message)),
        field("generation", &generation(&object, verdict.observed_generation)),
        field("created", &age(object.at(&["metadata", "creationTimestamp"]), now)),
    ];
    lines.extend(object.labels().iter().map(|(key, value)| field("label", &format!("{key}={value}"))));
    lines.extend(owners(&object).map(|owner| field("owner", &owner)));
    lines.extend(object.finalizers().iter().map(|finalizer| field("finalizer", finalizer)));
    lines.extend(conditions(&object, now));
    lines
}

fn field(name: &str, value: &str) -> String {
    format!("{name:<11} {}", one_line(value)).trim_end().to_owned()
}

fn generation(object: &Object, observed: Option<i64>) -> String {
    match (object.generation(), observed) {
        (0, _) => "–".to_owned(),
        (wanted, None) => format!("{wanted}"),
        (wanted, Some(seen)) => format!("{wanted}, its controller has seen {seen}"),
    }
}

fn owners(object: &Object) -> impl Iterator<Item = String> {
    let owners = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).into_iter().flatten();
    owners.map(|owner| {
        let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
        format!("{} {}", text("kind"), text("name"))
    })
}

fn conditions(object: &Object, now: Timestamp) -> Vec<String> {
    let Some(list) = object.at(&["status", "conditions"]).and_then(Value::as_array) else { return Vec::new() };
    let line = |condition: &Value| {
        let text = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default();
        let since = age(condition.get("lastTransitionTime"), now);
        format!("  {:<24} {:<8} {:<8} {} {}", text("type"), text("status"), since, text("reason"), one_line(text("message")))
            .trim_end()
            .to_owned()
    };
    std::iter::once(String::new()).chain(["conditions".to_owned()]).chain(list.iter().map(line)).collect()
}

fn age(at: Option<&Value>, now: Timestamp) -> String {
    let since = at.and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
    since.map_or_else(|| "–".to_owned(), |since| duration::short(now.duration_since(since).max(SignedDuration::ZERO)))
}
