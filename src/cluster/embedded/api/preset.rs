//! Defaults of built-in kinds that their published schemas do not have, because the API server holds them as code.

mod pods;

use plinth_api::Object;
use serde_json::{Value, json};

use super::kinds::Served;

/// Fills in what the API server fills in for a built-in kind. Fields whose parent is absent stay absent.
pub fn fill(object: &mut Object, served: &Served) {
    let mut value = std::mem::take(object).into_value();
    match (served.group.as_str(), served.plural.as_str()) {
        ("", "pods") => {
            pod(&mut value["spec"]);
            pods::fill(&mut value);
        }
        ("apps", "deployments") => {
            apply(&mut value, DEPLOYMENT);
            if value["spec"]["strategy"]["type"] == "RollingUpdate" {
                set(&mut value["spec"]["strategy"], "rollingUpdate", || json!({}));
                apply(&mut value, ROLLING);
            }
            template(&mut value["spec"]);
        }
        ("apps", "statefulsets") => workload(&mut value, STATEFUL_SET),
        ("apps", "daemonsets") => {
            workload(&mut value, DAEMON_SET);
            set(&mut value["metadata"], "annotations", || json!({}));
            set(&mut value["metadata"]["annotations"], "deprecated.daemonset.template.generation", || json!("1"));
        }
        ("apps", "replicasets") | ("", "replicationcontrollers") => workload(&mut value, &[("spec.replicas", "1")]),
        ("batch", "jobs") => workload(&mut value, JOB),
        ("batch", "cronjobs") => {
            apply(&mut value, CRON_JOB);
            template(&mut value["spec"]["jobTemplate"]["spec"]);
        }
        ("", "services") => service(&mut value),
        ("", "secrets") => secret(&mut value),
        ("", "namespaces") => namespace(&mut value),
        ("", "persistentvolumeclaims") => {
            apply(&mut value, &[("spec.volumeMode", "\"Filesystem\""), ("status.phase", "\"Pending\"")]);
        }
        ("networking.k8s.io", "networkpolicies") => network_policy(&mut value["spec"]),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => binding(&mut value),
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => role(&mut value),
        ("storage.k8s.io", "storageclasses") => {
            set(&mut value, "reclaimPolicy", || json!("Delete"));
            set(&mut value, "volumeBindingMode", || json!("Immediate"));
        }
        ("autoscaling", _) => apply(&mut value, &[("spec.minReplicas", "1")]),
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition(&mut value),
        _ => {}
    }
    // Looking into an absent spec left an empty one behind.
    if let Some(fields) = value.as_object_mut().filter(|fields| fields.get("spec").is_some_and(Value::is_null)) {
        fields.remove("spec");
    }
    *object = Object::from_value(value).unwrap_or_default();
}

/// Takes what another type of Service needed away where the new one has no use for it, and the client did not change it.
pub fn switch(object: &mut Object, old: &Object) {
    let outside = |spec: &Value| spec["type"] == "NodePort" || spec["type"] == "LoadBalancer";
    let before = old.spec();
    let Some(spec) = object.0.get_mut("spec").filter(|spec| outside(before) && !outside(spec)) else { return };
    let ports = |spec: &Value| -> Vec<Value> {
        spec["ports"].as_array().into_iter().flatten().map(|port| port["nodePort"].clone()).collect()
    };
    if ports(before) == ports(spec) {
        for port in elements(spec, "ports") {
            port.as_object_mut().map(|port| port.remove("nodePort"));
        }
    }
    for name in ["externalTrafficPolicy", "allocateLoadBalancerNodePorts"] {
        if spec[name] == before[name] {
            spec.as_object_mut().map(|spec| spec.remove(name));
        }
    }
}

/// A Job's pods are its own by its UID, unless it says otherwise.
pub fn select_by_uid(job: &mut Object, uid: &str) {
    let name = job.name().to_owned();
    let Some(spec) = job.0.get_mut("spec").filter(|spec| spec["manualSelector"] != true) else { return };
    spec["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    if !spec["template"].is_object() {
        return;
    }
    for (label, value) in [("controller-uid", uid), ("job-name", &name)] {
        for label in [label.to_owned(), format!("batch.kubernetes.io/{label}")] {
            spec["template"]["metadata"]["labels"][label] = json!(value);
        }
    }
    let labels = spec["template"]["metadata"]["labels"].clone();
    if job.at(&["metadata", "labels"]).is_none_or(|own| own.as_object().is_none_or(serde_json::Map::is_empty)) {
        job.metadata_mut().insert("labels".to_owned(), labels);
    }
}

