use serde_json::{Value, json};

use super::*;

fn check(object: Value, health: Health, reason: &str) {
    let verdict = judge(&Object::from_value(object.clone()).unwrap());
    assert_eq!((verdict.health, verdict.reason.as_str()), (health, reason), "{object}");
}

fn object(api_version: &str, kind: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2}, "spec": spec, "status": status})
}

#[test]
fn deployments() {
    let judged =
        |status: Value, health, reason| check(object("apps/v1", "Deployment", json!({"replicas": 2}), status), health, reason);
    let good = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
    judged(good, Health::Current, "Ready");
    judged(
        json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}),
        Health::InProgress,
        "Stale",
    );
    judged(json!({"replicas": 2, "updatedReplicas": 1}), Health::InProgress, "Updating");
    judged(json!({"replicas": 3, "updatedReplicas": 2, "availableReplicas": 3}), Health::InProgress, "Updating");
    judged(json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}), Health::InProgress, "NotAvailable");
    let late = json!({"conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]});
    judged(late, Health::Failed, "ProgressDeadlineExceeded");
}

#[test]
fn other_workloads() {
    let set = |status| object("apps/v1", "StatefulSet", json!({"replicas": 1}), status);
    check(set(json!({"readyReplicas": 1, "updateRevision": "a", "currentRevision": "a"})), Health::Current, "Ready");
    check(set(json!({"readyReplicas": 1, "updateRevision": "b", "currentRevision": "a"})), Health::InProgress, "Updating");
    check(object("apps/v1", "DaemonSet", json!({}), json!({})), Health::InProgress, "NoStatus");
    let done = json!({"desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "numberAvailable": 1});
    check(object("apps/v1", "DaemonSet", json!({}), done), Health::Current, "Ready");
    let job = |conditions: Value| object("batch/v1", "Job", json!({}), json!({"conditions": conditions}));
    check(
        job(json!([{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}])),
        Health::Failed,
        "BackoffLimitExceeded",
    );
    check(job(json!([{"type": "Complete", "status": "True"}])), Health::Current, "Complete");
    check(job(json!([])), Health::InProgress, "Running");
}

#[test]
fn pods_tell_waiting_progressing_and_failed_apart() {
    let pod = |status| object("v1", "Pod", json!({}), status);
    check(pod(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})), Health::Current, "Ready");
    let unschedulable =
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    check(pod(unschedulable), Health::Waiting, "Unschedulable");
    let pulling =
        json!({"phase": "Pending", "containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]});
    check(pod(pulling), Health::Failed, "ImagePullBackOff");
    check(pod(json!({"phase": "Pending"})), Health::InProgress, "Starting");
}

#[test]
fn services_and_definitions() {
    check(object("v1", "Service", json!({"type": "ClusterIP"}), json!({"loadBalancer": {}})), Health::Current, "Ready");
    check(object("v1", "Service", json!({"type": "LoadBalancer"}), json!({"loadBalancer": {}})), Health::InProgress, "NoAddress");
    let crd = |conditions: Value| {
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", json!({}), json!({"conditions": conditions}))
    };
    check(crd(json!([{"type": "Established", "status": "True"}])), Health::Current, "Established");
    check(
        crd(json!([{"type": "NamesAccepted", "status": "False", "reason": "PluralConflict"}])),
        Health::Failed,
        "PluralConflict",
    );
    check(crd(json!([])), Health::InProgress, "NotEstablished");
}

#[test]
fn any_other_kind_is_judged_by_its_conditions() {
    let custom = |status| object("example.org/v1", "Thing", json!({}), status);
    let ready = |status: &str| json!([{"type": "Ready", "status": status, "reason": "Because", "observedGeneration": 2}]);
    check(custom(json!({"conditions": ready("True")})), Health::Current, "Because");
    check(custom(json!({"conditions": ready("False")})), Health::InProgress, "Because");
    check(
        custom(json!({"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]})),
        Health::InProgress,
        "Stale",
    );
    check(
        custom(json!({"conditions": [{"type": "Stalled", "status": "True"}, {"type": "Ready", "status": "False"}]})),
        Health::Failed,
        "Stalled",
    );
    check(custom(json!({"phase": "Ready"})), Health::Current, "Ready");
    check(custom(json!({"phase": "Strange"})), Health::Unknown, "Strange");
    check(custom(json!({"something": 1})), Health::Unknown, "NoConditions");
    check(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}), Health::Current, "Exists");
}

#[test]
fn an_object_being_deleted_names_its_finalizers() {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}});
    let verdict = judge(&Object::from_value(object.clone()).unwrap());
    assert_eq!((verdict.health, verdict.message.as_str()), (Health::Terminating, "waits for the finalizer a/b"));
    object["status"] = json!({"conditions": [{"type": "Ready", "status": "False", "message": "waits for Resource r"}]});
    let verdict = judge(&Object::from_value(object).unwrap());
    assert_eq!(verdict.message, "waits for the finalizer a/b: waits for Resource r");
}
