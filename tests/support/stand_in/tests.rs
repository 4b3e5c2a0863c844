use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;

use super::*;
use crate::{ApiServer, Identity};

fn deployment() -> Patch<Value> {
    let labels = json!({"app": "openmcp-operator"});
    Patch::Apply(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "openmcp-operator"},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    }))
}

/// Asks every 50 ms until there is an answer.
async fn eventually<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within 30 s");
}

#[tokio::test]
async fn the_samples_operator_becomes_available_then_registers_its_kinds_and_reports_ready() {
    let server = ApiServer::start().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../distributions/open-control-plane-kind/scenario.yaml");
    let scenario = crate::scenario::read(&path).unwrap();
    let _stand_in = StandIn::start(server.client(Identity::Cluster).await, scenario);

    let admin = server.client(Identity::Admin).await;
    let provider = GroupVersionKind::gvk("openmcp.cloud", "v1alpha1", "ClusterProvider");
    assert!(discovery::pinned_kind(&admin, &provider).await.is_err());
    let deployments: Api<Deployment> = Api::default_namespaced(admin.clone());
    deployments.patch("openmcp-operator", &PatchParams::apply("t"), &deployment()).await.unwrap();
    let resource = eventually(async || Some(discovery::pinned_kind(&admin, &provider).await.ok()?.0)).await;
    let status = deployments.get("openmcp-operator").await.unwrap().status.unwrap();
    assert_eq!((status.ready_replicas, status.available_replicas), (Some(1), Some(1)));

    let providers: Api<DynamicObject> = Api::all_with(admin, &resource);
    let kind = json!({"apiVersion": "openmcp.cloud/v1alpha1", "kind": "ClusterProvider", "metadata": {"name": "kind"}, "spec": {"image": "i"}});
    providers.patch("kind", &PatchParams::apply("t"), &Patch::Apply(kind)).await.unwrap();
    eventually(async || (providers.get("kind").await.ok()?.data.pointer("/status/phase")? == "Ready").then_some(())).await;
}
