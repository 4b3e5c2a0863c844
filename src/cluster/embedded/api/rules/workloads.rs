//! Pods, what is made of their templates, and Services.

use std::collections::BTreeSet;

use plinth_api::Object;
use serde_json::{Value, json};

use super::{fault, resources};
use crate::embedded::api::{
    names::{Rule, name_fault},
    problem::FieldFault,
};

pub(super) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn required(field: String, why: &str) -> FieldFault {
    let more = if why.is_empty() { String::new() } else { format!(": {why}") };
    fault("FieldValueRequired", field, format!("Required value{more}"))
}

pub(super) fn invalid(field: String, value: &Value, why: &str) -> FieldFault {
    fault("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"))
}

/// What is wrong with a pod's spec at a path.
pub(super) fn pod(spec: &Value, at: &str) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    if spec["containers"].as_array().is_some_and(Vec::is_empty) {
        faults.push(required(format!("{at}.containers"), ""));
    }
    let volumes: Vec<&str> = list(spec, "volumes").iter().filter_map(|volume| volume["name"].as_str()).collect();
    for name in ["initContainers", "containers"] {
        for (index, container) in list(spec, name).iter().enumerate() {
            self::container(container, &format!("{at}.{name}[{index}]"), &volumes, &mut faults);
        }
    }
    faults
}

fn container(container: &Value, at: &str, volumes: &[&str], faults: &mut Vec<FieldFault>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = text(&container["name"]);
    if name.is_empty() && !container["name"].is_null() {
        faults.push(required(format!("{at}.name"), ""));
    } else if let Some(why) = name_fault(&name, Rule::Label).filter(|_| !name.is_empty()) {
        faults.push(invalid(format!("{at}.name"), &container["name"], &why));
    }
    if text(&container["image"]).is_empty() {
        faults.push(required(format!("{at}.image"), ""));
    }
    faults.extend(resources::of_container(&container["resources"], &format!("{at}.resources")));
    for (index, entry) in list(container, "ports").iter().enumerate() {
        faults.extend(port(&entry["containerPort"], format!("{at}.ports[{index}].containerPort")));
    }
    for (index, variable) in list(container, "env").iter().enumerate() {
        if text(&variable["name"]).is_empty() {
            faults.push(required(format!("{at}.env[{index}].name"), ""));
        }
    }
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        if text(&mount["mountPath"]).is_empty() {
            faults.push(required(format!("{at}.volumeMounts[{index}].mountPath"), ""));
        }
        let volume = text(&mount["name"]);
        if !volume.is_empty() && !volumes.contains(&volume.as_str()) {
            faults.push(fault(
                "FieldValueNotFound",
                format!("{at}.volumeMounts[{index}].name"),
                format!("Not found: {volume:?}"),
            ));
        }
    }
}

/// A port has to be one.
fn port(value: &Value, field: String) -> Option<FieldFault> {
    let number = value.as_i64()?;
    (!(1..=65535).contains(&number)).then(|| invalid(field, value, "must be between 1 and 65535, inclusive"))
}

/// A count is not below zero.
pub(super) fn counts(object: &Object, names: &[&str]) -> Vec<FieldFault> {
    let below = |name: &&&str| object.spec()[**name].as_i64().is_some_and(|number| number < 0);
    let told = |name: &&str| invalid(format!("spec.{name}"), &object.spec()[*name], "must be greater than or equal to 0");
    names.iter().filter(below).map(told).collect()
}

/// What is said of rolling updates holds for them alone.
pub(super) fn strategy(object: &Object) -> Option<FieldFault> {
    let strategy = &object.spec()["strategy"];
    let message = "Forbidden: may not be specified when strategy `type` is 'Recreate'";
    let is_wrong = strategy["type"] == "Recreate" && strategy["rollingUpdate"].is_object();
    is_wrong.then(|| fault("FieldValueForbidden", "spec.strategy.rollingUpdate", message))
}

