use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::*;

fn config_map(name: &str, value: &str) -> Patch<serde_json::Value> {
    Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value}}))
}

#[tokio::test]
async fn it_serves_counts_writes_and_comes_back() {
    let mut server = ApiServer::start().unwrap();
    let admin = server.client(Identity::Admin).await;
    let maps: Api<ConfigMap> = Api::namespaced(admin.clone(), "default");
    let apply = PatchParams::apply("test").force();
    maps.patch("a", &apply, &config_map("a", "1")).await.unwrap();
    maps.patch("a", &apply, &config_map("a", "2")).await.unwrap();
    maps.patch("a", &apply.clone().dry_run(), &config_map("a", "3")).await.unwrap();
    maps.create(
        &PostParams::default(),
        &ConfigMap { metadata: kube::core::ObjectMeta { name: Some("b".into()), ..Default::default() }, ..Default::default() },
    )
    .await
    .unwrap();

    let writes = server.audit().writes_by("admin").unwrap();
    let of = |name: &str| writes.iter().filter(|write| write.object.as_ref().is_some_and(|object| object.name == name)).count();
    assert_eq!((of("a"), of("b")), (2, 1), "{writes:#?}");
    let dry: Vec<_> = server.audit().events().unwrap().into_iter().filter(|event| event.dry_run).collect();
    assert_eq!(dry.len(), 1);
    assert_eq!(dry[0].verb, "patch");

    let limited: Api<ConfigMap> = Api::namespaced(server.client(Identity::Limited).await, "default");
    let refused = limited.get("a").await.unwrap_err().to_string();
    assert!(refused.contains("forbidden") && refused.contains("limited"), "{refused}");

    server.stop();
    assert!(!server.is_running());
    assert!(maps.get("a").await.is_err());
    server.resume().unwrap();
    assert_eq!(maps.get("a").await.unwrap().data.unwrap()["v"], "2");
    let names: Vec<_> = Api::<Namespace>::all(admin)
        .list(&ListParams::default())
        .await
        .unwrap()
        .into_iter()
        .map(|namespace| namespace.name_any())
        .collect();
    assert!(names.contains(&"kube-system".to_owned()), "{names:?}");
}

#[tokio::test]
async fn a_cut_connection_is_an_error_and_the_next_one_works() {
    let server = ApiServer::shared();
    let proxy = crate::Proxy::start(server.address()).unwrap();
    let maps: Api<ConfigMap> =
        Api::namespaced(client(&server.kubeconfig_at(Identity::Admin, proxy.address())).await, "kube-system");
    maps.list(&ListParams::default()).await.unwrap();
    proxy.refuse(true);
    assert!(maps.list(&ListParams::default()).await.is_err());
    proxy.refuse(false);
    maps.list(&ListParams::default()).await.unwrap();
    assert!(proxy.accepted() >= 2);
}
