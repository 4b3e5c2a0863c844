//! The instance's status: projected fields, `state`, conditions (kro.md section 15).

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{Object, Permission, permission};
use serde_json::{Map, Value, json};

use super::{
    authored,
    decision::{InstanceState, NodeState, NodeVerdict},
    observation::{Failure, Observation},
    values::{Trouble, Values},
};
use crate::{
    Diagnostic,
    cel::Evaluated,
    graph::{Graph, Slot},
    ports::WriteError,
    schema::validate_known,
    template::path_text,
};

/// What a condition is to say.
struct Say {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// The state of an instance, and the conditions that say it.
pub(super) struct Judgement {
    pub(super) state: InstanceState,
    says: Vec<Say>,
}

impl Judgement {
    /// Judges by the nodes. `refused`: why the instance itself cannot be written.
    pub(super) fn of(nodes: &[NodeVerdict], refused: Option<&Failure>, problems: &[Diagnostic]) -> Self {
        let managed = refused.is_none();
        let missing = missing(nodes, refused);
        let is_allowed = |failure: &Failure| !matches!(failure, Failure::Write { error: WriteError::Forbidden { .. }, .. });
        let failed = nodes.iter().any(|node| node.state == NodeState::Failed) || refused.is_some_and(is_allowed);
        let ready = managed && nodes.iter().all(|node| matches!(node.state, NodeState::Ready | NodeState::Skipped));
        let state = match (ready, failed) {
            (true, _) => InstanceState::Active,
            (false, true) => InstanceState::Error,
            (false, false) => InstanceState::InProgress,
        };
        let mut says = vec![managed_says(refused.map(words)), resolved()];
        if !missing.is_empty() {
            says.push(say(permission::MISSING, "True", "Forbidden", &permission::message(&missing)));
        }
        says.push(if ready {
            say("ResourcesReady", "True", "AllResourcesReady", "all resources are created and ready")
        } else {
            say("ResourcesReady", "False", "NotReady", &waiting(nodes))
        });
        if let Some(first) = problems.first() {
            says.push(say("StatusProjected", "False", "StatusExpressionFailed", &format!("{}: {}", first.path, first.message)));
        }
        Self { state, says }
    }

    /// A paused instance. kro says ACTIVE here, which nobody has checked.
    pub(super) fn suspended() -> Self {
        let message = "reconciliation suspended via kro.run/reconcile annotation";
        let says = vec![managed_says(None), resolved(), say("ResourcesReady", "False", "ReconciliationSuspended", message)];
        Self { state: InstanceState::InProgress, says }
    }

