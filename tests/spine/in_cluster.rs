//! The controller in the cluster: installed, handed over to, and followed by another when it dies. No kubelet runs here: the test plays
//! the Deployment's pods by starting `plinth controller` with its arguments and the token of its service account.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
};
use plinth_bootstrap::rights;
use plinth_run::{EventKind, Outcome};
use plinth_support::{AuditEvent, AuditLog, Identity, Registry};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    distribution::{Distribution, PLATFORM},
    plinth::{Finished, Run, plinth},
    watch::{resource, seen},
    world::World,
};

/// Whom the server sees behind the token.
pub(crate) const ACCOUNT: &str = "system:serviceaccount:plinth-system:plinth";
/// Until another one goes on with the platform.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(20);
/// Longer than anything takes here on a busy machine.
const LIMIT: Duration = Duration::from_mins(2);

/// An image that nobody pulls.
fn image() -> String {
    format!("registry.example/plinth@sha256:{}", "a".repeat(64))
}

/// A platform's registry and cluster.
pub(crate) struct Stage {
    pub(crate) registry: Registry,
    pub(crate) world: World,
}

impl Stage {
    pub(crate) async fn set() -> Self {
        let distribution = Distribution::of_the_document_or_sample();
        let registry = Registry::start().unwrap();
        distribution.unpacked().await.push(&registry, "channel").await;
        let world = World::start(&distribution).await;
        Self { registry, world }
    }

    /// The same with a controller of one pod, to which a run has handed over.
    pub(crate) async fn handed_over() -> (Self, Client, Pod, Finished) {
        let stage = Self::set().await;
        let client = stage.world.client().await;
        let up = stage.start_up(&["--controller", "auto", "--controller-image", &image()]);
        stage.until_installed(&client).await;
        let mut leader = stage.start_pod(&client).await;
        leader.until_ready().await;
        say_ready(&client, 1).await;
        let run = up.finish().await.with_code(0);
        (stage, client, leader, run)
    }

    fn source(&self) -> String {
        format!("{}/channel//{PLATFORM}:v0.0.4", self.registry.host())
    }

    pub(crate) fn start_up(&self, more: &[&str]) -> Run {
        let host = self.registry.host();
        self.world.start_up(&self.source(), &[&["--plain-http", host.as_str()], more].concat())
    }

