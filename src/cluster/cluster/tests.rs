use std::collections::BTreeMap;

use plinth_api::GroupVersionKind;

use super::*;
use crate::fake::{Reply, cluster as server, discovery, lines, status};

fn key(gvk: (&str, &str, &str), namespace: Option<&str>, name: &str) -> ObjectKey {
    let gvk = GroupVersionKind::new(gvk.0, gvk.1, gvk.2);
    ObjectKey { cluster: ClusterKey::host(), gvk, namespace: namespace.map(str::to_owned), name: name.to_owned() }
}

fn deployment() -> ObjectKey {
    key(("apps", "v1", "Deployment"), Some("ns"), "x")
}

fn apply(key: ObjectKey) -> Apply {
    let object = json!({"apiVersion": key.gvk.api_version(), "kind": key.gvk.kind, "metadata": {"name": key.name}});
    let object = Object::from_value(object).unwrap();
    Apply { key, object, manager: "plinth.dev/test".into(), force: true, subresource: None }
}

#[tokio::test]
async fn an_apply_is_a_forced_patch_of_the_object_and_its_discovery_is_asked_once() {
    let (cluster, log) =
        server(|seen| discovery(&seen.path).unwrap_or_else(|| Reply::Json(200, json!({"metadata": {"resourceVersion": "7"}}))));
    let answer = cluster.apply(&apply(deployment())).await.unwrap();
    assert_eq!(answer.at(&["metadata", "resourceVersion"]), Some(&json!("7")));
    cluster.apply(&Apply { subresource: Some("status"), force: false, ..apply(deployment()) }).await.unwrap();
    let path = "/apis/apps/v1/namespaces/ns/deployments/x";
    assert_eq!(
        lines(&log),
        [
            "GET /apis/apps/v1".to_owned(),
            format!("PATCH {path}?fieldManager=plinth.dev%2Ftest&force=true"),
            format!("PATCH {path}/status?fieldManager=plinth.dev%2Ftest&force=false"),
        ]
    );
    assert_eq!(log.lock().unwrap()[1].content_type, "application/apply-patch+yaml");
}

#[tokio::test]
async fn a_dry_run_says_so_in_every_request() {
    let (cluster, log) = server(|seen| discovery(&seen.path).unwrap_or_else(|| Reply::Json(200, json!({}))));
    let dry = crate::decorate::DryRun(cluster);
    dry.apply(&apply(deployment())).await.unwrap();
    dry.delete(&Delete { key: deployment(), uid: None }).await.unwrap();
    let seen = log.lock().unwrap();
    assert!(seen[1].query.ends_with("&dryRun=All"), "{}", seen[1].query);
    assert_eq!(seen[2].body["dryRun"], json!(["All"]));
}

