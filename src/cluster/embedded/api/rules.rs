//! Rules of single kinds that no schema says.

mod access;
pub(super) mod data;
pub(super) mod resources;
mod workloads;

use plinth_api::Object;
use serde_json::{Value, json};

use super::{crd, kinds::Served, names::finalizer_fault, problem::FieldFault};

/// What is wrong with an object by the rules of its kind; `old` is the one it replaces.
pub fn check(object: &Object, old: Option<&Object>, served: &Served) -> Vec<FieldFault> {
    // Asked by the kinds that have such rules alone: specs may be large.
    let is_new = || old.is_none_or(|old| old.spec() != object.spec());
    let mut faults = match (served.group.as_str(), served.plural.as_str()) {
        ("apps", plural @ ("deployments" | "statefulsets" | "daemonsets" | "replicasets")) => {
            let mut faults = selector(object, old);
            if is_new() {
                faults.extend(workloads::strategy(object).filter(|_| plural == "deployments"));
                faults.extend(workloads::pod(&object.spec()["template"]["spec"], "spec.template.spec"));
                faults.extend(workloads::counts(object, &["replicas"]));
                faults.extend(workloads::always(object));
            }
            faults
        }
        ("", "replicationcontrollers") if is_new() => workloads::pod(&object.spec()["template"]["spec"], "spec.template.spec"),
        ("", "persistentvolumeclaims") if is_new() => resources::claim(object.spec()),
        ("", "pods") if is_new() => workloads::pod(object.spec(), "spec"),
        ("", "services") if is_new() => workloads::service(object, old),
        ("batch", "jobs") if is_new() => {
            let mut faults = workloads::job(object.spec(), "spec");
            faults.extend(workloads::counts(object, &["backoffLimit", "completions", "parallelism"]));
            faults
        }
        ("batch", "cronjobs") if is_new() => {
            let mut faults = workloads::job(&object.spec()["jobTemplate"]["spec"], "spec.jobTemplate.spec");
            if object.spec()["schedule"].as_str() == Some("") {
                faults.push(fault("FieldValueRequired", "spec.schedule", "Required value"));
            }
            faults
        }
        ("", "namespaces") if old.is_none() => finalizers(object),
        ("", "configmaps") => {
            let mut faults = immutable(object, old, &["data", "binaryData"]);
            faults.extend(data::config_map(object));
            faults
        }
        ("", "secrets") => {
            let mut faults = immutable(object, old, &["data"]);
            faults.extend(data::secret(object));
            if let Some(old) = old
                && old.0.get("type") != object.0.get("type")
            {
                faults.push(unchanged("type", object.0.get("type").unwrap_or(&Value::Null)));
            }
            faults
        }
        ("rbac.authorization.k8s.io", _) => access::check(object, old, served),
        ("apiextensions.k8s.io", "customresourcedefinitions") => crd::check(object, old),
        _ => Vec::new(),
    };
    faults.truncate(100);
    faults
}

fn fault(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> FieldFault {
    FieldFault { reason, field: field.into(), message: message.into() }
}

/// What is said of a field that stays as it is.
pub(super) fn unchanged(field: &str, value: &Value) -> FieldFault {
    fault("FieldValueInvalid", field, format!("Invalid value: {value}: field is immutable"))
}

/// What a namespace waits for is looked at when it is made.
fn finalizers(object: &Object) -> Vec<FieldFault> {
    let names = object.spec()["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.filter_map(|name| finalizer_fault(name, "spec.finalizers")).collect()
}

fn selector(object: &Object, old: Option<&Object>) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    let selector = &object.spec()["selector"];
    let labels = &object.spec()["template"]["metadata"]["labels"];
    let wanted = selector["matchLabels"].as_object();
    if selector.is_null() || wanted.is_some_and(|wanted| wanted.iter().any(|(name, value)| labels.get(name) != Some(value))) {
        let shown = if labels.is_null() { "null".to_owned() } else { labels.to_string() };
        let message = format!("Invalid value: {shown}: `selector` does not match template `labels`");
        faults.push(fault("FieldValueInvalid", "spec.template.metadata.labels", message));
    }
    if selector.as_object().is_some_and(serde_json::Map::is_empty) {
        let kind = object.0.get("kind").and_then(Value::as_str).unwrap_or_default().to_lowercase();
        let message = format!("Invalid value: {{}}: empty selector is invalid for {kind}");
        faults.push(fault("FieldValueInvalid", "spec.selector", message));
    }
    if old.is_some_and(|old| old.spec()["selector"] != *selector) {
        faults.push(unchanged("spec.selector", selector));
    }
    faults
}

fn immutable(object: &Object, old: Option<&Object>, fields: &[&str]) -> Vec<FieldFault> {
    let Some(old) = old.filter(|old| old.0.get("immutable") == Some(&json!(true))) else { return Vec::new() };
    let changed = |name: &&&str| old.0.get(**name) != object.0.get(**name);
    let mut faults = Vec::new();
    if object.0.get("immutable") != Some(&json!(true)) {
        faults.push(fault("FieldValueForbidden", "immutable", "Forbidden: field is immutable when `immutable` is set"));
    }
    let changed = fields.iter().filter(changed);
    faults
        .extend(changed.map(|name| fault("FieldValueForbidden", *name, "Forbidden: field is immutable when `immutable` is set")));
    faults
}