    /// A pod of the Deployment, as it is in the cluster.
    pub(crate) async fn start_pod(&self, client: &Client) -> Pod {
        let deployments = Api::<DynamicObject>::namespaced_with(client.clone(), rights::NAMESPACE, &deployment());
        let found = deployments.get(rights::NAME).await.unwrap();
        let container = &found.data["spec"]["template"]["spec"]["containers"][0];
        let given = container["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap().to_owned());
        let kubeconfig = self.world.server.kubeconfig_of(rights::NAMESPACE, rights::NAME).await.display().to_string();
        let health = free_address();
        let own = ["--kubeconfig".into(), kubeconfig, "--metrics-bind-address".into(), "0".into()];
        let own = own.into_iter().chain(["--health-probe-bind-address".into(), health.to_string()]);
        let arguments: Vec<String> = given.chain(own).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Pod { run: Run::start(&arguments), health }
    }

    pub(crate) async fn until_installed(&self, client: &Client) {
        let is_there = seen(client.clone(), &deployment(), Some(rights::NAMESPACE), rights::NAME, |_| true);
        is_there.await.unwrap();
    }

    pub(crate) fn audit(&self) -> AuditLog {
        self.world.server.audit()
    }
}

/// A process that plays a pod; killed with signal 9 when dropped.
pub(crate) struct Pod {
    pub(crate) run: Run,
    health: SocketAddr,
}

impl Pod {
    /// Waits until its readiness probe succeeds.
    pub(crate) async fn until_ready(&mut self) {
        let began = Instant::now();
        while !self.answers("/readyz").await {
            assert!(self.run.is_running(), "the controller ended:\n{}", self.run.stderr());
            assert!(began.elapsed() < LIMIT, "the controller is not ready:\n{}", self.run.stderr());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn answers(&self, path: &str) -> bool {
        let asked = async {
            let mut stream = tokio::net::TcpStream::connect(self.health).await?;
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await?;
            let mut text = String::new();
            stream.read_to_string(&mut text).await?;
            std::io::Result::Ok(text.starts_with("HTTP/1.1 200"))
        };
        asked.await.unwrap_or_default()
    }
}

fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn deployment() -> kube::api::ApiResource {
    resource("apps", "v1", "Deployment", "deployments")
}

/// What the kubelets and the Deployment's controller would say.
async fn say_ready(client: &Client, pods: u32) {
    let deployments = Api::<DynamicObject>::namespaced_with(client.clone(), rights::NAMESPACE, &deployment());
    let generation = deployments.get(rights::NAME).await.unwrap().metadata.generation;
    let status = json!({"status": {"observedGeneration": generation, "replicas": pods, "updatedReplicas": pods,
        "readyReplicas": pods, "availableReplicas": pods}});
    deployments.patch_status(rights::NAME, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

pub(crate) async fn holder(client: &Client) -> String {
    let leases = resource("coordination.k8s.io", "v1", "Lease", "leases");
    let leases = Api::<DynamicObject>::namespaced_with(client.clone(), rights::NAMESPACE, &leases);
    let lease = leases.get(rights::NAME).await.unwrap();
    lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// Writes about the platform: neither the Lease, nor the journal.
pub(crate) fn is_of_the_platform(event: &AuditEvent) -> bool {
    let object = event.object.clone().unwrap_or_default();
    event.is_write() && object.resource != "leases" && object.name != rights::JOURNAL
}

fn shown(event: &AuditEvent) -> String {
    format!("{} {} {}", event.user, event.verb, event.uri)
}

/// Deletes a child and tells how long it is gone.
pub(crate) async fn healed(client: &Client) -> Duration {
    let config = resource("", "v1", "ConfigMap", "configmaps");
    let name = "openmcp-operator-scheduler-config";
    let maps = Api::<DynamicObject>::default_namespaced_with(client.clone(), &config);
    let old = maps.get(name).await.unwrap().metadata.uid;
    let back = seen(client.clone(), &config, Some("default"), name, move |found| found.metadata.uid != old);
    let began = Instant::now();
    maps.delete(name, &kube::api::DeleteParams::default()).await.unwrap();
    back.await.unwrap().saturating_duration_since(began)
}

#[tokio::test(flavor = "multi_thread")]
async fn show_05_handover() {
    let (stage, client, leader, run) = Stage::handed_over().await;
    assert_eq!(run.outcome(), Outcome::Done);
    let handed = |event: &EventKind| matches!(event, EventKind::CheckFinished { id, .. } if id.0 == "handed-over");
    assert!(run.events().iter().any(handed), "{}", run.stdout);

    // One after the other: nothing of the laptop's comes after the first write of the controller.
    let healed_after = healed(&client).await;
    let writes: Vec<AuditEvent> = stage.audit().events().unwrap().into_iter().filter(is_of_the_platform).collect();
    let last_of_the_laptop = writes.iter().rposition(|event| event.user == Identity::Admin.name()).unwrap();
    let first_of_the_controller = writes.iter().position(|event| event.user == ACCOUNT).unwrap();
    assert!(last_of_the_laptop < first_of_the_controller, "{}", shown(&writes[last_of_the_laptop]));
    let count = |user: &str| writes.iter().filter(|event| event.user == user).count();
    assert_refused_nothing(&stage.audit());
    assert!(healed_after < Duration::from_secs(2), "{healed_after:?}");
    eprintln!(
        "SHOW 05 handover {} writes by the run and then {} by the controller, never both; a deleted child back in {} ms",
        count(Identity::Admin.name()),
        count(ACCOUNT),
        healed_after.as_millis()
    );
    followed(&stage, &client, leader).await;
    removed(&stage, &client).await;
}

/// Kill -9 of the leader: the other goes on in time, and writes nothing that is as it should be.
async fn followed(stage: &Stage, client: &Client, leader: Pod) {
    let mut other = stage.start_pod(client).await;
    other.until_ready().await;
    // The journal is written a moment after what it tells of.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (audit, before) = (stage.audit().from_now().unwrap(), holder(client).await);
    let killed = Instant::now();
    drop(leader);
    while [before.as_str(), ""].contains(&holder(client).await.as_str()) {
        assert!(killed.elapsed() < LIMIT, "nobody follows:\n{}", other.run.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let took = killed.elapsed();
    other.until_ready().await;
    // Time for what should not happen.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let again: Vec<String> =
        audit.events().unwrap().iter().filter(|event| is_of_the_platform(event) && event.user == ACCOUNT).map(shown).collect();
    assert!(again.is_empty(), "{again:#?}");
    let healed_after = healed(client).await;
    assert!(took < FOLLOWED_WITHIN && healed_after < Duration::from_secs(2), "{took:?} {healed_after:?}");
    assert_refused_nothing(&stage.audit());
    eprintln!(
        "SHOW 05 takeover {} ms after kill -9, {} writes repeated, a deleted child back in {} ms",
        took.as_millis(),
        again.len(),
        healed_after.as_millis()
    );
    // Its pod lives on for the removal, which asks it for the Lease.
    stage_removal(stage, other).await;
}

/// `down` has its turn while a controller leads, and takes all of it away.
async fn stage_removal(stage: &Stage, mut leader: Pod) {
    let kubeconfig = stage.world.kubeconfig();
    let down = plinth(&["down", "--apply", "-o", "json", "--kubeconfig", &kubeconfig]).await.with_code(0);
    assert_eq!(down.outcome(), Outcome::Done);
    assert!(leader.run.is_running(), "{}", leader.run.stderr());
}

async fn removed(stage: &Stage, client: &Client) {
    let left = stage.audit().events().unwrap();
    assert!(left.iter().any(|event| event.verb == "delete" && event.uri.contains("clusterrolebindings/plinth")));
    for (group, version, kind, plural) in [
        ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
        ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"),
        ("", "v1", "Namespace", "namespaces"),
    ] {
        let name = if kind == "Namespace" { rights::NAMESPACE } else { rights::NAME };
        let found = Api::<DynamicObject>::all_with(client.clone(), &resource(group, version, kind, plural)).get_opt(name).await;
        assert!(found.unwrap().is_none(), "{kind} {name} is left");
    }
}

/// The role is enough.
fn assert_refused_nothing(audit: &AuditLog) {
    let refused: Vec<String> = audit
        .events()
        .unwrap()
        .iter()
        .filter(|event| event.user == ACCOUNT && event.code == 403)
        .map(|event| format!("{} {:?}", shown(event), event.object))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

/// A second run is told who writes, and since when.
#[tokio::test(flavor = "multi_thread")]
async fn show_05_lease() {
    let stage = Stage::set().await;
    let client = stage.world.client().await;
    // Waits for a controller that nobody starts, and holds the Lease meanwhile.
    let first = stage.start_up(&["--controller-image", &image()]);
    stage.until_installed(&client).await;
    let holds = holder(&client).await;
    let (host, kubeconfig) = (stage.registry.host(), stage.world.kubeconfig());
    let other = stage.world.server.folder().join("other-journal").display().to_string();
    let again =
        ["up", &stage.source(), "--apply", "-o", "json", "--plain-http", &host, "--kubeconfig", &kubeconfig, "--journal", &other];
    let began = Instant::now();
    let refused = plinth(&again).await.with_code(4);
    let took = began.elapsed();
    let Some(EventKind::RunFinished { message, hint, .. }) = refused.events().pop() else { panic!("{}", refused.stdout) };
    assert!(message.contains(&holds) && message.contains(" since 20"), "{message}");
    assert!(hint.is_some_and(|hint| hint.contains("--break-lock")));

    // A dead run's Lease is followed by the run that goes on with its journal, at once.
    first.kill();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let audit = stage.audit().from_now().unwrap();
    let began = Instant::now();
    stage.start_up(&["--controller", "none"]).finish().await.with_code(0);
    let is_first = |event: &&AuditEvent| event.is_write() && event.user == Identity::Admin.name();
    assert!(audit.events().unwrap().iter().any(|event| is_first(&event)));
    eprintln!(
        "SHOW 05 lease a second run refused after {} ms by name and time, the run after a killed one done after {} ms",
        took.as_millis(),
        began.elapsed().as_millis()
    );
    let lease: Value = json!(holder(&client).await);
    assert_eq!(lease, "", "it is given back at the end");
}
