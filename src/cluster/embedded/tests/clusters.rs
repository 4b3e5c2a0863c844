//! Logical clusters: what each has of its own, and what all have in common.

use plinth_api::Scenario;

use super::*;
use crate::embedded::{Acting, ClusterNameError};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/w.test/v1/namespaces/default/widgets";

fn two() -> Embedded {
    let embedded = embedded();
    for name in ["one", "two"] {
        embedded.add_cluster(name).unwrap();
    }
    embedded
}

/// A CRD of Widgets whose spec has one field.
fn widgets(field: &str) -> Value {
    let spec = json!({"type": "object", "properties": {field: {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.w.test"},
           "spec": {"group": "w.test", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
           "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "w.test/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

async fn get(embedded: &Embedded, path: &str) -> (u16, Value) {
    admin(embedded, &format!("GET {path}"), &Value::Null).await
}

async fn post(embedded: &Embedded, path: &str, body: &Value) -> Value {
    let (code, answer) = admin(embedded, &format!("POST {path}"), body).await;
    assert_eq!(code, 201, "{path}: {answer}");
    answer
}

fn version(value: &Value) -> u64 {
    value["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// Cluster and name of each item or event's object.
fn named<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Vec<(&'a str, &'a str)> {
    let name = |object: &'a Value| {
        let metadata = &object["metadata"];
        (metadata["annotations"]["kcp.io/cluster"].as_str().unwrap_or("-"), metadata["name"].as_str().unwrap())
    };
    objects.into_iter().map(name).collect()
}

#[tokio::test]
async fn names_are_apart() {
    let embedded = two();
    for (root, text) in [("", "default"), ("/clusters/one", "one"), ("/clusters/two", "two")] {
        let body = json!({"metadata": {"name": "a"}, "data": {"of": text}});
        post(&embedded, &format!("{root}{MAPS}"), &body).await;
    }
    admin(&embedded, &format!("DELETE /clusters/one{MAPS}/a"), &Value::Null).await;
    assert_eq!(get(&embedded, &format!("/clusters/one{MAPS}/a")).await.0, 404);
    for (root, text) in [("", "default"), ("/clusters/two", "two")] {
        assert_eq!(get(&embedded, &format!("{root}{MAPS}/a")).await.1["data"]["of"], text);
        assert_eq!(get(&embedded, &format!("{root}{MAPS}")).await.1["items"].as_array().unwrap().len(), 1);
    }
    post(&embedded, "/clusters/one/api/v1/namespaces", &map("n")).await;
    let (code, answer) = admin(&embedded, "POST /clusters/two/api/v1/namespaces/n/configmaps", &map("b")).await;
    assert_eq!((code, &answer["message"]), (404, &json!("namespaces \"n\" not found")));
}

#[tokio::test]
async fn definitions_discovery_and_schemas_are_apart() {
    let embedded = two();
    let hash = async |root: &str| get(&embedded, &format!("{root}/openapi/v3")).await.1["paths"]["api/v1"].clone();
    let before = hash("/clusters/two").await;
    post(&embedded, &format!("/clusters/one{CRDS}"), &widgets("size")).await;
    assert_eq!(hash("/clusters/two").await, before, "what caches know of another cluster stays true");
    for (root, code) in [("/clusters/one", 200), ("/clusters/two", 404), ("", 404)] {
        for path in ["/apis/w.test", "/apis/w.test/v1", "/openapi/v3/apis/w.test/v1", WIDGETS] {
            assert_eq!(get(&embedded, &format!("{root}{path}")).await.0, code, "{root}{path}");
        }
    }
    post(&embedded, &format!("/clusters/two{CRDS}"), &widgets("colour")).await;
    for (name, kept) in [("one", "size"), ("two", "colour")] {
        let body = widget("w", &json!({"size": 1, "colour": 2}));
        let stored = post(&embedded, &format!("/clusters/{name}{WIDGETS}"), &body).await;
        let fields: Vec<&String> = stored["spec"].as_object().unwrap().keys().collect();
        assert_eq!(fields, [kept], "{name}");
    }
    admin(&embedded, &format!("DELETE /clusters/one{CRDS}/widgets.w.test"), &Value::Null).await;
    assert_eq!(get(&embedded, &format!("/clusters/one{WIDGETS}/w")).await.0, 404);
    assert_eq!(get(&embedded, &format!("/clusters/two{WIDGETS}/w")).await.0, 200);
}

#[tokio::test]
async fn permissions_and_service_accounts_are_apart() {
    let embedded = two();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let group = "rbac.authorization.k8s.io";
    let subjects = json!([{"kind": "User", "name": "bob"}, {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]);
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    post(&embedded, &format!("/clusters/one{rbac}/clusterroles"), &json!({"metadata": {"name": "r"}, "rules": rules})).await;
    let binding = json!({"metadata": {"name": "b"}, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "r"}, "subjects": subjects});
    post(&embedded, &format!("/clusters/one{rbac}/clusterrolebindings"), &binding).await;
    let ask = async |user: User, path: &str| send(&embedded, user, &format!("GET {path}"), &Value::Null).await;
    let bob = || User::new("bob", &[]);
    assert_eq!(ask(bob(), &format!("/clusters/one{MAPS}")).await.0, 200);
    assert_eq!(ask(bob(), "/clusters/one/metrics").await.0, 404, "a path is judged without its cluster");
    assert_eq!(ask(bob(), MAPS).await.0, 403);
    let (code, answer) = ask(bob(), &format!("/clusters/two{MAPS}")).await;
    let words = "configmaps is forbidden: User \"bob\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\": access denied";
    assert_eq!((code, answer["message"].as_str()), (403, Some(words)));
    assert_eq!(ask(bob(), "/clusters/two/metrics").await.0, 403);
    // The account of the same name elsewhere is somebody else.
    for root in ["/clusters/one", "/clusters/two", ""] {
        post(&embedded, &format!("{root}/api/v1/namespaces/default/serviceaccounts"), &map("robot")).await;
    }
    for (home, code) in [("/clusters/one", 200), ("/clusters/two", 403), ("", 403)] {
        let path = format!("{home}/api/v1/namespaces/default/serviceaccounts/robot/token");
        let token = post(&embedded, &path, &json!({})).await["status"]["token"].as_str().unwrap().to_owned();
        let request = Request::get(format!("/clusters/one{MAPS}")).header("authorization", format!("Bearer {token}"));
        let answer = embedded.service(User::admin()).oneshot(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
        assert_eq!(answer.status().as_u16(), code, "an account of {home:?}");
    }
}

#[tokio::test]
async fn all_clusters_share_one_counter_and_watches_do_not_cross() {
    let embedded = two();
    let mut versions = Vec::new();
    for (root, name) in [("", "a"), ("/clusters/one", "b"), ("/clusters/two", "c"), ("/clusters/one", "d"), ("", "e")] {
        versions.push(version(&post(&embedded, &format!("{root}{MAPS}"), &map(name)).await));
    }
    let next: Vec<u64> = (versions[0]..).take(5).collect();
    assert_eq!(versions, next);
    for root in ["", "/clusters/one", "/clusters/two", "/clusters/*"] {
        let path = if root.ends_with('*') { "/api/v1/configmaps" } else { MAPS };
        assert_eq!(version(&get(&embedded, &format!("{root}{path}")).await.1), versions[4], "{root}");
    }
    // A version of one cluster is good in any other.
    for (root, seen) in [("", vec!["e"]), ("/clusters/one", vec!["d"]), ("/clusters/two", vec![])] {
        let events = events(&embedded, &format!("{root}{MAPS}?resourceVersion={}", versions[2])).await;
        let names: Vec<&str> = events.iter().map(|event| event["object"]["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, seen, "{root}");
    }
}

#[tokio::test]
async fn a_list_over_all_says_whose_each_is() {
    let embedded = two();
    for (root, name) in [("", "host"), ("/clusters/one", "same"), ("/clusters/two", "same"), ("/clusters/two", "z")] {
        post(&embedded, &format!("{root}{MAPS}"), &map(name)).await;
    }
    let all = [("one", "same"), ("two", "same"), ("two", "z")];
    let (_, list) = get(&embedded, "/clusters/*/api/v1/configmaps").await;
    assert_eq!(named(list["items"].as_array().unwrap()), all);
    let (mut paged, mut next) = (Vec::new(), String::new());
    for _ in all {
        let (_, page) = get(&embedded, &format!("/clusters/*/api/v1/configmaps?limit=1&continue={next}")).await;
        let items = page["items"].as_array().unwrap().clone();
        paged.extend(named(&items).iter().map(|(cluster, name)| ((*cluster).to_owned(), (*name).to_owned())).collect::<Vec<_>>());
        next = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    }
    let paged: Vec<(&str, &str)> = paged.iter().map(|(cluster, name)| (cluster.as_str(), name.as_str())).collect();
    assert_eq!((paged, next.as_str()), (all.to_vec(), ""));
    for (line, code) in [
        (format!("GET /clusters/*{MAPS}/same"), 404),
        (format!("POST /clusters/*{MAPS}"), 404),
        (format!("DELETE /clusters/*{MAPS}/same"), 404),
        (format!("GET /clusters/*{MAPS}"), 400),
        (format!("GET /clusters/*{MAPS}?watch=true"), 400),
        ("DELETE /clusters/*/api/v1/configmaps".to_owned(), 404),
    ] {
        let (found, answer) = admin(&embedded, &line, &map("same")).await;
        assert_eq!((found, &answer["kind"]), (code, &json!("Status")), "{line}: {answer}");
    }
    let (code, _) = send(&embedded, User::new("bob", &[]), "GET /clusters/*/api/v1/configmaps", &Value::Null).await;
    assert_eq!(code, 403);
}

#[tokio::test]
async fn a_watch_over_all_sees_clusters_that_come_later() {
    let embedded = two();
    let (_, list) = get(&embedded, "/clusters/*/api/v1/configmaps").await;
    embedded.add_cluster("three").unwrap();
    post(&embedded, &format!("/clusters/three{MAPS}"), &map("new")).await;
    post(&embedded, MAPS, &map("host")).await;
    admin(&embedded, &format!("DELETE /clusters/three{MAPS}/new"), &Value::Null).await;
    let events = events(&embedded, &format!("/clusters/*/api/v1/configmaps?resourceVersion={}", version(&list))).await;
    assert_eq!(named(events.iter().map(|event| &event["object"])), [("three", "new"), ("three", "new")]);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ADDED", "DELETED"]);
}

#[tokio::test]
async fn over_all_each_object_has_the_shape_of_its_own_cluster() {
    let embedded = two();
    assert_eq!(get(&embedded, "/clusters/*/apis/w.test/v1/widgets").await.0, 404);
    for (name, field) in [("one", "size"), ("two", "colour")] {
        post(&embedded, &format!("/clusters/{name}{CRDS}"), &widgets(field)).await;
        post(&embedded, &format!("/clusters/{name}{WIDGETS}"), &widget("w", &json!({field: 1}))).await;
    }
    let (_, list) = get(&embedded, "/clusters/*/apis/w.test/v1/widgets").await;
    let watched = events(&embedded, "/clusters/*/apis/w.test/v1/widgets?resourceVersion=1").await;
    let specs = [json!({"size": 1}), json!({"colour": 1})];
    assert_eq!(list["items"].as_array().unwrap().iter().map(|item| item["spec"].clone()).collect::<Vec<_>>(), specs);
    assert_eq!(watched.iter().map(|event| event["object"]["spec"].clone()).collect::<Vec<_>>(), specs);
    let (_, resources) = get(&embedded, "/clusters/*/apis/w.test/v1").await;
    assert_eq!(resources["resources"].as_array().unwrap().len(), 1, "a kind that two clusters have is named once");
}

#[tokio::test]
async fn what_is_collected_in_one_cluster_stays_in_the_other() {
    let embedded = two();
    let owner = post(&embedded, &format!("/clusters/one{MAPS}"), &map("owner")).await;
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    let child = json!({"metadata": {"name": "child", "ownerReferences": [reference]}});
    for (root, code) in [("/clusters/one", 200), ("/clusters/two", 404), ("", 404)] {
        post(&embedded, &format!("{root}{MAPS}"), &child).await;
        assert_eq!(get(&embedded, &format!("{root}{MAPS}/child")).await.0, code, "an owner elsewhere is none: {root:?}");
    }
    for name in ["one", "two"] {
        post(&embedded, &format!("/clusters/{name}/api/v1/namespaces"), &map("n")).await;
        post(&embedded, &format!("/clusters/{name}/api/v1/namespaces/n/configmaps"), &map("a")).await;
    }
    admin(&embedded, "DELETE /clusters/one/api/v1/namespaces/n", &Value::Null).await;
    for (name, code) in [("one", 404), ("two", 200)] {
        assert_eq!(get(&embedded, &format!("/clusters/{name}/api/v1/namespaces/n/configmaps/a")).await.0, code, "{name}");
    }
}

#[tokio::test]
async fn a_cluster_that_was_not_added_denies_everything() {
    let embedded = two();
    for (line, message) in [
        (
            format!("GET /clusters/nosuch{MAPS}"),
            "configmaps is forbidden: User \"admin\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\": access denied",
        ),
        ("GET /clusters/nosuch/apis".to_owned(), "forbidden: User \"admin\" cannot get path \"/apis\": access denied"),
        (
            "GET /clusters/nosuch/apis/x.test/v1/things/a".to_owned(),
            "things.x.test \"a\" is forbidden: User \"admin\" cannot get resource \"things\" in API group \"x.test\" at the cluster scope: access denied",
        ),
    ] {
        let (code, answer) = admin(&embedded, &line, &Value::Null).await;
        assert_eq!((code, answer["message"].as_str()), (403, Some(message)));
    }
    let (code, answer) = get(&embedded, "/clusters/root:Bad_Path/api/v1/namespaces").await;
    assert_eq!((code, answer["message"].as_str()), (400, Some("invalid cluster: \"root:Bad_Path\" does not match the regex")));
    assert_eq!(get(&embedded, "/clusters/host/api/v1/namespaces").await.0, 400, "the default cluster has no name in paths");
    for name in ["", "host", "*", "A", "a/b", "a:"] {
        assert_eq!(embedded.add_cluster(name), Err(ClusterNameError(name.to_owned())));
    }
    let before = get(&embedded, "/clusters/one/api/v1/namespaces").await;
    assert_eq!(embedded.add_cluster("one").unwrap(), ClusterKey("one".into()));
    assert_eq!(get(&embedded, "/clusters/one/api/v1/namespaces").await, before);
}

#[tokio::test]
async fn whose_an_object_is_cannot_be_said_otherwise() {
    let embedded = two();
    let maps = format!("/clusters/one{MAPS}");
    let spoofed = json!({"metadata": {"name": "a", "annotations": {"kcp.io/cluster": "spoofed"}}});
    let created = post(&embedded, &maps, &spoofed).await;
    let mut replaced = created.clone();
    replaced["metadata"]["annotations"] = json!({"mine": "x"});
    for (line, body) in [
        (format!("PUT {maps}/a"), replaced),
        (format!("PATCH {maps}/a"), json!({"metadata": {"annotations": {"kcp.io/cluster": null}}})),
        (format!("PATCH {maps}/a"), spoofed.clone()),
        (
            format!("PATCH {maps}/a?fieldManager=m&force=true"),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": {"kcp.io/cluster": "b"}}}),
        ),
    ] {
        let (code, answer) = admin(&embedded, &line, &body).await;
        assert_eq!((code, &answer["metadata"]["annotations"]["kcp.io/cluster"]), (200, &json!("one")), "{line}");
        assert!(!answer["metadata"]["managedFields"].to_string().contains("kcp.io"), "{answer}");
    }
    let (_, namespace) = get(&embedded, "/clusters/one/api/v1/namespaces/default").await;
    assert_eq!(namespace["metadata"]["annotations"], json!({"kcp.io/cluster": "one"}));
    assert_eq!(get(&embedded, "/api/v1/namespaces/default").await.1["metadata"]["annotations"], Value::Null);
}

#[tokio::test]
async fn nothing_runs_in_a_logical_cluster_but_rules_are_followed_there() {
    let embedded = two();
    let head = "apiVersion: plinth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: x}\nspec: ";
    let rules = "{workloads: {start: 0s}, rules: [{when: {apiVersion: v1, kind: ConfigMap, name: go}, register: [{apiVersion: v1, kind: ConfigMap, metadata: {name: done}}]}]}";
    let scenario = Scenario::parse(&format!("{head}{rules}\n")).unwrap();
    let mut actors = embedded.actors(Acting { scenario, ..Acting::default() });
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    for root in ["", "/clusters/one"] {
        post(&embedded, &format!("{root}/apis/apps/v1/namespaces/default/deployments"), &deployment).await;
        post(&embedded, &format!("{root}{MAPS}"), &map("go")).await;
    }
    actors.step();
    for (root, pods) in [("", 1), ("/clusters/one", 0)] {
        let (_, list) = get(&embedded, &format!("{root}/api/v1/namespaces/default/pods")).await;
        assert_eq!(list["items"].as_array().unwrap().len(), pods, "{root}");
        assert_eq!(get(&embedded, &format!("{root}{MAPS}/done")).await.0, 200, "{root}");
        let account = format!("{root}/api/v1/namespaces/default/serviceaccounts/default");
        assert_eq!(get(&embedded, &account).await.0, 200, "{root}");
    }
    assert_eq!(get(&embedded, &format!("/clusters/two{MAPS}/done")).await.0, 404);
}

#[tokio::test]
async fn what_expires_in_one_cluster_goes_on_in_the_other() {
    let embedded = two();
    let (_, list) = get(&embedded, &format!("/clusters/one{MAPS}")).await;
    let maps = crate::embedded::store::Resource { group: String::new(), plural: "configmaps".to_owned() };
    embedded.shared.with(|state| state.store.expire(&maps, &ClusterKey("one".into())));
    for (path, kinds) in [
        (format!("/clusters/one{MAPS}"), vec!["ERROR"]),
        (format!("/clusters/two{MAPS}"), vec![]),
        (MAPS.to_owned(), vec![]),
        ("/clusters/*/api/v1/configmaps".to_owned(), vec!["ERROR"]),
    ] {
        let events = events(&embedded, &format!("{path}?resourceVersion={}", version(&list))).await;
        assert_eq!(events.iter().map(|event| event["type"].as_str().unwrap()).collect::<Vec<_>>(), kinds, "{path}");
    }
}

/// The same work through our own client, whatever carries its requests.
async fn works(cluster: &Cluster) {
    let gvk = GroupVersionKind::new("w.test", "v1", "Widget");
    let crd = Object::from_value(widgets("size")).unwrap();
    let apply = |object: &Object| Apply {
        key: object.key(cluster.key()).unwrap(),
        object: object.clone(),
        manager: "test".into(),
        force: false,
        subresource: None,
    };
    let key = |name: &str| Object::from_value(widget(name, &json!({}))).unwrap().key(cluster.key()).unwrap();
    cluster.apply(&apply(&crd)).await.unwrap();
    let kinds = cluster.catalog().ensure([&gvk]).await.unwrap();
    let Lookup::Served(kind) = kinds.kind(&gvk) else { panic!("it is not served") };
    assert!(kind.schema.field("spec").is_some());
    let mut object = Object::from_value(widget("w", &json!({"size": 1}))).unwrap();
    object.metadata_mut().insert("namespace".to_owned(), json!("default"));
    let applied = cluster.apply(&apply(&object)).await.unwrap();
    assert_eq!(applied.at(&["metadata", "annotations", "kcp.io/cluster"]), Some(&json!(cluster.key().0)));
    let query = plinth_engine::ports::Query { cluster: cluster.key().clone(), gvk, namespace: None, selector: String::new() };
    let listed = cluster.list(&query).await.unwrap();
    assert_eq!(listed.iter().map(Object::name).collect::<Vec<_>>(), ["w"]);
    let key = plinth_api::ObjectKey { namespace: Some("default".to_owned()), ..key("w") };
    cluster.delete(&Delete { key: key.clone(), uid: None }).await.unwrap();
    assert_eq!(cluster.get(&key).await.unwrap(), None);
}

#[tokio::test]
async fn our_client_works_in_each_cluster_without_a_socket_and_over_one() {
    let embedded = two();
    let serving = embedded.serve().await.unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut identities = Vec::new();
    for name in ["one", "two"] {
        let key = ClusterKey(name.to_owned());
        let cluster = embedded.cluster(&key);
        if name == "one" {
            works(&cluster).await;
        } else {
            let text = serving.kubeconfig_at(&crate::embedded::seam::root(&key));
            let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
            let config = kube::Config::from_custom_kubeconfig(config, &kube::config::KubeConfigOptions::default()).await.unwrap();
            let served = Cluster::new(key, config).unwrap();
            works(&served).await;
            assert_eq!(served.identity().await.unwrap(), cluster.identity().await.unwrap());
        }
        identities.push(cluster.identity().await.unwrap());
    }
    identities.push(embedded.cluster(&ClusterKey::host()).identity().await.unwrap());
    identities.dedup();
    assert_eq!(identities.len(), 3, "each cluster is one of its own");
}
