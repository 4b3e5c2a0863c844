//! The Platform in the cluster: `up` leaves it with the controller, which keeps it, says how it is, and changes nothing for a bad one.

use std::time::{Duration, Instant};

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use plinth_support::{AuditLog, Registry, RegistryOptions, programs};
use serde_json::{Value, json};

use crate::{
    distribution::{Distribution, PLATFORM},
    in_cluster::{ACCOUNT, Stage, is_of_the_platform},
    plinth::plinth,
    watch::{resource, seen},
};

/// An RSA key.
const FOREIGN: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA6ku3W/y2aozQpxQD6Wp4
5CX/PaUj1QZsoUGxYJP9f7EzPkc/sCBmbMLQngEiQs74DKgkbGaSwGWV7OynmInc
oH3k9nNyFEgsd00CqMUT/vDb72fzon//xIlUIHnSv+5+IIQABYusZ2iguV/lAQBz
bwPr4M29DrrWFqBoSCo1r/wHIj0ClveZQs2JVnOMDMJspDt5t3OAA2Zs8B/w2hAo
9LkWqZLW02p1HAltZgpeioRp1wJpeUBaS60n6NPZVsSptc7B7HEgFpSThDZXo4SC
yEh8RvT3rEk5bVe8brwQBFK058x3RZrwcMoBBh1C33wF0vYtqNuqaYQqanGQJgll
uwIDAQAB
-----END PUBLIC KEY-----
";

#[tokio::test(flavor = "multi_thread")]
async fn show_05_platform() {
    let (stage, client, mut leader, _) = Stage::handed_over().await;

    // All that a script needs.
    let began = Instant::now();
    let kubeconfig = stage.world.kubeconfig();
    let wait = ["wait", "--for=condition=Ready", "platform/default", "--timeout=60s", "--kubeconfig", &kubeconfig];
    let kubectl = std::process::Command::new(programs::server("kubectl").unwrap()).args(wait).output().unwrap();
    assert!(kubectl.status.success(), "{}", String::from_utf8_lossy(&kubectl.stderr));
    let took = began.elapsed();
    let found = platforms(&client).get("default").await.unwrap();
    assert_eq!(found.data["spec"]["source"]["version"], "v0.0.4");
    assert_eq!(found.data["status"]["release"], json!({"component": PLATFORM, "version": "v0.0.4"}));
    let components = found.data["status"]["components"].as_array().unwrap();
    let with_health = components.iter().filter(|component| component["health"] == "ready").count();
    assert!(components.iter().all(|component| component["digest"].as_str().is_some_and(|digest| digest.starts_with("sha256:"))));
    assert!(with_health >= 4 && components.iter().all(|component| component["why"].is_null()), "{components:#?}");
    let stages = found.data["status"]["stages"].as_array().unwrap();
    assert!(stages.len() > 3 && stages.iter().all(|stage| stage["ready"] == stage["total"]), "{stages:#?}");
    assert_eq!(found.data["status"]["deferred"], json!([]));

    let refused = bad_input(&stage, &client).await;
    let moved = upgraded(&stage, &client).await;
    // But for a Secret that nobody named when the role was computed.
    let is_named = |event: &plinth_support::AuditEvent| event.object.as_ref().is_none_or(|object| object.resource != "secrets");
    let events = stage.audit().events().unwrap();
    let is_refused = |event: &&plinth_support::AuditEvent| event.user == ACCOUNT && event.code == 403 && is_named(event);
    let forbidden: Vec<String> = events.iter().filter(is_refused).map(|event| format!("{} {}", event.verb, event.uri)).collect();
    assert!(forbidden.is_empty(), "the computed role is enough to keep a Platform: {forbidden:#?}");
    eprintln!(
        "SHOW 05 platform Ready {} ms after the hand-over, {refused} bad specs are conditions and 0 objects were written for them, \
         a next version offered and there {} ms after it was written",
        took.as_millis(),
        moved.as_millis()
    );
    plinth(&["down", "--apply", "--kubeconfig", &kubeconfig]).await.with_code(0);
    assert!(leader.run.is_running(), "{}", leader.run.stderr());
}

