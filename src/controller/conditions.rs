//! Conditions of an object as kro keeps them: a root that follows from the others (reference/kro.md section 15.4).

use std::cmp::Reverse;

use jiff::Timestamp;
use plinth_api::{Condition, ConditionStatus, Object};
use serde_json::{Map, Value};

/// What one condition should say now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Type, unique among the conditions of an object.
    pub kind: &'static str,
    /// True, False or Unknown.
    pub status: ConditionStatus,
    /// One word in UpperCamelCase.
    pub reason: &'static str,
    /// A sentence, empty where there is nothing to say.
    pub message: String,
}

impl Said {
    /// It holds.
    pub fn yes(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, status: ConditionStatus::True, reason, message: message.into() }
    }

    /// It does not hold.
    pub fn no(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, status: ConditionStatus::False, reason, message: message.into() }
    }

    /// It is not known.
    pub fn unknown(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, status: ConditionStatus::Unknown, reason, message: message.into() }
    }
}

/// Conditions of an object as they were read, the base for those to write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Before(Vec<Condition>);

impl Before {
    /// Reads `status.conditions`; what is not a condition is left out.
    pub fn of(object: &Object) -> Self {
        let list = object.status().get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        Self(list.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
    }

    /// One condition with the time of its last transition: the old time while the status is the same.
    pub fn stamp(&self, said: &Said, generation: i64, now: Timestamp) -> Condition {
        let same = self.0.iter().find(|before| before.kind == said.kind && before.status == said.status);
        Condition {
            kind: said.kind.to_owned(),
            status: said.status,
            reason: said.reason.to_owned(),
            message: said.message.clone(),
            last_transition_time: Some(same.and_then(|before| before.last_transition_time).unwrap_or_else(|| seconds(now))),
            observed_generation: Some(generation),
        }
    }

    /// All conditions and the root `Ready` that follows from them, oldest transition first and the root last.
    pub fn with_root(&self, said: &[Said], generation: i64, now: Timestamp) -> Vec<Condition> {
        let mut list: Vec<Condition> = said.iter().map(|said| self.stamp(said, generation, now)).collect();
        list.sort_by_key(|condition| condition.last_transition_time);
        let root = root(&list, said);
        list.push(self.stamp(&root, generation, now));
        list
    }
}

/// True where all are; else the words of the latest False, or else of the latest Unknown.
fn root(list: &[Condition], said: &[Said]) -> Said {
    let worst = |status| {
        let latest = list
            .iter()
            .filter(|condition| condition.status == status)
            .min_by_key(|condition| Reverse(condition.last_transition_time))?;
        said.iter().find(|said| said.kind == latest.kind)
    };
    match worst(ConditionStatus::False).or_else(|| worst(ConditionStatus::Unknown)) {
        Some(said) => Said { kind: "Ready", ..said.clone() },
        None => Said::yes("Ready", "Ready", ""),
    }
}

/// Conditions as the JSON of a status.
///
/// # Panics
/// Never: conditions are plain data.
pub fn to_value(conditions: &[Condition]) -> Value {
    serde_json::to_value(conditions).expect("conditions are plain data")
}

/// Whether `status.conditions` of an object has `kind` with status True.
pub fn holds(object: &Object, kind: &str) -> bool {
    find(object, kind).is_some_and(|condition| condition.get("status").and_then(Value::as_str) == Some("True"))
}

/// The condition of that type as it is in the object.
pub fn find<'a>(object: &'a Object, kind: &str) -> Option<&'a Map<String, Value>> {
    let list = object.status().get("conditions")?.as_array()?;
    list.iter().filter_map(Value::as_object).find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

/// Kubernetes' times have no fractions of a second.
///
/// # Panics
/// Never: whole seconds of a timestamp are a timestamp.
pub fn seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).expect("whole seconds of a timestamp are a timestamp")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn before(list: &Value) -> Before {
        Before::of(&Object::from_value(json!({"status": {"conditions": list.clone()}})).unwrap())
    }

    #[test]
    fn a_transition_keeps_its_time_while_the_status_is_the_same() {
        let before = before(&json!([{"type": "A", "status": "False", "lastTransitionTime": "1970-01-01T00:00:05Z"}]));
        let same = before.stamp(&Said::no("A", "Other", "new words"), 3, at(90));
        assert_eq!((same.last_transition_time, same.observed_generation), (Some(at(5)), Some(3)));
        assert_eq!(same.message, "new words");
        assert_eq!(before.stamp(&Said::yes("A", "Fine", ""), 3, at(90)).last_transition_time, Some(at(90)));
    }

    #[test]
    fn the_root_says_what_is_wrong() {
        let cases = [
            (vec![Said::yes("A", "Fine", ""), Said::yes("B", "Fine", "")], ConditionStatus::True, "Ready"),
            (vec![Said::yes("A", "Fine", ""), Said::unknown("B", "Deferred", "")], ConditionStatus::Unknown, "Deferred"),
            (vec![Said::no("A", "Failed", ""), Said::unknown("B", "Deferred", "")], ConditionStatus::False, "Failed"),
        ];
        for (said, status, reason) in cases {
            let list = Before::default().with_root(&said, 1, at(1));
            let root = list.last().unwrap();
            assert_eq!((root.kind.as_str(), root.status, root.reason.as_str()), ("Ready", status, reason));
        }
    }

    #[test]
    fn the_latest_of_several_failures_is_the_one_shown() {
        let before = before(&json!([
            {"type": "A", "status": "False", "lastTransitionTime": "1970-01-01T00:00:09Z"},
            {"type": "B", "status": "False", "lastTransitionTime": "1970-01-01T00:00:05Z"}]));
        let list = before.with_root(&[Said::no("A", "First", ""), Said::no("B", "Second", "")], 1, at(90));
        assert_eq!(list.iter().map(|condition| condition.kind.as_str()).collect::<Vec<_>>(), ["B", "A", "Ready"]);
        assert_eq!(list[2].reason, "First");
    }

    #[test]
    fn rubbish_in_a_status_is_left_out() {
        assert_eq!(before(&json!([1, {"type": "A"}, {"status": "True"}])), Before::default());
        assert_eq!(before(&json!("x")), Before::default());
    }
}
