//! Roles and their bindings (Kubernetes: validation of `rbac.authorization.k8s.io`).

use plinth_api::Object;
use serde_json::{Value, json};

use super::workloads::{invalid, list, required};
use crate::embedded::api::{
    kinds::Served,
    names::{Rule, name_fault},
    problem::FieldFault,
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// What is wrong with a role or a binding.
pub(super) fn check(object: &Object, old: Option<&Object>, served: &Served) -> Vec<FieldFault> {
    let (namespaced, is_binding) = (served.namespaced, served.plural.ends_with("bindings"));
    let mut faults = if is_binding { binding(object, namespaced) } else { role(object, namespaced) };
    if old.is_some() {
        // An update is checked as an object and as an update, and each says it.
        faults.extend(faults.clone());
    }
    faults.extend(old.filter(|_| is_binding).and_then(|old| other_role(object, old)));
    faults
}

fn role(object: &Object, namespaced: bool) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    let rules = object.0.get("rules").and_then(Value::as_array).into_iter().flatten();
    for (index, rule) in rules.enumerate() {
        self::rule(rule, &format!("rules[{index}]"), namespaced, &mut faults);
    }
    let selectors = object.0.get("aggregationRule").map(|rule| list(rule, "clusterRoleSelectors"));
    if selectors.is_some_and(<[Value]>::is_empty) {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        faults.push(required("aggregationRule.clusterRoleSelectors".to_owned(), why));
    }
    faults
}

/// A rule is about resources or about paths, and paths are in no namespace.
fn rule(rule: &Value, at: &str, namespaced: bool, faults: &mut Vec<FieldFault>) {
    let has = |name: &str| !list(rule, name).is_empty();
    if !has("verbs") {
        faults.push(required(format!("{at}.verbs"), "verbs must contain at least one value"));
    }
    if has("nonResourceURLs") {
        let mut wrong = |why| faults.push(invalid(format!("{at}.nonResourceURLs"), &rule["nonResourceURLs"], why));
        if namespaced {
            wrong("namespaced rules cannot apply to non-resource URLs");
        }
        if has("apiGroups") || has("resources") || has("resourceNames") {
            wrong("rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    for (name, what) in [("apiGroups", "api group"), ("resources", "resource")] {
        if !has(name) {
            faults.push(required(format!("{at}.{name}"), &format!("resource rules must supply at least one {what}")));
        }
    }
}

fn binding(object: &Object, namespaced: bool) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    let role = object.0.get("roleRef").unwrap_or(&Value::Null);
    faults.extend(one_of(&role["apiGroup"], "roleRef.apiGroup", &[GROUP]));
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    faults.extend(one_of(&role["kind"], "roleRef.kind", kinds));
    faults.extend(name(&role["name"], "roleRef.name", Rule::Segment));
    let subjects = object.0.get("subjects").and_then(Value::as_array).into_iter().flatten();
    for (index, subject) in subjects.enumerate() {
        self::subject(subject, &format!("subjects[{index}]"), namespaced, &mut faults);
    }
    faults
}

fn subject(subject: &Value, at: &str, namespaced: bool, faults: &mut Vec<FieldFault>) {
    let (is_account, group) = (subject["kind"] == "ServiceAccount", format!("{at}.apiGroup"));
    faults.extend(name(&subject["name"], &format!("{at}.name"), if is_account { Rule::Subdomain } else { Rule::Any }));
    faults.extend(one_of(&subject["kind"], &format!("{at}.kind"), &["ServiceAccount", "User", "Group"]));
    match subject["kind"].as_str() {
        Some("ServiceAccount") => {
            faults.extend(one_of(&subject["apiGroup"], &group, &[""]));
            if !namespaced && text(&subject["namespace"]).is_empty() {
                faults.push(required(format!("{at}.namespace"), ""));
            }
        }
        Some("User" | "Group") => faults.extend(one_of(&subject["apiGroup"], &group, &[GROUP])),
        _ => {}
    }
}

fn other_role(object: &Object, old: &Object) -> Option<FieldFault> {
    let (role, before) = (object.0.get("roleRef")?, old.0.get("roleRef")?);
    // The API server shows its own form of it.
    let shown = json!({"APIGroup": role["apiGroup"], "Kind": role["kind"], "Name": role["name"]});
    (role != before).then(|| invalid("roleRef".to_owned(), &shown, "cannot change roleRef"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn name(value: &Value, field: &str, rule: Rule) -> Option<FieldFault> {
    if text(value).is_empty() {
        return Some(required(field.to_owned(), ""));
    }
    name_fault(text(value), rule).map(|why| invalid(field.to_owned(), value, &why))
}

fn one_of(value: &Value, field: &str, supported: &[&str]) -> Option<FieldFault> {
    if supported.contains(&text(value)) {
        return None;
    }
    let supported: Vec<String> = supported.iter().map(|text| format!("{text:?}")).collect();
    let message = format!("Unsupported value: {:?}: supported values: {}", text(value), supported.join(", "));
    Some(super::fault("FieldValueNotSupported", field, message))
}
