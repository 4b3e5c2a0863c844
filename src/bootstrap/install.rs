//! What installs the controller in the cluster: its account, its roles, the Platform, and the Deployment.

use plinth_api::{GroupVersionKind, Object, platform, rbac, rbac::Rights};
use serde_json::{Map, Value, json};

use crate::rights::{self, NAME, NAMESPACE};

/// Nobody's, as images without an operating system have it.
const USER: u32 = 65_532;

/// The controller that a run installs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Its image, by digest.
    pub image: String,
    /// What it is told besides the platform's name, such as the mirror.
    pub arguments: Vec<String>,
    /// `spec` of the Platform that it keeps.
    pub platform: Map<String, Value>,
}

/// The kinds that installing it writes.
pub fn kinds() -> Vec<GroupVersionKind> {
    let core = ["ServiceAccount", "ConfigMap"].map(|kind| GroupVersionKind::new("", "v1", kind));
    let roles = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
    let roles = roles.map(|kind| GroupVersionKind::new(rbac::GROUP, "v1", kind));
    core.into_iter().chain(roles).chain([platform_kind(), deployment_kind()]).collect()
}

/// The kind of what runs it.
pub fn deployment_kind() -> GroupVersionKind {
    GroupVersionKind::new("apps", "v1", "Deployment")
}

/// The kind of what it keeps.
pub fn platform_kind() -> GroupVersionKind {
    GroupVersionKind::new(platform::GROUP, platform::VERSION, "Platform")
}

/// Everything, in the order in which it is written: who is to act has its rights before it runs.
pub fn objects(controller: &Controller, name: &str, rights: &Rights) -> Vec<Object> {
    let mut objects = vec![account()];
    objects.extend(rights::roles(rights));
    objects.push(kept(controller, name));
    objects.push(deployment(controller, name));
    objects
}

/// The controller alone, as a chart and manifests install it: there is no plan to compute rights from, and no Platform. Its rights are
/// those that every platform takes; what a platform takes besides is a condition of it, and `plinth grant` adds it.
pub fn without_a_plan(controller: &Controller, platform: &str) -> Vec<Object> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let mut objects = vec![object(namespace), account()];
    objects.extend(rights::roles(&rights::of_none()));
    objects.push(deployment(controller, platform));
    objects
}

fn account() -> Object {
    object(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAMESPACE}}))
}

/// The Platform: what the controller keeps, also where it has to go on with a run that ended too early.
fn kept(controller: &Controller, name: &str) -> Object {
    let kind = platform_kind();
    object(json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}, "spec": controller.platform}))
}

/// Two of them, of which one leads; nothing that the `restricted` profile does not allow.
fn deployment(controller: &Controller, platform: &str) -> Object {
    let labels = json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "controller"});
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "health"}});
    let arguments = ["controller".to_owned(), format!("--platform={platform}")];
    let arguments: Vec<String> = arguments.into_iter().chain(controller.arguments.iter().cloned()).collect();
    let container = json!({
        "name": "controller",
        "image": controller.image,
        "args": arguments,
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
        "ports": [{"name": "metrics", "containerPort": 8080, "protocol": "TCP"}, {"name": "health", "containerPort": 8081, "protocol": "TCP"}],
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    });
    object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": NAME,
                    "terminationGracePeriodSeconds": 30,
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 100, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}},
                    ]}},
                    "containers": [container],
                    "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}],
                },
            },
        },
    }))
}

fn object(value: Value) -> Object {
    Object::from_value(value).expect("a JSON object was just written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_restricted_and_has_its_rights_before() {
        let controller = Controller {
            image: "r.example/plinth@sha256:1".into(),
            arguments: vec!["--mirror=r.example".into()],
            platform: Map::new(),
        };
        let objects = objects(&controller, "p", &Rights::default());
        let kinds: Vec<String> = objects.iter().map(|object| object.gvk().unwrap().kind).collect();
        assert_eq!(kinds, ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Platform", "Deployment"]);
        assert!(objects.iter().all(|object| super::kinds().contains(&object.gvk().unwrap())));
        let pod = &objects[4].spec()["template"]["spec"];
        assert_eq!((&pod["securityContext"]["runAsNonRoot"], &pod["serviceAccountName"]), (&json!(true), &json!("plinth")));
        let container = &pod["containers"][0];
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert_eq!(container["args"], json!(["controller", "--platform=p", "--mirror=r.example"]));
        assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
    }
}
