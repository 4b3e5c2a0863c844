use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use plinth_api::Object;
use plinth_engine::schema::{Lookup, SchemaSource};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::{state::Crd, *};
use crate::fake::{Reply, cluster, discovery, lines, status};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn gvk(group: &str, kind: &str) -> GroupVersionKind {
    GroupVersionKind::new(group, "v1", kind)
}

fn crd(established: bool, field: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.io", "resourceVersion": "1"},
        "spec": {
            "group": "x.io", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {field: {"type": "string"}}}},
            }}}],
        },
        "status": {"conditions": [
            {"type": "NamesAccepted", "status": "True"},
            {"type": "Established", "status": if established { "True" } else { "False" }},
        ]},
    })
}

fn read(value: Value) -> Crd {
    Crd::read(&Object::from_value(value).unwrap()).unwrap()
}

fn events(changes: &[SchemaChange]) -> Vec<SchemaEvent> {
    changes.iter().map(|change| change.event).collect()
}

#[test]
fn a_crd_is_served_from_established_to_its_end() {
    let mut state = State::default();
    assert_eq!(events(&state.put(read(crd(false, "a")))), []);
    assert_eq!((state.find(&gvk("x.io", "Thing")), state.crd("things.x.io")), (None, CrdState::Pending));
    assert_eq!(events(&state.put(read(crd(true, "a")))), [SchemaEvent::Served]);
    assert_eq!(events(&state.put(read(crd(true, "a")))), [], "the same again is no change");
    assert_eq!(events(&state.put(read(crd(true, "b")))), [SchemaEvent::Changed]);
    let found = state.find(&gvk("x.io", "Thing")).unwrap();
    assert_eq!((found.resource().as_str(), found.namespaced), ("things.x.io", true));
    // Discovery may still name it when the CRD is gone already.
    state.discovered("x.io", "v1", vec![found]);
    assert_eq!(events(&state.remove("things.x.io")), [SchemaEvent::Gone]);
    assert_eq!((state.find(&gvk("x.io", "Thing")), state.crd("things.x.io")), (None, CrdState::Absent));
}

#[test]
fn a_list_after_a_gap_finds_what_is_gone() {
    let mut state = State::default();
    assert_eq!(events(&state.reset(vec![read(crd(true, "a"))])), [SchemaEvent::Served]);
    assert!(state.is_complete());
    assert_eq!(events(&state.reset(Vec::new())), [SchemaEvent::Gone]);
}

#[test]
fn refused_names_are_told() {
    let mut value = crd(false, "a");
    value["status"]["conditions"][0] = json!({"type": "NamesAccepted", "status": "False", "message": "things is taken"});
    let mut state = State::default();
    state.put(read(value));
    assert_eq!(state.crd("things.x.io"), CrdState::NamesRefused("things is taken".into()));
}

#[test]
fn a_crd_whose_schema_cannot_be_used_is_served_all_the_same() {
    let mut value = crd(true, "a");
    value["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!("no schema");
    let mut state = State::default();
    assert_eq!(events(&state.put(read(value))), [SchemaEvent::Served]);
    assert!(Crd::read(&Object::default()).is_none());
}

#[tokio::test]
async fn many_askers_make_one_request() {
    let (cluster, log) = cluster(|seen| discovery(&seen.path).unwrap_or(Reply::Text(404, "404 page not found")));
    let deployment = gvk("apps", "Deployment");
    let asks = (0..10).map(|_| cluster.catalog().find(&deployment));
    assert!(futures::future::join_all(asks).await.into_iter().all(|found| found.unwrap().plural == "deployments"));
    assert_eq!(lines(&log), ["GET /apis/apps/v1"]);
}

#[tokio::test]
async fn what_is_not_served_is_asked_for_once_by_those_who_ask_together() {
    let (cluster, log) = cluster(|_| Reply::Text(404, "404 page not found"));
    let catalog = cluster.catalog();
    let kinds: Vec<GroupVersionKind> = (0..10).map(|number| gvk("x.io", &format!("Kind{number}"))).collect();
    for kind in &kinds {
        assert_eq!(catalog.ensure([kind]).await.unwrap().kind(kind), Lookup::NotServed);
    }
    assert_eq!(lines(&log).len(), 10, "one after the other, each may find what was not there before");
    catalog.ensure(&kinds).await.unwrap();
    assert_eq!(lines(&log).len(), 11);
    // The first one's request was under way when the others began.
    let found = futures::future::join_all(kinds.iter().map(|kind| catalog.find(kind))).await;
    assert!(found.iter().all(|found| matches!(found, Err(ReadError::NotServed(_)))));
    assert_eq!(lines(&log).len(), 13);
}

#[test]
fn what_is_doubted_is_asked_for_again() {
    let (kind, mut state) = (gvk("x.io", "Thing"), State::default());
    state.answered(&kind, 3, Vec::new());
    assert!(state.was_asked_after(&kind, 2) && !state.was_asked_after(&kind, 3) && !state.was_asked_after(&gvk("y.io", "A"), 0));
    state.doubt(&kind);
    assert!(!state.was_asked_after(&kind, 2));
    state.answered(&kind, 5, Vec::new());
    state.forget_built_in();
    assert!(!state.was_asked_after(&kind, 2));
}

#[tokio::test]
async fn schemas_come_from_crds_first_and_from_openapi_else() {
    let (cluster, log) = cluster(|seen| {
        if let Some(reply) = discovery(&seen.path) {
            return reply;
        }
        match seen.path.as_str() {
            "/apis/x.io/v1" => Reply::Json(200, json!({"resources": [{"name": "things", "kind": "Thing", "namespaced": true}]})),
            path if path == format!("{CRDS}/things.x.io") => Reply::Json(200, crd(true, "a")),
            "/openapi/v3" => {
                Reply::Json(200, json!({"paths": {"apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=A"}}}))
            }
            "/openapi/v3/apis/apps/v1" => Reply::Json(200, document()),
            _ => status(404, "NotFound", ""),
        }
    });
    let (thing, deployment, missing) = (gvk("x.io", "Thing"), gvk("apps", "Deployment"), gvk("y.io", "Other"));
    let map = cluster.catalog().ensure([&thing, &deployment, &missing]).await.unwrap();
    let Lookup::Served(info) = map.kind(&thing) else { panic!("{map:?}") };
    assert!(info.schema.properties["spec"].properties.contains_key("a"));
    let Lookup::Served(info) = map.kind(&deployment) else { panic!("{map:?}") };
    assert!(info.schema.properties["spec"].properties.contains_key("replicas"));
    assert_eq!(map.kind(&missing), Lookup::NotServed);
    let before = lines(&log).len();
    cluster.catalog().ensure([&thing, &deployment]).await.unwrap();
    assert_eq!(lines(&log).len(), before, "what is known is not asked again");
}

