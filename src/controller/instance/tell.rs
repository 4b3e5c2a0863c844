//! What a pass has to tell: events from a decision. Pure.
//!
//! Causes go from the nearest to the root: a node that waits for a node that waits for a kind says both, and a child that is an
//! instance itself goes on with its own causes.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{GroupKind, Object, ObjectKey, permission};
use plinth_engine::{
    health::{self, Health},
    instance::{Decision, Failure, InstanceState, NodeState, NodeVerdict, Observation, WaitsFor, unready},
    ports::WriteError,
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
    /// Instances that the loop knows, and so tell of themselves.
    pub(super) known: &'a BTreeSet<ObjectKey>,
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
    let teller = Teller { decision, observation, context };
    let mut events = Vec::new();
    for verdict in &decision.nodes {
        for key in &verdict.objects {
            teller.node(verdict, key, told, &mut events);
        }
    }
    teller.gone(told, &mut events);
    let causes = teller.root_causes();
    push_new(&mut told.last, context.instance, teller.instance(&causes), &mut events);
    (events, causes)
}

fn push_new(last: &mut BTreeMap<ObjectKey, EventKind>, key: &ObjectKey, event: EventKind, events: &mut Vec<EventKind>) {
    if last.get(key) != Some(&event) {
        last.insert(key.clone(), event.clone());
        events.push(event);
    }
}

/// One decision with all that it was made from.
struct Teller<'a> {
    decision: &'a Decision,
    observation: &'a Observation,
    context: &'a Context<'a>,
}

