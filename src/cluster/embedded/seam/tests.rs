use kube::api::ListParams;
use plinth_api::{GroupVersionKind, Object};
use plinth_engine::ports::{Applier, Apply, ReadError, Reader, WriteError};
use serde_json::{Value, json};

use super::*;
use crate::{
    Cluster,
    embedded::{
        Embedded, Options,
        tests::{MAPS, admin, events, map, send, with},
    },
};

/// Paths of its own: `/view/TEAM/clusters/…` shows a team's objects, in nobody's name; `/gone/…` and `/odd/…` answer as no API
/// server does; `/few/clusters/…` serves ConfigMaps alone.
struct Views;

impl Seam for Views {
    fn turn(&self, call: &Call, user: &User, state: &State) -> Turn {
        let Some((first, rest)) = call.path[1..].split_once('/') else { return Turn::Pass };
        let below = |path: &str| Way::of(path).unwrap();
        let way = match first {
            "view" => {
                let (team, rest) = rest.split_once('/').unwrap();
                let label = |name: &str, value: &str, protected| Label { name: name.into(), value: value.into(), protected };
                Way {
                    filter: Selector::parse(&format!("team={team}")).unwrap(),
                    labels: vec![label("team", team, true), label("claimed", "yes", false)],
                    user: Some(User::admin()),
                    ..below(&format!("/{rest}"))
                }
            }
            "few" => {
                let way = below(&format!("/{rest}"));
                let served = state.registry.find(&way.reach, "", "v1", "configmaps").into_iter().collect();
                Way { kinds: Some(Arc::new(Kinds { served, revision: 7 })), ..way }
            }
            "gone" => return Turn::Answer(Reply::Text(500, format!("no view for {}: it is gone\n", user.name).into())),
            "odd" => return Turn::Answer(Reply::Json(403, json!({"error": "access_denied", "hint": "ask bob"}))),
            _ => return Turn::Pass,
        };
        Turn::To(Box::new(way))
    }
}

fn views() -> Embedded {
    let embedded = with(Options { seam: Some(Arc::new(Views)), ..Options::default() });
    for name in ["one", "two"] {
        embedded.add_cluster(name).unwrap();
    }
    embedded
}

const ONE: &str = "/clusters/one/api/v1/namespaces/default/configmaps";
const VIEW: &str = "/view/a/clusters/one/api/v1/namespaces/default/configmaps";

fn of(name: &str, team: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"team": team}}})
}

async fn code(embedded: &Embedded, line: &str, body: &Value) -> u16 {
    admin(embedded, line, body).await.0
}

async fn names(embedded: &Embedded, path: &str) -> Vec<String> {
    let (code, list) = admin(embedded, &format!("GET {path}"), &Value::Null).await;
    assert_eq!(code, 200, "{path}: {list}");
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn what_the_filter_hides_is_not_there() {
    let embedded = views();
    for (name, team) in [("mine", "a"), ("other", "b")] {
        assert_eq!(code(&embedded, &format!("POST {ONE}"), &of(name, team)).await, 201);
    }
    assert_eq!(names(&embedded, VIEW).await, ["mine"]);
    assert_eq!(names(&embedded, &format!("{VIEW}?labelSelector=team%3Db")).await, [""; 0]);
    assert_eq!(names(&embedded, "/view/b/clusters/*/api/v1/configmaps").await, ["other"]);
    let merge = json!({"data": {"k": "v"}});
    let apply = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"k": "v"}});
    for (line, body, wanted) in [
        (format!("GET {VIEW}/other"), &Value::Null, 404),
        (format!("PUT {VIEW}/other"), &map("other"), 404),
        (format!("PATCH {VIEW}/other"), &merge, 404),
        (format!("PATCH {VIEW}/other?fieldManager=m"), &apply, 409),
        (format!("POST {VIEW}"), &map("other"), 409),
        (format!("DELETE {VIEW}/other"), &Value::Null, 404),
        (format!("DELETE {VIEW}"), &Value::Null, 200),
        (format!("GET {ONE}/mine"), &Value::Null, 404),
        (format!("GET {ONE}/other"), &Value::Null, 200),
    ] {
        let (code, answer) = admin(&embedded, &line, body).await;
        assert_eq!(code, wanted, "{line}: {answer}");
    }
    let (_, other) = admin(&embedded, &format!("GET {ONE}/other"), &Value::Null).await;
    assert_eq!((&other["data"], &other["metadata"]["labels"]), (&Value::Null, &json!({"team": "b"})), "nothing reached it");
}

