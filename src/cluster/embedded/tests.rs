mod clusters;
mod endings;
mod owners;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, Permission};
use plinth_engine::{
    ports::{Applier, Apply, Delete, Query, ReadError, Reader, ServiceAccount, WriteError},
    schema::{Lookup, SchemaSource},
};
use plinth_run::memory::SteppedClock;
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Embedded, Options, Watched, api::rbac::User};
use crate::Cluster;

fn embedded() -> Embedded {
    with(Options::default())
}

pub(super) fn with(options: Options) -> Embedded {
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    Embedded::new(&Options { clock: Arc::new(SteppedClock::at(at)), ..options })
}

pub(super) async fn send(embedded: &Embedded, user: User, line: &str, body: &Value) -> (u16, Value) {
    let (code, bytes) = exchange(embedded, user, line, body).await;
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// `PATCH` is an apply where a field manager is named, else a merge.
async fn exchange(embedded: &Embedded, user: User, line: &str, body: &Value) -> (u16, Bytes) {
    let (method, path) = line.split_once(' ').unwrap();
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let kind = match method {
        "PATCH" if path.contains("fieldManager") => "application/apply-patch+yaml",
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(path);
    let request = request.header("content-type", kind).body(Full::new(Bytes::from(text))).unwrap();
    let response = embedded.service(user).oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    (code, response.into_body().collect().await.unwrap().to_bytes())
}

/// The events of a watch that ends when nothing is left to say.
pub(super) async fn events(embedded: &Embedded, path: &str) -> Vec<Value> {
    let line = format!("GET {path}{}watch=true&timeoutSeconds=0", if path.contains('?') { '&' } else { '?' });
    let (code, bytes) = exchange(embedded, User::admin(), &line, &Value::Null).await;
    assert_eq!(code, 200, "{line}");
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

pub(super) async fn admin(embedded: &Embedded, line: &str, body: &Value) -> (u16, Value) {
    send(embedded, User::admin(), line, body).await
}

pub(super) fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

pub(super) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn a_cluster_works_on_it_as_on_a_real_one() {
    let cluster = Cluster::with_client(ClusterKey::host(), embedded().client());
    assert!(!cluster.identity().await.unwrap().0.is_empty());
    assert_eq!(cluster.version().await.unwrap(), plinth_engine::schema::KUBERNETES_VERSION);
    let gvk = GroupVersionKind::new("apps", "v1", "Deployment");
    let kinds = cluster.catalog().ensure([&gvk]).await.unwrap();
    let Lookup::Served(kind) = kinds.kind(&gvk) else { panic!("deployments are not served") };
    assert_eq!((kind.plural.as_str(), kind.schema.field("spec").is_some()), ("deployments", true));
    let object = Object::from_value(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"}}),
    );
    let object = object.unwrap();
    let key = object.key(&ClusterKey::host()).unwrap();
    let apply = |manager: &str, object: &Object| Apply {
        key: key.clone(),
        object: object.clone(),
        manager: manager.into(),
        force: false,
        subresource: None,
    };
    cluster.apply(&apply("one", &object)).await.unwrap();
    let mut other = object.clone();
    other.0["data"] = json!({"k": "w"});
    let refused = cluster.apply(&apply("two", &other)).await.unwrap_err();
    assert!(matches!(refused, WriteError::Conflict { .. }), "{refused:?}");
    assert_eq!(cluster.get(&key).await.unwrap().unwrap().0["data"], json!({"k": "v"}));
    cluster.delete(&Delete { key: key.clone(), uid: None }).await.unwrap();
    assert_eq!(cluster.get(&key).await.unwrap(), None);
}

#[tokio::test]
async fn who_asks_in_this_process_shares_what_is_stored_and_changes_a_copy() {
    let embedded = embedded();
    admin(&embedded, &format!("POST {MAPS}"), &map("a")).await;
    let cluster = Cluster::with_client(ClusterKey::host(), embedded.client());
    let gvk = GroupVersionKind::new("", "v1", "ConfigMap");
    let key = ObjectKey { cluster: ClusterKey::host(), gvk: gvk.clone(), namespace: Some("default".into()), name: "a".into() };
    let query = Query { cluster: ClusterKey::host(), gvk, namespace: key.namespace.clone(), selector: String::new() };
    let read = cluster.get(&key).await.unwrap().unwrap();
    let mut listed = cluster.list(&query).await.unwrap().remove(0);
    assert!(std::ptr::eq(read.as_value(), listed.as_value()));
    listed.metadata_mut().insert("name".to_owned(), json!("b"));
    assert_eq!(cluster.get(&key).await.unwrap().unwrap().name(), "a");
    // As text a list leaves the types of its objects out.
    let (_, text) = admin(&embedded, &format!("GET {MAPS}"), &Value::Null).await;
    assert_eq!((&text["kind"], &text["items"][0]["kind"]), (&json!("ConfigMapList"), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_taken_says_what_its_text_says() {
    let embedded = embedded();
    admin(&embedded, &format!("POST {MAPS}"), &map("a")).await;
    let path = format!("{MAPS}?watch=true&timeoutSeconds=5&resourceVersion=1&allowWatchBookmarks=true");
    let open = || {
        let request = Request::builder().uri(&path).body(Full::new(Bytes::new())).unwrap();
        embedded.service(User::admin()).oneshot(request)
    };
    let text = open().await.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert!(!text.is_empty());
    let mut response = open().await.unwrap();
    let taken: Vec<_> = Watched::take(&mut response).unwrap().collect().await;
    let lines = taken.into_iter().flat_map(Result::unwrap).map(|line| serde_json::to_string(&line).unwrap() + "\n");
    assert_eq!(String::from_utf8_lossy(&text), lines.collect::<String>());
    assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty(), "it is said once");
}

#[tokio::test]
async fn what_is_owned_goes_with_its_owner() {
    let embedded = embedded();
    let (_, owner) = admin(&embedded, &format!("POST {MAPS}"), &map("owner")).await;
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    let owned = |name: &str, owner: &Value| json!({"metadata": {"name": name, "ownerReferences": [owner]}});
    admin(&embedded, &format!("POST {MAPS}"), &owned("child", &reference)).await;
    let (_, child) = admin(&embedded, &format!("GET {MAPS}/child"), &Value::Null).await;
    let below = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "child", "uid": child["metadata"]["uid"]});
    admin(&embedded, &format!("POST {MAPS}"), &owned("grandchild", &below)).await;
    admin(&embedded, &format!("POST {MAPS}"), &map("free")).await;
    admin(&embedded, &format!("DELETE {MAPS}/owner"), &Value::Null).await;
    let (_, left) = admin(&embedded, &format!("GET {MAPS}"), &Value::Null).await;
    let names: Vec<&str> =
        left["items"].as_array().unwrap().iter().filter_map(|item| item["metadata"]["name"].as_str()).collect();
    assert_eq!(names, ["free"]);
}

#[tokio::test]
async fn orphans_stay_and_the_foreground_waits() {
    for (policy, child_stays) in [("Orphan", true), ("Foreground", false)] {
        let embedded = embedded();
        let (_, owner) = admin(&embedded, &format!("POST {MAPS}"), &map("owner")).await;
        let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true});
        let child = json!({"metadata": {"name": "child", "ownerReferences": [reference]}});
        admin(&embedded, &format!("POST {MAPS}"), &child).await;
        admin(&embedded, &format!("DELETE {MAPS}/owner?propagationPolicy={policy}"), &Value::Null).await;
        assert_eq!(admin(&embedded, &format!("GET {MAPS}/owner"), &Value::Null).await.0, 404, "{policy}");
        let (code, child) = admin(&embedded, &format!("GET {MAPS}/child"), &Value::Null).await;
        assert_eq!(code == 200, child_stays, "{policy}: {child}");
    }
}

#[tokio::test]
async fn a_namespace_takes_its_objects_along_once_they_may_go() {
    let embedded = embedded();
    admin(&embedded, "POST /api/v1/namespaces", &map("n")).await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["x.io/f"]}});
    admin(&embedded, "POST /api/v1/namespaces/n/configmaps", &held).await;
    admin(&embedded, "POST /api/v1/namespaces/n/secrets", &map("s")).await;
    let (code, namespace) = admin(&embedded, "DELETE /api/v1/namespaces/n", &Value::Null).await;
    assert_eq!((code, &namespace["status"]["phase"]), (200, &json!("Terminating")));
    assert_eq!(admin(&embedded, "GET /api/v1/namespaces/n/secrets/s", &Value::Null).await.0, 404);
    assert_eq!(admin(&embedded, "POST /api/v1/namespaces/n/secrets", &map("t")).await.0, 403);
    let (_, held) = admin(&embedded, "GET /api/v1/namespaces/n/configmaps/held", &Value::Null).await;
    let mut free = held.clone();
    free["metadata"]["finalizers"] = json!([]);
    admin(&embedded, "PUT /api/v1/namespaces/n/configmaps/held", &free).await;
    assert_eq!(admin(&embedded, "GET /api/v1/namespaces/n", &Value::Null).await.0, 404);
}

