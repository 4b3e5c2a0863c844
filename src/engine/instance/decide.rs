//! The decision itself: reads before writes, the inventory before what it records, pruning after a complete pass, the
//! status when nothing else is left.

use plinth_api::{GroupKind, Object, ObjectKey};
use serde_json::Value;

use super::{
    decision::{Action, Decision, InstanceState, NodeState},
    inventory::{self, Inventory},
    members::Members,
    observation::Observation,
    pass::Pass,
    removal,
    resolve::applyset_of,
    status::{self, Judgement},
};
use crate::{
    graph::Graph,
    health::{Health, judge},
    naming::keys,
};

/// Decides what is to be done next for an instance.
pub fn decide(graph: &Graph, seen: &Observation) -> Decision {
    if seen.instance.is_terminating() {
        return removal::decide(graph, seen);
    }
    if is_suspended(&seen.instance) {
        return suspended(graph, seen);
    }
    let key = key_of(graph, seen);
    let mut pass = Pass::run(graph, seen);
    pass.watch.objects.insert(key.clone());
    let complete = pass.is_complete();
    let mut actions = std::mem::take(&mut pass.reads);
    let refused = seen.failures.get(&key);
    if refused.is_none() {
        actions.extend(writes(graph, seen, &key, &mut pass));
    }
    let mut left_over = None;
    if complete && actions.is_empty() && refused.is_none() && descendants_settled(seen, &pass) {
        (actions, left_over) = prune(graph, seen, &key, &mut pass);
    }
    let (projected, problems) = status::projected(graph, &pass.values);
    let judgement = Judgement::of(&pass.verdicts, refused, &problems);
    let written = status::status(graph, seen, Some((projected, &pass.values)), &judgement);
    if actions.is_empty() && !status::same(seen.instance.status(), &written) {
        actions.push(Action::WriteStatus(written.clone()));
    }
    let ready = judgement.state == InstanceState::Active && descendants_ready(seen, &pass) && left_over.is_none();
    let Pass { verdicts, watch, .. } = pass;
    Decision { actions, nodes: verdicts, watch, state: judgement.state, ready, left_over, complete, status: written, problems }
}

/// The instance's own key.
pub(super) fn key_of(graph: &Graph, seen: &Observation) -> ObjectKey {
    ObjectKey {
        cluster: seen.cluster.clone(),
        gvk: graph.instance.gvk.clone(),
        namespace: seen.instance.namespace().map(str::to_owned),
        name: seen.instance.name().to_owned(),
    }
}

/// Writes of this round: the finalizer first, then an inventory that covers everything wanted, then the children.
fn writes(graph: &Graph, seen: &Observation, key: &ObjectKey, pass: &mut Pass<'_>) -> Vec<Action> {
    if let Some(patch) = inventory::manage(graph, &seen.instance, key) {
        return vec![Action::PatchInstance(patch)];
    }
    let recorded = Inventory::recorded(&seen.instance);
    let is_intact = inventory::is_intact(graph, &seen.instance);
    if recorded.as_ref().is_some_and(|recorded| is_intact && recorded.covers(&pass.batch)) {
        return std::mem::take(&mut pass.applies);
    }
    let superset = pass.batch.union(&recorded.unwrap_or_default());
    vec![Action::PatchInstance(inventory::record(graph, &seen.instance, key, &superset))]
}

/// Deletes members that are no longer wanted, one wave at a time, then lets the inventory shrink. The second says what could
/// not be deleted yet; until it is, the inventory stays, because after a restart nothing else knows of it.
fn prune(graph: &Graph, seen: &Observation, key: &ObjectKey, pass: &mut Pass<'_>) -> (Vec<Action>, Option<String>) {
    let recorded = Inventory::recorded(&seen.instance).unwrap_or_default();
    let set = applyset_of(graph, &seen.instance);
    let members = Members::look(graph, seen, &set, &recorded, &mut pass.watch);
    if !members.reads.is_empty() || members.blind.is_some() {
        return (members.reads, members.blind);
    }
    let is_wanted = |key: &ObjectKey| pass.wanted.contains_key(key);
    let orphan = |key: &ObjectKey| !is_wanted(key) && !seen.failures.contains_key(key);
    if members.found.keys().any(orphan) {
        return (members.next_wave(orphan), None);
    }
    let mut failed = members.found.keys().filter(|key| !is_wanted(key)).filter_map(|key| Some((key, seen.failures.get(key)?)));
    if let Some((key, failure)) = failed.next() {
        return (Vec::new(), Some(format!("{key} is not wanted any more and not deleted yet: {}", status::words(failure))));
    }
    if recorded == pass.batch {
        return (Vec::new(), None);
    }
    (vec![Action::PatchInstance(inventory::record(graph, &seen.instance, key, &pass.batch))], None)
}

fn is_suspended(instance: &Object) -> bool {
    let word = instance.annotation(keys::RECONCILE).unwrap_or_default().to_ascii_lowercase();
    word == "suspended" || word == "disabled"
}

/// A suspended instance is left as it is; only its status says so.
fn suspended(graph: &Graph, seen: &Observation) -> Decision {
    let judgement = Judgement::suspended();
    let status = status::status(graph, seen, None, &judgement);
    let mut decision = Decision { state: judgement.state, status, ..Decision::default() };
    let key = key_of(graph, seen);
    match inventory::manage(graph, &seen.instance, &key) {
        Some(patch) if !seen.failures.contains_key(&key) => decision.actions.push(Action::PatchInstance(patch)),
        _ if !status::same(seen.instance.status(), &decision.status) => {
            decision.actions.push(Action::WriteStatus(decision.status.clone()));
        }
        _ => {}
    }
    decision.watch.objects.insert(key);
    decision
}

/// Contracts 13: children that are instances themselves must be Ready.
fn descendants_ready(seen: &Observation, pass: &Pass<'_>) -> bool {
    descendants(seen, pass).all(|key| is_ready_now(seen, key))
}

/// What comes in the place of something is there before that goes: children that are instances are Ready, or in an error, which may well be
/// that the one before them still has what they are to make.
fn descendants_settled(seen: &Observation, pass: &Pass<'_>) -> bool {
    let is_in_error = |key| {
        let live = seen.objects.get(key).and_then(Option::as_ref);
        live.is_some_and(|live| live.status()["state"] == "ERROR")
    };
    descendants(seen, pass).all(|key| is_ready_now(seen, key) || is_in_error(key))
}

fn descendants<'a>(seen: &'a Observation, pass: &'a Pass<'_>) -> impl Iterator<Item = &'a ObjectKey> {
    let children =
        pass.verdicts.iter().filter(|verdict| verdict.state != NodeState::Skipped).flat_map(|verdict| &verdict.objects);
    children.filter(|key| seen.instance_kinds.contains::<GroupKind>(&key.gvk.group_kind()))
}

fn is_ready_now(seen: &Observation, key: &ObjectKey) -> bool {
    match seen.ready_instances.get(key) {
        Some(ready) => *ready,
        None => seen.objects.get(key).and_then(Option::as_ref).is_some_and(is_ready),
    }
}

fn is_ready(instance: &Object) -> bool {
    let conditions = instance.at(&["status", "conditions"]).and_then(Value::as_array);
    conditions.is_some_and(|list| list.iter().any(|condition| condition["type"] == "Ready"))
        && judge(instance).health == Health::Current
}
