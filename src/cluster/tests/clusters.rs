//! SHOW 02: many logical clusters in one control plane, through our own client, without a socket and over one.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ListParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use plinth_api::{ClusterKey, GroupVersionKind, Object};
use plinth_cluster::{
    Cluster,
    embedded::{Embedded, Options, api::rbac::User, seam},
};
use plinth_engine::ports::{Applier, Apply};
use serde_json::json;

const CLUSTERS: usize = 50;
const OBJECTS: usize = 20;

/// Writes objects of the same names into a cluster.
async fn fill(cluster: &Cluster, objects: usize) {
    for index in 0..objects {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{index}"), "namespace": "default"}, "data": {"of": cluster.key().0}});
        let object = Object::from_value(object).unwrap();
        let key = object.key(cluster.key()).unwrap();
        cluster.apply(&Apply { key, object, manager: "show".into(), force: false, subresource: None }).await.unwrap();
    }
}

/// Writes a second into these clusters, once the clients know what is served there.
async fn filled(clusters: &[Arc<Cluster>], objects: usize) -> u128 {
    let gvk = GroupVersionKind::new("", "v1", "ConfigMap");
    for cluster in clusters {
        cluster.catalog().find(&gvk).await.unwrap();
    }
    let started = Instant::now();
    for cluster in clusters {
        fill(cluster, objects).await;
    }
    let took = started.elapsed();
    u128::try_from(clusters.len() * objects).unwrap() * 1000 / took.as_millis().max(1)
}

async fn watch(client: Client) -> impl Stream<Item = ConfigMap> {
    let api: Api<ConfigMap> = Api::all(client);
    let events = api.watch(&WatchParams::default(), "0").await.unwrap();
    Box::pin(events.filter_map(async |event| match event.unwrap() {
        WatchEvent::Added(map) => Some(map),
        WatchEvent::Bookmark(_) => None,
        other => panic!("{other:?}"),
    }))
}

/// The next objects of a watch, by cluster; each newer than the one before.
async fn counted(watch: impl Stream<Item = ConfigMap> + Unpin, objects: usize) -> BTreeMap<String, usize> {
    let (mut found, mut version) = (BTreeMap::new(), 0);
    let seen = tokio::time::timeout(Duration::from_mins(1), watch.take(objects).collect::<Vec<_>>()).await.unwrap();
    for map in seen {
        let next: u64 = map.resource_version().unwrap().parse().unwrap();
        assert!(next > version, "one counter for all");
        version = next;
        *found.entry(map.annotations()["kcp.io/cluster"].clone()).or_default() += 1;
    }
    found
}

/// A client over the loopback port, as other programs have it.
async fn served(text: &str, key: &ClusterKey) -> Arc<Cluster> {
    let config = Kubeconfig::from_yaml(text).unwrap();
    Cluster::new(key.clone(), Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn show_02_clusters() {
    let embedded = Embedded::new(&Options::default());
    let serving = embedded.serve().await.unwrap();
    let started = Instant::now();
    let keys: Vec<ClusterKey> = (0..CLUSTERS).map(|index| embedded.add_cluster(&format!("c{index}")).unwrap()).collect();
    let added = started.elapsed() / u32::try_from(CLUSTERS).unwrap();

    let everywhere = watch(embedded.client_at("/clusters/*", User::admin())).await;
    let first = watch(embedded.client_at("/clusters/c0", User::admin())).await;
    let (near, far) = keys.split_at(CLUSTERS / 2);
    let near: Vec<_> = near.iter().map(|key| embedded.cluster(key)).collect();
    let mut remote = Vec::new();
    for key in far {
        remote.push(served(&serving.kubeconfig_at(&seam::root(key)), key).await);
    }
    let (logical, socket) = (filled(&near, OBJECTS).await, filled(&remote, OBJECTS).await);
    let default = filled(&[embedded.cluster(&ClusterKey::host())], CLUSTERS * OBJECTS).await;

    let all = counted(everywhere, CLUSTERS * OBJECTS).await;
    assert_eq!((all.len(), all.values().all(|count| *count == OBJECTS)), (CLUSTERS, true));
    assert_eq!(counted(first, OBJECTS).await, BTreeMap::from([("c0".to_owned(), OBJECTS)]));
    let list = async |root: &str| {
        let started = Instant::now();
        let api: Api<ConfigMap> = Api::all(embedded.client_at(root, User::admin()));
        (api.list(&ListParams::default()).await.unwrap().items.len(), started.elapsed())
    };
    let (one, all) = (list("/clusters/c7").await, list("/clusters/*").await);
    assert_eq!((one.0, all.0), (OBJECTS, CLUSTERS * OBJECTS));
    println!(
        "SHOW 02 clusters {CLUSTERS} clusters of {OBJECTS} objects: {added:.1?} to add one, {logical} writes/s there, {socket} over sockets, {default} in the default one, list of one {:.1?}, of all {:.1?}",
        one.1, all.1
    );
}