const DEPLOYMENT: &[(&str, &str)] = &[
    ("spec.replicas", "1"),
    ("spec.revisionHistoryLimit", "10"),
    ("spec.progressDeadlineSeconds", "600"),
    ("spec.strategy.type", "\"RollingUpdate\""),
];
const ROLLING: &[(&str, &str)] =
    &[("spec.strategy.rollingUpdate.maxSurge", "\"25%\""), ("spec.strategy.rollingUpdate.maxUnavailable", "\"25%\"")];
const STATEFUL_SET: &[(&str, &str)] = &[
    ("spec.replicas", "1"),
    ("spec.revisionHistoryLimit", "10"),
    ("spec.podManagementPolicy", "\"OrderedReady\""),
    ("spec.updateStrategy.type", "\"RollingUpdate\""),
    ("spec.updateStrategy.rollingUpdate", "{\"partition\": 0}"),
    ("spec.persistentVolumeClaimRetentionPolicy", "{\"whenDeleted\": \"Retain\", \"whenScaled\": \"Retain\"}"),
];
const DAEMON_SET: &[(&str, &str)] = &[
    ("spec.revisionHistoryLimit", "10"),
    ("spec.updateStrategy.type", "\"RollingUpdate\""),
    ("spec.updateStrategy.rollingUpdate", "{\"maxSurge\": 0, \"maxUnavailable\": 1}"),
];
const JOB: &[(&str, &str)] = &[
    ("spec.backoffLimit", "6"),
    ("spec.completions", "1"),
    ("spec.parallelism", "1"),
    ("spec.completionMode", "\"NonIndexed\""),
    ("spec.suspend", "false"),
    ("spec.manualSelector", "false"),
    ("spec.podReplacementPolicy", "\"TerminatingOrFailed\""),
];
const CRON_JOB: &[(&str, &str)] = &[
    ("spec.concurrencyPolicy", "\"Allow\""),
    ("spec.suspend", "false"),
    ("spec.successfulJobsHistoryLimit", "3"),
    ("spec.failedJobsHistoryLimit", "1"),
];
const POD: &[(&str, &str)] = &[
    ("restartPolicy", "\"Always\""),
    ("dnsPolicy", "\"ClusterFirst\""),
    ("schedulerName", "\"default-scheduler\""),
    ("securityContext", "{}"),
    ("terminationGracePeriodSeconds", "30"),
];
const PROBE: &[(&str, &str)] =
    &[("timeoutSeconds", "1"), ("periodSeconds", "10"), ("successThreshold", "1"), ("failureThreshold", "3")];

fn apply(value: &mut Value, defaults: &[(&str, &str)]) {
    for (path, text) in defaults {
        let mut names: Vec<&str> = path.split('.').collect();
        let last = names.pop().unwrap_or_default();
        let parent = names.iter().try_fold(&mut *value, |value, name| value.get_mut(*name));
        if let Some(parent) = parent {
            set(parent, last, || serde_json::from_str(text).expect("the tables in this file hold JSON"));
        }
    }
}

fn set(parent: &mut Value, name: &str, value: impl FnOnce() -> Value) {
    if let Value::Object(fields) = parent
        && fields.get(name).is_none_or(Value::is_null)
    {
        fields.insert(name.to_owned(), value());
    }
}

fn workload(value: &mut Value, defaults: &[(&str, &str)]) {
    apply(value, defaults);
    template(&mut value["spec"]);
}

fn template(spec: &mut Value) {
    if let Some(pod_spec) = spec.pointer_mut("/template/spec") {
        pod(pod_spec);
    }
}

fn elements<'a>(value: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

fn pod(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    apply(spec, POD);
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        set(spec, "serviceAccount", || account);
    }
    for list in ["containers", "initContainers"] {
        elements(spec, list).for_each(container);
    }
    for volume in elements(spec, "volumes") {
        for source in ["secret", "configMap", "projected", "downwardAPI"] {
            if let Some(source) = volume.get_mut(source) {
                set(source, "defaultMode", || json!(420));
            }
        }
    }
}

fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let latest = image.ends_with(":latest") || !image.rsplit('/').next().unwrap_or_default().contains([':', '@']);
    let policy = if latest { "Always" } else { "IfNotPresent" };
    if container.is_object() {
        set(container, "imagePullPolicy", || json!(policy));
    }
    set(container, "terminationMessagePath", || json!("/dev/termination-log"));
    set(container, "terminationMessagePolicy", || json!("File"));
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            apply(probe, PROBE);
            apply(probe, &[("httpGet.scheme", "\"HTTP\""), ("httpGet.path", "\"/\"")]);
        }
    }
    for variable in elements(container, "env") {
        apply(variable, &[("valueFrom.fieldRef.apiVersion", "\"v1\"")]);
    }
}

fn service(value: &mut Value) {
    apply(value, &[("spec.type", "\"ClusterIP\""), ("spec.sessionAffinity", "\"None\"")]);
    let Some(spec) = value.get_mut("spec") else { return };
    for port in elements(spec, "ports") {
        set(port, "protocol", || json!("TCP"));
        let number = port["port"].clone();
        set(port, "targetPort", || number);
    }
    if spec["type"] == "ExternalName" {
        return;
    }
    set(spec, "internalTrafficPolicy", || json!("Cluster"));
    if spec["type"] != "ClusterIP" {
        set(spec, "externalTrafficPolicy", || json!("Cluster"));
    }
    if spec["type"] == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", || json!(true));
    }
}

fn secret(value: &mut Value) {
    set(value, "type", || json!("Opaque"));
    plinth_engine::stored::fold_texts(value);
}

fn namespace(value: &mut Value) {
    let name = value["metadata"]["name"].clone();
    set(&mut value["metadata"], "labels", || json!({}));
    value["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    set(value, "status", || json!({}));
    set(&mut value["status"], "phase", || json!("Active"));
}

fn network_policy(spec: &mut Value) {
    let egress = spec.get("egress").is_some();
    set(spec, "policyTypes", || if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
}

/// Verbs that are not there are none, which is judged with the other words of a rule.
fn role(value: &mut Value) {
    if value["rules"] == json!([]) {
        value["rules"] = Value::Null;
    }
    for rule in elements(value, "rules") {
        set(rule, "verbs", || json!([]));
    }
}

fn binding(value: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    if value["roleRef"]["apiGroup"] == "" {
        value["roleRef"]["apiGroup"] = json!(GROUP);
    }
    for subject in elements(value, "subjects") {
        if subject["kind"] != "ServiceAccount" && subject.get("apiGroup").is_none_or(|group| group == "") {
            subject["apiGroup"] = json!(GROUP);
        }
    }
}

fn definition(value: &mut Value) {
    let storage = value["spec"]["versions"].as_array().into_iter().flatten().filter(|version| version["storage"] == true);
    let storage: Vec<Value> = storage.map(|version| version["name"].clone()).collect();
    set(value, "status", || json!({"acceptedNames": {"plural": "", "kind": ""}}));
    if value["status"]["storedVersions"].is_null() {
        value["status"]["storedVersions"] = json!(storage);
        set(&mut value["status"], "conditions", || Value::Null);
    }
    apply(value, &[("spec.conversion.webhook.clientConfig.service.port", "443")]);
    let Some(spec) = value.get_mut("spec") else { return };
    if let Value::Object(fields) = spec {
        fields.retain(|name, value| name != "preserveUnknownFields" || *value != json!(false));
    }
    let kind = spec["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if !kind.is_empty() {
        set(&mut spec["names"], "singular", || json!(kind.to_lowercase()));
        set(&mut spec["names"], "listKind", || json!(format!("{kind}List")));
    }
    set(spec, "conversion", || json!({"strategy": "None"}));
    for column in elements(spec, "versions").flat_map(|version| elements(version, "additionalPrinterColumns").collect::<Vec<_>>())
    {
        if let Value::Object(column) = column {
            column.retain(|name, value| name != "priority" || *value != json!(0));
        }
    }
}
