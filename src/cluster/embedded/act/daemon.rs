//! DaemonSets: a pod on each node, of which there is one.

use plinth_api::Object;
use serde_json::{Value, json};

use super::{
    Wake, conditions,
    hands::{CONTROLLERS, Hands},
    rollout::hash,
    workload::{Named, is_ready, make_pod, pods},
};
use crate::embedded::store::Place;

const BY: &str = "daemonset-controller";
const REVISION: &str = "controller-revision-hash";

pub(super) fn reconcile(hands: &mut Hands<'_>, place: &Place, set: &Object) -> Option<Wake> {
    let revision = hash(set);
    let all = hands.children(&pods(), place, set);
    let (new, old): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, pod)| pod.label(REVISION) == Some(revision.as_str()));
    old.iter().for_each(|(pod, _)| hands.delete(pod));
    if new.is_empty() {
        // What kept it from being made is an event; the counts say the rest.
        let _told = make_pod(hands, BY, (place, set), &Named::Anyhow, |pod| {
            pod["metadata"]["labels"][REVISION] = json!(revision);
        });
    }
    let all = hands.children(&pods(), place, set);
    let ready = all.iter().filter(|(_, pod)| is_ready(pod)).count();
    let mut status = conditions::counts(&[
        ("updatedNumberScheduled", all.len()),
        ("numberAvailable", ready),
        ("numberUnavailable", 1_usize.saturating_sub(ready)),
    ]);
    for (field, count) in
        [("currentNumberScheduled", all.len()), ("desiredNumberScheduled", 1), ("numberMisscheduled", 0), ("numberReady", ready)]
    {
        status.insert(field.to_owned(), json!(count));
    }
    status.insert("observedGeneration".to_owned(), json!(set.generation()));
    hands.set_status(CONTROLLERS, place, Value::Object(status));
    None
}
