//! A platform's name: from its file to the label, and back from the cluster to the verbs of day 2.

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use plinth_run::EventKind;
use serde_json::{Value, json};

use crate::{
    bad_channel::refused,
    distribution::Distribution,
    plinth::{Finished, plinth},
    terminal::Screen,
    world::World,
};

/// A Platform file of this name for the distribution.
fn platform_file(distribution: &Distribution, name: &str) -> String {
    let file = distribution.file("platform.yaml");
    let text = format!(
        "apiVersion: plinth.dev/v1alpha1\nkind: Platform\nmetadata:\n  name: {name}\nspec:\n  source: {{channel: \"{}\"}}\n",
        distribution.source()
    );
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

/// Somebody else's platform, as far as its label goes.
async fn second(world: &World) -> Api<Namespace> {
    let namespaces: Api<Namespace> = Api::all(world.client().await);
    let other = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "other", "labels": {"plinth.dev/platform": "other"}}});
    namespaces.patch("other", &PatchParams::apply("tests"), &Patch::Apply(other)).await.unwrap();
    namespaces
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_has_the_name_of_its_file_and_the_verbs_of_day_2_find_it() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    let kubeconfig = world.kubeconfig();
    let ask = async |words: &[&str]| plinth(&[words, &["--kubeconfig", &kubeconfig]].concat()).await;
    let none = ask(&["status"]).await.with_code(3);
    assert!(none.stdout.contains("there is no platform on this cluster"), "{}", none.stdout);
    for verb in [["why", "A/b"].as_slice(), &["dash", "-o", "lines"]] {
        let none = ask(verb).await.with_code(4);
        assert!(none.stderr.contains("there is no platform on "), "{verb:?}: {}", none.stderr);
    }

    let up = world.up(&platform_file(&distribution, "sample"), &[]).await.with_code(0);
    let named = |event: &EventKind| matches!(event, EventKind::RunStarted { platform, .. } if platform == "sample");
    assert!(up.events().iter().any(named), "the run does not say the name:\n{}", up.stdout);
    let namespaces: Api<Namespace> = Api::all(world.client().await);
    let labels = namespaces.get("plinth-system").await.unwrap().metadata.labels.unwrap_or_default();
    assert_eq!(labels.get("plinth.dev/platform").map(String::as_str), Some("sample"));

    let status = ask(&["status"]).await.with_code(0);
    assert!(status.stdout.starts_with("ready  platform sample  "), "{}", status.stdout);
    ask(&["why", "Deployment/openmcp-operator"]).await.with_code(0);
    let unknown = ask(&["status", "--platform", "unknown", "-o", "json"]).await.with_code(3);
    assert_eq!(serde_json::from_str::<Value>(&unknown.stdout).unwrap()["health"], "NotFound", "{}", unknown.stdout);
    let nothing = ask(&["down", "--apply", "--platform", "unknown"]).await.with_code(0);
    assert!(nothing.stderr.contains("there is no platform unknown on this cluster"), "{}", nothing.stderr);

    several(&world, ask).await;
    let down = ask(&["down", "--apply", "-o", "json"]).await.with_code(0);
    assert!(down.events().iter().any(named), "it is not the one that was found:\n{}", down.stdout);
    ask(&["status"]).await.with_code(3);
}

/// Which one is meant is not guessed.
async fn several(world: &World, ask: impl AsyncFn(&[&str]) -> Finished) {
    let namespaces = second(world).await;
    for verb in [["status"].as_slice(), &["why", "A/b"], &["down", "--apply"], &["dash", "-o", "lines"]] {
        let open = ask(verb).await.with_code(4);
        assert!(open.stderr.contains("has 2 platforms: other, sample"), "{verb:?}: {}", open.stderr);
        assert!(open.stderr.contains("--platform NAME"), "{verb:?}: {}", open.stderr);
    }
    ask(&["status", "--platform", "sample"]).await.with_code(0);
    ask(&["why", "Deployment/openmcp-operator", "--platform", "sample"]).await.with_code(0);
    let kubeconfig = world.kubeconfig();
    let mut screen = Screen::open(&["dash", "--kubeconfig", &kubeconfig]);
    assert_eq!(screen.exit().await, 4);
    assert!(screen.bytes().contains("--platform NAME"), "{}", screen.bytes());
    let mut screen = Screen::open(&["dash", "--kubeconfig", &kubeconfig, "--platform", "sample"]);
    screen.until_shows("sample").await;
    screen.until_shows("OpenMCPOp").await;
    screen.press("q");
    assert_eq!(screen.end().await, 0);
    let label = json!({"metadata": {"labels": {"plinth.dev/platform": null}}});
    namespaces.patch("other", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_name_of_a_platform() {
    let distribution = Distribution::sample();
    let source = platform_file(&distribution, "Not_a_label");
    refused(&source, &["platform.yaml:4:9 metadata.name: ", "Not_a_label", "lower-case letters"]).await;
    let usage = plinth(&["status", "--platform", "Not_a_label"]).await.with_code(64);
    assert!(usage.stderr.contains("lower-case letters"), "{}", usage.stderr);
}

/// As mistakes in graphs: with file, line and column.
#[tokio::test(flavor = "multi_thread")]
async fn bad_values_say_file_line_and_column() {
    let distribution = Distribution::sample();
    let source = platform_file(&distribution, "sample");
    let text = std::fs::read_to_string(&source).unwrap() + "  values:\n    ocmRepoName: [a]\n    sizze: 1\n";
    std::fs::write(&source, text).unwrap();
    refused(&source, &["platform.yaml:8:5 spec.ocmRepoName: ", "platform.yaml:9:12 spec.sizze: "]).await;

    let distribution = Distribution::sample();
    let (line, column) = distribution.edit("instance.yaml", "ocmRepoName:", "ocmRepoNam:");
    let place = format!("open-control-plane-platform:v0.0.4: {line}:{} spec", column + "ocmRepoNam: ".len());
    refused(&distribution.source(), &["instance of component ", &place, "ocmRepoNam"]).await;
    let distribution = Distribution::sample();
    distribution.edit("instance.yaml", "kind: OpenControlPlanePlatform", "kind: OtherPlatform");
    refused(&distribution.source(), &["instance of component ", "open-control-plane-platform:v0.0.4: 4:7 kind: "]).await;
}
