//! Kinds of kcp and of blueprints, which say the important things where nobody looks.

use jiff::{SignedDuration, Timestamp};
use plinth_api::Object;
use serde_json::Value;

use super::{
    conditions::find,
    verdict::{Health, Verdict},
};

/// How old a liveness record may be before the sweeper takes its instance for gone.
const STALE_AFTER: SignedDuration = SignedDuration::from_mins(5);
/// Marks liveness records.
const LIVENESS: &str = "krop.opendefense.cloud/liveness";
/// Every object that krop's loop has seen carries it.
const FINALIZER: &str = "krop.opendefense.cloud/gc";
/// What the controller says before it ends when its kubeconfig names no workspace.
const NOT_SCOPED: &str = "must be workspace-scoped";

/// The verdict on an object of kcp's or a blueprint; `None` for every other kind, and where its conditions say enough.
pub(super) fn judge(object: &Object) -> Option<Verdict> {
    let gvk = object.gvk()?;
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apis.kcp.io", "APIBinding") => binding(object),
        ("apis.kcp.io", "APIExportEndpointSlice") => slice(object),
        ("krop.opendefense.cloud", "ResourceGraphDefinition") => blueprint(object),
        ("", "Pod") => not_scoped(object),
        ("apps", "Deployment") => not_elected(object),
        _ => None,
    }
}

/// The verdict on a liveness record, which only the time tells.
pub(super) fn judge_record(object: &Object, now: Timestamp) -> Option<Verdict> {
    (object.label(LIVENESS) == Some("true")).then_some(())?;
    let last: Timestamp = object.at(&["data", "lastReconciled"])?.as_str()?.parse().ok()?;
    let age = now.duration_since(last);
    let message = format!("its instance was reconciled {} minutes ago", age.as_mins());
    (age > STALE_AFTER).then(|| Verdict::new(Health::Waiting, "StaleLiveness", message))
}

/// The verdict on an instance that no controller has touched: what only a caller who knows that it is an instance may ask.
pub(super) fn untouched(object: &Object) -> Option<Verdict> {
    let is_untouched = object.0.contains_key("spec") && object.status().is_null() && object.finalizers().is_empty();
    let message = format!("it has neither a status nor a finalizer such as {FINALIZER}");
    is_untouched.then(|| Verdict::new(Health::Waiting, "NotPickedUp", message))
}

fn list<'a>(object: &'a Object, path: &[&str]) -> impl Iterator<Item = &'a Value> {
    object.at(path).and_then(Value::as_array).into_iter().flatten()
}

/// Group and resource of a claim: what tells claims apart.
fn claimed(claim: &Value) -> (&str, &str) {
    let text = |name| claim.get(name).and_then(Value::as_str).unwrap_or_default();
    (text("group"), text("resource"))
}

/// Accepted, rejected and unanswered claims look the same in the conditions; only the lists differ.
fn binding(object: &Object) -> Option<Verdict> {
    if let Some(seen) = find(object, "PermissionClaimsValid").filter(|seen| seen.status == "False") {
        return Some(seen.verdict(Health::Failed, "InvalidPermissionClaims"));
    }
    if let Some(seen) = find(object, "APIExportValid").filter(|seen| seen.status == "False") {
        return Some(seen.verdict(Health::Waiting, "APIExportNotFound"));
    }
    let applied: Vec<_> = list(object, &["status", "appliedPermissionClaims"]).map(claimed).collect();
    let asked = list(object, &["status", "exportPermissionClaims"]).map(claimed);
    let open: Vec<_> = asked.filter(|claim| !applied.contains(claim)).collect();
    let answered: Vec<_> = list(object, &["spec", "permissionClaims"]).map(claimed).collect();
    let (rejected, unanswered): (Vec<_>, Vec<_>) = open.into_iter().partition(|claim| answered.contains(claim));
    let names = |claims: &[(&str, &str)]| {
        let name = |(group, resource): &(&str, &str)| {
            if group.is_empty() { (*resource).to_owned() } else { format!("{resource}.{group}") }
        };
        claims.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    match (rejected.as_slice(), unanswered.as_slice()) {
        ([], []) => None,
        ([], claims) => {
            Some(Verdict::new(Health::Waiting, "ClaimUnanswered", format!("nobody answered the claim on {}", names(claims))))
        }
        (claims, _) => {
            Some(Verdict::new(Health::Waiting, "ClaimRejected", format!("the claim on {} is not accepted", names(claims))))
        }
    }
}

fn slice(object: &Object) -> Option<Verdict> {
    let endpoints = ["endpoints", "apiExportEndpoints"];
    let is_empty = endpoints.iter().all(|name| list(object, &["status", name]).next().is_none());
    is_empty.then(|| Verdict::new(Health::Waiting, "NoEndpoints", "nobody has bound the export yet"))
}

/// Only what somebody has to change is a failure; what may yet come is waited for.
fn blueprint(object: &Object) -> Option<Verdict> {
    let seen = find(object, "Ready").filter(|seen| seen.status == "False")?;
    let health = match seen.reason {
        "ClaimIdentityUnresolved" => Health::Waiting,
        // A type that is not there yet is waited for; an expression that does not fit never will.
        "BuildFailed" if seen.message.contains("not found") || seen.message.contains("not served") => Health::Waiting,
        "BuildFailed" | "HashFailed" | "InvalidTarget" | "PublishFailed" => Health::Failed,
        _ => return None,
    };
    Some(seen.verdict(health, "NotReady"))
}

fn not_scoped(object: &Object) -> Option<Verdict> {
    let said = list(object, &["status", "containerStatuses"])
        .flat_map(|status| ["/state/terminated/message", "/lastState/terminated/message"].map(|path| status.pointer(path)))
        .flatten()
        .filter_map(Value::as_str)
        .find(|message| message.contains(NOT_SCOPED))?;
    Some(Verdict::new(Health::Failed, "KubeconfigNotScoped", said.trim()))
}

/// krop's controller only: others elect a leader unasked.
fn not_elected(object: &Object) -> Option<Verdict> {
    let replicas = object.at(&["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(1);
    let mut containers = list(object, &["spec", "template", "spec", "containers"]);
    let krop = containers.find(|container| {
        container.get("image").and_then(Value::as_str).is_some_and(|image| image.contains("krop-controller"))
    })?;
    let mut arguments = krop.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let elects = arguments.any(|argument| argument.starts_with("--leader-elect") && !argument.ends_with("=false"));
    let message = format!("{replicas} replicas work without electing a leader");
    (replicas > 1 && !elects).then(|| Verdict::new(Health::Waiting, "NoLeaderElection", message))
}
