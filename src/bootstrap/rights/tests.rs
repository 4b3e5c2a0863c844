use std::sync::Arc;

use plinth_api::rbac::{self, PolicyRule, Rights};
use plinth_engine::schema::{KindInfo, Schema};
use serde_json::json;

use super::{grants::Scope, *};
use crate::{
    memory::FakeCluster,
    plan,
    ports::Schemas,
    testing::{Bench, INSTANCE, LATE, PLATFORM, WORKER, component, content, rgd as text},
};

/// The rights of the small platform with this template of a Worker's second object.
fn rights(worker: &str) -> Rights {
    let mut bench = Bench::new();
    bench.content = content(vec![text("platform", PLATFORM), text("worker", worker), text("late", LATE)]);
    bench.content.instances = vec![(component("platform"), INSTANCE.into())];
    let kind = |group: &str, kind: &str, namespaced| KindInfo {
        gvk: GroupVersionKind::new(group, "v1", kind),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced,
        schema: Arc::new(Schema::any()),
    };
    let roles = [("Role", true), ("RoleBinding", true), ("ClusterRoleBinding", false)];
    let kinds = [kind("", "ConfigMap", true), kind("apps", "Deployment", true)];
    let kinds = kinds.into_iter().chain(roles.map(|(name, namespaced)| kind(rbac::GROUP, name, namespaced)));
    let served = futures::executor::block_on(FakeCluster::new("c", kinds).ensure(&[])).unwrap();
    plan::draft(&bench.content, &bench.distribution(), &bench.settings, served).unwrap().rights
}

/// A Worker that makes this as well.
fn with(template: &str) -> String {
    format!("{WORKER}    - id: more\n      template:\n        {}\n", template.trim().replace('\n', "\n        "))
}

