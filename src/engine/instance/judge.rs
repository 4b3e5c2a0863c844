//! How a child is for the instance that asks for it: for whoever looks without driving.

use std::collections::BTreeMap;

use plinth_api::Object;

use super::{decision::NodeState, pass::readiness, status};
use crate::{
    graph::Node,
    health::{Health, Verdict, judge},
};

/// The verdict on an object that is there, as a pass over its node gives it: `readyWhen` decides.
pub fn judge_child(node: &Node, object: &Object) -> Verdict {
    if object.is_terminating() {
        return judge(object);
    }
    let outcome = readiness(node, &[object]);
    match outcome.state {
        NodeState::Ready => Verdict::new(Health::Current, "Ready", ""),
        NodeState::Failed => Verdict::new(Health::Failed, "Failed", outcome.message),
        _ => unready(Some(object), &outcome.message),
    }
}

/// The verdict where `readyWhen` does not hold: the object's own words where it has any that say why, else the condition.
pub fn unready(object: Option<&Object>, condition: &str) -> Verdict {
    match object.map(judge) {
        Some(own) if !matches!(own.health, Health::Current | Health::Unknown) => own,
        _ => Verdict::new(Health::InProgress, "NotReady", condition),
    }
}

/// Nodes that the last pass could not bring to what is wanted, each with the reason, as the conditions of the instance tell it;
/// none where they are about an earlier generation.
pub fn failures(instance: &Object) -> BTreeMap<String, String> {
    status::failures(instance)
}
