//! A platform that no run of plinth installed: the manifests and a Platform, both by kubectl.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};
use plinth_support::{Identity, programs};
use serde_json::{Value, json};

use crate::{
    distribution::PLATFORM,
    in_cluster::{Pod, Stage},
    plinth::plinth,
    upgrade::assert_quiet,
    watch::resource,
};

/// Longer than anything takes here on a busy machine.
const LIMIT: Duration = Duration::from_mins(2);
/// How long a controller is watched that is to bring nothing back.
const WATCHED: Duration = Duration::from_secs(5);

struct Charted {
    stage: Stage,
    client: Client,
    pod: Pod,
}

impl Charted {
    /// The controller of the manifests, and a Platform for it.
    async fn start() -> Self {
        let stage = Stage::set().await;
        let client = stage.world.client().await;
        apply_chart(&stage);
        let mut pod = stage.start_pod(&client).await;
        pod.until_ready().await;
        let repository = json!({"type": "OCIRegistry", "baseUrl": format!("http://{}/channel", stage.registry.host())});
        let spec = json!({"source": {"channel": PLATFORM, "version": "v0.0.4", "repositories": [repository]}});
        let platform =
            json!({"apiVersion": "plinth.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "default"}, "spec": spec});
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("platform.yaml");
        std::fs::write(&file, platform.to_string()).unwrap();
        kubectl(&stage, &["apply", "-f", &file.display().to_string()]);
        Self { stage, client, pod }
    }

    async fn run(&self, verb: &[&str]) -> crate::plinth::Finished {
        let (kubeconfig, host) = (self.stage.world.kubeconfig(), self.stage.registry.host());
        let fixed = ["--kubeconfig", &kubeconfig];
        let access = ["--plain-http", &host];
        let more = if verb[0] == "down" { &[] } else { &access[..] };
        plinth(&[verb, &fixed, more].concat()).await
    }

    /// The condition Ready, once it is this.
    async fn until(&mut self, what: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let found = self.platforms().get_opt("default").await.unwrap().map(|found| found.data).unwrap_or_default();
            let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or_default();
            if what(&ready) {
                return ready;
            }
            assert!(began.elapsed() < LIMIT, "{ready}\n{}", self.pod.run.stderr());
            assert!(self.pod.run.is_running(), "{}", self.pod.run.stderr());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn platforms(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &resource("plinth.dev", "v1alpha1", "Platform", "platforms"))
    }

    async fn definitions(&self) -> usize {
        let kind = resource("kro.run", "v1alpha1", "ResourceGraphDefinition", "resourcegraphdefinitions");
        let found = Api::<DynamicObject>::all_with(self.client.clone(), &kind).list(&ListParams::default()).await;
        found.map_or(0, |found| found.items.len())
    }
}

/// Everything that the manifests have: the controller's Deployment, its account, role and kinds.
pub(crate) fn apply_chart(stage: &Stage) {
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/plinth.yaml");
    kubectl(stage, &["apply", "--server-side", "-f", &charts.display().to_string()]);
}

fn kubectl(stage: &Stage, arguments: &[&str]) {
    let mut command = Command::new(programs::server("kubectl").unwrap());
    command.arg("--kubeconfig").arg(stage.world.server.kubeconfig(Identity::Admin)).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn show_05_quiet_diff_one_grant_is_enough_and_down_ends_it() {
    let mut charted = Charted::start().await;
    charted.until(|ready| ready["reason"] == "PermissionMissing").await;
    let shown = charted.run(&["grant", "-o", "json"]).await.with_code(0);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let granted = charted.run(&["grant", "--apply", "-o", "json"]).await.with_code(0);
    let granted: Value = serde_json::from_str(&granted.stdout).unwrap();
    assert_eq!((&granted["missing"], &granted["applied"]), (&shown["missing"], &json!(true)), "what is shown is what is granted");
    let ready = charted.until(|ready| ready["status"] == "True").await;
    let nothing = charted.run(&["grant", "--detailed-exitcode"]).await;
    assert_eq!(nothing.code, 0, "one round is enough for {ready}:\n{}", nothing.stdout);

    let (kubeconfig, host) = (charted.stage.world.kubeconfig(), charted.stage.registry.host());
    assert_quiet(&kubeconfig, &host).await;
    eprintln!("SHOW 05 quiet_diff the chart's platform is up, and nothing differs");

    let down = charted.run(&["down", "--apply"]).await.with_code(0);
    assert!(down.stdout.contains("Platform.plinth.dev/default"), "the first to go:\n{}", down.stdout);
    assert!(charted.platforms().get_opt("default").await.unwrap().is_none());
    tokio::time::sleep(WATCHED).await;
    assert!(charted.pod.run.is_running(), "{}", charted.pod.run.stderr());
    assert_eq!(charted.definitions().await, 0, "nothing is brought back");
}
