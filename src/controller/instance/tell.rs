//! What a pass has to tell: events from a decision. Pure.
//!
//! Causes go from the nearest to the root: a node that waits for a node that waits for a kind says both, and a child that is an
//! instance itself goes on with its own causes.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{GroupKind, Object, ObjectKey};
use plinth_engine::{
    health::{self, Health},
    instance::{Decision, InstanceState, NodeState, NodeVerdict, Observation, WaitsFor},
};
use plinth_run::{Cause, EventKind, SkipReason, Subject};

/// Longest chain of causes.
const LONGEST: usize = 16;

/// What was told of an instance already.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    states: BTreeMap<ObjectKey, NodeState>,
    /// The events of the last pass that are told again only when they differ.
    last: BTreeMap<ObjectKey, EventKind>,
    deferred: BTreeMap<ObjectKey, EventKind>,
}

/// What else a telling needs to know.
#[derive(Debug)]
pub(super) struct Context<'a> {
    /// The instance.
    pub(super) instance: &'a ObjectKey,
    /// Kinds whose objects are instances: they tell of themselves.
    pub(super) instance_kinds: &'a BTreeSet<GroupKind>,
    /// Causes that other instances gave for not being ready.
    pub(super) causes: &'a BTreeMap<ObjectKey, Vec<Cause>>,
}

/// Everything that is new since `told`; the causes of the instance come second.
pub(super) fn tell(
    decision: &Decision,
    observation: &Observation,
    context: &Context<'_>,
    told: &mut Told,
) -> (Vec<EventKind>, Vec<Cause>) {
    let mut events = Vec::new();
    for verdict in &decision.nodes {
        for key in &verdict.objects {
            node_events(verdict, key, decision, observation, context, told, &mut events);
        }
    }
    let causes = root_causes(decision, observation, context);
    let event = of_instance(decision, observation, context, &causes);
    push_new(&mut told.last, context.instance, event, &mut events);
    (events, causes)
}

fn node_events(
    verdict: &NodeVerdict,
    key: &ObjectKey,
    decision: &Decision,
    observation: &Observation,
    context: &Context<'_>,
    told: &mut Told,
    events: &mut Vec<EventKind>,
) {
    let subject = Subject::child(key.clone(), verdict.id.as_str(), context.instance.clone());
    let before = told.states.insert(key.clone(), verdict.state);
    if verdict.state == NodeState::Skipped {
        if before != Some(NodeState::Skipped) {
            events.push(EventKind::ChangeSkipped { subject, reason: SkipReason::NotIncluded });
        }
        return;
    }
    if let (NodeState::Deferred, Some(WaitsFor::Kind(gvk))) = (verdict.state, &verdict.waits_for) {
        let event = EventKind::ChangeDeferred { subject: subject.clone(), missing: vec![gvk.clone()], expected_from: None };
        push_new(&mut told.deferred, key, event, events);
    }
    if context.instance_kinds.contains(&key.gvk.group_kind()) && observed(observation, key).is_some() {
        return;
    }
    let (health, reason, message) = judged(verdict, observed(observation, key));
    let causes = match health {
        Health::Current => Vec::new(),
        _ => causes_of(verdict, decision, observation, context),
    };
    let event = EventKind::HealthChanged { subject, health, reason, message, causes };
    push_new(&mut told.last, key, event, events);
}

fn push_new(last: &mut BTreeMap<ObjectKey, EventKind>, key: &ObjectKey, event: EventKind, events: &mut Vec<EventKind>) {
    if last.get(key) != Some(&event) {
        last.insert(key.clone(), event.clone());
        events.push(event);
    }
}

fn observed<'a>(observation: &'a Observation, key: &ObjectKey) -> Option<&'a Object> {
    observation.objects.get(key).and_then(Option::as_ref)
}

/// Health, reason and message of a node's object.
fn judged(verdict: &NodeVerdict, object: Option<&Object>) -> (Health, String, String) {
    let (health, reason) = match verdict.state {
        NodeState::Ready => (Health::Current, "Ready"),
        NodeState::Skipped => (Health::Current, "NotIncluded"),
        NodeState::Acting => (Health::InProgress, "Applying"),
        NodeState::Pending => (Health::Waiting, "Pending"),
        NodeState::Deferred => (Health::Waiting, "Deferred"),
        NodeState::Terminating => (Health::Terminating, "Terminating"),
        NodeState::Failed => (Health::Failed, "Failed"),
        NodeState::Unready => return unready(verdict, object),
    };
    (health, reason.to_owned(), verdict.message.clone())
}

/// The object's own words where it has any that say why; else the condition that does not hold.
fn unready(verdict: &NodeVerdict, object: Option<&Object>) -> (Health, String, String) {
    let own = object.map(health::judge);
    match own {
        Some(own) if !matches!(own.health, Health::Current | Health::Unknown) => (own.health, own.reason, own.message),
        _ => (Health::InProgress, "NotReady".to_owned(), verdict.message.clone()),
    }
}

