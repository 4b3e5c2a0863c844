//! The room against a real kube-apiserver: what a scripted one cannot prove.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use plinth_api::{ClusterKey, GroupVersionKind, Object, Permission};
use plinth_cluster::{
    Cluster, Watches,
    access::{Source, configuration},
    catalog::{CrdState, SchemaChanges, SchemaEvent, SchemaNotice},
    decorate::DryRun,
    watch::{Look, Notice, Owner, Settings, WatchKey, WatchSet},
};
use plinth_engine::{
    ports::{Applier, Apply, Delete, Query, ReadError, Reader, WriteError},
    schema::{Lookup, SchemaSource},
};
use plinth_support::{ApiServer, Identity, Proxy};
use serde_json::{Value, json};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

async fn cluster_at(file: std::path::PathBuf) -> Arc<Cluster> {
    let config = configuration(&Source::Files(vec![file]), None).await.unwrap();
    Cluster::new(ClusterKey::host(), config).unwrap()
}

async fn cluster(identity: Identity) -> Arc<Cluster> {
    // The file is written anew by each call, and must not be read by another test meanwhile.
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = ONE_AT_A_TIME.lock().await;
    cluster_at(ApiServer::shared().kubeconfig(identity)).await
}

fn gvk(api_version: &str, kind: &str) -> GroupVersionKind {
    GroupVersionKind::from_api_version(api_version, kind).unwrap()
}

fn apply(value: Value) -> Apply {
    let object = Object::from_value(value).unwrap();
    let key = object.key(&ClusterKey::host()).unwrap();
    Apply { key, object, manager: "plinth.dev/test".into(), force: false, subresource: None }
}

fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data})
}

