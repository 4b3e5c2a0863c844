//! Removing an instance: its children in reverse order of their application, by what was recorded (kro.md section 14).
//!
//! Neither the graph's expressions nor external references are needed, so nothing that is missing can hold it up.

use super::{
    account::refusal,
    decide::key_of,
    decision::{Action, Decision, InstanceState},
    inventory::trusted,
    members::Members,
    observation::{Failure, Observation},
    resolve::applyset_of,
    status::{self, Judgement},
};
use crate::{graph::Graph, naming::keys};

/// Decides about an instance that is being deleted.
pub(super) fn decide(graph: &Graph, seen: &Observation) -> Decision {
    let mut decision = Decision { state: InstanceState::Deleting, ..Decision::default() };
    decision.watch.objects.insert(key_of(graph, seen));
    if !seen.instance.finalizers().contains(&keys::FINALIZER) {
        return decision;
    }
    let message = match trusted(graph, &seen.instance) {
        Ok(inventory) => {
            let set = applyset_of(graph, &seen.instance);
            let members = Members::look(graph, seen, &set, &inventory, &mut decision.watch);
            decision.actions = next(seen, &members);
            waiting(graph, seen, &members)
        }
        Err(why) => format!(
            "deletion blocked: validate deletion inventory: {why} (put it back, or delete the children and take the finalizer {} away)",
            keys::FINALIZER
        ),
    };
    let judgement = Judgement::deleting(message);
    decision.status = status::status(graph, seen, None, &judgement);
    if decision.actions.is_empty() && !status::same(seen.instance.status(), &decision.status) {
        decision.actions.push(Action::WriteStatus(decision.status.clone()));
    }
    decision
}

fn next(seen: &Observation, members: &Members<'_>) -> Vec<Action> {
    if !members.reads.is_empty() || members.blind.is_some() {
        return members.reads.clone();
    }
    if members.found.is_empty() {
        return vec![Action::RemoveFinalizer(keys::FINALIZER.to_owned())];
    }
    let mut wave = members.next_wave(|_| true);
    wave.retain(|action| !matches!(action, Action::Delete { delete, .. } if seen.failures.contains_key(&delete.key)));
    wave
}

/// kro's words, and on whom it waits.
fn waiting(graph: &Graph, seen: &Observation, members: &Members<'_>) -> String {
    if let Some(why) = &members.blind {
        return format!("deletion blocked: {why}");
    }
    let refused = members.found.keys().find_map(|key| match seen.failures.get(key) {
        Some(Failure::Write { error, .. }) => Some(format!("deletion blocked: {}", refusal(graph, seen, error))),
        _ => None,
    });
    refused.unwrap_or_else(|| match members.found.values().find(|object| object.is_terminating()) {
        Some(object) if !object.finalizers().is_empty() => {
            let kind = object.gvk().map(|gvk| gvk.group_kind().to_string()).unwrap_or_default();
            format!("deleting resources: {kind}/{} waits for the finalizers {}", object.name(), object.finalizers().join(", "))
        }
        _ => "deleting resources".to_owned(),
    })
}
