//! Conditions as Kubernetes' conventions want them.

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use plinth_api::{Condition, Object};
use serde::Deserialize;
use serde_json::Value;

/// Puts `condition` into a list, in the place of the one of its type or at the end; true where the list changed.
///
/// `lastTransitionTime` stays while `status` does, else it becomes `now` to the second. `generation` is the
/// `metadata.generation` that was judged.
pub fn set(conditions: &mut Vec<Condition>, condition: Condition, generation: Option<i64>, now: Timestamp) -> bool {
    let place = conditions.iter().position(|old| old.kind == condition.kind);
    let unchanged = place.map(|place| &conditions[place]).filter(|old| old.status == condition.status);
    let since = unchanged.and_then(|old| old.last_transition_time).unwrap_or_else(|| to_the_second(now));
    let observed_generation = generation.or(condition.observed_generation);
    let condition = Condition { last_transition_time: Some(since), observed_generation, ..condition };
    match place {
        Some(place) if conditions[place] == condition => false,
        Some(place) => {
            conditions[place] = condition;
            true
        }
        None => {
            conditions.push(condition);
            true
        }
    }
}

/// `status.conditions` of an object; entries that are no conditions are left out.
pub fn of(object: &Object) -> Vec<Condition> {
    let list = object.at(&["status", "conditions"]).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|entry| Condition::deserialize(entry).ok()).collect()
}

/// The condition of one type.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// API servers keep seconds; a finer time would look like a change at the next comparison.
fn to_the_second(now: Timestamp) -> Timestamp {
    let round = TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Floor);
    now.round(round).expect("flooring to the second stays inside the range of timestamps")
}

#[cfg(test)]
mod tests {
    use plinth_api::ConditionStatus;
    use serde_json::json;

    use super::*;

    fn ready(status: ConditionStatus, message: &str) -> Condition {
        Condition {
            kind: "Ready".into(),
            status,
            reason: "Because".into(),
            message: message.into(),
            last_transition_time: None,
            observed_generation: None,
        }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_time_moves_with_the_status_alone() {
        let mut list = Vec::new();
        let (first, second) = (at("2026-01-01T00:00:00.9Z"), at("2026-01-01T00:01:00Z"));
        assert!(set(&mut list, ready(ConditionStatus::False, "a"), Some(1), first));
        assert_eq!(list[0].last_transition_time, Some(at("2026-01-01T00:00:00Z")));
        assert!(!set(&mut list, ready(ConditionStatus::False, "a"), Some(1), second), "the same again is no change");
        assert!(set(&mut list, ready(ConditionStatus::False, "b"), Some(2), second), "another message is one");
        assert_eq!(list[0].last_transition_time, Some(at("2026-01-01T00:00:00Z")));
        assert_eq!(list[0].observed_generation, Some(2));
        assert!(set(&mut list, ready(ConditionStatus::True, "b"), Some(2), second));
        assert_eq!((list.len(), list[0].last_transition_time), (1, Some(second)));
    }

    #[test]
    fn conditions_are_read_from_an_object() {
        let object = Object::from_value(json!({"status": {"conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"status": "True"}, "text",
        ]}}))
        .unwrap();
        let list = of(&object);
        assert_eq!(list.len(), 1);
        assert_eq!(find(&list, "Ready").unwrap().status, ConditionStatus::True);
        assert!(of(&Object::default()).is_empty());
    }
}
