//! What comes after `up`: looking at the platform and taking it down.

use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, api::DeleteParams};
use plinth_run::Outcome;
use serde_json::Value;

use crate::{
    distribution::Distribution,
    plinth::{Run, plinth},
    state,
    world::World,
};

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_the_platform_and_down_removes_it_in_order() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    let kubeconfig = world.kubeconfig();
    world.up(&distribution.source(), &[]).await.with_code(0);

    let status = plinth(&["status", "--kubeconfig", &kubeconfig]).await.with_code(0);
    for name in ["OpenControlPlanePlatform", "openmcp-operator", "platform-service-gateway", "platform-service-dns"] {
        assert!(status.stdout.contains(name), "status does not name {name}:\n{}", status.stdout);
    }
    let json = plinth(&["status", "--kubeconfig", &kubeconfig, "-o", "json"]).await.with_code(0);
    serde_json::from_str::<Value>(&json.stdout).unwrap();

    let audit = world.server.audit().from_now().unwrap();
    let down = plinth(&["down", "--apply", "-o", "json", "--kubeconfig", &kubeconfig]).await.with_code(0);
    assert_eq!(down.outcome(), Outcome::Done);
    let deleted: Vec<_> = audit.writes_by("admin").unwrap().into_iter().filter(|event| event.verb == "delete").collect();
    let at = |resource: &str, name: &str| {
        let is_it = |object: &plinth_support::AuditObject| object.resource == resource && object.name == name;
        deleted
            .iter()
            .position(|event| event.object.as_ref().is_some_and(is_it))
            .unwrap_or_else(|| panic!("{resource}/{name} stays"))
    };
    // What depends on something goes before it.
    assert!(at("clusterproviders", "kind") < at("resources", "cluster-provider-kind-image"));
    assert!(at("deployments", "openmcp-operator") < at("serviceaccounts", "openmcp-operator"));
    assert!(at("resources", "openmcp-operator-image") < at("components", "openmcp-operator"));

    let left = state::of_plinth(&world.client().await).await;
    let kinds = ["OpenControlPlanePlatform.", "Deployment.", "ClusterProvider.", "Component.", "ResourceGraphDefinition."];
    let left: Vec<_> = left.keys().filter(|key| kinds.iter().any(|kind| key.starts_with(kind))).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_file_is_a_source() {
    let distribution = Distribution::sample();
    let platform = distribution.file("platform.yaml");
    let text = format!(
        "apiVersion: plinth.dev/v1alpha1\nkind: Platform\nmetadata: {{name: sample}}\nspec:\n  source: {{channel: \"{}\"}}\n",
        distribution.source()
    );
    std::fs::write(&platform, text).unwrap();
    let lock = plinth(&["channel", "lock", &platform.display().to_string()]).await.with_code(0);
    assert!(lock.stdout.contains("platform-service-gateway"), "{}", lock.stdout);
}

/// A second distribution in the channel is a choice that plinth does not make.
#[tokio::test(flavor = "multi_thread")]
async fn two_distributions_are_a_choice() {
    let distribution = Distribution::sample();
    let rgd = distribution.file("rgds/open-control-plane-platform.yaml");
    let other = std::fs::read_to_string(&rgd).unwrap().replace("OpenControlPlanePlatform", "OtherPlatform");
    let other = other.replace("name: open-control-plane-platform", "name: other-platform");
    std::fs::write(distribution.file("rgds/other.yaml"), other).unwrap();
    let channel = std::fs::read_to_string(distribution.file("channel.yaml")).unwrap();
    let both = r"
  - name: example.org/other-platform
    version: v1.0.0
    provider: {name: example.org}
    componentReferences:
      - {name: operator, componentName: github.com/openmcp-project/openmcp-operator-rgd, version: v0.0.2}
      - {name: kind, componentName: github.com/openmcp-project/cluster-provider-kind-rgd, version: v0.0.2}
      - {name: service, componentName: github.com/openmcp-project/platform-service-rgd, version: v0.0.2}
      - {name: gateway, componentName: github.com/openmcp-project/platform-service-gateway, version: v0.0.10}
      - {name: dns, componentName: github.com/openmcp-project/platform-service-dns, version: v0.0.5}
    resources:
      - {name: rgd, type: rgd, version: v1.0.0, relation: local, input: {type: file, path: rgds/other.yaml}}
  - name: example.org/channel
    version: v1.0.0
    provider: {name: example.org}
    componentReferences:
      - {name: one, componentName: github.com/openmcp-project/open-control-plane-platform, version: v0.0.4}
      - {name: other, componentName: example.org/other-platform, version: v1.0.0}
";
    std::fs::write(distribution.file("channel.yaml"), channel + both).unwrap();
    let world = World::start(&distribution).await;
    let (source, kubeconfig) = (distribution.source(), world.kubeconfig());
    let plan = ["plan", &source, "--kubeconfig", &kubeconfig];
    let open = plinth(&plan).await.with_code(4);
    for choice in ["open-control-plane-platform", "example.org/other-platform"] {
        assert!(open.stderr.contains(choice), "the choices lack {choice}:\n{}", open.stderr);
    }
    let chosen = [&plan[..], &["--distribution", "open-control-plane-platform"]].concat();
    Run::start(&chosen).finish().await.with_code(0);
    assert!(world.writes().is_empty());
}