impl Teller<'_> {
    fn node(&self, verdict: &NodeVerdict, key: &ObjectKey, told: &mut Told, events: &mut Vec<EventKind>) {
        let subject = self.child(verdict, key);
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
        let object = self.observed(key);
        let is_there = object.is_some() || self.context.known.contains(key);
        if self.context.instance_kinds.contains(&key.gvk.group_kind()) && is_there {
            // It tells of itself, and nothing takes back what its parent says: not even that the answer to its write was lost.
            told.last.remove(key);
            return;
        }
        let (health, reason, message) = self.judged(verdict, object);
        let causes = if health == Health::Current { Vec::new() } else { self.causes_of(verdict) };
        push_new(&mut told.last, key, EventKind::HealthChanged { subject, health, reason, message, causes }, events);
    }

    /// Tells of children that the instance had and does not ask for any more, once everything else of the pass is settled: what
    /// was to go is asked to go by then, and no name is unknown for want of data.
    fn gone(&self, told: &mut Told, events: &mut Vec<EventKind>) {
        let is_settled =
            |verdict: &NodeVerdict| matches!(verdict.state, NodeState::Ready | NodeState::Unready | NodeState::Skipped);
        let decision = self.decision;
        let is_under_way = !decision.actions.is_empty() || decision.left_over.is_some();
        if decision.state == InstanceState::Deleting || is_under_way || !decision.nodes.iter().all(is_settled) {
            return;
        }
        let asked: BTreeSet<&ObjectKey> = decision.nodes.iter().flat_map(|verdict| &verdict.objects).collect();
        let gone: Vec<ObjectKey> = told.states.keys().filter(|key| !asked.contains(key)).cloned().collect();
        for key in gone {
            told.states.remove(&key);
            told.deferred.remove(&key);
            let Some(EventKind::HealthChanged { subject, .. }) = told.last.remove(&key) else { continue };
            let (health, reason) = (Health::NotFound, plinth_run::health::NOT_WANTED.to_owned());
            events.push(EventKind::HealthChanged { subject, health, reason, message: String::new(), causes: Vec::new() });
        }
    }

    fn instance(&self, causes: &[Cause]) -> EventKind {
        let lacks_rights = self.decision.nodes.iter().any(|verdict| verdict.missing().is_some());
        let (health, reason) = match self.decision.state {
            InstanceState::Deleting => (Health::Terminating, "Deleting"),
            InstanceState::Error => (Health::Failed, "Error"),
            _ if self.decision.ready => (Health::Current, "Ready"),
            _ if lacks_rights => (Health::Waiting, permission::MISSING),
            _ if self.waits_for_kinds() => (Health::Waiting, "Deferred"),
            _ => (Health::InProgress, "InProgress"),
        };
        let (message, causes) = match (health, causes.first()) {
            (Health::Current, _) => (String::new(), Vec::new()),
            (_, Some(cause)) => (cause.message.clone(), causes.to_vec()),
            (_, None) => (health::judge(&self.observation.instance).message, Vec::new()),
        };
        let subject = Subject::root(self.context.instance.clone());
        EventKind::HealthChanged { subject, health, reason: reason.to_owned(), message, causes }
    }

    /// Whether nothing is in the way but kinds that are not served: whatever else is not ready yet says so itself.
    fn waits_for_kinds(&self) -> bool {
        let nodes = &self.decision.nodes;
        let waits = |verdict: &NodeVerdict| urgency(verdict) <= urgency_of(NodeState::Deferred);
        nodes.iter().all(waits) && nodes.iter().any(|verdict| verdict.state == NodeState::Deferred)
    }

    /// The causes of the node that asks most for attention.
    fn root_causes(&self) -> Vec<Cause> {
        // Of equals the first in topological order: the others may well wait for it.
        let worst = self.decision.nodes.iter().rev().max_by_key(|verdict| urgency(verdict));
        match worst.filter(|verdict| urgency(verdict) > 0) {
            Some(verdict) => self.chain(verdict),
            // Everything is as wanted, but something else is there too.
            None if let Some(message) = &self.decision.left_over => {
                vec![Cause { subject: None, reason: "NotDeleted".to_owned(), message: message.clone() }]
            }
            // Everything is as wanted, but a child that is an instance is not Ready yet (contracts 13).
            None => self.unready_child(),
        }
    }

    fn unready_child(&self) -> Vec<Cause> {
        let causes = &self.context.causes;
        let mut children = self.decision.nodes.iter().flat_map(|verdict| verdict.objects.iter().map(move |key| (verdict, key)));
        let child = children.find(|(_, key)| causes.get(*key).is_some_and(|causes| !causes.is_empty()));
        let Some((verdict, key)) = child else { return Vec::new() };
        let subject = Some(self.child(verdict, key));
        let mut chain = vec![Cause { subject, reason: "NotReady".into(), message: format!("{key} is not ready") }];
        chain.extend(causes[key].iter().cloned());
        chain.truncate(LONGEST);
        chain
    }

    /// The node itself, then everything it waits for.
    fn chain(&self, verdict: &NodeVerdict) -> Vec<Cause> {
        let mut causes = vec![self.link(verdict)];
        causes.extend(self.causes_of(verdict));
        causes.truncate(LONGEST);
        causes
    }

    /// What a node waits for, and so on to the root.
    fn causes_of(&self, verdict: &NodeVerdict) -> Vec<Cause> {
        let mut causes = Vec::new();
        let mut seen = BTreeSet::from([verdict.id.as_str()]);
        let mut here = verdict;
        while causes.len() < LONGEST {
            causes.extend(self.inherited(here));
            match &here.waits_for {
                Some(WaitsFor::Node(next) | WaitsFor::Field { node: next, .. }) => {
                    let next = self.decision.node(next).filter(|next| seen.insert(next.id.as_str()));
                    let Some(next) = next else { break };
                    causes.push(self.link(next));
                    here = next;
                }
                other => {
                    causes.extend(other.as_ref().and_then(root_cause));
                    break;
                }
            }
        }
        causes.truncate(LONGEST);
        causes
    }

    fn link(&self, verdict: &NodeVerdict) -> Cause {
        let key = verdict.objects.first();
        let (_, reason, message) = self.judged(verdict, key.and_then(|key| self.observed(key)));
        let message = if message.is_empty() { format!("node {} is not ready", verdict.id) } else { message };
        Cause { subject: key.map(|key| self.child(verdict, key)), reason, message }
    }

    /// The verdict on a node's object. What the server refuses has a reason of its own: trying again does not help.
    fn judged(&self, verdict: &NodeVerdict, object: Option<&Object>) -> (Health, String, String) {
        let is_refused = |key: &ObjectKey| {
            let failure = self.observation.failures.get(key);
            matches!(failure, Some(Failure::Write { error: WriteError::Invalid { .. }, .. }))
        };
        let (health, reason, message) = judged(verdict, object);
        if health == Health::Failed && verdict.objects.iter().any(is_refused) {
            return (health, plinth_run::health::REFUSED.to_owned(), message);
        }
        (health, reason, message)
    }

    /// What a child that is an instance itself gave as its causes.
    fn inherited(&self, verdict: &NodeVerdict) -> Vec<Cause> {
        verdict.objects.iter().find_map(|key| self.context.causes.get(key)).cloned().unwrap_or_default()
    }

    fn observed(&self, key: &ObjectKey) -> Option<&Object> {
        self.observation.objects.get(key).and_then(Option::as_ref)
    }

    fn child(&self, verdict: &NodeVerdict, key: &ObjectKey) -> Subject {
        Subject::child(key.clone(), verdict.id.as_str(), self.context.instance.clone())
    }
}

