use std::sync::Arc;

use plinth_bootstrap::memory::FakeCluster;
use plinth_engine::{graph, schema::builtin};
use serde_json::{Value, json};

use super::*;

const PLATFORM: &str = "default";

/// A platform of two graphs whose objects are all there and ready, and that nobody reconciles.
fn platform() -> Arc<FakeCluster> {
    let cluster = FakeCluster::new("cluster-1", builtin().iter().map(|kind| kind.as_ref().clone()));
    for crd in plinth_api::crds::platform() {
        cluster.put(&crd);
    }
    let parts = json!([{"id": "app", "template": {"apiVersion": "x.test/v1", "kind": "App", "metadata": {"name": "app"},
        "spec": {"text": "${schema.spec.text}"}}}]);
    rgd(
        &cluster,
        "app",
        "App",
        &json!([
            {"id": "outside", "externalRef": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "outside"}}},
            {"id": "config", "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"},
                "data": {"text": "${schema.spec.text}"}}},
            {"id": "claim", "readyWhen": ["${claim.status.phase == 'Bound'}"],
                "template": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"}}},
            {"id": "user", "readyWhen": ["${size(user.secrets) > 0}"], "template": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "user",
                "annotations": {"volume": "${claim.status.phase}", "secret": "${outside.metadata.name}"}}}},
        ]),
    );
    rgd(&cluster, "top", "Top", &parts);
    let top = instance(&cluster, "Top", "default", None);
    let app = instance(&cluster, "App", "app", Some(&top));
    cluster.put(&object(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "outside", "namespace": "n"}})));
    child(&cluster, "ConfigMap", "config", &app, &json!({"data": {"text": "x"}}));
    child(&cluster, "PersistentVolumeClaim", "claim", &app, &json!({"status": {"phase": "Bound"}}));
    child(&cluster, "ServiceAccount", "user", &app, &json!({"secrets": [{"name": "token"}]}));
    cluster
}

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn rgd(cluster: &FakeCluster, name: &str, kind: &str, resources: &Value) {
    let spec = json!({"schema": {"group": "x.test", "apiVersion": "v1", "kind": kind, "spec": {"text": "string | default=x"}},
        "resources": resources});
    let definition = object(json!({"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition",
        "metadata": {"name": name, "labels": {keys::PLATFORM: PLATFORM}}, "spec": spec, "status": ready()}));
    cluster.put(&definition);
    let read = Definition::from_object(&definition).unwrap();
    let compiled = graph::compile(&read, &cluster.served(), &graph::Options::default());
    cluster.put(&compiled.graph().unwrap_or_else(|| panic!("{compiled:?}")).crd);
}

fn ready() -> Value {
    json!({"conditions": [{"type": "Ready", "status": "True"}]})
}

fn instance(cluster: &FakeCluster, kind: &str, name: &str, parent: Option<&Object>) -> Object {
    let mut labels = json!({keys::OWNED: "true"});
    match parent {
        Some(parent) => labels[keys::INSTANCE_ID] = parent.uid().into(),
        None => labels[keys::PLATFORM] = PLATFORM.into(),
    }
    cluster.put(&object(
        json!({"apiVersion": "x.test/v1", "kind": kind, "metadata": {"name": name, "namespace": "n", "labels": labels},
        "spec": {"text": "x"}, "status": ready()}),
    ))
}

fn child(cluster: &FakeCluster, kind: &str, name: &str, parent: &Object, more: &Value) {
    let labels = json!({keys::OWNED: "true", keys::INSTANCE_ID: parent.uid(), keys::INSTANCE_GROUP: "x.test",
        keys::INSTANCE_VERSION: "v1", keys::INSTANCE_KIND: "App", keys::INSTANCE_NAME: parent.name(), keys::INSTANCE_NAMESPACE: "n"});
    let mut made = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "n", "labels": labels}});
    made.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    cluster.put(&object(made));
}

fn key(api_version: &str, kind: &str, name: &str) -> ObjectKey {
    let gvk = GroupVersionKind::from_api_version(api_version, kind).unwrap();
    ObjectKey { cluster: ClusterKey::host(), gvk, namespace: Some("n".into()), name: name.into() }
}