#[tokio::test]
async fn permissions_are_those_of_rbac() {
    let embedded = embedded();
    let limited = || User::new("limited", &[]);
    let (code, status) = send(&embedded, limited(), &format!("GET {MAPS}"), &Value::Null).await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
    let role = json!({"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]});
    let root = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    admin(&embedded, &format!("POST {root}/roles"), &role).await;
    let binding = json!({"metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "limited"}]});
    admin(&embedded, &format!("POST {root}/rolebindings"), &binding).await;
    assert_eq!(send(&embedded, limited(), &format!("GET {MAPS}"), &Value::Null).await.0, 200);
    assert_eq!(send(&embedded, limited(), &format!("POST {MAPS}"), &map("a")).await.0, 403);
}

#[tokio::test]
async fn who_may_impersonate_an_account_has_its_rights_and_no_others() {
    let embedded = embedded();
    let root = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let grant = async |name: &str, resource: &str, verb: &str, subject: Value| {
        let rules = json!([{"apiGroups": [""], "resources": [resource], "verbs": [verb]}]);
        admin(&embedded, &format!("POST {root}/roles"), &json!({"metadata": {"name": name}, "rules": rules})).await;
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name});
        let binding = json!({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]});
        admin(&embedded, &format!("POST {root}/rolebindings"), &binding).await;
    };
    let user = || Cluster::with_client(ClusterKey::host(), embedded.client_as(User::new("loop", &[])));
    let account = ServiceAccount { namespace: "default".into(), name: "app".into() };
    let may = async |verb: &str| {
        let permission = Permission {
            verb: verb.into(),
            resource: "configmaps".into(),
            namespace: Some("default".into()),
            ..Permission::default()
        };
        user().acting_as(&account).can_i(&permission).await
    };
    let refused = may("list").await.unwrap_err();
    assert!(matches!(&refused, ReadError::Forbidden { missing, message }
        if (missing.verb.as_str(), missing.resource.as_str()) == ("impersonate", "serviceaccounts")
            && message == "serviceaccounts \"app\" is forbidden: User \"loop\" cannot impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"default\""));
    grant("loop", "serviceaccounts", "impersonate", json!({"kind": "User", "name": "loop"})).await;
    grant("app", "configmaps", "list", json!({"kind": "Group", "name": "system:serviceaccounts:default"})).await;
    assert_eq!((may("list").await, may("patch").await), (Ok(true), Ok(false)));
    assert_eq!(
        user().can_i(&Permission { verb: "list".into(), resource: "configmaps".into(), ..Permission::default() }).await,
        Ok(false)
    );
}

#[tokio::test]
async fn tokens_stand_for_service_accounts() {
    let embedded = embedded();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    admin(&embedded, &format!("POST {accounts}"), &map("robot")).await;
    let (code, request) = admin(&embedded, &format!("POST {accounts}/robot/token"), &json!({})).await;
    assert_eq!(code, 201);
    let token = request["status"]["token"].as_str().unwrap();
    for (token, name) in [(token, json!("system:serviceaccount:default:robot")), ("nobody", Value::Null)] {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let (_, answer) = admin(&embedded, "POST /apis/authentication.k8s.io/v1/tokenreviews", &review).await;
        assert_eq!(answer["status"]["user"]["username"], name, "{answer}");
    }
    for (token, code) in [(token, 201), ("nobody", 401)] {
        let review =
            Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews").header("authorization", format!("Bearer {token}"));
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let request = review.body(Full::new(Bytes::from(body.to_string()))).unwrap();
        let response = embedded.service(User::admin()).oneshot(request).await.unwrap();
        assert_eq!(response.status().as_u16(), code);
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        if code == 201 {
            assert_eq!(answer["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_says_what_happens_and_ends() {
    let embedded = embedded();
    let watching = tokio::spawn({
        let embedded = embedded.clone();
        async move {
            let request = Request::get(format!("{MAPS}?watch=true&timeoutSeconds=5&allowWatchBookmarks=true"));
            let response =
                embedded.service(User::admin()).oneshot(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
            response.into_body().collect().await.unwrap().to_bytes()
        }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    admin(&embedded, &format!("POST {MAPS}"), &map("a")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    admin(&embedded, &format!("DELETE {MAPS}/a"), &Value::Null).await;
    let bytes = watching.await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let kinds: Vec<Value> = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect();
    assert_eq!(kinds, ["ADDED", "DELETED", "BOOKMARK"]);
}

#[tokio::test]
async fn a_forgotten_version_is_gone() {
    let embedded = Embedded::new(&Options { history: 5, ..Options::default() });
    for name in ["a", "b", "c", "d", "e", "f"] {
        admin(&embedded, &format!("POST {MAPS}"), &map(name)).await;
    }
    let (code, event) =
        admin(&embedded, &format!("GET {MAPS}?watch=true&resourceVersion=2&timeoutSeconds=1"), &Value::Null).await;
    assert_eq!((code, &event["type"], &event["object"]["code"]), (200, &json!("ERROR"), &json!(410)));
}

#[tokio::test]
async fn the_same_requests_give_the_same_objects() {
    let run = async || {
        let embedded = embedded();
        let mut answers = Vec::new();
        for name in ["a", "b"] {
            answers.push(admin(&embedded, &format!("POST {MAPS}"), &map(name)).await);
        }
        answers.push(admin(&embedded, &format!("POST {MAPS}"), &json!({"metadata": {"generateName": "g-"}})).await);
        answers
    };
    assert_eq!(run().await, run().await);
}

#[tokio::test]
async fn it_listens_on_a_port() {
    let embedded = embedded();
    let serving = embedded.serve().await.unwrap();
    let config = kube::config::Kubeconfig::from_yaml(&serving.kubeconfig()).unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = kube::Config::from_custom_kubeconfig(config, &kube::config::KubeConfigOptions::default()).await.unwrap();
    let cluster = Cluster::new(ClusterKey::host(), config).unwrap();
    let (_, namespace) = admin(&embedded, "GET /api/v1/namespaces/kube-system", &Value::Null).await;
    assert_eq!(cluster.identity().await.unwrap().0, namespace["metadata"]["uid"].as_str().unwrap());
}

/// A page of the web that gets a browser to ask this machine under its own name is not answered.
#[tokio::test]
async fn it_answers_no_foreign_host() {
    let serving = embedded().serve().await.unwrap();
    for (header, code) in [
        ("Host: localhost:8001", "200"),
        ("Host: LOCALHOST", "200"),
        ("Host: 127.0.0.1:1", "200"),
        ("Host: [::1]:8001", "200"),
        ("Host: localhost\r\nOrigin: http://localhost:3000", "200"),
        ("Host: evil.test", "403"),
        ("Host: evil.test:8001", "403"),
        ("Host: localhost.evil.test", "403"),
        ("Host: 127.0.0.1.evil.test", "403"),
        ("Host: 10.0.0.1:8001", "403"),
        ("Host: localhost\r\nOrigin: http://evil.test", "403"),
        ("Host: localhost\r\nOrigin: null", "403"),
    ] {
        let answer = raw(serving.address(), &format!("GET /version HTTP/1.1\r\n{header}\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{header}: {answer}");
        assert!(code == "200" || answer.contains("is not this machine"), "{header}: {answer}");
    }
    let by_target = "GET http://evil.test/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert!(raw(serving.address(), by_target).await.starts_with("HTTP/1.1 403"));
}

/// What is answered to a request as it is.
async fn raw(address: std::net::SocketAddr, request: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// JSON of any shape, with names that mean something.
fn anything() -> impl Strategy<Value = Value> {
    let names = "apiVersion|kind|metadata|name|labels|annotations|finalizers|ownerReferences|spec|status|template|containers|ports|selector|names|versions|conditions|data|stringData|roleRef|subjects|rules";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z]{0,3}".prop_map(Value::from)
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_body_breaks_it(body in anything(), method in "POST|PUT|PATCH|DELETE", plural in 0..8_usize, named in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let paths = [
            MAPS, "/apis/apps/v1/namespaces/default/deployments", "/api/v1/namespaces/default/services", "/api/v1/namespaces",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/api/v1/namespaces/default/secrets",
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "/apis/batch/v1/namespaces/default/cronjobs",
        ];
        let embedded = embedded();
        let mut object = body.clone();
        if let Value::Object(fields) = &mut object {
            fields.remove("apiVersion");
            fields.remove("kind");
            fields.insert("metadata".to_owned(), json!({"name": "a"}));
        }
        for body in [body, object] {
            for line in [format!("POST {}", paths[plural]), format!("{method} {}{}?fieldManager=m", paths[plural], if named { "/a" } else { "" })] {
                let (code, answer) = runtime.block_on(admin(&embedded, &line, &body));
                prop_assert!((200..500).contains(&code) || (code == 500 && answer["kind"] == "Status"), "{line}: {code} {answer}");
            }
        }
    }
}
