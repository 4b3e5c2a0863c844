//! From one release to the next and back, with the move that OpenControlPlane's operator made from v0.19.1 to v1.0.0: it serves
//! ControlPlane in another group in the place of ManagedControlPlaneV2 (openmcp.md finding 6), and nothing converts the old objects.

use std::time::Instant;

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
};
use plinth_support::{ApiServer, AuditEvent, Identity, Registry, Scenario, StandIn, scenario};
use serde_json::{Value, json};

use crate::{
    distribution::{Distribution, PLATFORM, data},
    in_cluster::{ACCOUNT, Stage},
    plinth::{Finished, plinth},
    watch::{resource, seen},
};

const CHANNEL: &str = "channel.yaml";
const ROOT: &str = "rgds/open-control-plane-platform.yaml";

/// A definition with one child of a kind that the operator brings.
fn control_plane(name: &str, kind: &str, api_version: &str, child: &str) -> String {
    format!(
        "apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {{name: {name}}}
spec:
  schema: {{group: bootstrap.open-control-plane.io, apiVersion: v1alpha1, kind: {kind}, spec: {{}}}}
  resources:
    - id: controlplane
      template: {{apiVersion: {api_version}, kind: {child}, metadata: {{name: platform}}, spec: {{iam: {{}}}}}}
"
    )
}

/// The sample with one definition more, which makes a control plane, in one of its two forms.
fn with_control_plane(name: &str, kind: &str, api_version: &str, child: &str) -> Distribution {
    let distribution = Distribution::sample();
    std::fs::write(distribution.file("rgds/control-plane.yaml"), control_plane(name, kind, api_version, child)).unwrap();
    let component = format!(
        "  - name: github.com/openmcp-project/{name}-rgd
    version: v0.0.1
    provider: {{name: openmcp-project}}
    resources:
      - name: rgd
        type: rgd
        version: v0.0.1
        relation: local
        input: {{type: file, path: rgds/control-plane.yaml, mediaType: application/x-yaml}}

  # The platform.
"
    );
    distribution.edit(CHANNEL, "  # The platform.\n", &component);
    let reference = format!(
        "    componentReferences:\n      - {{name: {name}-rgd, componentName: github.com/openmcp-project/{name}-rgd, version: v0.0.1}}\n      - {{name: openmcp-operator-rgd,"
    );
    distribution.edit(CHANNEL, "    componentReferences:\n      - {name: openmcp-operator-rgd,", &reference);
    let text = std::fs::read_to_string(distribution.file(ROOT)).unwrap();
    let node = format!(
        "\n    - id: controlplane\n      template:\n        apiVersion: bootstrap.open-control-plane.io/v1alpha1\n        kind: {kind}\n        metadata:\n          name: default\n        spec: {{}}\n"
    );
    std::fs::write(distribution.file(ROOT), text + &node).unwrap();
    distribution
}

/// The release before, and the one with the operator's new version.
fn releases() -> (Distribution, Distribution) {
    let old = with_control_plane(
        "managed-control-plane",
        "ManagedControlPlane",
        "core.openmcp.cloud/v2alpha1",
        "ManagedControlPlaneV2",
    );
    let new = with_control_plane("control-plane", "ControlPlaneBootstrap", "core.open-control-plane.io/v2alpha1", "ControlPlane");
    new.next("v1.0.0");
    (old, new)
}

/// What the operator of a version does; `None` where its CRDs are not there.
fn playing(distribution: &Distribution, version: &str) -> Option<Scenario> {
    let followed = scenario::read(&distribution.file("scenario.yaml")).unwrap();
    Some(scenario::with_registered(followed, &data()?.join("openmcp/crds/history").join(version)).unwrap())
}

