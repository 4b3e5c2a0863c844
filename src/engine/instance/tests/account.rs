//! Instances whose children are written by the rights of a service account.

use serde_json::json;

use crate::{
    graph::{self, Compiled, Options},
    instance::{Action, InstanceState, NodeState, decide},
    testing::{cluster::Cluster, core, definition, rgd},
};

const RESOURCES: &str = "- id: theirs
  externalRef: {apiVersion: v1, kind: Secret, metadata: {name: theirs, namespace: far}}
- id: some
  externalRef: {apiVersion: v1, kind: Service, metadata: {namespace: far, selector: {matchLabels: {a: b}}}}
- id: own
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: own}, data: {x: value}}
- id: copy
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: copy}, data: {x: '${theirs.metadata.name}'}}
";

fn compile(text: &str, options: &Options) -> Compiled {
    graph::compile(&definition(text).unwrap(), &core(), options)
}

/// The definition with the account `app`.
fn with_account() -> String {
    rgd("", "", RESOURCES).replacen("metadata:", "metadata:\n  annotations: {plinth.dev/service-account: app}", 1)
}

fn cluster(text: &str) -> Cluster {
    let compiled = compile(text, &Options::default());
    let graph = compiled.graph().unwrap_or_else(|| panic!("{:?}", compiled.diagnostics()));
    let mut cluster = Cluster::new(graph.clone(), json!({}));
    cluster.put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": "far"}}));
    cluster
}

fn message(cluster: &mut Cluster, node: &str) -> String {
    cluster.settle().node(node).unwrap().message.clone()
}

#[test]
fn a_missing_right_is_told_with_its_rule_and_the_others_go_on() {
    let mut cluster = cluster(&with_account());
    cluster.denies = ["ConfigMap"].into();
    let decision = cluster.settle();
    assert_eq!(decision.state, InstanceState::Error);
    let own = decision.node("own").unwrap();
    assert_eq!(own.state, NodeState::Failed);
    assert_eq!(
        own.message,
        "system:serviceaccount:ns:app may not create configmaps in namespace ns: it needs the rule \
         {apiGroups: [\"\"], resources: [configmaps], verbs: [create, patch, delete]} in namespace ns"
    );
    assert!(decision.status.to_string().contains("resources: [configmaps]"), "{}", decision.status);

    cluster.denies.clear();
    cluster.seen.failures.clear();
    assert_eq!(cluster.settle().state, InstanceState::Active);
}

#[test]
fn what_the_account_may_not_read_is_not_read_for_it() {
    let mut cluster = cluster(&with_account());
    cluster.denies = ["Secret", "Service"].into();
    let theirs = message(&mut cluster, "theirs");
    assert_eq!(theirs, "system:serviceaccount:ns:app may not get Secret \"theirs\" in namespace far: it needs the verb get");
    assert_eq!(
        message(&mut cluster, "some"),
        "system:serviceaccount:ns:app may not list Service in namespace far: it needs the verb list"
    );
    assert!(cluster.seen.objects.keys().all(|key| key.name != "theirs"), "it was never asked for");
    assert_eq!(cluster.log.iter().filter(|line| line.starts_with("apply")).collect::<Vec<_>>(), ["apply ConfigMap/ns/own"]);
}

#[test]
fn without_an_account_nobody_is_asked() {
    let mut cluster = cluster(&rgd("", "", RESOURCES));
    cluster.denies = ["Secret", "Service"].into();
    assert_eq!(cluster.settle().state, InstanceState::Active);
    assert!(cluster.seen.reviews.is_empty());
}

#[test]
fn another_account_applies_anew() {
    let mut cluster = cluster(&rgd("", "", RESOURCES));
    cluster.settle();
    cluster.graph = compile(&with_account(), &Options::default()).graph().unwrap().clone();
    cluster.log.clear();
    cluster.settle();
    assert_eq!(cluster.log, ["apply ConfigMap/ns/own", "apply ConfigMap/ns/copy"]);
    cluster.log.clear();
    cluster.settle();
    assert_eq!(cluster.log, Vec::<String>::new());
}

#[test]
fn a_deletion_that_is_not_permitted_says_who_may_not() {
    let mut cluster = cluster(&with_account());
    cluster.settle();
    cluster.denies = ["ConfigMap"].into();
    let key = cluster.key.clone();
    let instance = cluster.objects.get_mut(&key).unwrap();
    instance.metadata_mut().insert("deletionTimestamp".into(), json!("2026-01-01T00:00:00Z"));
    let decision = cluster.settle();
    assert!(decision.status.to_string().contains("deletion blocked: system:serviceaccount:ns:app may not delete configmaps"));
    assert!(!decision.actions.contains(&Action::RemoveFinalizer("kro.run/finalizer".into())));
}

#[test]
fn the_account_of_all_definitions_counts_where_one_names_none() {
    let options = Options { account: Some("tenant".into()), ..Options::default() };
    let account = |text: &str| compile(text, &options).graph().unwrap().account.clone().unwrap().name;
    assert_eq!(account(&rgd("", "", RESOURCES)), "tenant");
    assert_eq!(account(&with_account()), "app");
}

#[test]
fn an_account_that_cannot_be_one_refuses_the_definition() {
    let wrong = with_account().replace("service-account: app", "service-account: far/app");
    let Compiled::Invalid(diagnostics) = compile(&wrong, &Options::default()) else { panic!("it is accepted") };
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    let told = diagnostics[0].to_string();
    assert!(
        told.contains("\"far/app\" names no service account") && told.contains("in the namespace of each instance"),
        "{told}"
    );
    assert!(diagnostics[0].location.is_some());
    // A cluster-scoped instance has no namespace that an account for everybody could be in.
    let cluster = rgd("", "", "").replace("kind: Test", "kind: Test\n    scope: Cluster");
    let options = Options { account: Some("tenant".into()), ..Options::default() };
    assert!(cluster.contains("scope: Cluster") && matches!(compile(&cluster, &options), Compiled::Invalid(_)));
}

#[test]
fn only_what_the_graph_asks_for_is_asked_of_the_account() {
    let cluster = cluster(&with_account());
    let decision = decide(&cluster.graph, &cluster.seen);
    let asked = decision.actions.iter().filter(|action| matches!(action, Action::Review(_))).count();
    assert_eq!(asked, 2);
}