/// The status of the last run says Ready until the loop has looked: that must not end a run.
#[tokio::test(flavor = "multi_thread")]
async fn up_is_done_only_when_what_was_deleted_is_ready_again() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    world.up(&distribution.source(), &[]).await.with_code(0);
    let deployments: Api<Deployment> = Api::default_namespaced(world.client().await);
    deployments.delete("openmcp-operator", &DeleteParams::default()).await.unwrap();
    world.up(&distribution.source(), &[]).await.with_code(0);
    let status = deployments.get("openmcp-operator").await.unwrap().status.unwrap_or_default();
    assert_eq!(status.available_replicas, Some(1));
}

/// Refused before anything is written, or brought up and said: in the plan, at the end of the run, and by status for as long as it is so.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_verified_is_said() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    let (source, kubeconfig) = (distribution.source(), world.kubeconfig());
    let plan = ["plan", &source, "--kubeconfig", &kubeconfig, "-o", "json", "--verify"];
    let required = plinth(&[&plan[..], &["required"]].concat()).await.with_code(4);
    assert!(required.stderr.contains("not signed"), "{}", required.stderr);
    let off = plinth(&[&plan[..], &["off"]].concat()).await.with_code(0);
    let off: Value = serde_json::from_str(&off.stdout).unwrap();
    assert!(off["unverified"][0].as_str().unwrap().contains("not looked at"), "{off}");
    assert!(world.writes().is_empty());

    let up = world.up(&source, &["--verify", "off"]).await.with_code(0);
    assert!(up.stdout.lines().last().unwrap_or_default().contains("not looked at"), "{}", up.stdout);
    let status = plinth(&["status", "--kubeconfig", &kubeconfig]).await.with_code(0);
    assert!(status.stdout.contains("unverified   signatures were not looked at"), "{}", status.stdout);
    world.up(&source, &[]).await.with_code(0);
    let status = plinth(&["status", "--kubeconfig", &kubeconfig]).await.with_code(0);
    assert!(!status.stdout.contains("unverified"), "{}", status.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_plan_is_carried_out_exactly_or_not_at_all() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    let (kubeconfig, source) = (world.kubeconfig(), distribution.source());
    let file = distribution.file("saved.json").display().to_string();
    plinth(&["plan", &source, "-f", &file, "--kubeconfig", &kubeconfig]).await.with_code(0);

    let other = distribution.file("values.yaml");
    std::fs::write(&other, "ocmRepoName: another\n").unwrap();
    let other = other.display().to_string();
    let stale = plinth(&["up", "--apply", "--plan", &file, "--values", &other, "--kubeconfig", &kubeconfig]).await.with_code(4);
    assert!(stale.stderr.contains("the plan is stale"), "{}", stale.stderr);
    assert!(world.writes().is_empty(), "{:?}", world.writes());

    plinth(&["up", "--apply", "--plan", &file, "--kubeconfig", &kubeconfig]).await.with_code(0);
    plinth(&["up", "--apply", "--kubeconfig", &kubeconfig]).await.with_code(64);
}
