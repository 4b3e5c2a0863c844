//! Pods: scheduled to the one node, pulled, started, and ended where they are a Job's.
//!
//! | stage | until |
//! | --- | --- |
//! | new | it is scheduled, at once |
//! | creating | its volumes are there and `workloads.start` (or the rule of its workload) is over |
//! | running | for ever, or `workloads.complete` where it is to end |
//! | `ErrImagePull`, `ImagePullBackOff` | for ever: the catalogue does not change |

use std::sync::Arc;

use plinth_api::Object;
use serde_json::{Value, json};

use super::{
    Wake,
    conditions::{self, Said},
    hands::{Hands, KUBELET, SCHEDULER, Tone, resource},
    needs::{self, Lack},
    workload,
};
use crate::embedded::store::Place;

const NODE: &str = "embedded";
const NODE_ADDRESS: &str = "172.18.0.2";

pub(super) fn reconcile(hands: &mut Hands<'_>, place: &Place, pod: &Arc<Object>) -> Option<Wake> {
    if pod.spec()["nodeName"].is_null() {
        schedule(hands, place, pod);
        return None;
    }
    match waiting_for(pod) {
        None if pod.status()["phase"] == "Running" => end(hands, place, pod),
        Some("ContainerCreating" | "CreateContainerConfigError") => start(hands, place, pod),
        Some("ErrImagePull") => back_off(hands, place, pod),
        _ => None,
    }
}

/// Why its first container that does not run waits.
fn waiting_for(pod: &Object) -> Option<&str> {
    let lists = ["initContainerStatuses", "containerStatuses"].into_iter();
    let all = lists.flat_map(|list| pod.status()[list].as_array().into_iter().flatten());
    let reasons = all.filter_map(|container| container["state"]["waiting"]["reason"].as_str());
    let mut reasons: Vec<&str> = reasons.collect();
    // What waits only for the containers before it says nothing.
    reasons.sort_by_key(|reason| *reason == "PodInitializing");
    reasons.first().copied()
}

fn schedule(hands: &mut Hands<'_>, place: &Place, pod: &Object) {
    furnish(hands, place);
    hands.merge(SCHEDULER, place, &json!({"spec": {"nodeName": NODE}}));
    let message = format!("Successfully assigned {}/{} to {NODE}", place.namespace.as_deref().unwrap_or_default(), place.name);
    hands.event("default-scheduler", place, Tone::Normal, "Scheduled", &message);
    let has_init = !list(pod, "initContainers").is_empty();
    let each = |index: usize, of: &str| match (of, index) {
        ("containers", _) if has_init => State::waiting("PodInitializing", ""),
        _ => State::waiting("ContainerCreating", ""),
    };
    hands.steps(pod);
    report(hands, place, pod, "Pending", &each);
}

/// The node that every pod is on.
fn furnish(hands: &mut Hands<'_>, beside: &Place) {
    let place = Place { resource: resource("", "nodes"), namespace: None, name: NODE.to_owned(), ..beside.clone() };
    if hands.get(&place).is_some() {
        return;
    }
    let labels = json!({"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": labels}, "spec": {}});
    if hands.create(KUBELET, &place, &place.resource, &node).is_ok() {
        let said = Said { kind: "Ready", holds: true, reason: "KubeletReady", message: "kubelet is posting ready status" };
        let conditions = conditions::with(&Value::Null, &[said], &hands.time(), false);
        let addresses = json!([{"type": "InternalIP", "address": NODE_ADDRESS}, {"type": "Hostname", "address": NODE}]);
        hands.set_status(KUBELET, &place, json!({"conditions": conditions, "addresses": addresses}));
    }
}

/// Starts the containers, or says what keeps them from it.
fn start(hands: &mut Hands<'_>, place: &Place, pod: &Arc<Object>) -> Option<Wake> {
    let root = workload::root(hands, place, pod);
    let scenario = &hands.acting.scenario;
    let written = scenario.available_after(&root).unwrap_or(scenario.workloads.start);
    if let Err(wake) = hands.has_stood(pod, hands.acting.time(written)) {
        return Some(wake);
    }
    match needs::lack(hands, place, pod) {
        Some(Lack::Volume(message)) => {
            hands.memory.lacking.insert(place.clone());
            hands.event(KUBELET, place, Tone::Warning, "FailedMount", &message);
        }
        Some(Lack::Environment { container, message }) => lacks(hands, place, pod, &container, &message),
        None => pull(hands, place, pod),
    }
    None
}

