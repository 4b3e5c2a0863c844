//! Kubernetes' own kinds, each with its own way of saying how it is.

use plinth_api::Object;
use serde_json::Value;

use super::{
    conditions::find,
    verdict::{Health, Verdict},
};

/// The verdict on an object of one of Kubernetes' own kinds; `None` for every other kind.
pub(super) fn judge(object: &Object) -> Option<Verdict> {
    let gvk = object.gvk()?;
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apps", "Deployment") => Some(deployment(object)),
        ("apps", "StatefulSet" | "ReplicaSet") => Some(replicas(object)),
        ("apps", "DaemonSet") => Some(daemon_set(object)),
        ("batch", "Job") => Some(job(object)),
        ("", "Pod") => Some(pod(object)),
        ("", "Service") => Some(service(object)),
        ("", "PersistentVolumeClaim") => Some(claim(object)),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some(definition(object)),
        _ => None,
    }
}

fn count(object: &Object, path: &[&str]) -> Option<i64> {
    object.at(path).and_then(Value::as_i64)
}

fn status(object: &Object, name: &str) -> i64 {
    count(object, &["status", name]).unwrap_or_default()
}

fn current() -> Verdict {
    Verdict::new(Health::Current, "Ready", "")
}

fn progress(reason: &str, done: i64, wanted: i64, what: &str) -> Verdict {
    Verdict::new(Health::InProgress, reason, format!("{done} of {wanted} {what}"))
}

fn deployment(object: &Object) -> Verdict {
    if let Some(seen) = find(object, "Progressing").filter(|seen| seen.reason == "ProgressDeadlineExceeded") {
        return seen.verdict(Health::Failed, "ProgressDeadlineExceeded");
    }
    if let Some(seen) = find(object, "ReplicaFailure").filter(|seen| seen.status == "True") {
        return seen.verdict(Health::Failed, "ReplicaFailure");
    }
    let wanted = count(object, &["spec", "replicas"]).unwrap_or(1);
    let (updated, available, all) =
        (status(object, "updatedReplicas"), status(object, "availableReplicas"), status(object, "replicas"));
    if updated < wanted {
        return progress("Updating", updated, wanted, "replicas are updated");
    }
    if all > updated {
        return progress("Updating", updated, all, "replicas are of the new revision");
    }
    if available < wanted {
        return progress("NotAvailable", available, wanted, "replicas are available");
    }
    current()
}

fn replicas(object: &Object) -> Verdict {
    let wanted = count(object, &["spec", "replicas"]).unwrap_or(1);
    let ready = status(object, "readyReplicas");
    if ready < wanted {
        return progress("NotReady", ready, wanted, "replicas are ready");
    }
    let partition = count(object, &["spec", "updateStrategy", "rollingUpdate", "partition"]).unwrap_or_default();
    let revision = |name: &str| object.at(&["status", name]).and_then(Value::as_str).unwrap_or_default();
    if partition == 0 && !revision("updateRevision").is_empty() && revision("updateRevision") != revision("currentRevision") {
        return progress("Updating", status(object, "updatedReplicas"), wanted, "replicas are of the new revision");
    }
    current()
}

fn daemon_set(object: &Object) -> Verdict {
    let Some(wanted) = count(object, &["status", "desiredNumberScheduled"]) else {
        return Verdict::new(Health::InProgress, "NoStatus", "its controller has not seen it yet");
    };
    for (name, reason, what) in
        [("updatedNumberScheduled", "Updating", "pods are updated"), ("numberAvailable", "NotAvailable", "pods are available")]
    {
        if status(object, name) < wanted {
            return progress(reason, status(object, name), wanted, what);
        }
    }
    current()
}

fn job(object: &Object) -> Verdict {
    if let Some(seen) = find(object, "Failed").filter(|seen| seen.status == "True") {
        return seen.verdict(Health::Failed, "Failed");
    }
    if find(object, "Complete").is_some_and(|seen| seen.status == "True") {
        return Verdict::new(Health::Current, "Complete", "");
    }
    let wanted = count(object, &["spec", "completions"]).unwrap_or(1);
    progress("Running", status(object, "succeeded"), wanted, "pods have succeeded")
}

fn pod(object: &Object) -> Verdict {
    match object.at(&["status", "phase"]).and_then(Value::as_str).unwrap_or_default() {
        "Succeeded" => return Verdict::new(Health::Current, "Succeeded", ""),
        "Failed" => return Verdict::new(Health::Failed, "Failed", container_message(object)),
        _ => {}
    }
    if let Some((reason, message)) = stuck(object) {
        return Verdict::new(Health::Failed, reason, message);
    }
    match find(object, "Ready") {
        Some(seen) if seen.status == "True" => current(),
        Some(seen) => seen.verdict(Health::InProgress, "NotReady"),
        None => match find(object, "PodScheduled").filter(|seen| seen.status == "False") {
            Some(seen) => seen.verdict(Health::Waiting, "Unschedulable"),
            None => Verdict::new(Health::InProgress, "Starting", ""),
        },
    }
}

/// A container that keeps failing in the same way: waiting will not help.
fn stuck(object: &Object) -> Option<(String, String)> {
    const STUCK: [&str; 6] = [
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
    ];
    for list in ["initContainerStatuses", "containerStatuses"] {
        for container in object.at(&["status", list]).and_then(Value::as_array).into_iter().flatten() {
            let waiting = container.pointer("/state/waiting");
            let Some(reason) = waiting.and_then(|waiting| waiting.get("reason")).and_then(Value::as_str) else { continue };
            if STUCK.contains(&reason) {
                let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
                let message = text(waiting.and_then(|waiting| waiting.get("message")));
                return Some((reason.to_owned(), format!("container {}: {message}", text(container.get("name")))));
            }
        }
    }
    None
}

fn container_message(object: &Object) -> String {
    object.at(&["status", "message"]).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn service(object: &Object) -> Verdict {
    let balanced = object.at(&["spec", "type"]).and_then(Value::as_str) == Some("LoadBalancer");
    let ingress = object.at(&["status", "loadBalancer", "ingress"]).and_then(Value::as_array);
    if balanced && ingress.is_none_or(Vec::is_empty) {
        return Verdict::new(Health::InProgress, "NoAddress", "no load balancer has given it an address");
    }
    current()
}

fn claim(object: &Object) -> Verdict {
    match object.at(&["status", "phase"]).and_then(Value::as_str).unwrap_or_default() {
        "Bound" => Verdict::new(Health::Current, "Bound", ""),
        "Lost" => Verdict::new(Health::Failed, "Lost", "its volume is gone"),
        _ => Verdict::new(Health::InProgress, "Pending", "no volume is bound"),
    }
}

fn definition(object: &Object) -> Verdict {
    if let Some(seen) = find(object, "NamesAccepted").filter(|seen| seen.status == "False") {
        return seen.verdict(Health::Failed, "NamesNotAccepted");
    }
    match find(object, "Established") {
        Some(seen) if seen.status == "True" => Verdict::new(Health::Current, "Established", ""),
        Some(seen) => seen.verdict(Health::InProgress, "NotEstablished"),
        None => Verdict::new(Health::InProgress, "NotEstablished", ""),
    }
}
