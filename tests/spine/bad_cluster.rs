//! Clusters that cannot be worked with.

use std::{net::SocketAddr, time::Instant};

use k8s_openapi::api::{
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use plinth_support::{ApiServer, Identity};
use serde_json::json;

use crate::{distribution::Distribution, plinth::plinth};

async fn server() -> &'static ApiServer {
    tokio::task::spawn_blocking(ApiServer::shared).await.unwrap()
}

/// May read everything and write nothing.
#[tokio::test(flavor = "multi_thread")]
async fn bad_no_permission() {
    let server = server().await;
    let cluster = server.client(Identity::Cluster).await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "readers"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "readers"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}]});
    let parameters = PatchParams::apply("tests");
    Api::<ClusterRole>::all(cluster.clone()).patch("readers", &parameters, &Patch::Apply(role)).await.unwrap();
    Api::<ClusterRoleBinding>::all(cluster).patch("readers", &parameters, &Patch::Apply(binding)).await.unwrap();

    let source = Distribution::sample();
    let kubeconfig = server.kubeconfig(Identity::Limited).display().to_string();
    let run = plinth(&["up", &source.source(), "--apply", "--kubeconfig", &kubeconfig]).await.with_code(4);
    let missing =
        ["create customresourcedefinitions.apiextensions.k8s.io", "patch customresourcedefinitions.apiextensions.k8s.io"];
    let told = format!("{}{}", run.stdout, run.stderr);
    for right in missing {
        assert!(run.stderr.lines().any(|line| line.trim() == right), "{right} has no line of its own:\n{}", run.stderr);
        assert_eq!(told.lines().filter(|line| line.contains(right)).count(), 1, "{right} is not said once:\n{told}");
    }
    assert!(run.stderr.contains("hint: bind a role with these rules"), "{}", run.stderr);
    assert!(told.lines().all(|line| line.len() < 200), "a line is too long:\n{told}");

    let json = plinth(&["up", &source.source(), "--apply", "-o", "json", "--kubeconfig", &kubeconfig]).await.with_code(4);
    assert_eq!(json.stdout.matches(missing[0]).count(), 1, "one event says what is missing:\n{}", json.stdout);
    let plan = plinth(&["plan", &source.source(), "-o", "json", "--kubeconfig", &kubeconfig]).await.with_code(0);
    assert!(!plan.stdout.contains("error"), "a plan asks for no rights: {}", plan.stdout);
    let written = server.audit().writes_by("limited").unwrap();
    assert!(written.is_empty(), "{written:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_context_does_not_exist() {
    let server = server().await;
    let source = Distribution::sample();
    let kubeconfig = server.kubeconfig(Identity::Admin).display().to_string();
    let arguments = ["up", &source.source(), "--apply", "--kubeconfig", &kubeconfig, "--context", "elsewhere"];
    let run = plinth(&arguments).await.with_code(4);
    for part in ["elsewhere", "admin", "limited", &kubeconfig] {
        assert!(run.stderr.contains(part), "the message lacks {part:?}:\n{}", run.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_api_server_is_not_there() {
    let server = server().await;
    let source = Distribution::sample();
    // Nobody listens on port 1.
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
    let kubeconfig = server.kubeconfig_at(Identity::Admin, nowhere).display().to_string();
    let started = Instant::now();
    let arguments = ["up", &source.source(), "--apply", "--kubeconfig", &kubeconfig, "--timeout", "5s"];
    let run = plinth(&arguments).await.with_code(3);
    assert!((4..60).contains(&started.elapsed().as_secs()), "it gave up after {:?}", started.elapsed());
    let told = format!("{}{}", run.stdout, run.stderr);
    for part in ["127.0.0.1:1", "attempt", "next"] {
        assert!(told.contains(part), "the output lacks {part:?}:\n{told}");
    }
    assert!(told.matches("attempt").count() > 1, "one attempt is no retry:\n{told}");
}

/// Somebody's object of a name that a graph would use is theirs: not written over by `up`, and so never removed by `down`.
#[tokio::test(flavor = "multi_thread")]
async fn bad_object_of_somebody_else() {
    let server = tokio::task::spawn_blocking(ApiServer::start).await.unwrap().unwrap();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "openmcp-operator", "labels": {"made-by": "hand"}}});
    let accounts = Api::<ServiceAccount>::default_namespaced(server.client(Identity::Cluster).await);
    accounts.patch("openmcp-operator", &PatchParams::apply("kubectl"), &Patch::Apply(account)).await.unwrap();

    let source = Distribution::sample();
    let kubeconfig = server.kubeconfig(Identity::Admin).display().to_string();
    let run = plinth(&["up", &source.source(), "--apply", "--kubeconfig", &kubeconfig]).await.with_code(4);
    assert!(run.stderr.contains("ServiceAccount/default/openmcp-operator belongs to kubectl"), "{}", run.stderr);
    assert!(run.stderr.contains("--take-over"), "no way out:\n{}", run.stderr);
    let written = server.audit().writes_by("admin").unwrap();
    assert!(written.is_empty(), "{written:#?}");

    let plan = plinth(&["plan", &source.source(), "--take-over", "--kubeconfig", &kubeconfig]).await.with_code(0);
    assert!(plan.stdout.contains("belongs to kubectl and is taken over"), "{}", plan.stdout);
}

/// Every verb on everything, and yet not the right to make somebody an administrator: known before the first write.
#[tokio::test(flavor = "multi_thread")]
async fn bad_no_right_to_bind_administrators() {
    let server = tokio::task::spawn_blocking(ApiServer::start).await.unwrap().unwrap();
    let cluster = server.client(Identity::Cluster).await;
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "editors"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": verbs}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "editors"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "editors"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}]});
    let parameters = PatchParams::apply("tests");
    Api::<ClusterRole>::all(cluster.clone()).patch("editors", &parameters, &Patch::Apply(role)).await.unwrap();
    Api::<ClusterRoleBinding>::all(cluster).patch("editors", &parameters, &Patch::Apply(binding)).await.unwrap();

    let source = Distribution::sample();
    let kubeconfig = server.kubeconfig(Identity::Limited).display().to_string();
    let run = plinth(&["up", &source.source(), "--apply", "--kubeconfig", &kubeconfig]).await.with_code(4);
    let missing = "bind clusterroles.rbac.authorization.k8s.io cluster-admin";
    assert!(run.stderr.contains(missing), "the missing right is not named:\n{}", run.stderr);
    let written = server.audit().writes_by("limited").unwrap();
    assert!(written.is_empty(), "{written:#?}");
}
