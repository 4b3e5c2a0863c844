//! Hundreds of instances that wait: no request, and nobody else waits with them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::stage::{NAMESPACE, Stage, key};

const WAITING: usize = 300;

/// An object that is ready when somebody says so; and an object that reads it.
fn definition() -> Value {
    let map = |id: &str, name: &str, data: &str| json!({"id": id, "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": data}}});
    let mut gate = map("gate", "${schema.metadata.name}-gate", "${schema.spec.go}");
    gate["readyWhen"] = json!(["${gate.data.v == 'yes'}"]);
    let reader = map("reader", "${schema.metadata.name}-reader", "${gate.data.v}");
    json!({"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": {"name": "gated"},
        "spec": {"schema": {"apiVersion": "v1alpha1", "kind": "Gated", "spec": {"go": "string"}}, "resources": [gate, reader]}})
}

fn instance(name: &str, go: &str) -> Value {
    json!({"apiVersion": "kro.run/v1alpha1", "kind": "Gated", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"go": go}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn show_03_waiting() {
    let stage = Stage::set().await;
    stage.apply(definition()).await.unwrap();
    for index in 0..WAITING {
        stage.apply(instance(&format!("waiting-{index}"), "no")).await.unwrap();
    }
    let last = key(&format!("Gated/waiting-{}", WAITING - 1));
    stage.until(&[last], |object| object.is_some_and(|object| object.status()["state"] == "IN_PROGRESS")).await.unwrap();
    stage.rest().await;

    let before = stage.requests();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let idle = stage.requests() - before;

    let began = Instant::now();
    stage.apply(instance("healthy", "yes")).await.unwrap();
    let healthy = key("Gated/healthy");
    stage.until(&[healthy], |object| object.is_some_and(|object| object.status()["state"] == "ACTIVE")).await.unwrap();
    let took = began.elapsed();
    println!(
        "SHOW 03 waiting {WAITING} waiting instances make {idle} requests in 4 s; a healthy one is ACTIVE after {} ms",
        took.as_millis()
    );
    stage.stop().await;
    assert_eq!(idle, 0, "waiting costs no polling");
    assert!(took < Duration::from_secs(20), "{took:?}");
}
