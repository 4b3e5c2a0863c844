//! A controller whose role does not have what somebody's definition needs: the condition names the rule, and `plinth grant` adds it.

use std::time::{Duration, Instant};

use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    in_cluster::{ACCOUNT, Stage},
    plinth::plinth,
    watch::{resource, seen},
};

const MISSING: &str = "PermissionMissing";
/// How long a refused controller is watched.
const WATCHED: Duration = Duration::from_secs(10);
/// Until it tries again what it was refused.
const TRIED_AGAIN: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn show_05_permission_missing() {
    let (stage, client, mut leader, _) = Stage::handed_over().await;
    let nothing = granted(&stage, &[]).await;
    assert_eq!(nothing["missing"]["cluster"], json!([]), "{nothing}");

    // The kind is not in the role.
    let audit = stage.audit().from_now().unwrap();
    let definitions = resource("kro.run", "v1alpha1", "ResourceGraphDefinition", "resourcegraphdefinitions");
    let of_definition = seen(client.clone(), &definitions, None, "addon", |found| says(found, MISSING, "True").is_some());
    apply(&Api::all_with(client.clone(), &definitions), definition()).await;
    of_definition.await.unwrap();
    let found = get(&Api::all_with(client.clone(), &definitions), "addon").await;
    let message = says(&found, MISSING, "True").unwrap();
    let rule = "patch customresourcedefinitions.apiextensions.k8s.io addons.addon.test";
    assert!(message.contains(&format!("the controller may not {rule}: ")), "{message}");
    assert_eq!((&found.data["status"]["state"], says(&found, "Ready", "Unknown").is_some()), (&json!("Inactive"), true));
    tokio::time::sleep(WATCHED).await;
    let refused = audit.events().unwrap().iter().filter(|event| event.user == ACCOUNT && event.code == 403).count();
    assert!((1..=5).contains(&refused), "{refused} requests refused in {WATCHED:?}");

    let active = seen(client.clone(), &definitions, None, "addon", |found| found.data["status"]["state"] == "Active");
    let shown = granted(&stage, &[]).await;
    assert!(shown["missing"]["cluster"].to_string().contains("addons.addon.test"), "{shown}");
    let of_kind = after(granted_and(&stage), active).await;

    // A child's name is known only with its instance.
    let kind = resource("addon.test", "v1", "Addon", "addons");
    let of_instance = seen(client.clone(), &kind, Some("default"), "one", |found| says(found, MISSING, "True").is_some());
    let instance =
        json!({"apiVersion": "addon.test/v1", "kind": "Addon", "metadata": {"name": "one", "namespace": "default"}, "spec": {}});
    apply(&Api::namespaced_with(client.clone(), "default", &kind), instance).await;
    of_instance.await.unwrap();
    let found = get(&Api::namespaced_with(client.clone(), "default", &kind), "one").await;
    let message = says(&found, MISSING, "True").unwrap();
    assert!(
        message.contains("may not get configmaps addon-note in namespace default: ")
            || message.contains("may not patch configmaps addon-note in namespace default: "),
        "{message}"
    );
    assert_eq!(found.data["status"]["state"], "IN_PROGRESS", "waiting is not failing");
    let ready = seen(client.clone(), &kind, Some("default"), "one", |found| found.data["status"]["state"] == "ACTIVE");
    let of_child = after(granted_and(&stage), ready).await;
    assert!(of_kind < TRIED_AGAIN && of_child < TRIED_AGAIN, "{of_kind:?} {of_child:?}");
    assert!(leader.run.is_running(), "nobody started it again");
    eprintln!(
        "SHOW 05 permission_missing {refused} requests refused in {} s; after plinth grant a kind is served in {} ms and a child there in {} ms",
        WATCHED.as_secs(),
        of_kind.as_millis(),
        of_child.as_millis()
    );
    let kubeconfig = stage.world.kubeconfig();
    plinth(&["down", "--apply", "--kubeconfig", &kubeconfig]).await;
    let roles = resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles");
    let left = Api::<DynamicObject>::all_with(client, &roles).get_opt("plinth-granted").await.unwrap();
    assert!(left.is_none(), "down takes what was granted");
}

/// `plinth grant` with the operator's identity.
async fn granted(stage: &Stage, more: &[&str]) -> Value {
    let kubeconfig = stage.world.kubeconfig();
    let answer = plinth(&[&["grant", "-o", "json", "--kubeconfig", &kubeconfig], more].concat()).await.with_code(0);
    serde_json::from_str(&answer.stdout).unwrap()
}

async fn granted_and(stage: &Stage) -> Instant {
    let answer = granted(stage, &["--apply"]).await;
    assert_eq!(answer["applied"], true, "{answer}");
    Instant::now()
}

/// From a grant to what it leads to.
async fn after(granted: impl Future<Output = Instant>, effect: tokio::task::JoinHandle<Instant>) -> Duration {
    let began = granted.await;
    effect.await.unwrap().saturating_duration_since(began)
}

fn definition() -> Value {
    json!({"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": {"name": "addon"},
        "spec": {"schema": {"group": "addon.test", "apiVersion": "v1", "kind": "Addon", "spec": {}}, "resources": [{"id": "note",
            "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-note"}, "data": {"a": "b"}}}]}})
}

/// The message of a condition that has this status.
fn says(object: &DynamicObject, kind: &str, status: &str) -> Option<String> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind && condition["status"] == status)?;
    found["message"].as_str().map(str::to_owned)
}

async fn apply(api: &Api<DynamicObject>, object: Value) {
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let began = Instant::now();
    // The endpoint of a new kind answers a moment after it is announced.
    while let Err(error) = api.patch(&name, &PatchParams::apply("user"), &Patch::Apply(&object)).await {
        assert!(began.elapsed() < TRIED_AGAIN, "{name}: {error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn get(api: &Api<DynamicObject>, name: &str) -> DynamicObject {
    api.get(name).await.unwrap()
}