async fn load(cluster: &Arc<FakeCluster>) -> Tree {
    Tree::load(PLATFORM, cluster.as_ref(), cluster.as_ref()).await.unwrap()
}

/// The chain from the top-level instance to the root cause, as `name word`.
fn why(tree: &Tree) -> Vec<String> {
    let explanation = tree.why(&key("x.test/v1", "Top", "default"));
    let link = |cause: &plinth_engine::health::Cause<ObjectKey>| {
        format!("{} {}", cause.subject.name, plinth_run::health::word(cause.verdict.health))
    };
    explanation.chain.iter().map(link).collect()
}

#[tokio::test]
async fn a_platform_that_is_whole_is_ready() {
    let tree = load(&platform()).await;
    let odd: Vec<_> = tree.leaves.iter().filter(|(_, leaf)| leaf.verdict.health != Health::Current).collect();
    assert_eq!(tree.health(), Health::Current, "{odd:?}");
    // Two definitions with the CRDs made of them are among them.
    assert_eq!((tree.leaves.len(), tree.begun.clone()), (9, None));
    assert_eq!(why(&tree), ["default ready"]);
}

/// `up` waits for `readyWhen`: whoever looks must not call ready what it waits for.
#[tokio::test]
async fn a_child_is_ready_when_its_node_says_so() {
    let cluster = platform();
    let user = key("v1", "ServiceAccount", "user");
    let mut live = cluster.take(&user).unwrap();
    for secrets in [Some(json!([])), None] {
        live.0.remove("secrets");
        live.0.extend(secrets.map(|secrets| ("secrets".to_owned(), secrets)));
        cluster.take(&user);
        cluster.put(&live);
        let tree = load(&cluster).await;
        let verdict = &tree.leaves[&user].verdict;
        assert_eq!((verdict.health, verdict.reason.as_str()), (Health::InProgress, "NotReady"), "{}", verdict.message);
        assert!(verdict.message.contains("readyWhen"), "{}", verdict.message);
        assert_eq!(tree.health(), Health::InProgress);
        assert_eq!(why(&tree), ["default waiting", "app waiting", "user progressing"]);
    }
}

/// The loop's last word on what the server refused is in the conditions of the instance.
#[tokio::test]
async fn what_could_not_be_written_has_failed() {
    let cluster = platform();
    let config = key("v1", "ConfigMap", "config");
    let message = "resource error: node \"config\": ConfigMap/n/config is refused: data: Invalid value";
    let not = |kind: &str| json!({"type": kind, "status": "False", "reason": "NotReady", "message": message});
    let status = json!({"state": "ERROR", "conditions": [not("ResourcesReady"), not("Ready")]});
    cluster.status(&key("x.test/v1", "App", "app"), status);
    for is_there in [true, false] {
        if !is_there {
            cluster.take(&config).unwrap();
        }
        let tree = load(&cluster).await;
        let verdict = &tree.leaves[&config].verdict;
        assert_eq!(verdict.health, Health::Failed);
        assert!(verdict.message.contains("is refused: data"), "{}", verdict.message);
        assert_eq!(tree.health(), Health::Failed);
        assert_eq!(why(&tree), ["default waiting", "app failed", "config failed"]);
    }
}

