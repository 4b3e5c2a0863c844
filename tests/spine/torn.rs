//! Removal where somebody has been at the platform by hand.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};

use crate::{distribution::Distribution, plinth::plinth, state, world::World};

/// Nobody else would remove what was torn from its instance, and nobody asked for what others keep in the namespace.
#[tokio::test(flavor = "multi_thread")]
async fn down_takes_what_was_torn_from_its_instance_and_leaves_what_is_of_others() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    let (kubeconfig, client) = (world.kubeconfig(), world.client().await);
    world.up(&distribution.source(), &["-n", "other2"]).await.with_code(0);
    let kind = ApiResource {
        group: "bootstrap.open-control-plane.io".into(),
        version: "v1alpha1".into(),
        api_version: "bootstrap.open-control-plane.io/v1alpha1".into(),
        kind: "OpenMCPOperator".into(),
        plural: "openmcpoperators".into(),
    };
    let operators: Api<DynamicObject> = Api::namespaced_with(client.clone(), "other2", &kind);
    for operator in operators.list(&ListParams::default()).await.unwrap() {
        let name = operator.metadata.name.unwrap();
        let bare = serde_json::json!({"metadata": {"finalizers": null}});
        operators.patch(&name, &PatchParams::default(), &Patch::Merge(bare)).await.unwrap();
        operators.delete(&name, &DeleteParams::default()).await.unwrap();
    }
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "other2");
    let mine = ConfigMap { metadata: ObjectMeta { name: Some("mine".into()), ..ObjectMeta::default() }, ..ConfigMap::default() };
    maps.create(&PostParams::default(), &mine).await.unwrap();

    let down = plinth(&["down", "--apply", "--kubeconfig", &kubeconfig]).await.with_code(0);
    assert!(down.stdout.contains("stays: holds ConfigMap/mine of others"), "{}", down.stdout);
    let left = state::of_plinth(&client).await;
    assert_eq!(left.keys().collect::<Vec<_>>(), ["Namespace.//other2"], "left behind");
    assert!(maps.get_opt("mine").await.unwrap().is_some());
}