fn document() -> Value {
    let action = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    let spec = json!({"type": "object", "properties": {"replicas": {"type": "integer", "format": "int32"}}});
    let meta = json!({"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"});
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments";
    json!({
        "openapi": "3.0.0",
        "paths": {path: {"post": {"x-kubernetes-action": "post", "x-kubernetes-group-version-kind": action}}},
        "components": {"schemas": {
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "properties": {"name": {"type": "string"}}},
            "io.k8s.api.apps.v1.Deployment": {
                "type": "object", "x-kubernetes-group-version-kind": [action],
                "properties": {
                    "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": meta, "spec": spec,
                },
            },
        }},
    })
}

/// A CRD becomes Established while the catalog follows; its endpoint answers only at the third look.
#[tokio::test(start_paused = true)]
async fn a_kind_is_announced_once_its_endpoint_answers() {
    let (events, receiver) = mpsc::unbounded_channel();
    let receiver = Mutex::new(Some(receiver));
    let looks = Arc::new(AtomicUsize::new(0));
    let looked = Arc::clone(&looks);
    let (cluster, _) = cluster(move |seen| match seen.path.as_str() {
        CRDS if seen.is_watch() => match receiver.lock().unwrap().take() {
            Some(receiver) => Reply::Lines(receiver),
            None => status(503, "ServiceUnavailable", "x"),
        },
        CRDS => Reply::Json(200, json!({"metadata": {"resourceVersion": "1"}, "items": [crd(false, "a")]})),
        "/apis/x.io/v1" => {
            let is_known = looked.fetch_add(1, Ordering::SeqCst) >= 2;
            let thing = json!({"name": "things", "kind": "Thing", "namespaced": true, "verbs": ["get", "list", "watch"]});
            let resources: Vec<_> = is_known.then_some(thing).into_iter().collect();
            Reply::Json(200, json!({"kind": "APIResourceList", "groupVersion": "x.io/v1", "resources": resources}))
        }
        _ => Reply::Text(404, "404 page not found"),
    });
    let catalog = Arc::clone(cluster.catalog());
    let mut changes = catalog.subscribe();
    catalog.follow();
    catalog.until_following().await;
    assert_eq!(catalog.crd("things.x.io"), CrdState::Pending);
    let mut next = crd(true, "a");
    next["metadata"]["resourceVersion"] = json!("2");
    events.send(json!({"type": "MODIFIED", "object": next})).unwrap();
    let served = SchemaNotice::Change(SchemaChange { gvk: gvk("x.io", "Thing"), event: SchemaEvent::Served });
    assert_eq!(changes.next().await, Some(served));
    assert_eq!(looks.load(Ordering::SeqCst), 3);
    assert_eq!(catalog.until_established("things.x.io").await, CrdState::Established);
    timeout(Duration::from_secs(1), catalog.until_served(&gvk("x.io", "Thing"))).await.unwrap();
    events.send(json!({"type": "DELETED", "object": next})).unwrap();
    let gone = SchemaNotice::Change(SchemaChange { gvk: gvk("x.io", "Thing"), event: SchemaEvent::Gone });
    assert_eq!(changes.next().await, Some(gone));
}

/// A definition could name such a group, and neither it nor its watch came to an end.
#[tokio::test]
async fn what_can_name_no_served_kind_is_not_served_and_not_asked_for() {
    let (cluster, log) = cluster(|_| Reply::Text(404, "404 page not found\n"));
    for (group, version) in [("Bad Group", "v1"), ("a/b", "v1"), ("x.io", "v 1"), ("x?y", "v1"), ("x.io", "../v1")] {
        let gvk = GroupVersionKind::new(group, version, "Thing");
        assert_eq!(cluster.catalog().find(&gvk).await, Err(ReadError::NotServed(gvk.clone())), "{gvk}");
        assert_eq!(cluster.catalog().ensure([&gvk]).await.map(|map| map.kind(&gvk)), Ok(Lookup::NotServed));
    }
    assert_eq!(lines(&log), Vec::<String>::new());
}
