//! Deployments: a ReplicaSet for each revision of the template; the new one takes over when it is available.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use plinth_api::Object;
use serde_json::{Value, json};

use super::{
    Wake, conditions,
    conditions::Said,
    hands::{CONTROLLERS, Hands, Tone, owned_by, resource},
    rollout::{hash, joined, share},
    workload::wanted,
};
use crate::embedded::store::{Place, Resource};

const BY: &str = "deployment-controller";
const REVISION: &str = "deployment.kubernetes.io/revision";
const HASH: &str = "pod-template-hash";

/// One ReplicaSet.
type Set = (Place, Arc<Object>);

fn sets() -> Resource {
    resource("apps", "replicasets")
}

pub(super) fn reconcile(hands: &mut Hands<'_>, place: &Place, deployment: &Object) -> Option<Wake> {
    let name = joined(&place.name, &hash(deployment));
    let (new, mut old) = split(hands, place, deployment, &name);
    let wanted = wanted(deployment);
    let recreates = deployment.spec()["strategy"]["type"] == "Recreate";
    if recreates && old.iter().any(|(_, set)| size(set) > 0 || count(set, "replicas") > 0) {
        old.iter().for_each(|set| scale(hands, place, set, 0));
        return report(hands, place, deployment, &name);
    }
    match &new {
        None => make(hands, place, deployment, &name, revision(&old) + 1),
        Some(set) => scale(hands, place, set, wanted),
    }
    if new.as_ref().is_some_and(|(_, set)| count(set, "availableReplicas") >= wanted) {
        old.iter().for_each(|set| scale(hands, place, set, 0));
        forget(hands, deployment, &mut old);
    }
    report(hands, place, deployment, &name)
}

/// The ReplicaSet of the present template, and the others.
fn split(hands: &Hands<'_>, place: &Place, deployment: &Object, name: &str) -> (Option<Set>, Vec<Set>) {
    let mut all = hands.children(&sets(), place, deployment);
    let new = all.iter().position(|(set, _)| set.name == name).map(|at| all.remove(at));
    (new, all)
}

fn revision(sets: &[Set]) -> u64 {
    let of = |set: &Object| set.annotation(REVISION).and_then(|text| text.parse().ok());
    sets.iter().filter_map(|(_, set)| of(set)).max().unwrap_or_default()
}

fn size(set: &Object) -> usize {
    wanted(set)
}

fn count(set: &Object, field: &str) -> usize {
    set.status()[field].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default()
}

fn make(hands: &mut Hands<'_>, place: &Place, deployment: &Object, name: &str, revision: u64) {
    let hash = name.rsplit('-').next().unwrap_or_default();
    let mut spec = json!({"replicas": wanted(deployment), "selector": deployment.spec()["selector"], "template": deployment.spec()["template"]});
    spec["selector"]["matchLabels"][HASH] = json!(hash);
    spec["template"]["metadata"]["labels"][HASH] = json!(hash);
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": name, "labels": spec["template"]["metadata"]["labels"], "annotations": {REVISION: revision.to_string()},
            "ownerReferences": owned_by(deployment),
        },
        "spec": spec,
    });
    if hands.create(CONTROLLERS, place, &sets(), &set).is_err() {
        return;
    }
    let note = json!({"metadata": {"annotations": {REVISION: revision.to_string()}}});
    hands.merge(CONTROLLERS, place, &note);
    let message = format!("Scaled up replica set {name} from 0 to {}", wanted(deployment));
    hands.event(BY, place, Tone::Normal, "ScalingReplicaSet", &message);
}

fn scale(hands: &mut Hands<'_>, place: &Place, (set, object): &Set, to: usize) {
    let from = size(object);
    if from == to || !hands.merge(CONTROLLERS, set, &json!({"spec": {"replicas": to}})) {
        return;
    }
    let way = if to > from { "up" } else { "down" };
    let message = format!("Scaled {way} replica set {} from {from} to {to}", set.name);
    hands.event(BY, place, Tone::Normal, "ScalingReplicaSet", &message);
}

/// Old revisions over the limit go, the oldest first.
fn forget(hands: &mut Hands<'_>, deployment: &Object, old: &mut [Set]) {
    let limit = deployment.spec()["revisionHistoryLimit"].as_u64().unwrap_or(10);
    old.sort_by_key(|set| revision(std::slice::from_ref(set)));
    let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    old.iter().take(surplus).filter(|(_, set)| count(set, "replicas") == 0).for_each(|(place, _)| hands.delete(place));
}