fn lacks(hands: &mut Hands<'_>, place: &Place, pod: &Object, container: &str, message: &str) {
    hands.memory.lacking.insert(place.clone());
    let names = |list: &str| names(pod, list);
    let (init, main) = (names("initContainers"), names("containers"));
    let each = |index: usize, of: &str| {
        let own = if of == "initContainers" { &init } else { &main };
        if own[index] == container {
            State::waiting("CreateContainerConfigError", message)
        } else {
            State::waiting("PodInitializing", "")
        }
    };
    report(hands, place, pod, "Pending", &each);
    hands.event(KUBELET, place, Tone::Warning, "Failed", &format!("Error: {message}"));
}

/// Pulls the images; the containers that can then run do.
fn pull(hands: &mut Hands<'_>, place: &Place, pod: &Object) {
    let can = |container: &Value| hands.acting.images.has(container["image"].as_str().unwrap_or_default());
    let init = list(pod, "initContainers");
    let stopped = init.iter().position(|container| !can(container));
    let absent: Vec<Value> = match stopped {
        Some(at) => vec![init[at].clone()],
        None => list(pod, "containers").iter().filter(|container| !can(container)).cloned().collect(),
    };
    let main: Vec<bool> = list(pod, "containers").iter().map(can).collect();
    let images = |of: &str| -> Vec<String> { list(pod, of).iter().map(image).collect() };
    let (init_images, main_images) = (images("initContainers"), images("containers"));
    let each = |index: usize, of: &str| match (of, stopped) {
        ("initContainers", Some(at)) if index == at => State::waiting("ErrImagePull", &unresolved(&init_images[index])),
        ("initContainers", Some(at)) if index > at => State::waiting("PodInitializing", ""),
        ("initContainers", _) => State::Ended,
        (_, Some(_)) => State::waiting("PodInitializing", ""),
        (_, None) if main[index] => State::Running,
        (_, None) => State::waiting("ErrImagePull", &unresolved(&main_images[index])),
    };
    let phase = if absent.is_empty() || (stopped.is_none() && main.iter().any(|can| *can)) { "Running" } else { "Pending" };
    hands.steps(pod);
    report(hands, place, pod, phase, &each);
    for container in &absent {
        let (image, by) = (image(container), KUBELET);
        let message = format!("Failed to pull image {image:?}: {}", unresolved(&image));
        hands.event(by, place, Tone::Warning, "Failed", &message);
        hands.event(by, place, Tone::Warning, "Failed", "Error: ErrImagePull");
    }
    if absent.is_empty() {
        for container in list(pod, "initContainers").iter().chain(list(pod, "containers")) {
            let name = container["name"].as_str().unwrap_or_default();
            hands.event(KUBELET, place, Tone::Normal, "Started", &format!("Started container {name}"));
        }
    }
}

fn unresolved(image: &str) -> String {
    format!("failed to pull and unpack image {image:?}: failed to resolve reference {image:?}: {image}: not found")
}

/// The second time, and every time after it.
fn back_off(hands: &mut Hands<'_>, place: &Place, pod: &Object) -> Option<Wake> {
    if let Err(wake) = hands.has_stood(pod, hands.acting.time(hands.acting.scenario.workloads.start)) {
        return Some(wake);
    }
    let mut status = pod.status().clone();
    let mut told = Vec::new();
    for of in ["initContainerStatuses", "containerStatuses"] {
        for container in status[of].as_array_mut().into_iter().flatten() {
            let waiting = &mut container["state"]["waiting"];
            if waiting["reason"] == "ErrImagePull" {
                let before = waiting["message"].as_str().unwrap_or_default().to_owned();
                let image = container["image"].as_str().unwrap_or_default().to_owned();
                let message = format!("Back-off pulling image {image:?}: ErrImagePull: {before}");
                container["state"] = json!({"waiting": {"reason": "ImagePullBackOff", "message": message}});
                told.push(image);
            }
        }
    }
    hands.set_status(KUBELET, place, status);
    for image in told {
        hands.event(KUBELET, place, Tone::Normal, "BackOff", &format!("Back-off pulling image {image:?}"));
        hands.event(KUBELET, place, Tone::Warning, "Failed", "Error: ImagePullBackOff");
    }
    None
}