fn printed(rules: &[PolicyRule]) -> Vec<String> {
    rules.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_kept_is_never_more_than_the_graphs_name() {
    let rights = rights(WORKER);
    let cluster = printed(&rights.cluster);
    for rule in [
        "list, watch configmaps",
        "list, watch deployments.apps",
        // Kinds that users make objects of too.
        "get, list, patch, update, watch lates.acme.example, platforms.acme.example, workers.acme.example",
        "patch lates.acme.example/status, platforms.acme.example/status, workers.acme.example/status",
        // Their children by name.
        "create, delete workers.acme.example (worker)",
        "create, patch customresourcedefinitions.apiextensions.k8s.io (artifacts.plinth.dev, lates.acme.example, platforms.acme.example, workers.acme.example)",
        "get, list, watch customresourcedefinitions.apiextensions.k8s.io",
        "get namespaces (default, kube-system)",
        // Not served yet: the plural is the usual one, and it may be of any scope.
        "create, delete, get, patch things.late.example (thing)",
    ] {
        let is_it =
            |found: &String| found == rule || rule.starts_with("create, delete workers") && found.starts_with("create, delete");
        assert!(cluster.iter().any(is_it), "{rule} is not in {cluster:#?}");
    }
    let inside = printed(&rights.namespaces["default"]);
    for rule in [
        "create, delete, get, patch configmaps (late-note, worker-config)",
        "create, delete, get, patch deployments.apps (operator)",
    ] {
        assert!(inside.iter().any(|found| found == rule), "{rule} is not in {inside:#?}");
    }
    assert!(rights.cluster.iter().chain(rights.namespaces.values().flatten()).all(|rule| !rule.has_wildcard()));
    assert_eq!((rights.lifts, rights.open), (vec![], vec![]));
}

#[test]
fn a_binding_takes_bind_on_its_role_alone_and_is_a_lift() {
    let rights = rights(&with(
        "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: worker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: worker, namespace: default}]",
    ));
    let cluster = printed(&rights.cluster);
    assert!(cluster.contains(&"bind clusterroles.rbac.authorization.k8s.io (cluster-admin)".to_owned()), "{cluster:#?}");
    assert_eq!(
        rights.lifts[0].to_string(),
        "worker binds ClusterRole cluster-admin to ServiceAccount default/worker by ClusterRoleBinding worker: \
         the controller may bind that role, which lifts it to ClusterRole cluster-admin"
    );
}

#[test]
fn who_makes_a_role_holds_its_rules_but_no_wildcard() {
    let role = |rules: &str| {
        with(&format!("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: worker}}\nrules: {rules}"))
    };
    let known = rights(&role("[{apiGroups: [batch], resources: [jobs], verbs: [get, create]}]"));
    let inside = printed(&known.namespaces["default"]);
    assert!(inside.contains(&"create, get jobs.batch".to_owned()), "{inside:#?}");
    let wild = rights(&role("[{apiGroups: [batch], resources: ['*'], verbs: [get]}]"));
    assert!(wild.open[0].contains("it grants get *.batch, and the controller gets no wildcard"), "{:?}", wild.open);
    assert!(wild.cluster.iter().chain(wild.namespaces.values().flatten()).all(|rule| !rule.has_wildcard()));
}

#[test]
fn children_of_an_account_take_the_right_to_act_as_it_and_no_other() {
    let rights = rights(&WORKER.replacen("metadata:", "metadata:\n  annotations: {plinth.dev/service-account: app}", 1));
    let inside = printed(&rights.namespaces["default"]);
    assert!(inside.contains(&"impersonate serviceaccounts (app)".to_owned()), "{inside:#?}");
    let writes = |rule: &&String| rule.contains("deployments") && (rule.contains("create") || rule.contains("patch"));
    assert_eq!(inside.iter().chain(&printed(&rights.cluster)).filter(writes).count(), 0, "{inside:#?}");
}

#[test]
fn who_only_reads_as_an_account_may_act_as_it() {
    let (head, _) = WORKER.split_once("  resources:").unwrap();
    let external = "  resources:\n    - id: seen\n      externalRef:\n        apiVersion: v1\n        kind: ConfigMap\n        metadata: {name: seen}\n";
    let worker = format!("{head}{external}");
    let acts = |worker: &str| {
        rights(worker).namespaces.values().flatten().any(|rule| rule.to_string() == "impersonate serviceaccounts (app)")
    };
    assert!(acts(&worker.replacen("metadata:", "metadata:\n  annotations: {plinth.dev/service-account: app}", 1)));
    assert!(!acts(&worker));
}

#[test]
fn what_is_known_only_during_the_run_is_said() {
    let rights = rights(&with(
        "apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: worker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: '${deployment.metadata.uid}'}",
    ));
    assert!(rights.open[0].ends_with("the role that it binds is known only during the run"), "{:?}", rights.open);
    assert_eq!(rights.lifts, []);
}

#[test]
fn nothing_is_said_twice_and_what_counts_everywhere_not_again_inside() {
    let mut grants = Grants::default();
    let inside = Scope::Namespace("n".into());
    grants.add(&Scope::Cluster, "", "pods", None, &["list"]);
    grants.add(&inside, "", "pods", Some("a"), &["list", "get"]);
    grants.add(&inside, "", "pods", Some("b"), &["get"]);
    grants.add(&inside, "", "secrets", Some("a"), &["get"]);
    grants.add(&inside, "", "services", None, &["get"]);
    grants.add(&inside, "", "services", Some("a"), &["get"]);
    let rights = grants.rights();
    assert_eq!(printed(&rights.cluster), ["list pods"]);
    assert_eq!(printed(&rights.namespaces["n"]), ["get pods (a, b)", "get secrets (a)", "get services"]);
    // Without the namespace the same counts everywhere.
    let spread = within(&rights, &BTreeSet::new());
    assert!(spread.namespaces.is_empty() && printed(&spread.cluster).contains(&"get pods (a, b)".to_owned()));
    assert_eq!(within(&rights, &BTreeSet::from(["n".to_owned()])), rights);
}

#[test]
fn a_rule_of_a_role_with_paths_is_kept_whole() {
    let rule: PolicyRule = serde_json::from_value(json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})).unwrap();
    let mut grants = Grants::default();
    grants.add_rule(&Scope::Cluster, &rule);
    assert_eq!(grants.rights().cluster, [rule]);
}
