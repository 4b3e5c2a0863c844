//! Pods as the cluster has them.

use std::{
    collections::BTreeSet,
    fs,
    process::Command,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams},
};
use plinth_bootstrap::rights;

use crate::watch::resource;

/// Longer than anything takes here on a busy machine.
const LIMIT: Duration = Duration::from_mins(2);

/// The controller's pods that are ready and stay.
async fn ready(client: &Client) -> Vec<Pod> {
    let pods = Api::<Pod>::namespaced(client.clone(), rights::NAMESPACE);
    let all = pods.list(&ListParams::default().labels("app.kubernetes.io/name=plinth")).await.unwrap();
    all.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none() && is_ready(pod)).collect()
}

/// Waits until there are two.
pub(crate) async fn both(client: &Client) -> Vec<Pod> {
    let began = Instant::now();
    loop {
        let found = ready(client).await;
        if found.len() == 2 {
            return found;
        }
        assert!(began.elapsed() < LIMIT, "{} pods of the controller are ready", found.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The pod that plays the operator, once it is the only one and ready.
pub(crate) async fn operator(client: &Client) -> Pod {
    let (pods, began) = (Api::<Pod>::default_namespaced(client.clone()), Instant::now());
    loop {
        let mut found = pods.list(&ListParams::default().labels("app=openmcp-operator")).await.unwrap().items;
        if found.len() == 1 && is_ready(&found[0]) {
            return found.remove(0);
        }
        assert!(began.elapsed() < LIMIT, "{} pods play the operator", found.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|list| list.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}

/// What its containers run, as their kubelet says: by digest.
pub(crate) fn images(pod: &Pod) -> BTreeSet<String> {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.clone()).unwrap_or_default();
    statuses.into_iter().map(|status| status.image_id).collect()
}

/// Who holds the Lease, once somebody else than `before` does.
pub(crate) async fn leader(client: &Client, before: &str) -> String {
    let began = Instant::now();
    loop {
        let holder = holder(client).await;
        if !["", before].contains(&holder.as_str()) {
            return holder;
        }
        assert!(began.elapsed() < LIMIT, "nobody follows {before:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Empty while nobody holds it.
async fn holder(client: &Client) -> String {
    let leases = resource("coordination.k8s.io", "v1", "Lease", "leases");
    let leases = Api::<DynamicObject>::namespaced_with(client.clone(), rights::NAMESPACE, &leases);
    let lease = leases.get_opt(rights::NAME).await.unwrap();
    lease.and_then(|lease| lease.data["spec"]["holderIdentity"].as_str().map(str::to_owned)).unwrap_or_default()
}

/// Ends a pod as a broken node would: signal 9 for its process, and the pod is gone at once. No process gives its Lease back.
pub(crate) async fn kill(client: &Client, name: &str) {
    let pids = processes(name);
    assert_eq!(pids.len(), 1, "processes of {name}: {pids:?}");
    assert!(Command::new("kill").args(["-KILL", &pids[0]]).status().unwrap().success());
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    Api::<Pod>::namespaced(client.clone(), rights::NAMESPACE).delete(name, &now).await.unwrap();
}

/// The ids of the processes whose environment names this pod.
fn processes(pod: &str) -> Vec<String> {
    let name = format!("POD_NAME={pod}");
    let is_its = |id: &String| {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == name.as_bytes())
    };
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    all.filter(|id| id.bytes().all(|byte| byte.is_ascii_digit())).filter(is_its).collect()
}

/// Every pod of a namespace, by name.
pub(crate) async fn names(client: &Client, namespace: &str) -> Vec<String> {
    let pods = Api::<Pod>::namespaced(client.clone(), namespace).list(&ListParams::default()).await.unwrap();
    pods.iter().map(ResourceExt::name_any).collect()
}