fn of_instance(decision: &Decision, observation: &Observation, context: &Context<'_>, causes: &[Cause]) -> EventKind {
    let missing = decision.nodes.iter().find(|verdict| verdict.state == NodeState::Deferred);
    let (health, reason) = match decision.state {
        InstanceState::Deleting => (Health::Terminating, "Deleting"),
        InstanceState::Error => (Health::Failed, "Error"),
        _ if decision.ready => (Health::Current, "Ready"),
        _ if missing.is_some() => (Health::Waiting, "Deferred"),
        _ => (Health::InProgress, "InProgress"),
    };
    let own_failure = health::judge(&observation.instance);
    let message = match (health, causes.first()) {
        (Health::Current, _) => String::new(),
        (_, Some(cause)) => cause.message.clone(),
        _ => own_failure.message,
    };
    let causes = if health == Health::Current { Vec::new() } else { causes.to_vec() };
    EventKind::HealthChanged {
        subject: Subject::root(context.instance.clone()),
        health,
        reason: reason.to_owned(),
        message,
        causes,
    }
}

/// The causes of the node that asks most for attention.
fn root_causes(decision: &Decision, observation: &Observation, context: &Context<'_>) -> Vec<Cause> {
    let urgency = |state: NodeState| match state {
        NodeState::Failed => 5,
        NodeState::Terminating => 4,
        NodeState::Unready => 3,
        NodeState::Acting => 2,
        NodeState::Deferred | NodeState::Pending => 1,
        NodeState::Ready | NodeState::Skipped => 0,
    };
    // Of equals the first in topological order: the others may well wait for it.
    let worst = decision.nodes.iter().rev().max_by_key(|verdict| urgency(verdict.state));
    match worst.filter(|verdict| urgency(verdict.state) > 0) {
        Some(verdict) => chain(verdict, decision, observation, context),
        // Everything is as wanted, but a child that is an instance is not Ready yet (contracts 13).
        None => unready_child(decision, context),
    }
}

fn unready_child(decision: &Decision, context: &Context<'_>) -> Vec<Cause> {
    let mut children = decision.nodes.iter().flat_map(|verdict| verdict.objects.iter().map(move |key| (verdict, key)));
    let child = children.find(|(_, key)| context.causes.get(*key).is_some_and(|causes| !causes.is_empty()));
    let Some((verdict, key)) = child else { return Vec::new() };
    let subject = Subject::child(key.clone(), verdict.id.as_str(), context.instance.clone());
    let mut causes = vec![Cause { subject: Some(subject), reason: "NotReady".into(), message: format!("{key} is not ready") }];
    causes.extend(context.causes[key].iter().cloned());
    causes.truncate(LONGEST);
    causes
}

/// The node itself, then everything it waits for.
fn chain(verdict: &NodeVerdict, decision: &Decision, observation: &Observation, context: &Context<'_>) -> Vec<Cause> {
    let mut causes = vec![link(verdict, observation, context)];
    causes.extend(causes_of(verdict, decision, observation, context));
    causes.truncate(LONGEST);
    causes
}

/// What a node waits for, and so on to the root.
fn causes_of(verdict: &NodeVerdict, decision: &Decision, observation: &Observation, context: &Context<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut seen = BTreeSet::from([verdict.id.as_str()]);
    let mut here = verdict;
    while causes.len() < LONGEST {
        causes.extend(inherited(here, context));
        match &here.waits_for {
            Some(WaitsFor::Node(next) | WaitsFor::Field { node: next, .. }) => {
                let Some(next) = decision.node(next).filter(|next| seen.insert(next.id.as_str())) else { break };
                causes.push(link(next, observation, context));
                here = next;
            }
            Some(WaitsFor::Kind(gvk)) => {
                causes.push(Cause { subject: None, reason: "NotServed".into(), message: format!("{gvk} is not served yet") });
                break;
            }
            Some(WaitsFor::Object(key)) => {
                causes.push(Cause {
                    subject: Some(Subject::root(key.clone())),
                    reason: "NotFound".into(),
                    message: format!("{key} does not exist"),
                });
                break;
            }
            Some(WaitsFor::Deletion(_) | WaitsFor::Condition(_)) | None => break,
        }
    }
    causes.truncate(LONGEST);
    causes
}

fn link(verdict: &NodeVerdict, observation: &Observation, context: &Context<'_>) -> Cause {
    let key = verdict.objects.first();
    let (_, reason, message) = judged(verdict, key.and_then(|key| observed(observation, key)));
    let subject = key.map(|key| Subject::child(key.clone(), verdict.id.as_str(), context.instance.clone()));
    let message = if message.is_empty() { format!("node {} is not ready", verdict.id) } else { message };
    Cause { subject, reason, message }
}

/// What a child that is an instance itself gave as its causes.
fn inherited(verdict: &NodeVerdict, context: &Context<'_>) -> Vec<Cause> {
    verdict.objects.iter().find_map(|key| context.causes.get(key)).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests;