#[tokio::test]
async fn what_was_deleted_while_nobody_reconciles_is_missing_and_is_the_root_cause() {
    let cluster = platform();
    cluster.take(&key("v1", "ConfigMap", "config")).unwrap();
    let tree = load(&cluster).await;
    assert_eq!(tree.health(), Health::InProgress);
    assert_eq!(tree.leaves[&key("v1", "ConfigMap", "config")].verdict.health, Health::NotFound);
    assert_eq!(why(&tree), ["default waiting", "app waiting", "config missing"]);

    // What waits for something else that is gone is no root cause.
    cluster.take(&key("v1", "ServiceAccount", "user")).unwrap();
    cluster.take(&key("v1", "PersistentVolumeClaim", "claim")).unwrap();
    cluster.put(&object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config", "namespace": "n"}})));
    let tree = load(&cluster).await;
    assert_eq!(tree.leaves[&key("v1", "ServiceAccount", "user")].verdict.health, Health::Waiting);
    let user = tree.why(&key("v1", "ServiceAccount", "user"));
    assert_eq!(user.root().unwrap().subject, key("v1", "PersistentVolumeClaim", "claim"));
}

/// The plan knows who is expected to bring a kind: so does whoever is asked why it is not there.
#[tokio::test]
async fn what_waits_for_its_kind_names_who_is_expected_to_bring_it() {
    let cluster = platform();
    rgd(
        &cluster,
        "app",
        "App",
        &json!([
            {"id": "operator", "readyWhen": ["${operator.status.availableReplicas > 0}"], "template": {
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "operator"}, "spec": {
                    "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "a", "image": "b"}]}}}}},
            {"id": "late", "template": {"apiVersion": "late.test/v1", "kind": "Late", "metadata": {"name": "late"}}},
        ]),
    );
    // Whether a kind lives in namespaces is known when it is served.
    let late = ObjectKey { namespace: None, ..key("late.test/v1", "Late", "late") };
    let tree = load(&cluster).await;
    let explanation = tree.why(&late);
    assert!(explanation.chain[0].verdict.message.contains("expected from Deployment.apps/n/operator"), "{explanation:?}");
    assert_eq!(explanation.root().unwrap().subject.name, "operator", "{explanation:?}");
    assert_eq!(same_steps(&tree), 4, "the operator, what waits for it, and both instances");

    let conditions = json!([{"type": "Available", "status": "True"}]);
    let ready = json!({"apiVersion": "apps/v1", "spec": {"replicas": 1}, "status": {
        "availableReplicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "replicas": 1, "conditions": conditions}});
    let app = cluster.objects()[&key("x.test/v1", "App", "app")].clone();
    child(&cluster, "Deployment", "operator", &app, &ready);
    let tree = load(&cluster).await;
    let next = crate::verbs::next_step(&tree.why(&late)).unwrap();
    assert!(next.starts_with("Deployment.apps/n/operator is there and has not brought Late.late.test/v1"), "{next}");
    same_steps(&tree);
}

/// `why` and the strip of the terminal know the same next step for every object. Answers with how many have one.
fn same_steps(tree: &Tree) -> usize {
    let mut run = plinth_run::RunState::default();
    let mut with_step = 0;
    for (seq, (key, leaf)) in (1..).zip(&tree.leaves) {
        let kind = crate::follow::verdict(tree, key, leaf);
        let run_id = plinth_run::RunId("r".to_owned());
        run.fold(&plinth_run::Event { v: 1, run: run_id, seq, at: Timestamp::UNIX_EPOCH, kind });
        let (asked, shown) = (crate::verbs::next_step(&tree.why(key)), run.subjects[key].next(false));
        assert_eq!(asked, shown, "{key}");
        with_step += usize::from(asked.is_some());
    }
    with_step
}

#[tokio::test]
async fn an_instance_below_that_was_deleted_is_missing_and_keeps_its_children() {
    let cluster = platform();
    let app = key("x.test/v1", "App", "app");
    cluster.take(&app).unwrap();
    let tree = load(&cluster).await;
    assert_eq!(why(&tree), ["default waiting", "app missing"]);
    assert_eq!(tree.leaves[&app].children.len(), 3, "labels say whose they were");
}

#[tokio::test]
async fn what_an_instance_reads_and_nobody_made_is_missing() {
    let cluster = platform();
    cluster.take(&key("v1", "Secret", "outside")).unwrap();
    let tree = load(&cluster).await;
    assert_eq!(why(&tree), ["default waiting", "app waiting", "outside missing"]);
}

#[tokio::test]
async fn a_platform_that_was_only_begun_is_not_ready_and_not_absent() {
    let cluster = platform();
    cluster.take(&key("x.test/v1", "Top", "default")).unwrap();
    for (key, _) in cluster.objects().into_iter().filter(|(key, _)| key.gvk.group.is_empty() || key.gvk.kind == "App") {
        cluster.take(&key);
    }
    let tree = load(&cluster).await;
    assert_eq!((tree.health(), tree.begun.as_deref()), (Health::InProgress, Some("there is no Top.x.test yet")));

    for (key, _) in cluster.objects().into_iter().filter(|(key, _)| key.gvk.kind == plinth_api::rgd::KIND) {
        cluster.take(&key);
    }
    for (key, mut crd) in cluster.objects().into_iter().filter(|(key, _)| key.gvk.kind == "CustomResourceDefinition") {
        if let Some(labels) = crd.metadata_mut().get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove(keys::PLATFORM);
        }
        cluster.take(&key);
        cluster.put(&crd);
    }
    assert_eq!(load(&cluster).await.health(), Health::NotFound, "CRDs without the label are somebody else's");
    let repository = json!({"apiVersion": "delivery.ocm.software/v1alpha1", "kind": "Repository",
        "metadata": {"name": "r", "namespace": "n", "labels": {keys::PLATFORM: PLATFORM}}});
    cluster.put(&object(repository));
    let tree = load(&cluster).await;
    assert_eq!(tree.begun.as_deref(), Some("there is no ResourceGraphDefinition yet"));
    assert_eq!(tree.health(), Health::InProgress);
}

/// By what it leaves, until it has ended: any machine may ask.
#[tokio::test]
async fn a_removal_that_was_killed_is_seen() {
    let cluster = platform();
    let removing = async || load(&cluster).await.removing;
    assert_eq!(removing().await, None);
    let delete = |key: &ObjectKey| {
        let mut object = cluster.objects()[key].clone();
        object.metadata_mut().insert("deletionTimestamp".into(), "2026-12-01T00:00:00Z".into());
        cluster.put(&object);
    };
    let top = key("x.test/v1", "Top", "default");
    delete(&top);
    assert_eq!(removing().await, Some(format!("{top} is being deleted")));
    cluster.take(&top).unwrap();
    cluster.take(&key("x.test/v1", "App", "app")).unwrap();
    assert_eq!(removing().await, None, "as if it had not come up yet");

    let definitions: Vec<ObjectKey> = cluster.objects().into_keys().filter(|key| key.gvk.kind == plinth_api::rgd::KIND).collect();
    let definition = definitions.iter().find(|key| key.name == "top").unwrap();
    delete(definition);
    assert_eq!(removing().await, Some(format!("{definition} is being deleted")));
    let mut crd = cluster.objects().into_values().find(|object| object.name() == "tops.x.test").unwrap();
    crd.metadata_mut().insert("labels".into(), json!({keys::PLATFORM: PLATFORM, keys::RGD_NAME: "top"}));
    cluster.put(&crd);
    cluster.take(definition).unwrap();
    assert!(removing().await.unwrap().starts_with("the definition of CustomResourceDefinition"));
}

/// On day 2 nobody has a plan at hand: what is wanted comes from the graph.
#[tokio::test]
async fn what_a_child_should_be_is_known_without_a_run() {
    let cluster = platform();
    let ask = async |kind: &str, name: &str| {
        let mut memory = Memory::default();
        wanted(PLATFORM, cluster.as_ref(), cluster.as_ref(), &mut memory, &key("v1", kind, name)).await.unwrap()
    };
    let config = ask("ConfigMap", "config").await.unwrap();
    assert_eq!(config.0["data"], json!({"text": "x"}));
    // What it reads of others is there, and else is left out.
    let user = ask("ServiceAccount", "user").await.unwrap();
    assert_eq!(user.annotation("volume"), Some("Bound"));
    cluster.take(&key("v1", "PersistentVolumeClaim", "claim"));
    let user = ask("ServiceAccount", "user").await.unwrap();
    assert_eq!((user.name(), user.annotation("volume")), ("user", None));
    assert_eq!(ask("ConfigMap", "other").await, None);
}