#[tokio::test]
async fn a_deletion_names_the_uid_and_takes_dependents_along() {
    let (cluster, log) = server(|seen| {
        discovery(&seen.path).unwrap_or_else(|| match seen.path.rsplit('/').next().unwrap() {
            "x" => Reply::Json(200, json!({})),
            "other" => status(409, "Conflict", "other"),
            _ => status(404, "NotFound", "gone"),
        })
    });
    cluster.delete(&Delete { key: deployment(), uid: Some("u".into()) }).await.unwrap();
    let body = log.lock().unwrap()[1].body.clone();
    assert_eq!((&body["preconditions"], &body["propagationPolicy"]), (&json!({"uid": "u"}), &json!("Background")));
    let named = |name: &str| Delete { key: ObjectKey { name: name.into(), ..deployment() }, uid: Some("u".into()) };
    assert_eq!(cluster.delete(&named("gone")).await, Ok(()), "what is gone is deleted");
    assert!(matches!(cluster.delete(&named("other")).await, Err(WriteError::Conflict { .. })));
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_its_own_answer() {
    let (cluster, log) = server(|seen| discovery(&seen.path).unwrap_or(Reply::Text(404, "404 page not found\n")));
    let thing = key(("x.io", "v1", "Thing"), Some("ns"), "a");
    assert_eq!(cluster.apply(&apply(thing.clone())).await, Err(WriteError::NotServed(thing.gvk.clone())));
    assert_eq!(Reader::get(&*cluster, &thing).await, Err(ReadError::NotServed(thing.gvk.clone())));
    // Known by discovery, and gone by the time of the request: the next request asks discovery again.
    assert!(matches!(cluster.apply(&apply(deployment())).await, Err(WriteError::NotServed(_))));
    assert!(matches!(Reader::get(&*cluster, &deployment()).await, Err(ReadError::NotServed(_))));
    assert_eq!(lines(&log).iter().filter(|line| *line == "GET /apis/apps/v1").count(), 2);
}

#[tokio::test]
async fn an_absent_object_is_none_and_a_refusal_an_error() {
    let (cluster, _) = server(|seen| {
        discovery(&seen.path).unwrap_or_else(|| match seen.path.as_str() {
            "/api/v1/namespaces/ns/configmaps/gone" => status(404, "NotFound", "gone"),
            "/api/v1/namespaces/ns/secrets/s" => status(403, "Forbidden", "s"),
            _ => status(503, "ServiceUnavailable", "x"),
        })
    });
    assert_eq!(Reader::get(&*cluster, &key(("", "v1", "ConfigMap"), Some("ns"), "gone")).await, Ok(None));
    let refused = Reader::get(&*cluster, &key(("", "v1", "Secret"), Some("ns"), "s")).await.unwrap_err();
    assert_eq!(refused.to_string(), "get secrets s in namespace ns is not permitted: Forbidden s");
    let away = Reader::get(&*cluster, &key(("", "v1", "ConfigMap"), Some("ns"), "x")).await;
    assert!(matches!(away, Err(ReadError::Unavailable(_))));
}

#[tokio::test]
async fn a_namespaced_object_needs_its_namespace_and_any_object_a_name() {
    let (cluster, log) = server(|seen| discovery(&seen.path).unwrap_or_else(|| Reply::Json(200, json!({}))));
    let homeless = cluster.apply(&apply(key(("apps", "v1", "Deployment"), None, "x"))).await.unwrap_err();
    assert!(homeless.to_string().contains("deployments.apps lives in namespaces"), "{homeless}");
    let nameless = cluster.apply(&apply(key(("apps", "v1", "Deployment"), Some("ns"), ""))).await;
    assert!(matches!(nameless, Err(WriteError::Invalid { .. })));
    for name in ["a/b", "50%", ".."] {
        let no_name = key(("apps", "v1", "Deployment"), Some("ns"), name);
        assert_eq!(cluster.get(&no_name).await, Ok(None), "nothing is called {name}");
        assert!(matches!(cluster.apply(&apply(no_name)).await, Err(WriteError::Invalid { .. })), "{name}");
    }
    cluster.apply(&apply(key(("", "v1", "Namespace"), Some("ignored"), "n"))).await.unwrap();
    assert_eq!(lines(&log).last().unwrap().split('?').next(), Some("PATCH /api/v1/namespaces/n"));
    assert_eq!(log.lock().unwrap().len(), 3, "what is wrong by itself is not sent");
}

#[tokio::test]
async fn lists_are_read_page_by_page_and_start_over_when_they_grow_old() {
    let (cluster, log) = server(|seen| {
        if let Some(reply) = discovery(&seen.path) {
            return reply;
        }
        let page = |name: &str, token: &str| {
            let items = json!([{"metadata": {"name": name}}]);
            Reply::Json(200, json!({"metadata": {"continue": token, "resourceVersion": "5"}, "items": items}))
        };
        match seen.query.rsplit_once("continue=").map(|(_, token)| token) {
            None => page("a", "one"),
            Some("one") => page("b", "two"),
            Some(_) => status(410, "Expired", ""),
        }
    });
    let query = Query {
        cluster: ClusterKey::host(),
        gvk: GroupVersionKind::new("", "v1", "ConfigMap"),
        namespace: Some("ns".into()),
        selector: "a=b".into(),
    };
    assert!(matches!(cluster.list(&query).await, Err(ReadError::Unavailable(_))), "it starts over a few times only");
    let asked = lines(&log);
    assert_eq!(asked[1], "GET /api/v1/namespaces/ns/configmaps?limit=500&labelSelector=a%3Db");
    assert_eq!(asked.len(), 1 + 4 * 3);

    let (cluster, _) =
        server(|seen| discovery(&seen.path).unwrap_or_else(|| Reply::Json(200, json!({"items": [{"metadata": {"name": "a"}}]}))));
    let listed = cluster.list(&query).await.unwrap();
    assert_eq!(listed[0].gvk(), Some(query.gvk), "items of lists get the type that lists leave out");
}

#[tokio::test]
async fn identity_and_version_are_read() {
    let (cluster, _) = server(|seen| match seen.path.as_str() {
        "/version" => Reply::Json(200, json!({"gitVersion": "v1.34.4"})),
        _ => Reply::Json(200, json!({"metadata": {"uid": "u-1"}})),
    });
    assert_eq!(cluster.version().await.unwrap(), "v1.34.4");
    assert_eq!(cluster.identity().await.unwrap(), ClusterIdentity("u-1".into()));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let cluster = Cluster::new(ClusterKey::host(), kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let error = cluster.identity().await.unwrap_err();
    assert!(matches!(&error, ReadError::Unavailable(message) if message.contains("refused")), "{error}");
}

#[tokio::test]
async fn a_server_that_hangs_is_waited_for_as_long_as_there_is_time() {
    // Connections are taken by the operating system, and nobody ever answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let cluster = Cluster::new(ClusterKey::host(), kube::Config::new(url.parse().unwrap())).unwrap();
    let begun = tokio::time::Instant::now();
    cluster.give_up_at(Some(begun + std::time::Duration::from_millis(1500)));
    for expected in ["no answer within 1.5s", "no answer within 1.0s"] {
        let error = cluster.identity().await.unwrap_err();
        assert!(matches!(&error, ReadError::Unavailable(message) if message.ends_with(expected)), "{error}");
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_not_quoted() {
    let (cluster, _) = server(|seen| discovery(&seen.path).unwrap_or(Reply::Text(200, "{\"data\": hunter2")));
    let error = Reader::get(&*cluster, &key(("", "v1", "Secret"), Some("ns"), "s")).await.unwrap_err().to_string();
    assert!(error.contains("not JSON") && !error.contains("hunter2"), "{error}");
}

#[tokio::test]
async fn missing_permissions_are_listed_in_order() {
    let (cluster, log) = server(|seen| {
        let allowed = seen.body["spec"]["resourceAttributes"]["verb"] != json!("delete");
        Reply::Json(201, json!({"status": {"allowed": allowed}}))
    });
    let permission = |verb: &str, resource: &str| plinth_api::Permission {
        verb: verb.into(),
        group: "apps".into(),
        resource: resource.into(),
        namespace: Some("ns".into()),
        name: None,
    };
    let asked =
        [permission("delete", "deployments"), permission("patch", "deployments/status"), permission("delete", "statefulsets")];
    let missing: Vec<String> = cluster.missing(&asked).await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(missing, ["delete deployments.apps in namespace ns", "delete statefulsets.apps in namespace ns"]);
    let reviews: BTreeMap<String, String> = log
        .lock()
        .unwrap()
        .iter()
        .map(|seen| &seen.body["spec"]["resourceAttributes"])
        .map(|review| (review["resource"].as_str().unwrap().to_owned(), review["subresource"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(reviews["deployments"], "status");
}

/// What a server says of an object that its schema does not allow any more.
fn misfit() -> Reply {
    let message = "failed to create typed live object (ns/x; apps/v1, Kind=Deployment): .spec.a: expected string, got 7";
    Reply::Json(500, json!({"kind": "Status", "code": 500, "reason": "InternalError", "message": message}))
}

fn stored(managers: &serde_json::Value) -> serde_json::Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"a": 7}, "status": {"old": 1},
        "metadata": {"name": "x", "namespace": "ns", "resourceVersion": "7", "labels": {"l": "theirs"}, "finalizers": ["theirs"],
            "managedFields": managers}})
}

#[tokio::test]
async fn a_status_is_replaced_where_the_stored_object_does_not_fit_its_schema() {
    let (cluster, log) = server(|seen| {
        discovery(&seen.path).unwrap_or_else(|| match seen.method.as_str() {
            "PATCH" => misfit(),
            "GET" => Reply::Json(200, stored(&json!([]))),
            _ => Reply::Json(200, seen.body.clone()),
        })
    });
    let mut request = Apply { subresource: Some("status"), ..apply(deployment()) };
    request.object.0.insert("status".into(), json!({"new": 2}));
    let written = cluster.apply(&request).await.unwrap();
    assert_eq!((written.status(), written.spec()), (&json!({"new": 2}), &json!({"a": 7})));
    let path = "/apis/apps/v1/namespaces/ns/deployments/x";
    assert_eq!(
        lines(&log)[2..],
        [format!("GET {path}"), format!("PUT {path}/status?fieldManager=plinth.dev%2Ftest")],
        "by its version, so that no other write is lost"
    );
    assert_eq!(log.lock().unwrap()[3].body["metadata"]["resourceVersion"], json!("7"));

    // The same of labels, annotations and finalizers; a whole object is somebody's who has to mend it.
    let mut marks = apply(deployment());
    marks.object.0["metadata"]["labels"] = json!({"ours": "1"});
    marks.object.0["metadata"]["finalizers"] = json!(["ours"]);
    let written = cluster.apply(&marks).await.unwrap();
    assert_eq!((written.label("l"), written.label("ours")), (Some("theirs"), Some("1")));
    assert_eq!(written.finalizers(), ["theirs", "ours"]);
    let mut whole = apply(deployment());
    whole.object.0.insert("spec".into(), json!({"a": "x"}));
    assert!(matches!(cluster.apply(&whole).await, Err(WriteError::Invalid { .. })));
}

#[tokio::test]
async fn a_field_that_only_an_earlier_replacement_holds_goes_with_the_next_apply() {
    let by_update = json!({"manager": "plinth.dev/test", "operation": "Update", "subresource": "status"});
    let by_apply = json!({"manager": "plinth.dev/test", "operation": "Apply", "subresource": "status"});
    let managers = json!([by_update, by_apply]);
    let (cluster, log) = server(move |seen| {
        discovery(&seen.path).unwrap_or_else(|| match seen.method.as_str() {
            "PATCH" => Reply::Json(200, stored(&managers)),
            _ => Reply::Json(200, seen.body.clone()),
        })
    });
    let mut request = Apply { subresource: Some("status"), ..apply(deployment()) };
    request.object.0.insert("status".into(), json!({"old": 1}));
    cluster.apply(&request).await.unwrap();
    assert_eq!(log.lock().unwrap().len(), 2, "what is as wanted is left alone");
    request.object.0.insert("status".into(), json!({}));
    let written = cluster.apply(&request).await.unwrap();
    assert_eq!((written.status(), written.at(&["metadata", "managedFields"])), (&json!({}), Some(&json!([by_apply]))));
}