fn crd(plural: &str, kind: &str, fields: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.cluster.test")},
        "spec": {
            "group": "cluster.test", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                          "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                              "spec": {"type": "object", "properties": fields},
                              "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                          }}}}],
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_applied_read_and_deleted() {
    let cluster = cluster(Identity::Admin).await;
    let request = apply(map("applied", &json!({"a": "1"})));
    let applied = cluster.apply(&request).await.unwrap();
    assert_eq!(cluster.get(&request.key).await.unwrap().unwrap().uid(), applied.uid());
    let dry = DryRun(Arc::clone(&cluster));
    dry.apply(&apply(map("applied", &json!({"a": "2"})))).await.unwrap();
    dry.delete(&Delete { key: request.key.clone(), uid: None }).await.unwrap();
    let seen = cluster.get(&request.key).await.unwrap().unwrap();
    assert_eq!(seen.at(&["data", "a"]), Some(&json!("1")), "a dry run changes nothing");

    let other = Apply { manager: "other".into(), ..apply(map("applied", &json!({"a": "3"}))) };
    assert!(matches!(cluster.apply(&other).await, Err(WriteError::Conflict { message, .. }) if message.contains(".data.a")));
    cluster.apply(&Apply { force: true, ..other }).await.unwrap();

    let wrong = Delete { key: request.key.clone(), uid: Some("00000000-0000-0000-0000-000000000000".into()) };
    assert!(matches!(cluster.delete(&wrong).await, Err(WriteError::Conflict { .. })));
    cluster.delete(&Delete { uid: applied.uid().map(str::to_owned), ..wrong }).await.unwrap();
    assert_eq!(cluster.get(&request.key).await.unwrap(), None);
    cluster.delete(&Delete { key: request.key, uid: None }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_have_their_types() {
    let cluster = cluster(Identity::Admin).await;
    let mut homeless = map("x", &json!({}));
    homeless["metadata"]["namespace"] = json!("no-such-namespace");
    let error = cluster.apply(&apply(homeless)).await.unwrap_err();
    assert!(matches!(&error, WriteError::NotFound { message, .. } if message.contains("no-such-namespace")), "{error}");
    let error = cluster.apply(&apply(map("Not A Name", &json!({})))).await.unwrap_err();
    assert!(matches!(error, WriteError::Invalid { .. }), "{error}");
    let missing = json!({"apiVersion": "nobody.test/v1", "kind": "Nothing", "metadata": {"name": "x", "namespace": "default"}});
    let error = cluster.apply(&apply(missing)).await.unwrap_err();
    assert_eq!(error, WriteError::NotServed(gvk("nobody.test/v1", "Nothing")));
    // A status of an object that is not there.
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "none", "namespace": "default"}});
    let error = cluster.apply(&Apply { subresource: Some("status"), ..apply(deployment) }).await.unwrap_err();
    assert!(matches!(error, WriteError::NotFound { .. }), "{error}");
    // With a UID, an apply cannot bring back what was deleted.
    let mut ghost = map("ghost", &json!({}));
    ghost["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000000");
    let error = cluster.apply(&apply(ghost)).await.unwrap_err();
    assert!(matches!(error, WriteError::Conflict { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_permissions_are_known_before_and_named_after() {
    let (admin, limited) = (cluster(Identity::Admin).await, cluster(Identity::Limited).await);
    let permission = |verb: &str, group: &str, resource: &str| Permission {
        verb: verb.into(),
        group: group.into(),
        resource: resource.into(),
        namespace: Some("default".into()),
        name: None,
    };
    let wanted = [permission("patch", "", "configmaps"), permission("create", "apps", "deployments/status")];
    assert_eq!(admin.missing(&wanted).await.unwrap(), []);
    assert_eq!(limited.missing(&wanted).await.unwrap(), wanted);
    let error = limited.apply(&apply(map("forbidden", &json!({})))).await.unwrap_err();
    assert_eq!(error.to_string(), "patch configmaps forbidden in namespace default is not permitted");
    let query = Query {
        cluster: ClusterKey::host(),
        gvk: gvk("v1", "Secret"),
        namespace: Some("default".into()),
        selector: String::new(),
    };
    let error = limited.list(&query).await.unwrap_err();
    assert!(
        matches!(error, ReadError::Forbidden { ref missing, .. } if (missing.verb.as_str(), missing.resource.as_str()) == ("list", "secrets"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_is_known_by_identity_and_catalog() {
    let cluster = cluster(Identity::Admin).await;
    assert!(cluster.version().await.unwrap().starts_with("v1."));
    assert_eq!(cluster.identity().await.unwrap(), cluster.identity().await.unwrap());
    let all = cluster.catalog().all().await.unwrap();
    let deployment = all.iter().find(|kind| kind.gvk == gvk("apps/v1", "Deployment")).unwrap();
    assert_eq!((deployment.plural.as_str(), deployment.namespaced), ("deployments", true));
    assert!(all.len() > 50, "{}", all.len());
    let kinds = [gvk("apps/v1", "Deployment"), gvk("v1", "Namespace"), gvk("nobody.test/v1", "Nothing")];
    let schemas = cluster.catalog().ensure(&kinds).await.unwrap();
    let Lookup::Served(info) = schemas.kind(&kinds[0]) else { panic!() };
    assert!(info.namespaced && info.schema.properties["spec"].properties.contains_key("replicas"));
    let Lookup::Served(info) = schemas.kind(&kinds[1]) else { panic!() };
    assert!(!info.namespaced && info.plural == "namespaces");
    assert_eq!(schemas.kind(&kinds[2]), Lookup::NotServed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_kind_is_announced_usable_and_its_parked_watch_starts() {
    let cluster = cluster(Identity::Admin).await;
    let hub = Watches::new(Settings::default());
    hub.engage(Arc::clone(&cluster));
    let catalog = cluster.catalog();
    timeout(PATIENCE, catalog.until_following()).await.unwrap();
    let widget = gvk("cluster.test/v1", "Widget");
    let watch = WatchKey { cluster: ClusterKey::host(), gvk: widget.clone() };
    let owner = Owner { role: "test", key: apply(map("owner", &json!({}))).key };
    let notices: Arc<Mutex<Vec<Notice>>> = Arc::default();
    let log = Arc::clone(&notices);
    hub.route("test", Arc::new(move |_: &Owner, notice: &Notice| log.lock().unwrap().push(notice.clone())));
    hub.declare(&owner, WatchSet::all_of(ClusterKey::host(), widget.clone()));
    timeout(PATIENCE, hub.until_synced(std::slice::from_ref(&watch))).await.unwrap();

    let mut changes = catalog.subscribe();
    let began = Instant::now();
    cluster.apply(&apply(crd("widgets", "Widget", &json!({"size": {"type": "integer"}})))).await.unwrap();
    assert_eq!(next(&mut changes, &widget).await, SchemaEvent::Served);
    println!("from the CRD's apply to its announcement: {:?}", began.elapsed());
    assert_eq!(catalog.crd("widgets.cluster.test"), CrdState::Established);
    // At once, without a retry: announced means usable.
    let one = json!({"apiVersion": "cluster.test/v1", "kind": "Widget", "metadata": {"name": "one", "namespace": "default"}, "spec": {"size": 1}});
    let one = apply(one);
    cluster.apply(&one).await.unwrap();
    let Lookup::Served(info) = catalog.ensure([&widget]).await.unwrap().kind(&widget) else { panic!() };
    assert!(info.schema.properties["spec"].properties.contains_key("size"));
    until(|| matches!(hub.look(&one.key), Look::Present(_))).await;

    // Another schema, then the end of the kind.
    cluster.apply(&apply(crd("widgets", "Widget", &json!({"colour": {"type": "string"}})))).await.unwrap();
    assert_eq!(next(&mut changes, &widget).await, SchemaEvent::Changed);
    let crd = apply(crd("widgets", "Widget", &json!({}))).key;
    cluster.delete(&Delete { key: crd, uid: None }).await.unwrap();
    assert_eq!(next(&mut changes, &widget).await, SchemaEvent::Gone);
    until(|| hub.look(&one.key) == Look::Absent).await;
    assert_eq!(cluster.get(&one.key).await, Err(ReadError::NotServed(widget)));
    let seen = notices.lock().unwrap();
    let sizes = seen.iter().filter(|notice| matches!(notice, Notice::Changed(change) if change.before.is_none())).count();
    assert_eq!(sizes, 1, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_another_crd_has_are_refused_with_words() {
    let cluster = cluster(Identity::Admin).await;
    cluster.catalog().follow();
    cluster.apply(&apply(crd("firsts", "Taken", &json!({})))).await.unwrap();
    timeout(PATIENCE, cluster.catalog().until_established("firsts.cluster.test")).await.unwrap();
    cluster.apply(&apply(crd("seconds", "Taken", &json!({})))).await.unwrap();
    let state = timeout(PATIENCE, cluster.catalog().until_established("seconds.cluster.test")).await.unwrap();
    assert!(matches!(&state, CrdState::NamesRefused(message) if message.contains("Taken")), "{state:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_survives_a_connection_that_is_cut() {
    let server = ApiServer::shared();
    let proxy = Proxy::start(server.address()).unwrap();
    let cut_off = cluster_at(server.kubeconfig_at(Identity::Admin, proxy.address())).await;
    let direct = cluster(Identity::Admin).await;
    let hub = Watches::new(Settings::default());
    hub.engage(cut_off);
    let gvk = gvk("v1", "ConfigMap");
    let watch = WatchKey { cluster: ClusterKey::host(), gvk: gvk.clone() };
    let request = apply(map("cut", &json!({"n": "0"})));
    hub.declare(&Owner { role: "test", key: request.key.clone() }, WatchSet::all_of(ClusterKey::host(), gvk));
    timeout(PATIENCE, hub.until_synced(&[watch])).await.unwrap();
    for round in 0..3 {
        proxy.refuse(true);
        direct.apply(&apply(map("cut", &json!({"n": round.to_string()})))).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        proxy.refuse(false);
        let seen = || hub.get(&request.key).is_some_and(|object| object.at(&["data", "n"]) == Some(&json!(round.to_string())));
        until(seen).await;
    }
    direct.delete(&Delete { key: request.key.clone(), uid: None }).await.unwrap();
    until(|| hub.look(&request.key) == Look::Absent).await;
}

/// What happens next to one kind; other tests have kinds of their own on the same server.
/// An allowed breaking change leaves objects behind that no apply takes any more, and status and marks must still be written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_its_schema_does_not_allow_any_more_still_gets_status_and_marks() {
    let cluster = cluster(Identity::Admin).await;
    cluster.catalog().follow();
    let schema = |kind: &str| Apply { force: true, ..apply(crd("misfits", "Misfit", &json!({"a": {"type": kind}}))) };
    cluster.apply(&schema("integer")).await.unwrap();
    timeout(PATIENCE, cluster.catalog().until_served(&gvk("cluster.test/v1", "Misfit"))).await.unwrap();
    let identity = json!({"apiVersion": "cluster.test/v1", "kind": "Misfit", "metadata": {"name": "m", "namespace": "default"}});
    let mut stored = identity.clone();
    stored["spec"] = json!({"a": 7});
    let stored = cluster.apply(&apply(stored)).await.unwrap();
    let status = |status: Value| {
        let mut object = identity.clone();
        object["metadata"]["uid"] = json!(stored.uid());
        object["status"] = status;
        Apply { force: true, subresource: Some("status"), ..apply(object) }
    };
    cluster.apply(&status(json!({"one": 1, "two": 2}))).await.unwrap();
    cluster.apply(&schema("string")).await.unwrap();
    // The server takes a moment to go by the new schema.
    let whole = Apply {
        force: true,
        ..apply({
            let mut object = identity.clone();
            object["spec"] = json!({"a": "x"});
            object
        })
    };
    let refused = async {
        loop {
            match DryRun(Arc::clone(&cluster)).apply(&whole).await {
                Err(WriteError::Invalid { message, .. }) if message.contains(" typed") => return,
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    timeout(PATIENCE, refused).await.unwrap();

    let written = cluster.apply(&status(json!({"one": 1}))).await.unwrap();
    assert_eq!((written.status(), written.spec()), (&json!({"one": 1}), &json!({"a": 7})));
    let mut marks = identity.clone();
    marks["metadata"]["labels"] = json!({"l": "1"});
    marks["metadata"]["finalizers"] = json!(["cluster.test/hold"]);
    let marked = cluster.apply(&apply(marks)).await.unwrap();
    assert_eq!((marked.label("l"), marked.finalizers()), (Some("1"), vec!["cluster.test/hold"]));

    // Somebody mends it: from then on status is applied again, and what it leaves out goes.
    let mut mended = marked.clone();
    mended.0["spec"] = json!({"a": "seven"});
    cluster.replace(&stored.key(&ClusterKey::host()).unwrap(), &mended).await.unwrap();
    let written = cluster.apply(&status(json!({"three": 3}))).await.unwrap();
    assert_eq!(written.status(), &json!({"three": 3}));
}

async fn next(changes: &mut SchemaChanges, gvk: &GroupVersionKind) -> SchemaEvent {
    loop {
        match timeout(PATIENCE, changes.next()).await.unwrap().unwrap() {
            SchemaNotice::Change(change) if change.gvk == *gvk => return change.event,
            SchemaNotice::Change(_) => {}
            SchemaNotice::Missed => panic!("changes were missed"),
        }
    }
}

async fn until(holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