#[tokio::test]
async fn what_leaves_the_filter_is_deleted_and_what_enters_it_is_added() {
    let embedded = views();
    let (_, first) = admin(&embedded, &format!("POST {ONE}"), &of("m", "a")).await;
    let since = first["metadata"]["resourceVersion"].as_str().unwrap();
    for team in ["b", "c", "a"] {
        let patch = json!({"metadata": {"labels": {"team": team}}});
        assert_eq!(code(&embedded, &format!("PATCH {ONE}/m"), &patch).await, 200);
    }
    assert_eq!(code(&embedded, &format!("POST {ONE}"), &of("unseen", "b")).await, 201);
    assert_eq!(code(&embedded, &format!("DELETE {ONE}/m"), &Value::Null).await, 200);
    for path in [VIEW, "/view/a/clusters/*/api/v1/configmaps"] {
        let events = events(&embedded, &format!("{path}?resourceVersion={since}")).await;
        let seen: Vec<_> = events
            .iter()
            .map(|event| (event["type"].as_str().unwrap(), event["object"]["metadata"]["name"].as_str().unwrap()))
            .collect();
        assert_eq!(seen, [("DELETED", "m"), ("ADDED", "m"), ("DELETED", "m")], "{path}");
    }
}

#[tokio::test]
async fn labels_are_put_on_what_is_written_and_nobody_manages_them() {
    let embedded = views();
    let marked = json!({"team": "a", "claimed": "yes"});
    let apply = |name: &str, labels: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}});
    for (line, body) in [
        (format!("POST {VIEW}"), map("created")),
        (format!("PATCH {VIEW}/applied?fieldManager=m"), apply("applied", json!({"claimed": "no", "own": "x"}))),
        (format!("PATCH {VIEW}/applied?fieldManager=m"), apply("applied", json!({}))),
        (format!("PATCH {VIEW}/created"), json!({"metadata": {"labels": null}, "data": {"k": "v"}})),
        (format!("PUT {VIEW}/created"), json!({"metadata": {"name": "created", "labels": {"claimed": "no"}}})),
        (format!("POST {VIEW}?dryRun=All"), map("dry")),
    ] {
        let (code, answer) = admin(&embedded, &line, &body).await;
        assert!((200..300).contains(&code), "{line}: {answer}");
        let mut labels = answer["metadata"]["labels"].clone();
        labels.as_object_mut().unwrap().remove("own");
        assert_eq!(labels, marked, "{line}");
        let managed = answer["metadata"]["managedFields"].to_string();
        assert!(!managed.contains("f:claimed") && !managed.contains("f:team"), "{line}: {managed}");
    }
    let (code, answer) = admin(&embedded, &format!("POST {VIEW}"), &of("wrong", "b")).await;
    let words = "configmaps \"wrong\" is forbidden: protected label team must have value a";
    assert_eq!((code, answer["message"].as_str()), (403, Some(words)));
    let wrong = apply("applied", json!({"team": "b"}));
    assert_eq!(admin(&embedded, &format!("PATCH {VIEW}/applied?fieldManager=m"), &wrong).await.0, 403);
    // An object from before gets them with its next write.
    assert_eq!(admin(&embedded, &format!("POST {ONE}"), &of("old", "a")).await.0, 201);
    let (_, old) = admin(&embedded, &format!("PATCH {VIEW}/old"), &json!({"data": {"k": "v"}})).await;
    assert_eq!(old["metadata"]["labels"], marked);
}

#[tokio::test]
async fn a_view_is_open_to_whom_the_seam_lets_in_and_its_target_is_not() {
    let embedded = views();
    let bob = || User::new("bob", &[]);
    assert_eq!(send(&embedded, bob(), &format!("GET {VIEW}"), &Value::Null).await.0, 200);
    assert_eq!(send(&embedded, bob(), &format!("GET {ONE}"), &Value::Null).await.0, 403);
    assert_eq!(send(&embedded, bob(), "GET /view/a/clusters/nosuch/api/v1/configmaps", &Value::Null).await.0, 403);
}

#[tokio::test]
async fn a_seam_says_what_is_served() {
    let embedded = views();
    assert_eq!(code(&embedded, &format!("POST {ONE}"), &map("m")).await, 201);
    for (path, wanted) in [
        ("/few/clusters/one/api/v1/configmaps", 200),
        ("/few/clusters/*/api/v1/configmaps", 200),
        ("/few/clusters/one/api/v1/secrets", 404),
        ("/few/clusters/one/apis/apps/v1", 404),
        ("/few/clusters/one/openapi/v3/apis/apps/v1", 404),
        ("/few/clusters/one/openapi/v3/api/v1", 200),
    ] {
        assert_eq!(code(&embedded, &format!("GET {path}"), &Value::Null).await, wanted, "{path}");
    }
    let (_, resources) = admin(&embedded, "GET /few/clusters/one/api/v1", &Value::Null).await;
    assert_eq!(resources["resources"].as_array().unwrap().len(), 1);
    let (_, index) = admin(&embedded, "GET /few/clusters/one/openapi/v3", &Value::Null).await;
    assert_eq!(index["paths"], json!({"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=7"}}));
}

/// Kinds of the same name that two providers bring are apart, also over all clusters.
struct Providers;

