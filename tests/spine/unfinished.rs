//! A removal that is killed half-way: `status` says so, with the next step, from this machine and from any other.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    distribution::Distribution,
    plinth::{Finished, Run, plinth},
    watch::resource,
    world::World,
};

const HOLD: &str = "acme.example/hold";

/// Puts a finalizer on an object, or takes it off.
async fn hold(api: &Api<DynamicObject>, name: &str, is_held: bool) {
    let mut finalizers = api.get(name).await.unwrap().metadata.finalizers.unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != HOLD);
    finalizers.extend(is_held.then(|| HOLD.to_owned()));
    let patch = json!({"metadata": {"finalizers": finalizers}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Waits until an object is being deleted.
async fn terminating(api: &Api<DynamicObject>, name: &str) {
    let started = Instant::now();
    while api.get(name).await.unwrap().metadata.deletion_timestamp.is_none() {
        assert!(started.elapsed() < Duration::from_mins(2), "nobody deletes {name}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

struct Here<'a> {
    state: &'a Path,
    kubeconfig: String,
}

impl Here<'_> {
    fn start(&self, words: &[&str]) -> Run {
        Run::start_with(&[words, &["--kubeconfig", &self.kubeconfig]].concat(), &[("XDG_STATE_HOME", self.state)])
    }

    async fn status(&self) -> String {
        self.start(&["status"]).finish().await.with_code(3).stdout
    }

    /// As another machine sees it.
    async fn elsewhere(&self) -> Finished {
        plinth(&["status", "-o", "json", "--kubeconfig", &self.kubeconfig]).await.with_code(3)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_says_that_a_removal_was_killed_and_what_to_do() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    world.up(&distribution.source(), &[]).await.with_code(0);
    let folder = TempDir::with_prefix("plinth-state-").unwrap();
    let here = Here { state: folder.path(), kubeconfig: world.kubeconfig() };
    let api = async |kind: &ApiResource, namespace: Option<&str>| match namespace {
        Some(namespace) => Api::namespaced_with(world.client().await, namespace, kind),
        None => Api::<DynamicObject>::all_with(world.client().await, kind),
    };
    let deployments = api(&resource("apps", "v1", "Deployment", "deployments"), Some("default")).await;
    hold(&deployments, "openmcp-operator", true).await;
    let down = here.start(&["down", "--apply"]);
    terminating(&deployments, "openmcp-operator").await;
    let now = here.status().await;
    assert!(now.contains("not removed to the end: plinth down is at it now") && now.contains("plinth attach"), "{now}");
    down.kill();
    let killed = here.status().await;
    assert!(killed.contains("was killed (") && killed.contains("plinth down --apply goes on with it"), "{killed}");
    assert!(killed.contains("OpenControlPlanePlatform") && killed.contains("is being deleted"), "{killed}");
    assert_seen(&here.elsewhere().await, "is being deleted");
    hold(&deployments, "openmcp-operator", false).await;

    let definitions = api(&resource("kro.run", "v1alpha1", "ResourceGraphDefinition", "resourcegraphdefinitions"), None).await;
    hold(&definitions, "open-control-plane-platform", true).await;
    let down = here.start(&["down", "--apply"]);
    terminating(&definitions, "open-control-plane-platform").await;
    down.kill();
    assert!(here.status().await.contains("was killed ("));
    assert_seen(&here.elsewhere().await, "is being deleted");
    hold(&definitions, "open-control-plane-platform", false).await;
    here.start(&["down", "--apply"]).finish().await.with_code(0);
    let gone = here.status().await;
    assert!(gone.contains("there is no platform on this cluster"), "{gone}");
}

/// Without a journal: by what is on the cluster.
fn assert_seen(status: &Finished, sign: &str) {
    let document: Value = serde_json::from_str(&status.stdout).unwrap();
    let removal = document["removal"].as_str().unwrap_or_default();
    assert!(removal.starts_with("a removal has begun and has not ended (") && removal.contains(sign), "{document}");
    assert!(removal.contains("plinth down --apply goes on with it"), "{document}");
}
