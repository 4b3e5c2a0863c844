//! Since when an object is as it is, by its own word.

use jiff::Timestamp;
use plinth_api::Object;
use serde_json::Value;

/// Conditions that sum an object up, the first that there is counts.
const SUMMARY: [&str; 4] = ["Ready", "Available", "Established", "Healthy"];

/// Since when an object is as it is: being deleted, since it was asked to go; else since its summing condition turned, or the newest of
/// its conditions, or since it was made. `None` where it says nothing of that.
pub fn since(object: &Object) -> Option<Timestamp> {
    let metadata = |field: &str| time(object.at(&["metadata", field])?);
    metadata("deletionTimestamp").or_else(|| turned(object)).or_else(|| metadata("creationTimestamp"))
}

/// When its condition turned.
fn turned(object: &Object) -> Option<Timestamp> {
    let conditions = object.at(&["status", "conditions"])?.as_array()?;
    let at = |condition: &Value| time(condition.get("lastTransitionTime")?);
    let is = |condition: &&Value, kind: &str| condition.get("type").and_then(Value::as_str) == Some(kind);
    let summary = SUMMARY.iter().find_map(|kind| conditions.iter().find(|condition| is(condition, kind)));
    summary.and_then(at).or_else(|| conditions.iter().filter_map(at).max())
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_says_since_when_it_is_so() {
        let (made, turned, newest, asked) =
            ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z");
        let condition = |kind: &str, at: &str| json!({"type": kind, "status": "True", "lastTransitionTime": at});
        for (object, expect) in [
            (json!({"metadata": {"creationTimestamp": made}}), Some(made)),
            (
                json!({"metadata": {"creationTimestamp": made}, "status": {"conditions": [condition("Other", newest), condition("Ready", turned)]}}),
                Some(turned),
            ),
            (
                json!({"metadata": {"creationTimestamp": made}, "status": {"conditions": [condition("One", turned), condition("Two", newest)]}}),
                Some(newest),
            ),
            (
                json!({"metadata": {"creationTimestamp": made, "deletionTimestamp": asked}, "status": {"conditions": [condition("Ready", turned)]}}),
                Some(asked),
            ),
            (json!({"metadata": {"creationTimestamp": null}}), None),
        ] {
            let object = Object::from_value(object).unwrap();
            assert_eq!(since(&object), expect.map(|text| text.parse().unwrap()), "{object:?}");
        }
    }
}
