//! How one object is, judged from the object alone.

use jiff::Timestamp;
use plinth_api::Object;
use serde_json::Value;

use super::{
    conditions, kcp, kinds,
    verdict::{Health, Verdict},
};

/// Judges an object by its kind where the kind is one of Kubernetes' own, else by the conventions that controllers follow:
/// `observedGeneration`, the conditions `Stalled`, `Reconciling`, `Ready` and `Available`, and `phase`.
pub fn judge(object: &Object) -> Verdict {
    let observed = object.at(&["status", "observedGeneration"]).and_then(Value::as_i64);
    let verdict = deleted(object).or_else(|| stale(object, observed)).unwrap_or_else(|| settled(object));
    Verdict { observed_generation: verdict.observed_generation.or(observed), ..verdict }
}

/// The same at a time: some records say only by their age that something is wrong.
pub fn judge_at(object: &Object, now: Timestamp) -> Verdict {
    deleted(object).or_else(|| kcp::judge_record(object, now)).unwrap_or_else(|| judge(object))
}

/// The same for an object that is known to be an instance: one that no controller has touched is not as well as it looks.
pub fn judge_instance(object: &Object, now: Timestamp) -> Verdict {
    let own = || deleted(object).or_else(|| kcp::untouched(object)).or_else(|| in_error(object));
    own().unwrap_or_else(|| judge_at(object, now))
}

/// An instance that says of its own generation that something of it has failed.
fn in_error(object: &Object) -> Option<Verdict> {
    let says_so = object.at(&["status", "state"]).and_then(Value::as_str) == Some("ERROR");
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array)?;
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready")?;
    let observed = ready["observedGeneration"].as_i64().unwrap_or(object.generation());
    let is_about_this = ready["status"] != "True" && observed >= object.generation();
    (says_so && is_about_this).then(|| Verdict::new(Health::Failed, "Error", ready["message"].as_str().unwrap_or_default()))
}

fn deleted(object: &Object) -> Option<Verdict> {
    if !object.is_terminating() {
        return None;
    }
    let mut parts = match held_by(object).as_slice() {
        [] => Vec::new(),
        [one] => vec![format!("waits for the finalizer {one}")],
        several => vec![format!("waits for the finalizers {}", several.join(", "))],
    };
    // Who holds it says why.
    parts.extend(conditions::why_not_ready(object));
    Some(Verdict::new(Health::Terminating, "Terminating", parts.join(": ")))
}

/// Its finalizers; a namespace has its own in its spec.
fn held_by(object: &Object) -> Vec<&str> {
    let spec = object.at(&["spec", "finalizers"]).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    object.finalizers().into_iter().chain(spec).collect()
}

fn stale(object: &Object, observed: Option<i64>) -> Option<Verdict> {
    let (observed, wanted) = (observed?, object.generation());
    let message = format!("its controller has seen generation {observed} of {wanted}");
    (observed < wanted).then(|| Verdict::new(Health::InProgress, "Stale", message))
}

fn settled(object: &Object) -> Verdict {
    kcp::judge(object)
        .or_else(|| kinds::judge(object))
        .or_else(|| conditions::judge(object))
        .or_else(|| phase(object))
        .unwrap_or_else(|| {
            let expects_status = object.0.contains_key("spec") && object.0.contains_key("status");
            if expects_status {
                return Verdict::new(Health::Unknown, "NoConditions", "its status says neither Ready nor a phase");
            }
            Verdict::new(Health::Current, "Exists", "")
        })
}

/// Controllers without conditions say a phase.
fn phase(object: &Object) -> Option<Verdict> {
    let phase = object.at(&["status", "phase"])?.as_str().filter(|phase| !phase.is_empty())?;
    let health = match phase.to_ascii_lowercase().as_str() {
        "ready" | "running" | "active" | "bound" | "available" | "succeeded" | "completed" | "healthy" => Health::Current,
        "failed" | "error" | "lost" => Health::Failed,
        "terminating" | "deleting" | "uninstalling" => Health::Terminating,
        "pending" | "progressing" | "provisioning" | "creating" | "installing" | "initializing" | "updating" => {
            Health::InProgress
        }
        _ => Health::Unknown,
    };
    let message = object.at(&["status", "message"]).and_then(Value::as_str).unwrap_or_default();
    Some(Verdict::new(health, phase, message))
}

#[cfg(test)]
mod tests;
