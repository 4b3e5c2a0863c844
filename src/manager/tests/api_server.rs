//! Leases, finalizers and status against a real kube-apiserver: their guards are the server's.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{sync::Arc, time::Duration};

use plinth_api::{ClusterKey, Object, ObjectKey};
use plinth_cluster::{
    Cluster,
    access::{Source, configuration},
};
use plinth_engine::ports::{Applier, Apply, Delete, Reader, WriteError};
use plinth_manager::{
    Lease, SystemClock, finalizer,
    lease::{Attempt, LeaseRecord, Timing},
    status,
};
use plinth_support::{ApiServer, Identity};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const MANAGER: &str = "plinth.dev/test";

async fn cluster() -> Arc<Cluster> {
    // The file is written anew by each call, and must not be read by another test meanwhile.
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = ONE_AT_A_TIME.lock().await;
    let source = Source::Files(vec![ApiServer::shared().kubeconfig(Identity::Admin)]);
    Cluster::new(ClusterKey::host(), configuration(&source, None).await.unwrap()).unwrap()
}

fn apply(value: Value) -> Apply {
    let object = Object::from_value(value).unwrap();
    let key = object.key(&ClusterKey::host()).unwrap();
    Apply { key, object, manager: MANAGER.into(), force: false, subresource: None }
}

fn lease(cluster: &Arc<Cluster>, name: &str, identity: &str) -> Arc<Lease> {
    let timing = Timing {
        duration: Duration::from_secs(2),
        renew_deadline: Duration::from_millis(1500),
        retry: Duration::from_millis(200),
    };
    let namespace = Some("default".to_owned());
    let key = ObjectKey { cluster: ClusterKey::host(), gvk: Lease::kind(), namespace, name: name.into() };
    Lease::new(Arc::clone(cluster) as _, Arc::new(SystemClock), key, identity, timing)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_has_one_holder() {
    let cluster = cluster().await;
    let (laptop, pod) = (lease(&cluster, "one", "laptop"), lease(&cluster, "one", "pod"));
    assert_eq!(laptop.attempt(false).await.unwrap(), Attempt::Held);
    assert!(matches!(pod.attempt(false).await.unwrap(), Attempt::HeldBy { holder, .. } if holder == "laptop"));
    laptop.release().await.unwrap();
    assert_eq!(pod.attempt(false).await.unwrap(), Attempt::Held);
    assert!(matches!(laptop.attempt(false).await.unwrap(), Attempt::HeldBy { .. }));
    // The pod dies; its time passes.
    assert!(laptop.acquire(&CancellationToken::new(), |_| {}).await);
    let key =
        ObjectKey { cluster: ClusterKey::host(), gvk: Lease::kind(), namespace: Some("default".into()), name: "one".into() };
    let record = LeaseRecord::read(&cluster.get(&key).await.unwrap().unwrap());
    assert_eq!((record.holder.as_str(), record.transitions), ("laptop", 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_at_once_one_gets_the_lease() {
    let cluster = cluster().await;
    let attempts = (0..8).map(|number| {
        let lease = lease(&cluster, "race", &format!("holder-{number}"));
        async move { lease.attempt(false).await.unwrap() == Attempt::Held }
    });
    let held = futures::future::join_all(attempts).await.into_iter().filter(|held| *held).count();
    assert_eq!(held, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finalizer_is_ones_own_and_cannot_bring_an_object_back() {
    let cluster = cluster().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "namespace": "default"}, "data": {"a": "1"}});
    let request = apply(map);
    let object = cluster.apply(&request).await.unwrap();
    let (ours, theirs) = ("plinth.dev/ours", "plinth.dev/theirs");
    let object = finalizer::add(&*cluster, &request.key, &object, ours, "plinth.dev/finalizer").await.unwrap();
    let object = finalizer::add(&*cluster, &request.key, &object, theirs, "plinth.dev/others").await.unwrap();
    assert_eq!(object.finalizers(), [ours, theirs]);
    assert_eq!(object.at(&["data", "a"]), Some(&json!("1")), "nothing else is given up");
    cluster.delete(&Delete { key: request.key.clone(), uid: None }).await.unwrap();
    finalizer::remove(&*cluster, &request.key, &object, ours, "plinth.dev/finalizer").await.unwrap();
    let left = cluster.get(&request.key).await.unwrap().unwrap();
    assert_eq!(left.finalizers(), [theirs]);
    finalizer::remove(&*cluster, &request.key, &left, theirs, "plinth.dev/others").await.unwrap();
    assert_eq!(cluster.get(&request.key).await.unwrap(), None);
    // An old view of an object that is gone by now.
    let error = finalizer::remove(&*cluster, &request.key, &object, ours, "plinth.dev/finalizer").await.unwrap_err();
    assert!(matches!(error, WriteError::Conflict { .. } | WriteError::NotFound { .. }), "{error}");
    assert_eq!(cluster.get(&request.key).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finalizer_of_two_owners_stays_and_says_so() {
    let cluster = cluster().await;
    let request = apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared", "namespace": "default"}}));
    let object = cluster.apply(&request).await.unwrap();
    let object = finalizer::add(&*cluster, &request.key, &object, "plinth.dev/x", "plinth.dev/first").await.unwrap();
    let error = finalizer::remove(&*cluster, &request.key, &object, "plinth.dev/x", "plinth.dev/second").await.unwrap_err();
    assert!(matches!(error, WriteError::Conflict { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_is_written_where_it_differs() {
    let cluster = cluster().await;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "judged", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    let deployment = cluster.apply(&apply(deployment)).await.unwrap();
    let key = deployment.key(&ClusterKey::host()).unwrap();
    let wanted = json!({"replicas": 1, "observedGeneration": 1});
    let written = status::write_if_changed(&*cluster, &key, &deployment, wanted.clone(), MANAGER).await.unwrap();
    let written = written.expect("it differed");
    assert_eq!(written.status(), &wanted);
    let again = status::write_if_changed(&*cluster, &key, &written, wanted, MANAGER).await.unwrap();
    assert_eq!(again, None);
}