fn urgency(verdict: &NodeVerdict) -> u8 {
    match verdict.state {
        NodeState::Failed => urgency_of(NodeState::Failed),
        // Nothing but a person helps against that.
        _ if verdict.missing().is_some() => urgency_of(NodeState::Terminating),
        state => urgency_of(state),
    }
}

fn urgency_of(state: NodeState) -> u8 {
    match state {
        NodeState::Failed => 5,
        NodeState::Terminating => 4,
        NodeState::Unready => 3,
        NodeState::Acting => 2,
        NodeState::Deferred | NodeState::Pending => 1,
        NodeState::Ready | NodeState::Skipped => 0,
    }
}

/// What is outside the graph.
fn root_cause(waits_for: &WaitsFor) -> Option<Cause> {
    match waits_for {
        WaitsFor::Kind(gvk) => {
            Some(Cause { subject: None, reason: "NotServed".into(), message: format!("{gvk} is not served yet") })
        }
        WaitsFor::Object(key) => Some(Cause {
            subject: Some(Subject::root(key.clone())),
            reason: "NotFound".into(),
            message: format!("{key} does not exist"),
        }),
        WaitsFor::Permission(missing) => {
            let message = permission::message(missing);
            Some(Cause { subject: None, reason: permission::MISSING.into(), message })
        }
        WaitsFor::Node(_) | WaitsFor::Field { .. } | WaitsFor::Deletion(_) | WaitsFor::Condition(_) => None,
    }
}

/// Health, reason and message of a node's object.
fn judged(verdict: &NodeVerdict, object: Option<&Object>) -> (Health, String, String) {
    let (health, reason) = match verdict.state {
        NodeState::Ready => (Health::Current, "Ready"),
        NodeState::Skipped => (Health::Current, "NotIncluded"),
        NodeState::Acting => (Health::InProgress, "Applying"),
        NodeState::Pending if verdict.missing().is_some() => (Health::Waiting, permission::MISSING),
        NodeState::Pending => (Health::Waiting, "Pending"),
        NodeState::Deferred => (Health::Waiting, "Deferred"),
        NodeState::Terminating => (Health::Terminating, "Terminating"),
        NodeState::Failed => (Health::Failed, "Failed"),
        NodeState::Unready => {
            let own = unready(object, &verdict.message);
            return (own.health, own.reason, own.message);
        }
    };
    (health, reason.to_owned(), verdict.message.clone())
}

#[cfg(test)]
mod tests;
