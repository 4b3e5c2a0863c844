//! How namespaces and kinds end, and what is told of it meanwhile.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{User, admin, events, exchange, map};
use crate::embedded::{Embedded, Options};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

fn definition() -> Value {
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}});
    json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"}, "versions": [version("v1", true), version("v2", false)]}})
}

async fn with_a_thing() -> Embedded {
    let embedded = Embedded::new(&Options::default());
    assert_eq!(admin(&embedded, &format!("POST {CRDS}"), &definition()).await.0, 201);
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}});
    assert_eq!(admin(&embedded, &format!("POST {THINGS}"), &thing).await.0, 201);
    embedded
}

/// The events of a watch that ends by itself, long before its time is over.
async fn until_it_ends(embedded: &Embedded, path: &str, act: impl AsyncFnOnce()) -> Vec<String> {
    let begin = Instant::now();
    let line = format!("GET {path}?watch=true");
    let (told, ()) = tokio::join!(exchange(embedded, User::admin(), &line, &Value::Null), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        act().await;
    });
    assert!(begin.elapsed() < Duration::from_mins(1), "{:?}", begin.elapsed());
    let text = String::from_utf8(told.1.to_vec()).unwrap();
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn watches_end_with_their_kind() {
    let embedded = with_a_thing().await;
    let (_, list) = admin(&embedded, &format!("GET {THINGS}"), &Value::Null).await;
    let told = until_it_ends(&embedded, THINGS, async || {
        admin(&embedded, &format!("DELETE {CRDS}/things.example.com"), &Value::Null).await;
    });
    assert_eq!(told.await, ["ADDED", "DELETED"]);
    assert_eq!(admin(&embedded, &format!("POST {CRDS}"), &definition()).await.0, 201);
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let again = events(&embedded, &format!("{THINGS}?resourceVersion={version}")).await;
    assert_eq!((&again[0]["type"], &again[0]["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[tokio::test(start_paused = true)]
async fn watches_of_a_version_end_with_it() {
    let embedded = with_a_thing().await;
    let second = THINGS.replace("v1", "v2");
    let told = until_it_ends(&embedded, &second, async || {
        let (_, mut crd) = admin(&embedded, &format!("GET {CRDS}/things.example.com"), &Value::Null).await;
        crd["spec"]["versions"][1]["served"] = json!(false);
        assert_eq!(admin(&embedded, &format!("PUT {CRDS}/things.example.com"), &crd).await.0, 200);
    });
    assert_eq!(told.await, ["ADDED"]);
}

#[tokio::test]
async fn a_namespace_says_what_it_waits_for() {
    let embedded = Embedded::new(&Options::default());
    admin(&embedded, "POST /api/v1/namespaces", &map("n")).await;
    for name in ["a", "b"] {
        let held = json!({"metadata": {"name": name, "finalizers": ["x.io/f"]}});
        admin(&embedded, "POST /api/v1/namespaces/n/configmaps", &held).await;
    }
    admin(&embedded, "DELETE /api/v1/namespaces/n", &Value::Null).await;
    let (_, namespace) = admin(&embedded, "GET /api/v1/namespaces/n", &Value::Null).await;
    let told = |at: usize| {
        let condition = &namespace["status"]["conditions"][at];
        ["type", "status", "reason", "message"].map(|field| condition[field].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(told(0)[..3], ["NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered"]);
    assert_eq!(
        told(3),
        [
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances"
        ]
    );
    assert_eq!(
        told(4),
        [
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: x.io/f in 2 resource instances"
        ]
    );
}

#[tokio::test]
async fn who_holds_a_namespace_beside_kubernetes_goes_on_doing_so() {
    let embedded = Embedded::new(&Options::default());
    let held = json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["example.com/f"]}});
    admin(&embedded, "POST /api/v1/namespaces", &held).await;
    admin(&embedded, "DELETE /api/v1/namespaces/n", &Value::Null).await;
    let (code, namespace) = admin(&embedded, "GET /api/v1/namespaces/n", &Value::Null).await;
    assert_eq!((code, &namespace["spec"]), (200, &json!({"finalizers": ["example.com/f"]})));
    assert_eq!(namespace["status"]["conditions"][3]["status"], "False");
    let free = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}, "spec": {"finalizers": []}});
    admin(&embedded, "PUT /api/v1/namespaces/n/finalize", &free).await;
    assert_eq!(admin(&embedded, "GET /api/v1/namespaces/n", &Value::Null).await.0, 404);
}