    /// An instance that is being removed.
    pub(super) fn deleting(message: String) -> Self {
        let reason = "UnderDeletion";
        Self { state: InstanceState::Deleting, says: vec![Say { kind: "ResourcesReady", status: "Unknown", reason, message }] }
    }
}

/// The rights that the nodes wait for, and those that writing the instance itself takes.
pub(super) fn missing(nodes: &[NodeVerdict], refused: Option<&Failure>) -> BTreeSet<Permission> {
    let own = match refused {
        Some(Failure::Write { error: WriteError::Forbidden { missing, .. }, .. }) => Some(missing.as_ref()),
        _ => None,
    };
    nodes.iter().filter_map(NodeVerdict::missing).flatten().chain(own).cloned().collect()
}

fn say(kind: &'static str, status: &'static str, reason: &'static str, message: &str) -> Say {
    Say { kind, status, reason, message: message.to_owned() }
}

fn managed_says(refused: Option<String>) -> Say {
    match refused {
        None => say("InstanceManaged", "True", "Managed", "instance is properly managed with finalizers and labels"),
        Some(why) => say("InstanceManaged", "False", "ManagementFailed", &format!("finalizer/labeling failed: {why}")),
    }
}

fn resolved() -> Say {
    say("GraphResolved", "True", "Resolved", "runtime graph created and all resources resolved")
}

/// What the message of `ResourcesReady` begins with where nodes have failed.
const RESOURCE_ERROR: &str = "resource error: ";

/// What stands before the nodes that wait.
const AWAITING: &str = "awaiting resource readiness: ";

/// The way back from [`waiting`]: nodes that have failed, with what they said.
pub(super) fn failures(instance: &Object) -> BTreeMap<String, String> {
    let conditions = instance.at(&["status", "conditions"]).and_then(Value::as_array).into_iter().flatten();
    let is_about_this = |condition: &&Value| {
        let observed = condition["observedGeneration"].as_i64().unwrap_or(instance.generation());
        condition["type"] == "ResourcesReady" && condition["status"] == "False" && observed >= instance.generation()
    };
    let message =
        conditions.filter(is_about_this).find_map(|condition| condition["message"].as_str()?.strip_prefix(RESOURCE_ERROR));
    let failed = message.unwrap_or_default();
    let failed = failed.split_once(&format!("; {AWAITING}node \"")).map_or(failed, |(failed, _)| failed);
    let said = failed.strip_prefix("node \"").into_iter().flat_map(|rest| rest.split("; node \""));
    said.filter_map(|said| said.split_once("\": ")).map(|(node, why)| (node.to_owned(), why.to_owned())).collect()
}

/// What the nodes that are not ready say: first those that have failed, then those that wait.
fn waiting(nodes: &[NodeVerdict]) -> String {
    let list = |wanted: &dyn Fn(NodeState) -> bool| {
        let says = nodes.iter().filter(|node| wanted(node.state)).map(|node| match node.message.as_str() {
            "" => format!("node {:?}: {}", node.id, word(node.state)),
            message => format!("node {:?}: {message}", node.id),
        });
        says.collect::<Vec<_>>().join("; ")
    };
    let failed = list(&|state| state == NodeState::Failed);
    let awaited = list(&|state| !matches!(state, NodeState::Ready | NodeState::Skipped | NodeState::Failed));
    match (failed.as_str(), awaited.as_str()) {
        ("", awaited) => format!("{AWAITING}{awaited}"),
        (failed, "") => format!("{RESOURCE_ERROR}{failed}"),
        (failed, awaited) => format!("{RESOURCE_ERROR}{failed}; {AWAITING}{awaited}"),
    }
}

fn word(state: NodeState) -> &'static str {
    match state {
        NodeState::Ready => "ready",
        NodeState::Skipped => "left out",
        NodeState::Acting => "being applied",
        NodeState::Unready | NodeState::Pending => "waiting",
        NodeState::Deferred => "kind not served yet",
        NodeState::Terminating => "being deleted",
        NodeState::Failed => "failed",
    }
}

/// What is said of a write or read that failed.
pub(super) fn words(failure: &Failure) -> String {
    match failure {
        Failure::Read(error) => error.to_string(),
        Failure::Write { error, .. } => error.to_string(),
    }
}

/// The author's part of the status, and its expressions that fail for good; the others are projected all the same.
pub(super) fn projected(graph: &Graph, values: &Values) -> (Value, Vec<Diagnostic>) {
    let mut failed = Vec::new();
    let status = graph.status.fill(|slot| match project(slot, values) {
        Ok(Evaluated::Value(value)) => Some(value),
        Err(Trouble::Failed(message)) => {
            failed.push(Diagnostic::error(format!("status.{}", path_text(&slot.path)), message));
            None
        }
        Ok(Evaluated::Omit) | Err(Trouble::Pending { .. } | Trouble::Absent(_)) => None,
    });
    (status, failed)
}

/// What a status field gets. A value that its schema does not take is a failure: a server would refuse the whole status for it.
fn project(slot: &Slot, values: &Values) -> Result<Evaluated, Trouble> {
    let value = values.fill(slot)?;
    if let (Evaluated::Value(value), Some(schema)) = (&value, &slot.schema)
        && let Some(first) = validate_known(value, schema).first()
    {
        return Err(Trouble::Failed(first.to_string()));
    }
    Ok(value)
}

/// The whole status: what was [`projected`] by values, without which what was projected before stays.
pub(super) fn status(graph: &Graph, seen: &Observation, projected: Option<(Value, &Values)>, judgement: &Judgement) -> Value {
    let (mut status, values) = match projected {
        Some((status, values)) => (status, Some(values)),
        None => (seen.instance.status().clone(), None),
    };
    if !status.is_object() {
        status = Value::Object(Map::new());
    }
    let mut state = judgement.state;
    let mut list = conditions(seen, &judgement.says, graph.conditions.is_empty());
    if let Some(values) = values.filter(|_| !graph.conditions.is_empty()) {
        let authored = authored::conditions(graph, seen, values, &list);
        list = authored.list;
        state = if authored.faulty { InstanceState::Error } else { state };
    }
    status["state"] = json!(state.as_str());
    status["conditions"] = Value::Array(list);
    status
}