/// A platform of the first release, whose operator can be exchanged.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) registry: Registry,
    client: Client,
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) async fn start() -> Self {
        let server = tokio::task::spawn_blocking(ApiServer::start).await.unwrap().unwrap();
        let client = server.client(Identity::Cluster).await;
        Self { server, registry: Registry::start().unwrap(), client, folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) async fn run(&self, verb: &[&str]) -> Finished {
        let arguments = self.arguments(verb);
        plinth(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await
    }

    /// A verb with this world's server, registry and journal.
    pub(crate) fn arguments(&self, verb: &[&str]) -> Vec<String> {
        let (kubeconfig, host) = (self.server.kubeconfig(Identity::Admin).display().to_string(), self.registry.host());
        let journal = self.folder.path().join("journal").display().to_string();
        let fixed = ["--apply", "--kubeconfig", &kubeconfig, "--plain-http", &host, "--journal", &journal];
        [verb, &fixed].concat().into_iter().map(str::to_owned).collect()
    }

    async fn get(&self, kind: &ApiResource, namespace: Option<&str>, name: &str) -> Option<DynamicObject> {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, kind),
            None => Api::all_with(self.client.clone(), kind),
        };
        api.get_opt(name).await.ok().flatten()
    }

    async fn image(&self) -> String {
        let found = self.get(&deployment(), Some("default"), "openmcp-operator").await.unwrap();
        found.data["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
    }

    async fn definitions(&self) -> Vec<String> {
        let all = Api::<DynamicObject>::all_with(self.client.clone(), &definition()).list(&ListParams::default()).await.unwrap();
        all.items.into_iter().filter_map(|found| found.metadata.name).collect()
    }

    /// Whether a definition lets its kind change so that objects may break.
    pub(crate) async fn permits(&self, name: &str) -> bool {
        let found = self.get(&definition(), None, name).await.unwrap();
        found.metadata.annotations.is_some_and(|all| all.contains_key("kro.run/allow-breaking-changes"))
    }

    pub(crate) async fn lock(&self, name: &str) -> String {
        let maps = resource("", "v1", "ConfigMap", "configmaps");
        let found = self.get(&maps, Some("plinth-system"), name).await.unwrap();
        let lock: Value = serde_json::from_str(found.data["data"]["lock.json"].as_str().unwrap()).unwrap();
        lock["root"]["version"].as_str().unwrap().to_owned()
    }
}

fn deployment() -> ApiResource {
    resource("apps", "v1", "Deployment", "deployments")
}

fn definition() -> ApiResource {
    resource("kro.run", "v1alpha1", "ResourceGraphDefinition", "resourcegraphdefinitions")
}

fn old_kind() -> ApiResource {
    resource("core.openmcp.cloud", "v2alpha1", "ManagedControlPlaneV2", "managedcontrolplanev2s")
}

fn new_kind() -> ApiResource {
    resource("core.open-control-plane.io", "v2alpha1", "ControlPlane", "controlplanes")
}

