//! Jobs: pods until enough of them have ended well.

use plinth_api::Object;
use serde_json::{Value, json};

use super::{
    Wake, conditions,
    conditions::Said,
    hands::{CONTROLLERS, Hands, Tone},
    workload::{Named, is_active, is_ready, make_pod, pods},
};
use crate::embedded::store::Place;

const BY: &str = "job-controller";
/// Pods that are made at a time.
const AT_ONCE: usize = 100;

pub(super) fn reconcile(hands: &mut Hands<'_>, place: &Place, job: &Object) -> Option<Wake> {
    if conditions::holds(job.status(), "Complete") || job.spec()["suspend"] == true {
        return None;
    }
    let count = |field: &str| job.spec()[field].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
    let (completions, parallel) = (count("completions"), count("parallelism"));
    let children = hands.children(&pods(), place, job);
    let succeeded = children.iter().filter(|(_, pod)| pod.status()["phase"] == "Succeeded").count();
    let active = children.iter().filter(|(_, pod)| is_active(pod)).count();
    let wanted = parallel.min(completions.saturating_sub(succeeded));
    for _ in active..wanted.min(active + AT_ONCE) {
        if make_pod(hands, BY, (place, job), &Named::Anyhow, |_| {}).is_err() {
            break;
        }
    }
    report(hands, place, job, completions);
    None
}

fn report(hands: &mut Hands<'_>, place: &Place, job: &Object, completions: usize) {
    let children = hands.children(&pods(), place, job);
    let succeeded = children.iter().filter(|(_, pod)| pod.status()["phase"] == "Succeeded").count();
    let active: Vec<_> = children.iter().filter(|(_, pod)| is_active(pod)).collect();
    let ready = active.iter().filter(|(_, pod)| is_ready(pod)).count();
    let mut status = conditions::counts(&[("active", active.len()), ("succeeded", succeeded)]);
    let now = hands.time();
    let started = job.status()["startTime"].as_str().unwrap_or(&now).to_owned();
    status.insert("startTime".to_owned(), json!(started));
    status.insert("ready".to_owned(), json!(ready));
    status.insert("terminating".to_owned(), json!(0));
    status.insert("uncountedTerminatedPods".to_owned(), json!({}));
    let complete = succeeded >= completions;
    if complete {
        let message = "Reached expected number of succeeded pods";
        let said =
            ["SuccessCriteriaMet", "Complete"].map(|kind| Said { kind, holds: true, reason: "CompletionsReached", message });
        status.insert("conditions".to_owned(), conditions::with(job.status(), &said, &now, false));
        status.insert("completionTime".to_owned(), json!(now));
    }
    hands.set_status(CONTROLLERS, place, Value::Object(status));
    if complete {
        hands.event(BY, place, Tone::Normal, "Completed", "Job completed");
    }
}
