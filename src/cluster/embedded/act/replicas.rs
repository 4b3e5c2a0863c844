//! ReplicaSets: as many pods as are wanted.

use plinth_api::Object;
use serde_json::{Value, json};

use super::{
    Wake, conditions,
    conditions::Said,
    hands::{CONTROLLERS, Hands, Tone},
    workload::{self, Named, is_active, is_ready, make_pod, pods, wanted},
};
use crate::embedded::store::Place;

/// Pods that are made at a time; a set of thousands grows in several steps.
const AT_ONCE: usize = 500;
const BY: &str = "replicaset-controller";

pub(super) fn reconcile(hands: &mut Hands<'_>, place: &Place, set: &Object) -> Option<Wake> {
    let mut children = hands.children(&pods(), place, set);
    children.retain(|(_, pod)| is_active(pod));
    let wanted = wanted(set);
    let mut failure = None;
    for _ in children.len()..wanted.min(children.len() + AT_ONCE) {
        failure = make_pod(hands, BY, (place, set), &Named::Anyhow, |_| {}).err();
        if failure.is_some() {
            break;
        }
    }
    // What is not ready goes first.
    children.sort_by_key(|(_, pod)| is_ready(pod));
    let surplus = children.len().saturating_sub(wanted);
    for (pod, _) in children.drain(..surplus) {
        hands.delete(&pod);
        hands.event(BY, place, Tone::Normal, "SuccessfulDelete", &format!("Deleted pod: {}", pod.name));
    }
    report(hands, place, set, failure.as_deref());
    None
}

fn report(hands: &mut Hands<'_>, place: &Place, set: &Object, failure: Option<&str>) {
    let mut all = hands.children(&pods(), place, set);
    all.retain(|(_, pod)| workload::is_active(pod));
    let ready = all.iter().filter(|(_, pod)| is_ready(pod)).count();
    let mut status =
        conditions::counts(&[("fullyLabeledReplicas", all.len()), ("readyReplicas", ready), ("availableReplicas", ready)]);
    status.insert("replicas".to_owned(), json!(all.len()));
    status.insert("observedGeneration".to_owned(), json!(set.generation()));
    if let Some(message) = failure {
        let said = Said { kind: "ReplicaFailure", holds: true, reason: "FailedCreate", message };
        status.insert("conditions".to_owned(), conditions::with(set.status(), &[said], &hands.time(), false));
    }
    hands.set_status(CONTROLLERS, place, Value::Object(status));
}