/// Where in the order an object was first written so.
fn position(writes: &[AuditEvent], verb: &str, resource: &str, name: &str) -> usize {
    let is_it = |event: &AuditEvent| {
        let object = event.object.clone().unwrap_or_default();
        event.verb == verb && object.resource == resource && object.name == name && object.subresource.is_empty()
    };
    writes.iter().position(is_it).unwrap_or_else(|| {
        let all: Vec<String> = writes.iter().map(|event| format!("{} {}", event.verb, event.uri)).collect();
        panic!("no {verb} of {resource} {name} among\n{}", all.join("\n"))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn show_05_upgrade() {
    let (old, new) = releases();
    let (Some(first), Some(second)) = (playing(&old, "v0.19.1"), playing(&new, "v1.0.0")) else {
        eprintln!("not run: the operator's own CRDs (PLINTH_DATA has none)");
        return;
    };
    let world = World::start().await;
    let stand_in = StandIn::start(world.server.client(Identity::Cluster).await, first.clone());
    old.unpacked().await.push(&world.registry, "channel").await;
    let source = format!("{}/channel//{PLATFORM}:v0.0.4", world.registry.host());
    world.run(&["up", &source, "--controller", "none"]).await.with_code(0);
    assert!(world.get(&old_kind(), Some("default"), "platform").await.is_some());
    tenant(&world.client).await;
    let nothing = world.run(&["upgrade"]).await.with_code(0);
    assert!(nothing.stderr.contains("there is nothing to move to"), "{}", nothing.stderr);
    let none = world.run(&["rollback"]).await.with_code(4);
    assert!(none.stderr.contains("no release"), "{}", none.stderr);
    new.unpacked().await.push(&world.registry, "channel").await;

    // An operator that does not start stops the rest.
    drop(stand_in);
    let audit = world.server.audit().from_now().unwrap();
    let began = Instant::now();
    let stopped = world.run(&["upgrade", "--timeout", "25s"]).await.with_code(3);
    let stopped_after = began.elapsed();
    for words in
        ["openmcp-operator-rgd v0.0.3 did not turn ready", "Deployment.apps", "open-control-plane-platform", "plinth rollback"]
    {
        assert!(stopped.stderr.contains(words), "no {words} in:\n{}", stopped.stderr);
    }
    let written: Vec<String> = audit
        .writes_by("admin")
        .unwrap()
        .into_iter()
        .filter_map(|event| event.object)
        .filter(|object| object.resource == "resourcegraphdefinitions" && object.subresource.is_empty())
        .map(|object| object.name)
        .collect();
    assert!(written.iter().all(|name| name == "openmcp-operator"), "{written:?}");
    assert!(world.image().await.ends_with(":v1.0.0"));
    assert_eq!((world.lock("plinth-lock").await, world.lock("plinth-lock-previous").await), ("v0.0.5".into(), "v0.0.4".into()));

    // The way back.
    let stand_in = StandIn::start(world.server.client(Identity::Cluster).await, first);
    let began = Instant::now();
    world.run(&["rollback"]).await.with_code(0);
    let back_after = began.elapsed();
    assert!(world.image().await.ends_with(":v0.19.1"), "{}", world.image().await);
    let locks = (world.lock("plinth-lock").await, world.lock("plinth-lock-previous").await);
    assert_eq!(locks, ("v0.0.4".into(), "v0.0.4".into()), "what was never ready is no way back");
    let component = resource("delivery.ocm.software", "v1alpha1", "Component", "components");
    let component = world.get(&component, Some("default"), "openmcp-operator").await.unwrap();
    assert_eq!(
        component.data["spec"]["downgradePolicy"], "Deny",
        "what permitted it is taken back, and the server's default is there"
    );

    // And on: the new operator serves its kinds once it runs.
    let audit = world.server.audit().from_now().unwrap();
    let began = Instant::now();
    let exchanged = exchange(&world, stand_in, second);
    let moved = world.run(&["upgrade"]).await.with_code(0);
    let took = began.elapsed();
    drop(exchanged.await.unwrap());
    assert!(moved.stderr.contains("~ github.com/openmcp-project/openmcp-operator v0.19.1 → v1.0.0"), "{}", moved.stderr);
    assert_moved(&world, &audit.writes_by("admin").unwrap()).await;
    eprintln!(
        "SHOW 05 upgrade v0.0.4 to v0.0.5 with the operator from v0.19.1 to v1.0.0 in {} ms, {} writes in graph order; stopped at an operator \
         that is not ready after {} ms with 1 of 5 definitions written; rolled back in {} ms",
        took.as_millis(),
        audit.writes_by("admin").unwrap().iter().filter(|event| !event.uri.contains("/leases/")).count(),
        stopped_after.as_millis(),
        back_after.as_millis()
    );
}

/// Somebody's own object of the kind that was renamed.
async fn tenant(client: &Client) {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &old_kind());
    let object = json!({"apiVersion": "core.openmcp.cloud/v2alpha1", "kind": "ManagedControlPlaneV2",
        "metadata": {"name": "tenant", "namespace": "default"}, "spec": {"iam": {}}});
    api.patch("tenant", &PatchParams::apply("tenant"), &Patch::Apply(object)).await.unwrap();
}

/// The new operator takes over as soon as its image is asked for.
fn exchange(world: &World, old: StandIn, playing: Scenario) -> tokio::task::JoinHandle<StandIn> {
    let asked = seen(world.client.clone(), &deployment(), Some("default"), "openmcp-operator", |found| {
        found.data["spec"]["template"]["spec"]["containers"][0]["image"].as_str().is_some_and(|image| image.ends_with(":v1.0.0"))
    });
    let client = world.client.clone();
    tokio::spawn(async move {
        asked.await.unwrap();
        drop(old);
        StandIn::start(client, playing)
    })
}

/// Everything in its order, and only what should go is gone.
async fn assert_moved(world: &World, writes: &[AuditEvent]) {
    let at = |verb, resource, name| position(writes, verb, resource, name);
    let definitions = "resourcegraphdefinitions";
    let order = [
        ("the earlier lock", at("patch", "configmaps", "plinth-lock-previous")),
        ("the operator's definition", at("patch", definitions, "openmcp-operator")),
        ("the operator", at("patch", "deployments", "openmcp-operator")),
        ("the next definition", at("patch", definitions, "control-plane")),
        ("the top-level definition", at("patch", definitions, "open-control-plane-platform")),
        ("the new control plane", at("patch", "controlplanes", "platform")),
        ("the old control plane's end", at("delete", "managedcontrolplanev2s", "platform")),
        ("its definition's end", at("delete", definitions, "managed-control-plane")),
    ];
    assert!(order.is_sorted_by_key(|(_, at)| *at), "{order:#?}");
    assert!(world.image().await.ends_with(":v1.0.0"));
    assert!(world.get(&new_kind(), Some("default"), "platform").await.is_some());
    assert!(world.get(&old_kind(), Some("default"), "platform").await.is_none());
    assert!(world.get(&old_kind(), Some("default"), "tenant").await.is_some(), "what others made of the old kind stays");
    let definitions = world.definitions().await;
    assert!(definitions.contains(&"control-plane".to_owned()) && !definitions.contains(&"managed-control-plane".to_owned()));
}

/// Where a controller keeps the platform, it moves it: this side writes the Platform and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn show_05_upgrade_kept() {
    let (stage, client, mut leader, _) = Stage::handed_over().await;
    let next = Distribution::of_the_document_or_sample();
    next.next("v0.19.2");
    next.unpacked().await.push(&stage.registry, "channel").await;
    let (kubeconfig, host) = (stage.world.kubeconfig(), stage.registry.host());
    assert_quiet(&kubeconfig, &host).await;
    let audit = stage.audit().from_now().unwrap();
    let began = Instant::now();
    let moved = plinth(&["upgrade", "--apply", "--kubeconfig", &kubeconfig, "--plain-http", &host]).await.with_code(0);
    let took = began.elapsed();
    assert!(moved.stderr.contains("runs v0.0.5 and is ready"), "{}", moved.stderr);
    assert!(image(&client).await.ends_with(":v0.19.2"));
    let began = Instant::now();
    plinth(&["rollback", "--apply", "--kubeconfig", &kubeconfig, "--plain-http", &host]).await.with_code(0);
    let back = began.elapsed();
    assert!(image(&client).await.ends_with(":v0.19.1"));
    let ours = |event: &&AuditEvent| event.is_write() && event.user == Identity::Admin.name();
    let resources: Vec<String> =
        audit.events().unwrap().iter().filter(ours).filter_map(|event| Some(event.object.clone()?.resource)).collect();
    let is_a_question =
        |resource: &String| resource == "platforms" || resource.ends_with("roles") || resource.ends_with("rolebindings");
    assert!(resources.iter().all(is_a_question), "{resources:?}");
    let events = audit.events().unwrap();
    let refused: Vec<&String> =
        events.iter().filter(|event| event.user == ACCOUNT && event.code == 403).map(|event| &event.uri).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    eprintln!(
        "SHOW 05 upgrade_kept asked and there in {} ms, asked back and there in {} ms, {} writes by who asked: {}",
        took.as_millis(),
        back.as_millis(),
        resources.len(),
        resources.join(", ")
    );
    assert!(leader.run.is_running(), "{}", leader.run.stderr());
    plinth(&["down", "--apply", "--kubeconfig", &kubeconfig]).await.with_code(0);
}

/// Where nothing was changed, nothing differs.
pub(crate) async fn assert_quiet(kubeconfig: &str, host: &str) {
    let diff = ["diff", "--detailed-exitcode", "-o", "json", "--kubeconfig", kubeconfig, "--plain-http", host];
    let found = plinth(&diff).await;
    let drift: Value = serde_json::from_str(&found.stdout).unwrap_or_default();
    assert_eq!((found.code, &drift["drift"]), (0, &json!([])), "{}", found.stderr);
}

async fn image(client: &Client) -> String {
    let found =
        Api::<DynamicObject>::default_namespaced_with(client.clone(), &deployment()).get("openmcp-operator").await.unwrap();
    found.data["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
}