fn conditions(seen: &Observation, says: &[Say], rooted: bool) -> Vec<Value> {
    let before = seen.instance.at(&["status", "conditions"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let time = stamp(seen);
    let kept = before.iter().filter(|condition| {
        let kind = condition["type"].as_str().unwrap_or_default();
        // A removal says only what it changes.
        says.len() == 1 && (kind != "Ready" || !rooted) && says.iter().all(|say| say.kind != kind)
    });
    let mut list: Vec<Value> = kept.cloned().collect();
    list.extend(says.iter().map(|say| condition(seen, &before, say, &time)));
    list.sort_by(|a, b| a["lastTransitionTime"].as_str().cmp(&b["lastTransitionTime"].as_str()));
    if rooted || says.len() > 1 {
        let root = root(&list);
        list.push(condition(seen, &before, &root, &time));
    }
    list
}

/// Since when a condition has its status: its old time where the status stays.
pub(super) fn since<'b>(before: &'b [Value], kind: &str, status: &str) -> Option<&'b str> {
    let old = before.iter().find(|condition| condition["type"] == kind)?;
    if old["status"] == status { old["lastTransitionTime"].as_str() } else { None }
}

fn condition(seen: &Observation, before: &[Value], say: &Say, time: &str) -> Value {
    let since = since(before, say.kind, say.status);
    json!({
        "type": say.kind,
        "status": say.status,
        "reason": say.reason,
        "message": say.message,
        "lastTransitionTime": since.unwrap_or(time),
        "observedGeneration": seen.instance.generation(),
    })
}

/// `Ready` sums the others up: it copies the one of them that changed last, False before Unknown.
fn root(list: &[Value]) -> Say {
    let dependents = || list.iter().filter(|condition| condition["type"] != "StatusProjected");
    let worst = ["False", "Unknown"].iter().find_map(|status| dependents().rfind(|condition| condition["status"] == *status));
    let Some(worst) = worst else { return say("Ready", "True", "Ready", "") };
    let message = worst["message"].as_str().unwrap_or_default();
    let reasons = ["ManagementFailed", "NotReady", "ReconciliationSuspended", "UnderDeletion"];
    let reason = reasons.into_iter().find(|reason| worst["reason"] == *reason).unwrap_or("NotReady");
    say("Ready", if worst["status"] == "False" { "False" } else { "Unknown" }, reason, message)
}

/// Now, to the second, as Kubernetes writes times.
pub(super) fn stamp(seen: &Observation) -> String {
    let second = jiff::Timestamp::from_second(seen.now.as_second()).unwrap_or_default();
    second.to_string()
}

/// Whether two statuses are equal; whole numbers are, however they are written.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len() && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| same(value, other)))
        }
        (Value::Array(left), Value::Array(right)) => left.len() == right.len() && left.iter().zip(right).all(|(a, b)| same(a, b)),
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, state: NodeState, message: &str) -> NodeVerdict {
        NodeVerdict { id: id.into(), state, objects: Vec::new(), waits_for: None, message: message.into() }
    }

    #[test]
    fn what_failed_is_read_back_from_the_conditions() {
        let refused = "ConfigMap/n/a is refused: \"x\": must be; a string";
        let nodes =
            [node("a", NodeState::Failed, refused), node("b", NodeState::Failed, "no"), node("c", NodeState::Unready, "waits")];
        let instance = |generation: i64| {
            let condition =
                json!({"type": "ResourcesReady", "status": "False", "observedGeneration": 2, "message": waiting(&nodes)});
            Object::from_value(json!({"metadata": {"generation": generation}, "status": {"conditions": [condition]}})).unwrap()
        };
        let expected = [("a".to_owned(), refused.to_owned()), ("b".to_owned(), "no".to_owned())];
        assert_eq!(failures(&instance(2)), BTreeMap::from(expected));
        assert!(failures(&instance(3)).is_empty());
    }
}