/// Ends a pod that is to end, as those of Jobs are.
fn end(hands: &mut Hands<'_>, place: &Place, pod: &Object) -> Option<Wake> {
    if pod.spec()["restartPolicy"].as_str().unwrap_or("Always") == "Always" {
        return None;
    }
    if let Err(wake) = hands.has_stood(pod, hands.acting.time(hands.acting.scenario.workloads.complete)) {
        return Some(wake);
    }
    report(hands, place, pod, "Succeeded", &|_, _| State::Ended);
    None
}

/// How a container is.
enum State {
    Waiting(&'static str, String),
    Running,
    Ended,
}

impl State {
    fn waiting(reason: &'static str, message: &str) -> Self {
        Self::Waiting(reason, message.to_owned())
    }

    fn show(&self, container: &Value, now: &str) -> Value {
        let (image, running) = (image(container), matches!(self, Self::Running));
        let state = match self {
            Self::Waiting(reason, message) if message.is_empty() => json!({"waiting": {"reason": reason}}),
            Self::Waiting(reason, message) => json!({"waiting": {"reason": reason, "message": message}}),
            Self::Running => json!({"running": {"startedAt": now}}),
            Self::Ended => json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}),
        };
        let pulled = if matches!(self, Self::Waiting(..)) { String::new() } else { image.clone() };
        let ready = running || (matches!(self, Self::Ended) && container["restartPolicy"].is_null());
        json!({
            "name": container["name"], "image": image, "imageID": pulled, "ready": ready, "started": running, "restartCount": 0,
            "state": state, "lastState": {},
        })
    }
}

/// Writes the status that goes with how the containers are.
fn report(hands: &mut Hands<'_>, place: &Place, pod: &Object, phase: &str, each: &dyn Fn(usize, &str) -> State) {
    let now = hands.time();
    let show = |of: &str| -> Vec<Value> {
        list(pod, of).iter().enumerate().map(|(index, container)| each(index, of).show(container, &now)).collect()
    };
    let (init, mut main) = (show("initContainers"), show("containers"));
    let over = phase == "Succeeded";
    if over {
        main.iter_mut().for_each(|container| container["ready"] = json!(false));
    }
    let mut status = pod.status().clone();
    status["phase"] = json!(phase);
    status["conditions"] = said(pod, &init, &main, over, &now);
    status["hostIP"] = json!(NODE_ADDRESS);
    status["startTime"] = json!(pod.status()["startTime"].as_str().unwrap_or(&now));
    if !init.is_empty() {
        status["initContainerStatuses"] = json!(init);
    }
    status["containerStatuses"] = json!(main);
    if phase == "Running" && status["podIP"].is_null() {
        let [_, _, high, low] = hands.number().to_be_bytes();
        let address = format!("10.244.{high}.{low}");
        status["podIP"] = json!(address);
        status["podIPs"] = json!([{"ip": address}]);
    }
    hands.set_status(KUBELET, place, status);
}

fn said(pod: &Object, init: &[Value], main: &[Value], over: bool, now: &str) -> Value {
    let not = |list: &[Value]| -> Vec<String> {
        let unready = list.iter().filter(|container| container["ready"] != true);
        unready.map(|container| container["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let (uninitialized, unready) = (not(init), not(main));
    let initialized = format!("containers with incomplete status: [{}]", uninitialized.join(" "));
    let ready = format!("containers with unready status: [{}]", unready.join(" "));
    let condition = |kind: &'static str, failed: bool, reason: &'static str, message| match (over, failed) {
        (true, _) if kind != "PodScheduled" => Said { kind, holds: kind == "Initialized", reason: "PodCompleted", message: "" },
        (_, true) => Said { kind, holds: false, reason, message },
        (_, false) => Said { kind, holds: true, reason: "", message: "" },
    };
    let said = [
        condition("PodReadyToStartContainers", false, "", ""),
        condition("Initialized", !uninitialized.is_empty(), "ContainersNotInitialized", &initialized),
        condition("Ready", !unready.is_empty(), "ContainersNotReady", &ready),
        condition("ContainersReady", !unready.is_empty(), "ContainersNotReady", &ready),
        condition("PodScheduled", false, "", ""),
    ];
    conditions::with(pod.status(), &said, now, false)
}

fn list<'a>(pod: &'a Object, of: &str) -> &'a [Value] {
    pod.spec()[of].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn names(pod: &Object, of: &str) -> Vec<String> {
    list(pod, of).iter().map(|container| container["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn image(container: &Value) -> String {
    container["image"].as_str().unwrap_or_default().to_owned()
}
