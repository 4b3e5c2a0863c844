//! Seed 004's platform: two definitions in the document's own words, two of ours, and kinds that come late.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt};
use kube::{
    Api,
    api::{ApiResource, DynamicObject},
    runtime::watcher,
};
use plinth_api::{Object, ObjectKey};
use plinth_controller::Options;
use plinth_run::{EventKind, Health};
use plinth_support::{Identity, StandIn, scenario};
use serde_json::json;

use super::stage::{Stage, archive, data, key, object, of_seed_004, workspace};

const GROUP: &str = "bootstrap.open-control-plane.io";

pub(super) fn rgd(name: &str) -> ObjectKey {
    key("kro.run", "v1alpha1", "ResourceGraphDefinition", None, name)
}

pub(super) fn root() -> ObjectKey {
    key(GROUP, "v1alpha1", "OpenControlPlanePlatform", Some("default"), "default")
}

fn condition<'a>(object: &'a Object, kind: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let list = object.status()["conditions"].as_array()?;
    let found = list.iter().find(|condition| condition["type"] == kind)?;
    Some((found["status"].as_str()?, found["reason"].as_str()?, found["message"].as_str()?))
}

/// Two definitions from the document, two from the sample.
pub(super) fn definitions() -> Option<Vec<Object>> {
    let ours = |name: &str| {
        let path = workspace().join("distributions/open-control-plane-kind/rgds").join(name);
        object(&std::fs::read_to_string(path).unwrap())
    };
    Some(vec![
        object(&of_seed_004("open-control-plane-platform")?),
        object(&of_seed_004("openmcp-operator")?),
        ours("cluster-provider-kind.yaml"),
        ours("platform-service.yaml"),
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_platform_comes_up_with_kinds_that_come_late() {
    let Some(definitions) = definitions() else {
        eprintln!("1 test did not run: PLINTH_DATA has no seeds/004 beside it");
        return;
    };
    let mut stage = Stage::set().await;
    let archive = archive(stage.server.folder());
    stage.start(Options { platform: Some("test".into()), ..Options::default() });
    // The document's order: the distribution first, so that its kinds are all missing at first.
    for definition in definitions {
        stage.apply(definition).await;
    }
    let repository = json!({"apiVersion": "delivery.ocm.software/v1alpha1", "kind": "Repository",
        "metadata": {"name": "openmcp-repository", "namespace": "default"},
        "spec": {"repositorySpec": {"type": "CommonTransportFormat", "filePath": archive}, "interval": "1m"}});
    stage.apply(Object::from_value(repository).unwrap()).await;

    // Deferred, visibly (contracts 12), and its own CRD is there.
    let service = rgd("platform-service");
    let deferred = stage.until(&service, "deferred", |rgd| {
        rgd.and_then(|rgd| condition(rgd, "GraphAccepted"))
            .is_some_and(|(status, reason, _)| (status, reason) == ("Unknown", "Deferred"))
            && rgd.and_then(|rgd| condition(rgd, "KindReady")).is_some_and(|(status, ..)| status == "True")
    });
    let deferred = deferred.await.unwrap();
    assert_eq!(deferred.status()["state"], "Inactive");
    assert!(condition(&deferred, "GraphAccepted").unwrap().2.contains("PlatformService.openmcp.cloud/v1alpha1"));
    let distribution = |rgd: Option<&Object>| rgd.is_some_and(|rgd| rgd.status()["state"] == "Active");
    stage.until(&rgd("open-control-plane-platform"), "active once its kinds are there", distribution).await;

    let mut instance =
        object(&std::fs::read_to_string(workspace().join("distributions/open-control-plane-kind/instance.yaml")).unwrap());
    instance.metadata_mut().insert("namespace".into(), "default".into());
    stage.apply(instance).await;
    let deployment = key("apps", "v1", "Deployment", Some("default"), "openmcp-operator");
    let deployed = stage.until(&deployment, "applied", |object| object.is_some()).await.unwrap();
    let image = &deployed.spec()["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "ghcr.io/openmcp-project/images/openmcp-operator:v0.19.1");
    assert_eq!(deployed.label("plinth.dev/platform"), Some("test"));

    let latencies = watch_latencies(&stage).await;
    let followed = scenario::read(&workspace().join("distributions/open-control-plane-kind/scenario.yaml")).unwrap();
    let followed = scenario::with_registered(followed, &data("openmcp/crds/history/v0.19.1")).unwrap();
    let _stand_in = StandIn::start(stage.server.client(Identity::Cluster).await, followed);

    let began = Instant::now();
    stage.until(&root(), "ready", |_| stage.is_ready(&root())).await;
    eprintln!("the platform was ready {:?} after the stand-in began", began.elapsed());
    for name in ["platform-service", "cluster-provider-kind"] {
        stage.until(&rgd(name), "active", |rgd| rgd.is_some_and(|rgd| rgd.status()["state"] == "Active")).await;
    }
    let latency = latencies.lock().unwrap().worst();
    eprintln!("SHOW 01 controller-latency {latency:?} from CRD Established to dependents applied");
    let from = latencies.lock().unwrap().established.first().unwrap().1;
    assert!(
        latency < Duration::from_secs(1),
        "{latency:?}: {:#?}\n{:#?}",
        latencies.lock().unwrap().since(from),
        stage.timeline(from)
    );
    told_what_happened(&stage);
    nothing_more_is_written(&stage).await;
    removal_is_ordered(&mut stage).await;
}

/// Both ends timed by watches of the test's own (contracts 26).
#[derive(Default)]
struct Latencies {
    established: Vec<(String, Instant)>,
    applied: Vec<(String, Instant)>,
}

impl Latencies {
    fn since(&self, from: Instant) -> Vec<String> {
        let line = |word: &str, (name, at): &(String, Instant)| {
            format!("{} ms {word} {name}", at.saturating_duration_since(from).as_millis())
        };
        let established = self.established.iter().map(|seen| line("established", seen));
        established.chain(self.applied.iter().map(|seen| line("applied", seen))).collect()
    }

    /// From the establishment of a kind to the last first-generation object of it.
    fn worst(&self) -> Duration {
        let of = |plural: &str| {
            let established = self.established.iter().find(|(name, _)| name == plural).expect("the CRD was seen").1;
            let applied: Vec<Instant> = self.applied.iter().filter(|(name, _)| name == plural).map(|(_, at)| *at).collect();
            assert!(!applied.is_empty(), "an object of {plural} was seen");
            applied.into_iter().map(|at| at.saturating_duration_since(established)).max().unwrap()
        };
        ["clusterproviders", "platformservices"].into_iter().map(of).max().unwrap()
    }
}

async fn watch_latencies(stage: &Stage) -> Arc<Mutex<Latencies>> {
    let latencies = Arc::new(Mutex::new(Latencies::default()));
    let client = stage.server.client(Identity::Cluster).await;
    let crd = ApiResource::from_gvk_with_plural(
        &kube::core::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        "customresourcedefinitions",
    );
    let shared = Arc::clone(&latencies);
    let crds: Api<DynamicObject> = Api::all_with(client.clone(), &crd);
    tokio::spawn(async move {
        let mut seen = watcher(crds, watcher::Config::default()).boxed();
        while let Ok(Some(event)) = seen.try_next().await {
            let watcher::Event::Apply(crd) = event else { continue };
            let established = crd.data["status"]["conditions"].as_array().is_some_and(|list| {
                list.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
            });
            let Some(plural) = crd.data["spec"]["names"]["plural"].as_str() else { continue };
            if !established || crd.data["spec"]["group"] != "openmcp.cloud" {
                continue;
            }
            let first = !shared.lock().unwrap().established.iter().any(|(name, _)| name == plural);
            if first {
                shared.lock().unwrap().established.push((plural.to_owned(), Instant::now()));
                tokio::spawn(watch_kind(
                    client.clone(),
                    plural.to_owned(),
                    crd.data["spec"]["names"]["kind"].as_str().unwrap().to_owned(),
                    Arc::clone(&shared),
                ));
            }
        }
    });
    latencies
}

async fn watch_kind(client: kube::Client, plural: String, kind: String, shared: Arc<Mutex<Latencies>>) {
    let resource =
        ApiResource::from_gvk_with_plural(&kube::core::GroupVersionKind::gvk("openmcp.cloud", "v1alpha1", &kind), &plural);
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let mut known = std::collections::BTreeSet::new();
    loop {
        // A short look instead of a watch: a watch that starts before the endpoint answers would wait out a back-off.
        if let Ok(list) = api.list(&kube::api::ListParams::default()).await {
            for object in list {
                if known.insert(object.metadata.uid.clone()) {
                    shared.lock().unwrap().applied.push((plural.clone(), Instant::now()));
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn told_what_happened(stage: &Stage) {
    let events = stage.events();
    let deferred = |name: &str| {
        events.iter().any(|event| {
            matches!(event, EventKind::ChangeDeferred { subject, missing, .. }
            if subject.key == rgd(name) && missing.iter().all(|gvk| gvk.group == "openmcp.cloud"))
        })
    };
    assert!(deferred("platform-service") && deferred("cluster-provider-kind"));
    assert!(events.iter().any(|event| matches!(event, EventKind::SchemaServed { gvk } if gvk.kind == "ClusterProvider")));
    let explained = events.iter().any(|event| {
        matches!(event, EventKind::HealthChanged { subject, causes, .. }
        if subject.key == root() && causes.iter().any(|cause| cause.message.contains("openmcp.cloud/v1alpha1 is not served yet")))
    });
    assert!(explained, "the root was explained by the missing kind");
    let last = events.iter().rev().find_map(|event| match event {
        EventKind::HealthChanged { subject, health, .. } if subject.key == root() => Some(*health),
        _ => None,
    });
    assert_eq!(last, Some(Health::Current));
}

/// A platform that is as wanted costs no write.
async fn nothing_more_is_written(stage: &Stage) {
    let log = stage.server.audit().from_now().unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let writes = log.writes_by("admin").unwrap();
    assert!(writes.is_empty(), "{writes:#?}");
}

async fn removal_is_ordered(stage: &mut Stage) {
    stage.delete(&root()).await;
    stage.until(&root(), "gone", |object| object.is_none()).await;
    for (group, kind, namespace, name) in
        [("apps", "Deployment", Some("default"), "openmcp-operator"), ("openmcp.cloud", "ClusterProvider", None, "kind")]
    {
        let version = if group == "apps" { "v1" } else { "v1alpha1" };
        assert!(stage.get(&key(group, version, kind, namespace, name)).await.is_none(), "{kind} is gone");
    }
    stage.stop().await;
}
