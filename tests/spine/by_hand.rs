//! What people do to a platform while no plinth runs, and what plinth answers before a run has begun.

use std::{net::SocketAddr, time::Instant};

use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use plinth_run::{EventKind, Outcome};
use plinth_support::{ApiServer, Identity};
use serde_json::{Value, json};

use crate::{
    distribution::Distribution,
    plinth::{Finished, plinth},
    world::World,
};

const OPERATOR: &str = "openmcp-operator";

/// `N of M ready`, as the last line of a run and the first of `status` say it.
fn counts(text: &str) -> Vec<&str> {
    let at = text.rfind(" ready").unwrap_or_else(|| panic!("no counts in {text}"));
    text[..at].rsplit(' ').take(3).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_by_hand_is_seen_explained_and_made_again() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    let (source, kubeconfig, client) = (distribution.source(), world.kubeconfig(), world.client().await);
    world.up(&source, &[]).await.with_code(0);
    let status = async || plinth(&["status", "--kubeconfig", &kubeconfig]).await;
    let why = async |subject| plinth(&["why", subject, "--kubeconfig", &kubeconfig]).await;
    status().await.with_code(0);

    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    deployments.delete(OPERATOR, &DeleteParams::background()).await.unwrap();
    let seen = status().await.with_code(3);
    assert!(
        seen.stdout.lines().any(|line| line.starts_with("missing") && line.contains("Deployment.apps/default/openmcp-operator"))
    );
    let explained = why("OpenControlPlanePlatform/default").await.with_code(0);
    let root = explained.stdout.lines().rev().nth(1).unwrap();
    assert!(root.contains("because Deployment.apps/default/openmcp-operator is missing"), "{}", explained.stdout);
    assert!(explained.stdout.contains("next: plinth up makes Deployment.apps/default/openmcp-operator again"));

    let components: Api<DynamicObject> = Api::namespaced_with(client, "default", &component());
    let before = components.get(OPERATOR).await.unwrap().metadata.uid;
    components.delete(OPERATOR, &DeleteParams::default()).await.unwrap();
    let explained = why("Component/openmcp-operator").await.with_code(0);
    assert!(explained.stdout.contains("is terminating") && explained.stdout.contains("next: "), "{}", explained.stdout);

    refused_elsewhere(&world, &source).await;
    edited_by_hand(&world, &source).await;

    let journal = world.journal().display().to_string();
    let again = plinth(&["up", &source, "--apply", "--kubeconfig", &kubeconfig, "--journal", &journal]).await.with_code(0);
    let after = components.get(OPERATOR).await.unwrap().metadata;
    assert!(after.deletion_timestamp.is_none() && after.uid != before, "{after:?}");
    assert!(deployments.get_opt(OPERATOR).await.unwrap().is_some());
    let seen = status().await.with_code(0);
    assert_eq!(counts(&again.stdout), counts(&seen.stdout), "{}\n{}", again.stdout, seen.stdout);
}

/// A platform has one place.
async fn refused_elsewhere(world: &World, source: &str) {
    let audit = world.server.audit().from_now().unwrap();
    let run = world.up(source, &["-n", "elsewhere"]).await.with_code(4);
    assert_eq!(run.outcome(), Outcome::Refused);
    assert!(told(&run).contains("lives in namespace default"), "{}", run.stdout);
    let plan = plinth(&["plan", source, "--kubeconfig", &world.kubeconfig(), "-n", "elsewhere"]).await.with_code(4);
    assert!(plan.stderr.contains("lives in namespace default"), "{}", plan.stderr);
    let written = audit.writes_by("admin").unwrap();
    assert!(written.is_empty(), "{written:#?}");
}

