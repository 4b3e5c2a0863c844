//! SHOW 02: how fast the embedded control plane takes writes while it is watched, and what it holds. Run by `bench/embedded`.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, WatchEvent, WatchParams},
};
use plinth_cluster::embedded::{Embedded, Options};
use serde_json::{Value, json};

const OBJECTS: usize = 10_000;
const WATCHES: usize = 20;

fn object(index: usize, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{index}"), "labels": {"app": "many"}}, "data": {"k": value}})
}

/// Events that all watches have taken in.
async fn watch(client: Client, seen: Arc<AtomicUsize>) {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let params = WatchParams::default().labels("app=many");
    let mut events = api.watch(&params, "0").await.unwrap().boxed();
    while let Some(Ok(event)) = events.next().await {
        if matches!(event, WatchEvent::Added(_) | WatchEvent::Modified(_)) {
            seen.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn apply_all(client: &Client, value: &str) -> Duration {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let (params, started) = (PatchParams::apply("many"), Instant::now());
    for index in 0..OBJECTS {
        api.patch(&format!("c{index}"), &params, &Patch::Apply(object(index, value))).await.unwrap();
    }
    started.elapsed()
}

async fn until(seen: &AtomicUsize, wanted: usize) {
    while seen.load(Ordering::Relaxed) < wanted {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A CRD of a kind of its own.
async fn define(client: &Client, index: usize) {
    let body = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("k{index}s.many.test")},
        "spec": {"group": "many.test", "scope": "Namespaced", "names": {"kind": format!("K{index}"), "plural": format!("k{index}s")},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let request = http::Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .header("content-type", "application/json")
        .body(kube::client::Body::from(body.to_string().into_bytes()));
    assert_eq!(client.send(request.unwrap()).await.unwrap().status(), 201);
}

/// Largest memory of this process so far, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

fn rate(took: Duration) -> u128 {
    u128::try_from(OBJECTS).unwrap() * 1000 / took.as_millis().max(1)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a benchmark of the release build: bench/embedded"]
async fn show_02_many() {
    let embedded = Embedded::new(&Options::default());
    let client = embedded.client();
    let before = peak();
    let seen = Arc::new(AtomicUsize::new(0));
    let watches: Vec<_> = (0..WATCHES).map(|_| tokio::spawn(watch(embedded.client(), Arc::clone(&seen)))).collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let created = apply_all(&client, "one").await;
    until(&seen, OBJECTS * WATCHES).await;
    for index in 0..200 {
        define(&client, index).await;
    }
    let changed = apply_all(&client, "two").await;
    until(&seen, 2 * OBJECTS * WATCHES).await;
    watches.iter().for_each(tokio::task::JoinHandle::abort);
    println!(
        "SHOW 02 many {OBJECTS} objects, {WATCHES} watches: {} creations/s, {} changes/s beside 200 CRDs, {} MB ({before} MB empty)",
        rate(created),
        rate(changed),
        peak()
    );
}
