//! What becomes of dependents, as Kubernetes' garbage collector has it.

use serde_json::{Value, json};

use super::{MAPS, admin, map};
use crate::embedded::{Embedded, Options};

const OTHER: &str = "/api/v1/namespaces/other/configmaps";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

async fn made(embedded: &Embedded, maps: &str, name: &str, owners: &[Value], finalizers: &[&str]) -> Value {
    let body = json!({"metadata": {"name": name, "ownerReferences": owners, "finalizers": finalizers}});
    let (code, object) = admin(embedded, &format!("POST {maps}"), &body).await;
    assert_eq!(code, 201, "{object}");
    object
}

fn owner(object: &Value, blocking: bool) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": object["metadata"]["name"], "uid": object["metadata"]["uid"], "blockOwnerDeletion": blocking})
}

fn elsewhere(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": "x", "uid": "00000000-0000-0000-0000-000000000002"})
}

/// The names of an object's owners; `None` where it is gone.
async fn owners_of(embedded: &Embedded, path: &str) -> Option<Vec<String>> {
    let (code, object) = admin(embedded, &format!("GET {path}"), &Value::Null).await;
    let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    (code == 200).then(|| owners.iter().map(|owner| owner["name"].as_str().unwrap().to_owned()).collect())
}

async fn delete(embedded: &Embedded, path: &str, policy: &str) {
    let (code, status) = admin(embedded, &format!("DELETE {path}?propagationPolicy={policy}"), &Value::Null).await;
    assert_eq!(code, 200, "{status}");
}

#[tokio::test]
async fn one_owner_goes_and_another_keeps_the_dependent() {
    for (policy, blocking) in [("Foreground", true), ("Foreground", false), ("Background", true), ("Orphan", true)] {
        let embedded = Embedded::new(&Options::default());
        let first = made(&embedded, MAPS, "first", &[], &[]).await;
        let second = made(&embedded, MAPS, "second", &[], &[]).await;
        made(&embedded, MAPS, "both", &[owner(&first, blocking), owner(&second, false)], &[]).await;
        delete(&embedded, &format!("{MAPS}/first"), policy).await;
        assert_eq!(owners_of(&embedded, &format!("{MAPS}/first")).await, None, "{policy}");
        let left = owners_of(&embedded, &format!("{MAPS}/both")).await;
        assert_eq!(left, Some(vec!["second".to_owned()]), "{policy} {blocking}");
    }
}

#[tokio::test]
async fn an_owner_of_a_kind_that_is_not_served_is_not_known_to_be_gone() {
    let embedded = Embedded::new(&Options::default());
    made(&embedded, MAPS, "kind", &[elsewhere("example.com/v1", "Unknown")], &[]).await;
    made(&embedded, MAPS, "version", &[elsewhere("rbac.authorization.k8s.io/v1beta1", "ClusterRole")], &[]).await;
    made(&embedded, MAPS, "never", &[elsewhere("v1", "ConfigMap")], &[]).await;
    let seen = async |name: &str| owners_of(&embedded, &format!("{MAPS}/{name}")).await.is_some();
    assert_eq!((seen("kind").await, seen("version").await, seen("never").await), (true, true, false));
}

#[tokio::test]
async fn a_kind_that_is_served_at_last_shows_that_the_owner_is_not_there() {
    let embedded = Embedded::new(&Options::default());
    made(&embedded, MAPS, "late", &[elsewhere("example.com/v1", "Late")], &[]).await;
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let crd = json!({"metadata": {"name": "lates.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"kind": "Late", "plural": "lates"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    assert_eq!(admin(&embedded, "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd).await.0, 201);
    assert_eq!(owners_of(&embedded, &format!("{MAPS}/late")).await, None);
}

#[tokio::test]
async fn an_owner_is_looked_for_in_the_dependents_namespace() {
    let embedded = Embedded::new(&Options::default());
    admin(&embedded, "POST /api/v1/namespaces", &map("other")).await;
    let away = made(&embedded, OTHER, "away", &[], &[]).await;
    made(&embedded, MAPS, "here", &[owner(&away, false)], &[]).await;
    assert_eq!(owners_of(&embedded, &format!("{MAPS}/here")).await, None);
    made(&embedded, ROLES, "wide", &[owner(&away, false)], &[]).await;
    delete(&embedded, &format!("{OTHER}/away"), "Background").await;
    assert_eq!(owners_of(&embedded, &format!("{ROLES}/wide")).await, Some(vec!["away".to_owned()]));
}

#[tokio::test]
async fn what_goes_in_the_foreground_takes_its_own_dependents_first() {
    let embedded = Embedded::new(&Options::default());
    let top = made(&embedded, MAPS, "top", &[], &[]).await;
    let middle = made(&embedded, MAPS, "middle", &[owner(&top, true)], &["example.com/f"]).await;
    made(&embedded, MAPS, "bottom", &[owner(&middle, true)], &[]).await;
    delete(&embedded, &format!("{MAPS}/top"), "Foreground").await;
    let (_, waits) = admin(&embedded, &format!("GET {MAPS}/middle"), &Value::Null).await;
    assert_eq!(owners_of(&embedded, &format!("{MAPS}/bottom")).await, None);
    assert_eq!(waits["metadata"]["finalizers"], json!(["example.com/f"]), "its dependents are gone, and its own finalizer stays");
    let free = json!({"metadata": {"name": "middle"}});
    admin(&embedded, &format!("PUT {MAPS}/middle"), &free).await;
    assert_eq!(owners_of(&embedded, &format!("{MAPS}/top")).await, None);
}

#[tokio::test]
async fn owners_of_each_other_go_together() {
    let embedded = Embedded::new(&Options::default());
    let one = made(&embedded, MAPS, "one", &[], &[]).await;
    let two = made(&embedded, MAPS, "two", &[owner(&one, true)], &[]).await;
    let circle = json!({"metadata": {"name": "one", "ownerReferences": [owner(&two, true)]}});
    assert_eq!(admin(&embedded, &format!("PUT {MAPS}/one"), &circle).await.0, 200);
    delete(&embedded, &format!("{MAPS}/one"), "Foreground").await;
    for name in ["one", "two"] {
        assert_eq!(owners_of(&embedded, &format!("{MAPS}/{name}")).await, None, "{name}");
    }
}

#[tokio::test]
async fn the_last_word_on_dependents_holds() {
    for (last, stays) in [("Orphan", true), ("Background", false)] {
        let embedded = Embedded::new(&Options::default());
        let top = made(&embedded, MAPS, "top", &[], &[]).await;
        made(&embedded, MAPS, "held", &[owner(&top, true)], &["example.com/f"]).await;
        delete(&embedded, &format!("{MAPS}/top"), "Foreground").await;
        assert!(owners_of(&embedded, &format!("{MAPS}/top")).await.is_some(), "it waits for what is held");
        delete(&embedded, &format!("{MAPS}/top"), last).await;
        assert_eq!(owners_of(&embedded, &format!("{MAPS}/top")).await, None, "{last}");
        assert_eq!(
            owners_of(&embedded, &format!("{MAPS}/held")).await,
            Some(if stays { vec![] } else { vec!["top".to_owned()] })
        );
    }
}
