//! What is wanted and not there, on day 2: the dashboard tells it, and `status --wait` waits for it by watches.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use plinth_engine::{health::Health, naming::keys};
use plinth_run::EventKind;
use plinth_support::Identity;

use crate::{
    distribution::Distribution,
    plinth::{Run, events},
    world::World,
};

/// How long anything is waited for.
const LIMIT: Duration = Duration::from_mins(1);

pub(crate) async fn until(what: &str, seen: impl Fn() -> bool) {
    let started = Instant::now();
    while !seen() {
        assert!(started.elapsed() < LIMIT, "never: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The last that was told of an object's health.
fn health(told: &str, kind: &str, name: &str) -> Option<Health> {
    let of = |event: EventKind| match event {
        EventKind::HealthChanged { subject, health, .. } if subject.key.gvk.kind == kind && subject.key.name == name => {
            Some(health)
        }
        _ => None,
    };
    events(told.as_bytes()).into_iter().filter_map(of).next_back()
}

#[tokio::test(flavor = "multi_thread")]
async fn show_06_lacking() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    world.up(&distribution.source(), &[]).await.with_code(0);
    // The run has ended, so that nobody brings the child back.
    let maps: Api<ConfigMap> = Api::default_namespaced(world.client().await);
    let children = maps.list(&ListParams::default().labels(&format!("{}=true", keys::OWNED))).await.unwrap();
    let mut child = children.items.into_iter().next().expect("the sample has a ConfigMap");
    let name = child.metadata.name.clone().unwrap();

    let dash = Run::start(&["dash", "--kubeconfig", &world.kubeconfig(), "-o", "json"]);
    let of_child = || health(&dash.stdout(), "ConfigMap", &name);
    until("the child is ready", || of_child() == Some(Health::Current)).await;
    maps.delete(&name, &DeleteParams::default()).await.unwrap();
    until("the child is missing", || of_child() == Some(Health::NotFound)).await;

    let audit = world.server.audit().from_now().unwrap();
    let mut wait = Run::start(&["status", "--wait", "--timeout", "60s", "--kubeconfig", &world.kubeconfig()]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(wait.is_running(), "{} {}", wait.stdout(), wait.stderr());
    let lists =
        || audit.events().unwrap().iter().filter(|event| event.user == Identity::Admin.name() && event.verb == "list").count();
    let first = lists();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let more = lists() - first;
    child.metadata.resource_version = None;
    child.metadata.uid = None;
    let returned = Instant::now();
    maps.create(&PostParams::default(), &child).await.unwrap();
    let waited = wait.finish().await.with_code(0);
    let ended = returned.elapsed();
    assert!(waited.stdout.starts_with("ready  platform"), "{}", waited.stdout);
    assert_eq!(more, 0, "who waits by watches lists nothing again");
    // A watch tells of it: neither the next heartbeat nor the deadline is waited for.
    assert!(ended < Duration::from_secs(40), "it ended {ended:?} after the child was back");
    until("the child is ready again", || of_child() == Some(Health::Current)).await;
    eprintln!(
        "SHOW 06 lacking told missing, {more} LIST requests while waiting, ended {} ms after the child was back",
        ended.as_millis()
    );
}
