//! Quantities of resources: what containers ask for and what claims do (kubernetes' `pkg/apis/core/validation`).

use plinth_engine::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::workloads::{invalid, list, required};
use crate::embedded::api::problem::FieldFault;

/// Resources of a container that have no domain.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Names without a domain that quotas know besides.
const OF_QUOTAS: [&str; 17] = [
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
/// What is wrong with the `resources` of a container.
pub(super) fn of_container(resources: &Value, at: &str) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    let limits = amounts(&resources["limits"]);
    for (name, amount) in &limits {
        faults.extend(of_resource(name, *amount, &format!("{at}.limits[{name}]")));
    }
    for (name, amount) in amounts(&resources["requests"]) {
        faults.extend(of_resource(name, amount, &format!("{at}.requests[{name}]")));
        let limit = limits.iter().find(|(other, _)| *other == name).map(|(_, limit)| *limit);
        faults.extend(over(name, amount, limit, at));
    }
    faults
}

/// A request is not above its limit; what cannot be lent is asked for as it is limited.
fn over(name: &str, asked: Quantity, limit: Option<Quantity>, at: &str) -> Option<FieldFault> {
    let is_lent = is_native(name) && !name.starts_with("hugepages-");
    let wrong = |must: &str, limit| {
        let why = format!("must be {must} {name} limit of {limit}");
        Some(invalid(format!("{at}.requests"), &json!(asked.to_string()), &why))
    };
    match limit {
        None if is_lent => None,
        None => Some(required(format!("{at}.limits"), "Limit must be set for non overcommitable resources")),
        Some(limit) if !is_lent && asked != limit => wrong("equal to", limit),
        Some(limit) if asked > limit => wrong("less than or equal to", limit),
        Some(_) => None,
    }
}

fn of_resource(name: &str, amount: Quantity, at: &str) -> Vec<FieldFault> {
    let said = |why: &str| invalid(at.to_owned(), &json!(name), why);
    let amiss = |why: &str| invalid(at.to_owned(), &json!(amount.to_string()), why);
    let mut faults = Vec::new();
    if !name.contains('/') && !OF_CONTAINERS.contains(&name) && !name.starts_with("hugepages-") {
        let is_known = OF_QUOTAS.contains(&name) || name.starts_with("requests.hugepages-");
        faults.extend((!is_known).then(|| said("must be a standard resource type or fully qualified")));
        faults.push(said("must be a standard resource for containers"));
    }
    faults.extend((amount.sign() < 0).then(|| amiss("must be greater than or equal to 0")));
    faults.extend((!is_native(name) && !amount.is_whole()).then(|| amiss("must be an integer")));
    faults
}

/// Whether Kubernetes counts it itself.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// What is wrong with a PersistentVolumeClaim's spec.
pub(super) fn claim(spec: &Value) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    if list(spec, "accessModes").is_empty() {
        faults.push(required("spec.accessModes".to_owned(), "at least 1 access mode is required"));
    }
    let field = "spec.resources[storage]".to_owned();
    match amounts(&spec["resources"]["requests"]).into_iter().find(|(name, _)| *name == "storage") {
        None => faults.push(required(field, "")),
        Some((_, size)) if size.sign() <= 0 => {
            faults.push(invalid(field, &json!(size.to_string()), "must be greater than zero"));
        }
        Some(_) => {}
    }
    faults
}

/// Why the first quantity that is none cannot be read: types of built-in kinds are read with the request.
pub(in crate::embedded::api) fn unreadable(object: &Map<String, Value>) -> Option<&'static str> {
    let spec = object.get("spec")?;
    let job = &spec["jobTemplate"]["spec"];
    let pods = [spec, &spec["template"]["spec"], &job["template"]["spec"]];
    let containers = pods.into_iter().flat_map(|pod| list(pod, "initContainers").iter().chain(list(pod, "containers")));
    let claims = list(spec, "volumeClaimTemplates").iter().map(|claim| &claim["spec"]);
    let asking = containers.chain(claims).chain([spec]).map(|asking| &asking["resources"]);
    let lists = asking.flat_map(|resources| [&resources["limits"], &resources["requests"]]);
    lists.filter_map(Value::as_object).flat_map(Map::values).find_map(|value| read(value)?.err())
}

fn amounts(list: &Value) -> Vec<(&str, Quantity)> {
    let each = list.as_object().into_iter().flatten();
    each.filter_map(|(name, value)| Some((name.as_str(), read(value)?.ok()?))).collect()
}

/// A quantity may be written as a number, too.
fn read(value: &Value) -> Option<Result<Quantity, &'static str>> {
    match value {
        Value::String(text) => Some(Quantity::parse(text.trim())),
        Value::Number(number) => Some(Quantity::parse(&number.to_string())),
        _ => None,
    }
}
