//! StatefulSets: numbered pods, one after the other, each with its claims.

use std::sync::Arc;

use plinth_api::Object;
use serde_json::{Value, json};

use super::{
    Wake, conditions,
    hands::{CONTROLLERS, Hands, Tone, resource},
    rollout::{hash, joined},
    workload::{Named, is_ready, make_pod, pods, wanted},
};
use crate::embedded::store::Place;

const BY: &str = "statefulset-controller";
/// Pods that a set may have: each is looked at in each pass.
const MOST: usize = 10_000;
const REVISION: &str = "controller-revision-hash";

pub(super) fn reconcile(hands: &mut Hands<'_>, place: &Place, set: &Object) -> Option<Wake> {
    let revision = joined(&place.name, &hash(set));
    let wanted = wanted(set).min(MOST);
    let in_order = set.spec()["podManagementPolicy"] != "Parallel";
    for number in 0..wanted {
        let name = format!("{}-{number}", place.name);
        let pod = Place { resource: pods(), name: name.clone(), ..place.clone() };
        match hands.get(&pod) {
            Some(found) if found.label(REVISION) != Some(revision.as_str()) => hands.delete(&pod),
            Some(found) if is_ready(&found) || !in_order => continue,
            Some(_) => break,
            None => {}
        }
        if hands.get(&pod).is_none() && !make(hands, place, set, &name, &revision) {
            break;
        }
        if in_order {
            break;
        }
    }
    for (pod, _) in hands.children(&pods(), place, set) {
        if number(&pod.name).is_none_or(|number| number >= wanted) {
            hands.delete(&pod);
            let message = format!("delete Pod {} in StatefulSet {} successful", pod.name, place.name);
            hands.event(BY, place, Tone::Normal, "SuccessfulDelete", &message);
        }
    }
    report(hands, place, set, &revision);
    None
}

fn number(name: &str) -> Option<usize> {
    name.rsplit_once('-')?.1.parse().ok()
}

fn make(hands: &mut Hands<'_>, place: &Place, set: &Object, name: &str, revision: &str) -> bool {
    let templates = set.spec()["volumeClaimTemplates"].as_array().cloned().unwrap_or_default();
    let claim = |template: &Value| format!("{}-{name}", template["metadata"]["name"].as_str().unwrap_or_default());
    for template in &templates {
        let mut object = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": template["metadata"], "spec": template["spec"]});
        object["metadata"]["name"] = json!(claim(template));
        object["metadata"]["labels"] = set.spec()["selector"]["matchLabels"].clone();
        // One that is there already is used again: that is what makes the set stateful.
        let _there = hands.create(CONTROLLERS, place, &resource("", "persistentvolumeclaims"), &object);
    }
    let number = number(name).unwrap_or_default();
    let made = make_pod(hands, BY, (place, set), &Named::As(name), |pod| {
        pod["metadata"]["labels"][REVISION] = json!(revision);
        pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(name);
        pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = json!(number.to_string());
        pod["spec"]["hostname"] = json!(name);
        if let Some(service) = set.spec()["serviceName"].as_str() {
            pod["spec"]["subdomain"] = json!(service);
        }
        if !templates.is_empty() && pod["spec"]["volumes"].is_null() {
            pod["spec"]["volumes"] = json!([]);
        }
        for template in &templates {
            let volume = json!({"name": template["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim(template)}});
            if let Value::Array(volumes) = &mut pod["spec"]["volumes"] {
                volumes.push(volume);
            }
        }
    });
    made.is_ok()
}

fn report(hands: &mut Hands<'_>, place: &Place, set: &Object, revision: &str) {
    let all = hands.children(&pods(), place, set);
    let ready = all.iter().filter(|(_, pod)| is_ready(pod)).count();
    let is_new = |pod: &Arc<Object>| pod.label(REVISION) == Some(revision);
    let new = all.iter().filter(|(_, pod)| is_new(pod)).count();
    let wanted = wanted(set);
    let mut status = conditions::counts(&[("readyReplicas", ready), ("currentReplicas", new), ("updatedReplicas", new)]);
    status.insert("replicas".to_owned(), json!(all.len()));
    status.insert("availableReplicas".to_owned(), json!(ready));
    status.insert("observedGeneration".to_owned(), json!(set.generation()));
    status.insert("collisionCount".to_owned(), json!(0));
    let old = set.status()["currentRevision"].as_str().unwrap_or(revision);
    let current = if new == wanted && ready == wanted { revision } else { old };
    status.insert("currentRevision".to_owned(), json!(current));
    status.insert("updateRevision".to_owned(), json!(revision));
    hands.set_status(CONTROLLERS, place, Value::Object(status));
}