/// Each is a condition with reason and message, nothing is written but that, and what runs stays.
async fn bad_input(stage: &Stage, client: &Client) -> usize {
    let key = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n";
    let refusing = refusing();
    let rows = [
        (json!({"source": {"channel": "github.com/openmcp-project/other"}}), "GetComponentVersionFailed"),
        (json!({"source": {"version": ">=9"}}), "CheckVersionFailed"),
        (json!({"verify": {"policy": "required", "keys": [{"signature": "acme", "value": key}]}}), ""),
        // Well formed, and of nobody who signed here.
        (json!({"verify": {"policy": "required", "keys": [{"signature": "acme", "value": FOREIGN}]}}), ""),
        (json!({"source": {"repositories": [refusing.1], "ca": std::fs::read_to_string(refusing.0.ca()).unwrap()}}), ""),
        (json!({"source": {"credentialsRef": {"name": "pull", "namespace": "default"}}}), "PermissionMissing"),
        (json!({"values": {"noSuchField": true}}), "ValuesInvalid"),
    ];
    let good = platforms(client).get("default").await.unwrap().data["spec"].clone();
    let count = rows.len();
    for (bad, reason) in rows {
        let audit = stage.audit().from_now().unwrap();
        let (status, found, message) = says(client, &bad).await;
        assert_eq!(status, "False", "{bad}: {found}: {message}");
        assert!(reason.is_empty() || found == reason, "{bad}: {found}: {message}");
        assert!(!message.is_empty());
        eprintln!("a Platform with {bad}: {found}: {message}");
        assert_wrote_nothing(&audit);
        let running = platforms(client).get("default").await.unwrap();
        assert_eq!(running.data["status"]["release"]["version"], "v0.0.4");
        let (status, ..) = says(client, &replaced(&good)).await;
        assert_eq!(status, "True");
    }
    count
}

/// A registry that lets nobody in, and its specification.
fn refusing() -> (Registry, Value) {
    let login = Some(("ann".to_owned(), "secret".to_owned()));
    let registry = Registry::start_with(RegistryOptions { tls: true, login }).unwrap();
    let specification = json!({"type": "OCIRegistry", "baseUrl": format!("https://{}/channel", registry.host())});
    (registry, specification)
}

/// The good spec, with what the bad rows add taken away.
fn replaced(good: &Value) -> Value {
    let mut spec = good.clone();
    for field in ["verify", "values"] {
        if spec[field].is_null() {
            spec[field] = Value::Null;
        }
    }
    for field in ["credentialsRef", "ca"] {
        if spec["source"][field].is_null() {
            spec["source"][field] = Value::Null;
        }
    }
    spec
}

/// A release that comes later is offered, and moved to when somebody writes it.
async fn upgraded(stage: &Stage, client: &Client) -> Duration {
    let next = Distribution::of_the_document_or_sample();
    next.edit(
        "channel.yaml",
        "open-control-plane-platform\n    version: v0.0.4",
        "open-control-plane-platform\n    version: v0.0.5",
    );
    next.unpacked().await.push(&stage.registry, "channel").await;
    let offered = seen(client.clone(), &platform(), None, "default", |found| {
        found.data["status"]["nextUpgrade"]["version"] == "v0.0.5" && found.data["status"]["release"]["version"] == "v0.0.4"
    });
    says(client, &json!({"source": {"version": ">=0.0.4"}})).await;
    offered.await.unwrap();
    let there = seen(client.clone(), &platform(), None, "default", |found| {
        found.data["status"]["release"]["version"] == "v0.0.5" && condition(found).0 == "True"
    });
    let began = Instant::now();
    says(client, &json!({"source": {"version": "v0.0.5"}})).await;
    there.await.unwrap().saturating_duration_since(began)
}

/// Merges into the spec, and gives status, reason and message of Ready once the controller has seen it and says something for good.
async fn says(client: &Client, spec: &Value) -> (String, String, String) {
    let platforms = platforms(client);
    let written = platforms.patch("default", &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await.unwrap();
    let generation = written.metadata.generation;
    let settled = seen(client.clone(), &platform(), None, "default", move |found| {
        let (status, reason, _) = condition(found);
        found.data["status"]["observedGeneration"].as_i64() == generation && (status == "True" || reason != "NotReady")
    });
    settled.await.unwrap();
    condition(&platforms.get("default").await.unwrap())
}

fn condition(platform: &DynamicObject) -> (String, String, String) {
    let conditions = platform.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or_default();
    let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

fn assert_wrote_nothing(audit: &AuditLog) {
    let is_else = |event: &&plinth_support::AuditEvent| {
        let object = event.object.clone().unwrap_or_default();
        event.user == ACCOUNT && is_of_the_platform(event) && object.resource != "platforms"
    };
    let events = audit.events().unwrap();
    let writes: Vec<String> = events.iter().filter(is_else).map(|event| format!("{} {}", event.verb, event.uri)).collect();
    assert!(writes.is_empty(), "{writes:#?}");
}

fn platform() -> ApiResource {
    resource("plinth.dev", "v1alpha1", "Platform", "platforms")
}

fn platforms(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &platform())
}
