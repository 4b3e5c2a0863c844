//! What the API server fills in for pods and not for the templates of pods.

use plinth_engine::quantity::Quantity;
use serde_json::{Value, json};

use super::{elements, set};

/// The resources that a pod is graded by.
const GRADED: [&str; 2] = ["cpu", "memory"];

/// Requests that are not said are as the limits; a pod that nobody looked at is pending, and graded.
pub(super) fn fill(pod: &mut Value) {
    for list in ["containers", "initContainers"] {
        elements(&mut pod["spec"], list).for_each(ask_as_limited);
    }
    if !pod["spec"].is_object() {
        return;
    }
    set(&mut pod["spec"], "enableServiceLinks", || json!(true));
    let class = class(&pod["spec"]);
    set(pod, "status", || json!({}));
    set(&mut pod["status"], "phase", || json!("Pending"));
    set(&mut pod["status"], "qosClass", || json!(class));
}

fn ask_as_limited(container: &mut Value) {
    let Some(resources) = container.get_mut("resources") else { return };
    let limits = resources["limits"].as_object().cloned().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    set(resources, "requests", || json!({}));
    for (name, limit) in limits {
        set(&mut resources["requests"], &name, || limit);
    }
}

/// The class by which a node decides whose pods go first (kubernetes' `pkg/apis/core/v1/helper/qos`).
fn class(spec: &Value) -> &'static str {
    let lists = ["initContainers", "containers"].into_iter();
    let mut containers = lists.flat_map(|list| spec[list].as_array().into_iter().flatten());
    let amount = |container: &Value, part: &str, name: &str| {
        let text = container["resources"][part][name].as_str()?;
        Quantity::parse(text).ok().filter(|amount| amount.sign() > 0)
    };
    let is_graded = |container: &Value| {
        let parts = ["limits", "requests"].into_iter().flat_map(|part| GRADED.map(|name| (part, name)));
        parts.into_iter().any(|(part, name)| amount(container, part, name).is_some())
    };
    let is_full = |container: &Value| {
        let same =
            |name| amount(container, "limits", name).is_some_and(|limit| amount(container, "requests", name) == Some(limit));
        GRADED.into_iter().all(same)
    };
    match (containers.clone().any(is_graded), containers.all(is_full)) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