/// Pods of workloads that stay are always started again.
pub(super) fn always(object: &Object) -> Option<FieldFault> {
    let policy = object.spec()["template"]["spec"]["restartPolicy"].as_str()?;
    let message = format!("Unsupported value: {policy:?}: supported values: \"Always\"");
    let field = "spec.template.spec.restartPolicy";
    (["Never", "OnFailure"].contains(&policy)).then(|| fault("FieldValueNotSupported", field, message))
}

/// What is wrong with what a Job's pods are made of.
pub(super) fn job(spec: &Value, at: &str) -> Vec<FieldFault> {
    let template = format!("{at}.template.spec");
    let pod_spec = &spec["template"]["spec"];
    let mut faults = pod(pod_spec, &template);
    if pod_spec.is_object() && (pod_spec["restartPolicy"].is_null() || pod_spec["restartPolicy"] == "Always") {
        faults.push(required(format!("{template}.restartPolicy"), "valid values: \"OnFailure\", \"Never\""));
    }
    faults
}

/// What is wrong with a Service's address in the cluster; it stays once it is given.
fn address(spec: &Value, old: Option<&Value>) -> Option<FieldFault> {
    let addresses = list(spec, "clusterIPs");
    let first = addresses.first().unwrap_or(&Value::Null);
    let wanted = spec["clusterIP"].as_str().filter(|address| !address.is_empty()).or(first.as_str())?;
    let before = old.and_then(|old| old["clusterIP"].as_str()).filter(|address| !address.is_empty());
    if before == Some(wanted) {
        return None;
    }
    let kind = spec["type"].as_str().unwrap_or_default();
    let (all, one) = ("spec.clusterIPs".to_owned(), "spec.clusterIPs[0]".to_owned());
    if kind == "ExternalName" {
        return Some(fault("FieldValueForbidden", all, "Forbidden: may not be set for ExternalName services"));
    }
    if before.is_some() {
        return Some(invalid(one, &json!([wanted]), "may not change once set"));
    }
    if first.as_str().is_some_and(|first| first != wanted) {
        return Some(invalid(all, &spec["clusterIPs"], "first value must match `clusterIP`"));
    }
    match (wanted, kind) {
        ("None", "NodePort" | "LoadBalancer") => {
            Some(invalid(one, &json!(wanted), &format!("may not be set to 'None' for {kind} services")))
        }
        ("None", _) => None,
        _ if wanted.parse::<std::net::IpAddr>().is_ok() => None,
        _ => Some(invalid(one, &json!(wanted), "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")),
    }
}

/// What is wrong with a Service.
pub(super) fn service(object: &Object, old: Option<&Object>) -> Vec<FieldFault> {
    let spec = object.spec();
    let mut faults: Vec<FieldFault> = address(spec, old.map(Object::spec)).into_iter().collect();
    let is_name = spec["type"] == "ExternalName";
    if is_name && spec["externalName"].as_str().unwrap_or_default().is_empty() {
        faults.push(required("spec.externalName".to_owned(), ""));
    }
    let ports = list(spec, "ports");
    if ports.is_empty() && !is_name && spec["clusterIP"] != "None" {
        faults.push(required("spec.ports".to_owned(), ""));
    }
    let mut known = BTreeSet::new();
    for (index, entry) in ports.iter().enumerate() {
        let at = format!("spec.ports[{index}]");
        let name = entry["name"].as_str().unwrap_or_default();
        if name.is_empty() && ports.len() > 1 {
            faults.push(required(format!("{at}.name"), ""));
        } else if !name.is_empty() && !known.insert(name) {
            faults.push(fault("FieldValueDuplicate", format!("{at}.name"), format!("Duplicate value: {}", json!(name))));
        }
        faults.extend(port(&entry["port"], format!("{at}.port")));
        faults.extend(port(&entry["targetPort"], format!("{at}.targetPort")));
    }
    faults
}
