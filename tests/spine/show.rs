//! One apply: from an archive, from a registry, and what is deferred meanwhile.

use std::time::Duration;

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
};
use plinth_run::{EventKind, Outcome};
use plinth_support::{Registry, RegistryOptions};
use serde_json::Value;

use crate::{
    distribution::{Distribution, PLATFORM},
    plinth::{Finished, Run, plinth},
    server::{Plane, Server},
    watch::{appeared, established, resource, seen},
    world::World,
};

/// The graphs that use kinds of the running operator.
const DEFERRED: [&str; 2] = ["cluster-provider-kind", "platform-service"];
/// From a CRD Established to the object that waited for it.
pub(crate) const AT_MOST: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn show_01_archive() {
    let distribution = Distribution::of_the_document_or_sample();
    let world = World::start(&distribution).await;
    eprintln!("SHOW 01 archive {}", from_an_archive(&distribution, &world).await);
}

/// The same test on the other server.
#[tokio::test(flavor = "multi_thread")]
async fn show_02_archive() {
    let distribution = Distribution::of_the_document_or_sample();
    let plane = Plane::start(&distribution).await;
    eprintln!("SHOW 02 archive {}", from_an_archive(&distribution, &plane).await);
}

/// One apply from an archive, with all that has to be seen on the way and afterwards; the figures.
async fn from_an_archive<S: Server>(distribution: &Distribution, server: &S) -> String {
    let archive = distribution.pack(&distribution.file("channel.tgz")).await;
    let client = server.client().await;
    let clocks = Clocks::start(&client);
    let run = server.up(&archive, &[]).await.with_code(0);

    assert_eq!(run.outcome(), Outcome::Done);
    assert_deferred_then_active(&run, &client).await;
    let slowest = clocks.slowest().await;
    assert!(slowest < S::AT_MOST, "from Established to applied took {slowest:?}");
    assert_images(&client).await;
    let (written, took) = (server.written(), slowest.as_millis());
    format!("exit 0 on the {} API server, {written} objects written, Established to applied {took} ms", S::NAME)
}

#[tokio::test(flavor = "multi_thread")]
async fn show_01_registry() {
    let distribution = Distribution::of_the_document_or_sample();
    let registry = Registry::start().unwrap();
    distribution.unpacked().await.push(&registry, "channel").await;
    let world = World::start(&distribution).await;
    let clocks = Clocks::start(&world.client().await);
    let source = format!("{}/channel//{PLATFORM}:v0.0.4", registry.host());
    let run = world.up(&source, &["--plain-http", &registry.host()]).await.with_code(0);

    assert_eq!(run.outcome(), Outcome::Done);
    assert_deferred_then_active(&run, &world.client().await).await;
    let slowest = clocks.slowest().await;
    assert!(slowest < AT_MOST, "from Established to applied took {slowest:?}");
    eprintln!(
        "SHOW 01 registry exit 0, {} objects written, Established to applied {} ms",
        world.writes().len(),
        slowest.as_millis()
    );
}