fn report(hands: &mut Hands<'_>, place: &Place, deployment: &Object, name: &str) -> Option<Wake> {
    let (new, old) = split(hands, place, deployment, name);
    let all = || old.iter().chain(&new).map(|(_, set)| set);
    let sum = |field: &str| all().map(|set| count(set, field)).sum::<usize>();
    let (replicas, available, ready) = (sum("replicas"), sum("availableReplicas"), sum("readyReplicas"));
    let updated = new.as_ref().map_or(0, |(_, set)| count(set, "replicas"));
    let wanted = wanted(deployment);
    let mut status = conditions::counts(&[
        ("replicas", replicas),
        ("updatedReplicas", updated),
        ("readyReplicas", ready),
        ("availableReplicas", available),
        ("unavailableReplicas", wanted.max(replicas).saturating_sub(available)),
    ]);
    status.insert("observedGeneration".to_owned(), json!(deployment.generation()));
    let complete = [updated, replicas, available].iter().all(|count| *count == wanted);
    let moved = conditions::counts(&[("replicas", replicas), ("updatedReplicas", updated), ("availableReplicas", available)])
        .iter()
        .any(|(field, count)| deployment.status().get(field) != Some(count));
    let progress = progress(hands, deployment, name, new.as_ref(), complete, moved);
    let least = wanted.saturating_sub(share(&deployment.spec()["strategy"]["rollingUpdate"]["maxUnavailable"], wanted, false));
    let failure = new.as_ref().and_then(|(_, set)| conditions::find(set.status(), "ReplicaFailure").cloned());
    let conditions = said(hands, deployment, available >= least, &progress, failure.as_ref());
    status.insert("conditions".to_owned(), conditions);
    hands.set_status(CONTROLLERS, place, Value::Object(status));
    progress.deadline.map(|at| Wake { at, moves: false })
}

/// How far the present revision is.
struct Progress {
    holds: bool,
    reason: &'static str,
    message: String,
    deadline: Option<Timestamp>,
}

fn progress(hands: &Hands<'_>, deployment: &Object, name: &str, new: Option<&Set>, complete: bool, moved: bool) -> Progress {
    let known = conditions::find(deployment.status(), "Progressing");
    let say = |holds, reason, message: String, deadline| Progress { holds, reason, message, deadline };
    if complete {
        return say(true, "NewReplicaSetAvailable", format!("ReplicaSet {name:?} has successfully progressed."), None);
    }
    let limit = deployment.spec()["progressDeadlineSeconds"].as_i64().unwrap_or(600);
    let since = known.and_then(|known| known["lastUpdateTime"].as_str()?.parse::<Timestamp>().ok());
    let since = since.filter(|_| !moved).unwrap_or(hands.now);
    let deadline = since.checked_add(SignedDuration::from_secs(limit)).unwrap_or(Timestamp::MAX);
    let is_over = known.is_some_and(|known| known["reason"] == "ProgressDeadlineExceeded") && !moved;
    if is_over || deadline <= hands.now {
        return say(false, "ProgressDeadlineExceeded", format!("ReplicaSet {name:?} has timed out progressing."), None);
    }
    if new.is_none_or(|(_, set)| set.status()["observedGeneration"].is_null()) {
        return say(true, "NewReplicaSetCreated", format!("Created new replica set {name:?}"), Some(deadline));
    }
    say(true, "ReplicaSetUpdated", format!("ReplicaSet {name:?} is progressing."), Some(deadline))
}

fn said(hands: &Hands<'_>, deployment: &Object, available: bool, progress: &Progress, failure: Option<&Value>) -> Value {
    let (reason, message) = if available {
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let mut said = vec![
        Said { kind: "Available", holds: available, reason, message },
        Said { kind: "Progressing", holds: progress.holds, reason: progress.reason, message: &progress.message },
    ];
    if let Some(failure) = failure {
        let message = failure["message"].as_str().unwrap_or_default();
        said.push(Said { kind: "ReplicaFailure", holds: true, reason: "FailedCreate", message });
    }
    let conditions = conditions::with(deployment.status(), &said, &hands.time(), true);
    let kept = conditions.as_array().into_iter().flatten().filter(|one| failure.is_some() || one["type"] != "ReplicaFailure");
    Value::Array(kept.cloned().collect())
}
