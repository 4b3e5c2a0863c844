//! What others changed is told field by field, with who did it, and nothing is written for that.

use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams},
};
use plinth_support::Identity;
use serde_json::{Value, json};

use crate::{distribution::Distribution, plinth::plinth, watch::resource, world::World};

const MAP: &str = "openmcp-operator-scheduler-config";

/// Children that a server keeps in another form than they are sent in.
const KEPT_OTHERWISE: &str = r"
    - id: login
      template:
        apiVersion: v1
        kind: Secret
        metadata: {name: openmcp-operator-login}
        stringData: {password: hunter2}

    - id: quota
      template:
        apiVersion: v1
        kind: ResourceQuota
        metadata: {name: openmcp-operator}
        spec:
          hard: {requests.storage: 1024Gi, requests.cpu: 4000m, count/jobs.batch: 10}
";

#[tokio::test(flavor = "multi_thread")]
async fn show_05_drift() {
    let distribution = Distribution::sample();
    let rgd = distribution.file("rgds/openmcp-operator.yaml");
    let text = std::fs::read_to_string(&rgd).unwrap() + KEPT_OTHERWISE;
    std::fs::write(&rgd, text).unwrap();
    let archive = distribution.pack(&distribution.file("channel.tgz")).await;
    let world = World::start(&distribution).await;
    world.up(&archive, &["--controller", "none"]).await.with_code(0);
    let kubeconfig = world.kubeconfig();
    let diff = ["diff", "--detailed-exitcode", "-o", "json", "--kubeconfig", &kubeconfig];
    let quiet = plinth(&diff).await.with_code(0);
    let quiet: Value = serde_json::from_str(&quiet.stdout).unwrap();
    assert_eq!(quiet["drift"], json!([]));

    let maps = resource("", "v1", "ConfigMap", "configmaps");
    edit(&world, &maps, MAP, &json!({"data": {"config": "mine"}})).await;
    let interval = json!({"spec": {"interval": "5m"}});
    let repositories = resource("delivery.ocm.software", "v1alpha1", "Repository", "repositories");
    edit(&world, &repositories, "openmcp-repository", &interval).await;
    let audit = world.server.audit().from_now().unwrap();
    let found = plinth(&diff).await.with_code(2);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    let of = |kind: &str| {
        let drift = found["drift"].as_array().unwrap();
        let is_it =
            |drift: &&Value| drift.pointer("/subject/key/gvk/kind") == Some(&json!(kind)) || drift.to_string().contains(kind);
        drift.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} in {found:#}"))["fields"].clone()
    };
    assert_eq!(
        of("Repository"),
        json!([{"path": "spec.interval", "live": "\"5m\"", "wanted": "\"1m\"", "by": ["kubectl-edit"]}])
    );
    let map = of(MAP);
    assert_eq!(
        (&map[0]["path"], &map[0]["live"], &map[0]["by"]),
        (&json!("data.config"), &json!("\"mine\""), &json!(["kubectl-edit"]))
    );
    let text = plinth(&["diff", "--kubeconfig", &kubeconfig]).await.with_code(0).stdout;
    assert!(text.contains("spec.interval: \"5m\" instead of \"1m\"  by kubectl-edit"), "{text}");
    let status = plinth(&["status", "--kubeconfig", &kubeconfig]).await.stdout;
    assert!(status.contains("drift") && status.contains(MAP) && status.contains("by kubectl-edit"), "{status}");
    // What the run itself writes, too: who changed what, and plinth diff knows what it should be.
    assert!(status.contains("spec.interval: \"5m\"  by kubectl-edit"), "{status}");

    // What is being deleted is there, and not missing.
    edit(&world, &maps, MAP, &json!({"metadata": {"finalizers": ["tests.plinth.dev/held"]}})).await;
    let api = Api::<DynamicObject>::default_namespaced_with(world.client().await, &maps);
    api.delete(MAP, &DeleteParams::default()).await.unwrap();
    let leaving = plinth(&["diff", "--kubeconfig", &kubeconfig]).await.with_code(0).stdout;
    assert!(leaving.contains(&format!("terminating ConfigMap/default/{MAP}")) && !leaving.contains("missing"), "{leaving}");
    assert_eq!(audit.writes_by(Identity::Admin.name()).unwrap().len(), 0);
    eprintln!("SHOW 05 drift 2 objects changed by another manager are told with field, values and manager; exit 2; 0 writes");
}

/// Somebody changes a field with another tool.
async fn edit(world: &World, kind: &ApiResource, name: &str, patch: &Value) {
    let api = Api::<DynamicObject>::default_namespaced_with(world.client().await, kind);
    let by = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    api.patch(name, &by, &Patch::Merge(patch)).await.unwrap();
}