/// Plans read, so this needs no platform: the same channel over TLS, with a login from docker's config.json.
#[tokio::test(flavor = "multi_thread")]
async fn a_registry_with_tls_and_login_is_read() {
    let distribution = Distribution::sample();
    let login = Some(("ann".to_owned(), "secret".to_owned()));
    let registry = Registry::start_with(RegistryOptions { tls: true, login }).unwrap();
    distribution.unpacked().await.push(&registry, "channel").await;
    let source = format!("{}/channel//{PLATFORM}:v0.0.4", registry.host());
    let (ca, docker) = (registry.ca().display().to_string(), registry.docker_config());
    let lock = ["channel", "lock", &source, "--ca", &ca];

    let found = Run::start_with(&lock, &[("DOCKER_CONFIG", &docker)]).finish().await.with_code(0);
    for component in ["openmcp-operator", "cluster-provider-kind-rgd", "platform-service-dns"] {
        assert!(found.stdout.contains(component), "{}", found.stdout);
    }
    assert!(!found.stdout.contains("secret") && !found.stderr.contains("secret"));
    let refused = plinth(&lock).await.with_code(4);
    assert!(refused.stderr.contains(&registry.host()), "{}", refused.stderr);
    let untrusted = Run::start_with(&lock[..3], &[("DOCKER_CONFIG", &docker)]).finish().await.with_code(4);
    assert!(untrusted.stderr.to_lowercase().contains("certificate"), "{}", untrusted.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn show_01_plan() {
    let distribution = Distribution::of_the_document_or_sample();
    let world = World::start(&distribution).await;
    let (source, kubeconfig) = (distribution.source(), world.kubeconfig());
    let plan = plinth(&["plan", &source, "--kubeconfig", &kubeconfig]).await.with_code(0);
    for words in ["cluster-provider-kind", "platform-service", "ClusterProvider", "PlatformService", "OpenMCPOperator"] {
        assert!(plan.stdout.contains(words), "the plan does not name {words}:\n{}", plan.stdout);
    }
    let json = plinth(&["plan", &source, "--kubeconfig", &kubeconfig, "-o", "json"]).await.with_code(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(json["stages"].as_array().is_some_and(|stages| stages.len() > 1), "{json}");
    assert!(!json["deferred"].as_array().unwrap().is_empty(), "{json}");
    plinth(&["plan", &source, "--kubeconfig", &kubeconfig, "--detailed-exitcode"]).await.with_code(2);

    let audit = world.server.audit();
    let written = audit.writes_by("admin").unwrap();
    assert!(written.is_empty(), "{written:#?}");
    let dry = audit.events().unwrap().iter().filter(|event| event.user == "admin" && event.dry_run).count();
    eprintln!("SHOW 01 plan 3 plans, 0 writes, {dry} dry runs");
}

/// Our own graphs build the image from its parts, the document's take `imageReference`: both give the image.
async fn assert_images(client: &Client) {
    let text = async |api: Api<DynamicObject>, name: &str, path: &str| {
        api.get(name).await.unwrap().data.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let deployments = Api::default_namespaced_with(client.clone(), &resource("apps", "v1", "Deployment", "deployments"));
    let image = text(deployments, "openmcp-operator", "/spec/template/spec/containers/0/image").await;
    assert_eq!(image, "ghcr.io/openmcp-project/images/openmcp-operator:v0.19.1");
    let image = text(Api::all_with(client.clone(), &cluster_provider()), "kind", "/spec/image").await;
    assert_eq!(image, "ghcr.io/openmcp-project/images/cluster-provider-kind:v0.3.1");
    for (name, version) in [("platform-service-gateway", "v0.0.10"), ("platform-service-dns", "v0.0.5")] {
        let image = text(Api::all_with(client.clone(), &platform_service()), name, "/spec/image").await;
        assert_eq!(image, format!("ghcr.io/openmcp-project/images/{name}:{version}"));
    }
}

/// The plan or an event calls each of the two deferred, and their definitions end Active.
async fn assert_deferred_then_active(run: &Finished, client: &Client) {
    let mut deferred = Vec::new();
    let mut served = 0;
    for event in run.events() {
        match event {
            EventKind::Planned { plan } => deferred.extend(plan.deferred.into_iter().map(|deferred| deferred.subject.key.name)),
            EventKind::ChangeDeferred { subject, .. } => deferred.push(subject.key.name),
            EventKind::SchemaServed { gvk } if gvk.group.contains("openmcp") => served += 1,
            _ => {}
        }
    }
    let rgds = resource("kro.run", "v1alpha1", "ResourceGraphDefinition", "resourcegraphdefinitions");
    let rgds: Api<DynamicObject> = Api::all_with(client.clone(), &rgds);
    for name in DEFERRED {
        assert!(deferred.iter().any(|other| other == name), "{name} was not reported deferred: {deferred:?}");
        let rgd = rgds.get(name).await.unwrap();
        assert_eq!(rgd.data.pointer("/status/state").and_then(Value::as_str), Some("Active"), "{name}: {:#}", rgd.data["status"]);
    }
    assert!(served >= 2, "the operator's two kinds were served {served} times by the events");
}

/// Watches on both ends of each wait.
struct Clocks {
    pairs: Vec<(&'static str, tokio::task::JoinHandle<std::time::Instant>, tokio::task::JoinHandle<std::time::Instant>)>,
    reported: Vec<tokio::task::JoinHandle<std::time::Instant>>,
}

impl Clocks {
    fn start(client: &Client) -> Self {
        let pair = |name, crd, kind: ApiResource| (name, established(client.clone(), crd), appeared(client.clone(), &kind, name));
        let pairs = vec![
            pair("kind", "clusterproviders.openmcp.cloud", cluster_provider()),
            pair("platform-service-gateway", "platformservices.openmcp.cloud", platform_service()),
            pair("platform-service-dns", "platformservices.openmcp.cloud", platform_service()),
        ];
        let rgds = resource("kro.run", "v1alpha1", "ResourceGraphDefinition", "resourcegraphdefinitions");
        let reported = DEFERRED.map(|name| seen(client.clone(), &rgds, None, name, is_deferred)).into();
        Self { pairs, reported }
    }

    /// The longest time from Established to applied; each definition was seen Deferred before its kinds were there.
    async fn slowest(self) -> Duration {
        let mut first = None;
        let mut slowest = Duration::ZERO;
        for (name, established, applied) in self.pairs {
            let (established, applied) = (established.await.unwrap(), applied.await.unwrap());
            let took = applied.saturating_duration_since(established);
            eprintln!("{name}: Established to applied {} ms", took.as_millis());
            slowest = slowest.max(took);
            first = Some(first.map_or(established, |first: std::time::Instant| first.min(established)));
        }
        for reported in self.reported {
            assert!(reported.await.unwrap() < first.unwrap(), "a definition was Deferred only after its kinds were served");
        }
        slowest
    }
}

fn is_deferred(rgd: &DynamicObject) -> bool {
    let conditions = rgd.data.pointer("/status/conditions").and_then(Value::as_array);
    let is_it = |one: &Value| one["type"] == "GraphAccepted" && one["status"] == "Unknown" && one["reason"] == "Deferred";
    rgd.data.pointer("/status/state").and_then(Value::as_str) == Some("Inactive")
        && conditions.is_some_and(|list| list.iter().any(is_it))
}

fn cluster_provider() -> ApiResource {
    resource("openmcp.cloud", "v1alpha1", "ClusterProvider", "clusterproviders")
}

fn platform_service() -> ApiResource {
    resource("openmcp.cloud", "v1alpha1", "PlatformService", "platformservices")
}
