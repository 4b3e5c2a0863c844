//! An identity for each instance (kro#59): children by the rights of a service account in the instance's namespace.

use plinth_api::{ClusterKey, Object};
use plinth_cluster::Cluster;
use plinth_controller::Options;
use plinth_support::AuditEvent;
use serde_json::{Value, json};

use super::stage::{Stage, key, object};

/// The loop's own identity; it has no right to write a ConfigMap.
const LOOP: (&str, &str) = ("plinth-system", "plinth");
const LOOP_USER: &str = "system:serviceaccount:plinth-system:plinth";
const RBAC: &str = "rbac.authorization.k8s.io/v1";

const DEFINITION: &str = r"
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: tenants, annotations: {plinth.dev/service-account: tenant}}
spec:
  schema: {apiVersion: v1alpha1, kind: Tenant, spec: {secret: string | default=shared}}
  resources:
  - id: shared
    externalRef: {apiVersion: v1, kind: Secret, metadata: {name: '${schema.spec.secret}', namespace: far}}
  - id: own
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: own}, data: {text: value}}
  - id: copy
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: copy}, data: {text: '${string(shared.data.password)}'}}
";

fn value(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// A role in a namespace, bound to an account.
fn grant(namespace: &str, name: &str, rules: &Value, account: (&str, &str)) -> [Object; 2] {
    let metadata = json!({"name": name, "namespace": namespace});
    [
        value(json!({"apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": rules})),
        value(json!({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": account.0, "name": account.1}]})),
    ]
}

/// What the loop itself may do: everything with definitions and instances, and watching; nothing with children.
fn of_the_loop() -> [Object; 2] {
    let rules = json!([
        {"apiGroups": ["kro.run", "internal.kro.run"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["plinth.dev"], "resources": ["platforms"], "verbs": ["list", "watch"]},
    ]);
    let metadata = json!({"name": "plinth"});
    [
        value(json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": metadata, "rules": rules})),
        value(json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "plinth"},
            "subjects": [{"kind": "ServiceAccount", "namespace": LOOP.0, "name": LOOP.1}]})),
    ]
}

async fn says(stage: &Stage, namespace: &str, words: &str) {
    let key = key("kro.run", "v1alpha1", "Tenant", Some(namespace), "t");
    let told = |object: Option<&Object>| object.is_some_and(|object| object.status().to_string().contains(words));
    stage.until(&key, words, told).await;
}

async fn exists(stage: &Stage, namespace: &str, name: &str) -> bool {
    stage.get(&key("", "v1", "ConfigMap", Some(namespace), name)).await.is_some()
}

/// Namespaces, accounts, the loop as itself, a Secret in a namespace of nobody's.
async fn set() -> Stage {
    let mut stage = Stage::set().await;
    for namespace in ["plinth-system", "team-a", "team-b", "far"] {
        stage.apply(value(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))).await;
    }
    for (namespace, name) in [LOOP, ("team-a", "tenant"), ("team-b", "tenant")] {
        let metadata = json!({"name": name, "namespace": namespace});
        stage.apply(value(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}))).await;
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shared", "namespace": "far"},
        "stringData": {"password": "of-the-cluster"}});
    stage.apply(value(secret)).await;
    for object in of_the_loop() {
        stage.apply(object).await;
    }
    let client = stage.server.client_of(LOOP.0, LOOP.1).await;
    let admin = std::mem::replace(&mut stage.cluster, Cluster::with_client(ClusterKey::host(), client));
    stage.cluster.catalog().follow();
    stage.start(Options { delivery: false, ..Options::default() });
    stage.cluster = admin;
    stage
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn show_03_account() {
    let mut stage = set().await;
    stage.apply(object(DEFINITION)).await;
    for namespace in ["team-a", "team-b"] {
        let metadata = json!({"name": "t", "namespace": namespace});
        stage.apply(value(json!({"apiVersion": "kro.run/v1alpha1", "kind": "Tenant", "metadata": metadata, "spec": {}}))).await;
    }
    // 1. The loop may not even act as the account.
    says(&stage, "team-a", "the controller may not act as system:serviceaccount:team-a:tenant").await;
    says(&stage, "team-a", "resourceNames: [tenant], verbs: [impersonate]} in namespace team-a").await;
    // 2. It may in both namespaces, and the accounts may nothing.
    let impersonate =
        json!([{"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["tenant"], "verbs": ["impersonate"]}]);
    for namespace in ["team-a", "team-b"] {
        for object in grant(namespace, "plinth", &impersonate, LOOP) {
            stage.apply(object).await;
        }
    }
    for namespace in ["team-a", "team-b"] {
        let account = format!("system:serviceaccount:{namespace}:tenant");
        says(&stage, namespace, &format!("{account} may not get Secret \\\"shared\\\" in namespace far")).await;
        says(&stage, namespace, &format!("{account} may not patch configmaps in namespace {namespace}")).await;
        says(&stage, namespace, "resources: [configmaps], verbs: [create, patch, delete]}").await;
    }
    // 3. One of them gets its rights, first in its namespace, then on the Secret; the other one stays as it is.
    let children = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch", "delete"]}]);
    for object in grant("team-a", "tenant", &children, ("team-a", "tenant")) {
        stage.apply(object).await;
    }
    let own = key("", "v1", "ConfigMap", Some("team-a"), "own");
    stage.until(&own, "there", |found| found.is_some()).await;
    assert!(!exists(&stage, "team-a", "copy").await, "what the account may not read is not handed to it");
    let secret = json!([{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["shared"], "verbs": ["get"]}]);
    for object in grant("far", "team-a", &secret, ("team-a", "tenant")) {
        stage.apply(object).await;
    }
    let instance = key("kro.run", "v1alpha1", "Tenant", Some("team-a"), "t");
    stage.until(&instance, "active", |object| object.is_some_and(|object| object.status()["state"] == "ACTIVE")).await;
    let copy = stage.get(&key("", "v1", "ConfigMap", Some("team-a"), "copy")).await.unwrap();
    assert_eq!(copy.at(&["data", "text"]), Some(&json!("of-the-cluster")));
    assert!(!exists(&stage, "team-b", "own").await && !exists(&stage, "team-b", "copy").await);
    // 4. It goes by the same rights.
    stage.delete(&instance).await;
    stage.until(&instance, "gone", |object| object.is_none()).await;
    assert!(!exists(&stage, "team-a", "own").await && !exists(&stage, "team-a", "copy").await);
    stage.stop().await;

    let asked = stage.server.audit().events().unwrap();
    let of_children = |event: &&AuditEvent| {
        let is_child = event.object.as_ref().is_some_and(|object| object.resource == "configmaps");
        event.user == LOOP_USER && is_child && !["get", "list", "watch"].contains(&event.verb.as_str())
    };
    let (written, other): (Vec<_>, Vec<_>) = asked.iter().filter(of_children).partition(|event| event.acting_as.is_some());
    // Where acting as the account is refused, the server's log has no account.
    assert!(other.iter().all(|event| event.code == 403), "{other:#?}");
    let done = written.iter().filter(|event| event.is_write()).count();
    eprintln!("SHOW 03 account {done} writes of children as the account, {} refused, 0 as the controller", written.len() - done);
    assert_eq!(done, 4, "{written:#?}");
}
