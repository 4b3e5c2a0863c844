//! A cluster where kro, kubectl and the OCM controllers were before: what runs is left alone, and what they left is taken over by request, so
//! that a field which a release gives up goes.

use kube::{
    Api, Client, Discovery,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
    discovery::verbs,
};
use serde_json::{Value, json};

use crate::{
    distribution::Distribution,
    plinth::{Finished, plinth},
    watch::resource,
    world::World,
};

const OPERATOR: &str = "rgds/openmcp-operator.yaml";
const MAP: &str = "openmcp-operator-scheduler-config";

/// Our four values, and those that kro and kubectl leave in their place (contracts 11).
fn as_kro_leaves_it(object: &mut DynamicObject) {
    let managers = [
        ("plinth.dev/applyset-parent", "kro.run/applyset-parent"),
        ("plinth.dev/applyset", "kro.run/applyset"),
        ("plinth.dev/labeller", "kro.run/labeller"),
        ("plinth.dev/plinth", "kubectl-client-side-apply"),
    ];
    for record in object.metadata.managed_fields.iter_mut().flatten() {
        let known = managers.iter().find(|(ours, _)| record.manager.as_deref() == Some(ours));
        if let Some((_, theirs)) = known {
            record.manager = Some((*theirs).to_owned());
        }
    }
    let labels = object.metadata.labels.get_or_insert_default();
    labels.remove("plinth.dev/platform");
    if labels.get("app.kubernetes.io/managed-by").is_some_and(|by| by == "plinth") {
        labels.insert("app.kubernetes.io/managed-by".into(), "kro".into());
    }
    if let Some(tooling) = object.metadata.annotations.as_mut().and_then(|all| all.get_mut("applyset.kubernetes.io/tooling")) {
        *tooling = "kro/v0.9.4".into();
    }
}

/// Rewrites everything of the platform but CRDs and namespaces; gives how many objects.
async fn rewritten(client: &Client) -> usize {
    let discovery = Discovery::new(client.clone()).run().await.unwrap();
    let kinds = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
    let kinds = kinds.filter(|(kind, can)| {
        can.supports_operation(verbs::LIST) && !["CustomResourceDefinition", "Namespace"].contains(&kind.kind.as_str())
    });
    let mut count = 0;
    for (kind, _) in kinds {
        let ours = ListParams::default().labels("plinth.dev/platform=default");
        let found = Api::<DynamicObject>::all_with(client.clone(), &kind).list(&ours).await.unwrap();
        for object in found {
            if object.metadata.namespace.as_deref() == Some("plinth-system") {
                continue;
            }
            let api: Api<DynamicObject> = match &object.metadata.namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
                None => Api::all_with(client.clone(), &kind),
            };
            let name = object.metadata.name.clone().unwrap();
            let mut object = api.get(&name).await.unwrap();
            as_kro_leaves_it(&mut object);
            api.replace(&name, &PostParams::default(), &object).await.unwrap();
            count += 1;
        }
    }
    count
}

async fn controller(client: &Client, name: &str, image: &str, replicas: u32) {
    let api = Api::<DynamicObject>::default_namespaced_with(client.clone(), &resource("apps", "v1", "Deployment", "deployments"));
    let labels = json!({"app": name});
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": replicas,
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "manager", "image": image}]}}}});
    api.patch(name, &PatchParams::apply("tests").force(), &Patch::Apply(object)).await.unwrap();
}

async fn up(world: &World, source: &str, journal: &str, more: &[&str]) -> Finished {
    let (kubeconfig, journal) = (world.kubeconfig(), world.server.folder().join(journal).display().to_string());
    let fixed = ["up", source, "--apply", "--controller", "none", "--kubeconfig", &kubeconfig, "--journal", &journal];
    plinth(&[&fixed, more].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn show_05_coexist() {
    let before = Distribution::sample();
    let line = "          config: ${schema.spec.configData}\n";
    before.edit(OPERATOR, line, &format!("{line}          given-up: here\n"));
    let world = World::start(&before).await;
    let client = world.client().await;
    up(&world, &before.source(), "first", &[]).await.with_code(0);
    let rewritten = rewritten(&client).await;
    let map = async || {
        let maps = Api::<DynamicObject>::default_namespaced_with(client.clone(), &resource("", "v1", "ConfigMap", "configmaps"));
        maps.get(MAP).await.unwrap()
    };
    assert_eq!(map().await.data["data"]["given-up"], "here");

    let next = Distribution::sample();
    let audit = world.server.audit().from_now().unwrap();
    let alone = up(&world, &next.source(), "second", &[]).await.with_code(4);
    assert!(alone.stderr.contains("belongs to") && alone.stderr.contains("--take-over"), "{}", alone.stderr);
    controller(&client, "kro", "registry.k8s.io/kro/controller:v0.9.4", 1).await;
    let beside = up(&world, &next.source(), "second", &["--take-over"]).await.with_code(4);
    assert!(beside.stderr.contains("Deployment.apps/default/kro of kro runs in this cluster"), "{}", beside.stderr);
    assert_eq!(audit.writes_by("admin").unwrap().len(), 0, "what runs is left alone");

    controller(&client, "kro", "registry.k8s.io/kro/controller:v0.9.4", 0).await;
    let taken = up(&world, &next.source(), "second", &["--take-over"]).await.with_code(0);
    let told = taken.stdout.matches("TakenOver").count();
    let map = map().await;
    assert_eq!(map.data["data"]["given-up"], Value::Null, "a field that the release gives up goes: {:#}", map.data["data"]);
    let managers: Vec<String> = map.metadata.managed_fields.into_iter().flatten().filter_map(|record| record.manager).collect();
    assert!(managers.iter().all(|manager| manager.starts_with("plinth.dev/")), "{managers:?}");
    assert!(told > 10, "{}", taken.stdout);

    controller(&client, "ocm", "ghcr.io/open-component-model/kubernetes/controller:v0.1.0", 1).await;
    let plan = plinth(&["plan", &next.source(), "--controller", "none", "--kubeconfig", &world.kubeconfig()]).await.with_code(0);
    assert!(plan.stderr.contains("of the OCM controllers runs here"), "{}", plan.stderr);
    eprintln!(
        "SHOW 05 coexist {rewritten} objects as kro and kubectl leave them: refused without --take-over and beside a running kro with 0 writes; \
         taken over, {told} objects with their managers, and a field that the release gives up is gone"
    );
}