fn gadgets(identity: &str) -> Arc<Kinds> {
    let crd = json!({"spec": {"group": "g.test", "scope": "Namespaced", "names": {"kind": "Gadget", "plural": "gadgets", "listKind": "GadgetList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let kinds = crate::embedded::api::kinds::of_crd(&Object::from_value(crd).unwrap());
    let served = kinds.into_iter().map(|mut kind| {
        kind.identity = identity.to_owned();
        Arc::new(kind)
    });
    Arc::new(Kinds { served: served.collect(), revision: 1 })
}

impl Seam for Providers {
    fn turn(&self, call: &Call, _: &User, _: &State) -> Turn {
        let Some(rest) = call.path.strip_prefix("/by/") else { return Turn::Pass };
        let (identity, rest) = rest.split_once('/').unwrap();
        let way = Way::of(&format!("/{rest}")).unwrap();
        Turn::To(Box::new(Way { kinds: Some(gadgets(identity)), ..way }))
    }
}

#[tokio::test]
async fn kinds_of_one_name_and_two_identities_are_apart() {
    let embedded = with(Options { seam: Some(Arc::new(Providers)), ..Options::default() });
    for (name, identity) in [("one", "x"), ("two", "y"), ("three", "x")] {
        embedded.add_cluster(name).unwrap();
        let gadget = json!({"apiVersion": "g.test/v1", "kind": "Gadget", "metadata": {"name": format!("of-{name}")}});
        let line = format!("POST /by/{identity}/clusters/{name}/apis/g.test/v1/namespaces/default/gadgets");
        assert_eq!(code(&embedded, &line, &gadget).await, 201);
    }
    let all = |identity: &str| format!("/by/{identity}/clusters/*/apis/g.test/v1/gadgets");
    assert_eq!(names(&embedded, &all("x")).await, ["of-one", "of-three"]);
    assert_eq!(names(&embedded, &all("y")).await, ["of-two"]);
    assert_eq!(events(&embedded, &format!("{}?resourceVersion=1", all("y"))).await.len(), 1);
}

#[tokio::test]
async fn a_conflict_on_purpose_names_the_object_behind_the_seam() {
    let embedded = views();
    assert_eq!(code(&embedded, &format!("POST {VIEW}"), &map("m")).await, 201);
    embedded.fault(|faults| faults.conflict_every(1, None));
    let (code, answer) = admin(&embedded, &format!("PATCH {VIEW}/m"), &json!({"data": {}})).await;
    assert_eq!((code, &answer["details"]), (409, &json!({"name": "m", "kind": "configmaps"})));
    let (code, answer) = admin(&embedded, &format!("PUT {MAPS}/m"), &json!({})).await;
    assert_eq!((code, &answer["details"]), (409, &json!({"name": "m", "kind": "configmaps"})));
}

#[tokio::test]
async fn answers_that_are_no_status_are_understood_by_clients() {
    let embedded = views();
    for (root, code, words) in
        [("/gone/x", 500, "no view for admin: it is gone"), ("/odd/x", 403, r#"{"error":"access_denied","hint":"ask bob"}"#)]
    {
        let client = embedded.client_at(root, User::admin());
        let api: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::default_namespaced(client.clone());
        let error = api.list(&ListParams::default()).await.unwrap_err();
        let kube::Error::Api(status) = &error else { panic!("{error:?}") };
        // kube reads any JSON object as a Status, so that of the second form nothing is left; our own client does not.
        if code == 500 {
            assert_eq!(status.code, code);
            assert!(status.message.contains(words), "{status:?}");
        }

        let cluster = Cluster::with_client(ClusterKey("x".into()), client);
        let gvk = GroupVersionKind::new("", "v1", "ConfigMap");
        let query = plinth_engine::ports::Query { cluster: cluster.key().clone(), gvk, namespace: None, selector: String::new() };
        let read = cluster.list(&query).await.unwrap_err();
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}});
        let object = Object::from_value(object).unwrap();
        let key = object.key(cluster.key()).unwrap();
        let apply = Apply { key, object, manager: "m".into(), force: true, subresource: None };
        let write = cluster.apply(&apply).await.unwrap_err();
        match (code, &read, &write) {
            (500, ReadError::Unavailable(read), WriteError::Unavailable { message: write, .. }) => {
                assert_eq!(
                    (read.as_str(), write.as_str()),
                    ("no view for admin: it is gone (500)", "no view for admin: it is gone (500)")
                );
            }
            (403, ReadError::Forbidden { message: read, .. }, WriteError::Forbidden { message: write, .. }) => {
                assert_eq!((read.as_str(), write.as_str()), (words, words));
            }
            other => panic!("{other:?}"),
        }
    }
    // What a cluster does not serve is text as well, and for our client a kind that is not there.
    let cluster = embedded.cluster(&ClusterKey("one".into()));
    let gvk = GroupVersionKind::new("absent.test", "v1", "Thing");
    let query = plinth_engine::ports::Query {
        cluster: cluster.key().clone(),
        gvk: gvk.clone(),
        namespace: None,
        selector: String::new(),
    };
    assert_eq!(cluster.list(&query).await.unwrap_err(), ReadError::NotServed(gvk));
}