/// What somebody changed in a definition of ours is neither fought over nor given up: it is named before the first write.
async fn edited_by_hand(world: &World, source: &str) {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("kro.run", "v1alpha1", "ResourceGraphDefinition"));
    let definitions: Api<DynamicObject> = Api::all_with(world.client().await, &kind);
    let mut edited = definitions.get("platform-service").await.unwrap();
    edited.data["spec"]["resources"][0]["id"] = "edited".into();
    let parameters = PostParams { field_manager: Some("kubectl-edit".into()), ..PostParams::default() };
    let edited = definitions.replace("platform-service", &parameters, &edited).await.unwrap();

    let (kubeconfig, journal) = (world.kubeconfig(), world.journal().display().to_string());
    let up = ["up", source, "--apply", "--kubeconfig", &kubeconfig, "--journal", &journal];
    let refused = plinth(&up).await.with_code(4);
    let words = "ResourceGraphDefinition.kro.run/platform-service was changed by somebody else, who holds spec.resources";
    assert!(refused.stderr.contains(words) && refused.stderr.contains("kubectl-edit"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--take-over writes it over"), "no way out: {}", refused.stderr);
    let id = async || definitions.get("platform-service").await.unwrap().data["spec"]["resources"][0]["id"].clone();
    assert_eq!(id().await, edited.data["spec"]["resources"][0]["id"]);

    plinth(&[&up[..], &["--take-over"]].concat()).await.with_code(0);
    assert_ne!(id().await, edited.data["spec"]["resources"][0]["id"]);

    // An image is known at run time only; who set the one that is there is known to the server.
    let deployments: Api<Deployment> = Api::default_namespaced(world.client().await);
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": OPERATOR, "image": "registry.example/other:1"}]}}}});
    deployments.patch(OPERATOR, &PatchParams::default(), &Patch::Strategic(image)).await.unwrap();
    let plan = plinth(&["plan", source, "--kubeconfig", &kubeconfig, "--detailed-exitcode"]).await.with_code(2);
    let words = "configure  Deployment.apps/default/openmcp-operator  changes spec.template.spec.containers[0].image";
    assert!(plan.stdout.contains(words), "{}", plan.stdout);
}

/// How a run says that it ended.
fn told(run: &Finished) -> String {
    match run.events().pop() {
        Some(EventKind::RunFinished { message, .. }) => message,
        other => panic!("the last event is {other:?}"),
    }
}

fn component() -> ApiResource {
    ApiResource {
        group: "delivery.ocm.software".into(),
        version: "v1alpha1".into(),
        api_version: "delivery.ocm.software/v1alpha1".into(),
        kind: "Component".into(),
        plural: "components".into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_before_the_run_has_the_form_that_was_asked_for() {
    let up = async |output| plinth(&["up", "nowhere.tgz", "--apply", "-o", output, "--kubeconfig", "nowhere.yaml"]).await;
    let run = up("json").await.with_code(4);
    assert_eq!(run.outcome(), Outcome::Refused);
    assert!(told(&run).contains("nowhere.yaml"), "{}", run.stdout);
    let report = up("junit").await.with_code(4).stdout;
    assert!(
        report.starts_with("<?xml") && report.trim_end().ends_with("</testsuites>") && report.contains("<failure"),
        "{report}"
    );
    for verb in [["plan", "nowhere.tgz"].as_slice(), &["status"], &["why", "A/b"]] {
        let run = plinth(&[verb, &["-o", "json", "--kubeconfig", "nowhere.yaml"]].concat()).await.with_code(4);
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(document["error"]["outcome"], "refused", "{document}");
        assert!(document["error"]["message"].as_str().unwrap().contains("nowhere.yaml"), "{document}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_server_that_is_away_ends_at_the_deadline() {
    let server = tokio::task::spawn_blocking(ApiServer::shared).await.unwrap();
    // Nobody listens on port 1.
    let kubeconfig = server.kubeconfig_at(Identity::Admin, SocketAddr::from(([127, 0, 0, 1], 1))).display().to_string();
    let started = Instant::now();
    let run = plinth(&["status", "--wait", "--timeout", "3s", "--kubeconfig", &kubeconfig]).await.with_code(3);
    assert!(started.elapsed().as_secs() >= 3, "it gave up after {:?}", started.elapsed());
    assert!(run.stderr.contains("attempt 2, next in ") && run.stderr.contains("127.0.0.1:1"), "{}", run.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_command_lines_and_places_are_answered_as_they_were_asked() {
    let run = plinth(&["status", "-o", "json", "--nope"]).await.with_code(64);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&document["error"]["exitCode"], &document["error"]["outcome"]), (&64.into(), &"usage".into()), "{document}");
    assert!(document["error"]["message"].as_str().unwrap().contains("--nope") && run.stderr.contains("--nope"), "{document}");
    let run = plinth(&["down", "--apply", "--output=json", "--nope"]).await.with_code(64);
    assert_eq!(run.outcome(), plinth_run::Outcome::Usage);
    assert_eq!(plinth(&["status", "--nope"]).await.with_code(64).stdout, "");

    let sample = crate::distribution::Distribution::sample();
    let run = plinth(&["channel", "pack", &sample.source(), "-f", "/nowhere/channel.tgz"]).await.with_code(4);
    assert!(run.stderr.contains("/nowhere/channel.tgz"), "{}", run.stderr);
}
