//! SHOW 02: the embedded control plane in the binary: demo and rehearse, on a machine with nothing else.

use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    distribution::Distribution,
    plinth::{Finished, Run, plinth},
};

#[tokio::test(flavor = "multi_thread")]
async fn show_02_demo() {
    let started = Instant::now();
    // Nothing is asked, so that lines will do where nothing can be drawn.
    let run = plinth(&["demo", "--fast"]).await.with_code(0);
    assert!(run.stdout.starts_with("started  up") && run.stdout.contains("OpenControlPlanePlatform"), "{}", run.stdout);
    eprintln!("SHOW 02 demo {:.1} s (debug build; bench/demo measures the release build)", started.elapsed().as_secs_f64());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_is_told_and_recorded_as_any_run() {
    let folder = TempDir::with_prefix("plinth-demo-").unwrap();
    let journal = folder.path().join("journal.jsonl").display().to_string();
    let run = plinth(&["demo", "--fast", "-o", "json", "--journal", &journal]).await.with_code(0);
    assert_eq!(run.outcome(), plinth_run::Outcome::Done);
    let replayed = plinth(&["replay", &journal, "-o", "json"]).await.with_code(0);
    assert_eq!(replayed.stdout.lines().count(), run.stdout.lines().count());
}

/// Others look at it on a port that only this machine reaches.
#[tokio::test(flavor = "multi_thread")]
async fn a_demo_can_be_looked_at() {
    let refused = plinth(&["demo", "--fast", "--apply", "--serve", "0.0.0.0:0"]).await.with_code(4);
    assert!(refused.stderr.contains("no loopback address"), "{}", refused.stderr);
    let mut run = Run::start(&["demo", "--fast", "--apply", "--serve", "127.0.0.1:0"]);
    let kubeconfig = loop {
        assert!(run.is_running(), "{}", run.stdout());
        let line = run.stdout().lines().find_map(|line| Some(line.split_once("--kubeconfig ")?.1.to_owned()));
        if let Some(line) = line {
            break line.split(' ').next().unwrap().to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    let status = plinth(&["status", "--kubeconfig", &kubeconfig]).await.with_code(0);
    assert!(status.stdout.contains("OpenMCPOperator"), "{}", status.stdout);
    run.kill();
}

async fn rehearse(distribution: &Distribution, more: &[&str]) -> (Finished, Value) {
    let source = distribution.source();
    let run = plinth(&[&["rehearse", &source, "-o", "json"], more].concat()).await;
    let verdict = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}\n{}", run.stdout, run.stderr));
    (run, verdict)
}

#[tokio::test(flavor = "multi_thread")]
async fn show_02_rehearse() {
    let whole = Distribution::sample();
    let started = Instant::now();
    let (run, verdict) = rehearse(&whole, &[]).await;
    run.with_code(0);
    assert_eq!((&verdict["outcome"], &verdict["images"]), (&"done".into(), &Value::Array(Vec::new())), "{verdict:#}");
    let took = started.elapsed();

    // An image that no component of the channel has.
    let unlocked = Distribution::sample();
    let image =
        "image: ${resourceImage.status.resource.access.imageReference}\n                  args:\n                    - run";
    let other = "image: registry.example/other:v1\n                  args:\n                    - run";
    unlocked.edit("rgds/openmcp-operator.yaml", image, other);
    let (run, verdict) = rehearse(&unlocked, &[]).await;
    run.with_code(1);
    let images = verdict["images"].as_array().unwrap();
    assert!(images.len() == 1 && images[0]["image"] == "registry.example/other:v1", "{verdict:#}");
    assert_eq!(images[0]["neededBy"][0], "Deployment.apps/default/openmcp-operator");

    // An operator that never brings its kinds, and an identity that may do little.
    let folder = TempDir::with_prefix("plinth-rehearse-").unwrap();
    let file = folder.path().join("scenario.yaml");
    let rules = "[{apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch]}]";
    let text = format!(
        "apiVersion: plinth.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: x}}\nspec:\n  permissions: {rules}\n  rules: []\n"
    );
    std::fs::write(&file, &text).unwrap();
    let (run, verdict) = rehearse(&whole, &["--scenario", &file.display().to_string()]).await;
    run.with_code(4);
    let permissions = verdict["permissions"].as_array().unwrap();
    assert!(permissions.iter().any(|missing| missing == "patch deployments.apps in namespace default"), "{permissions:?}");
    std::fs::write(&file, text.replace(&format!("  permissions: {rules}\n"), "")).unwrap();
    let (run, verdict) = rehearse(&whole, &["--scenario", &file.display().to_string()]).await;
    run.with_code(3);
    let kinds: Vec<&Value> = verdict["kinds"].as_array().unwrap().iter().map(|kind| &kind["kind"]["kind"]).collect();
    assert_eq!(kinds, ["ClusterProvider", "PlatformService"], "{verdict:#}");
    assert_eq!(verdict["deferred"].as_array().unwrap().len(), 2, "{verdict:#}");
    eprintln!(
        "SHOW 02 rehearse {:.1} s (debug build), 1 image, {} permissions, 2 kinds found missing",
        took.as_secs_f64(),
        permissions.len()
    );
}

/// What goes wrong on the way costs time, not the platform.
#[tokio::test(flavor = "multi_thread")]
async fn a_rehearsal_survives_its_faults() {
    let distribution = Distribution::sample();
    let rules = "  rules:\n    - {conflicts: {every: 3, times: 5}}\n    - {after: 500ms, away: 300s}\n    \
                 - {after: 600s, expire: {apiVersion: kro.run/v1alpha1, kind: ResourceGraphDefinition}}";
    distribution.edit("scenario.yaml", "  rules:", rules);
    let (run, verdict) = rehearse(&distribution, &[]).await;
    run.with_code(0);
    assert_eq!(verdict["ready"], verdict["total"], "{verdict:#}");
}

/// Retries of what failed for the moment are waited for, although their pauses grow longer than the plane is watched for.
#[tokio::test(flavor = "multi_thread")]
async fn a_rehearsal_waits_for_what_is_tried_again() {
    let distribution = Distribution::sample();
    distribution.edit("scenario.yaml", "  rules:", "  rules:\n    - {conflicts: {every: 2, times: 60}}");
    let (run, verdict) = rehearse(&distribution, &[]).await;
    run.with_code(0);
    assert_eq!((&verdict["ready"], verdict["warnings"].is_null()), (&verdict["total"], true), "{verdict:#}");
}

/// Without readyWhen a graph calls ready whatever is there; that its pods never start is missing all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_rehearsal_says_what_pods_lack_although_the_graph_is_ready() {
    let folder = TempDir::with_prefix("plinth-rehearse-").unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("channel.yaml", MINI_CHANNEL);
    write("instance.yaml", "apiVersion: kro.run/v1alpha1\nkind: Mini\nmetadata: {name: mini}\nspec: {name: web}\n");
    let source = folder.path().display().to_string();
    for (more, lacking) in [
        ("volumes: [{name: v, secret: {secretName: tls}}]", Some("secret \"tls\" not found")),
        ("serviceAccountName: worker", Some("serviceaccount \"worker\" not found")),
        ("volumes: [{name: v, emptyDir: {}}]", None),
    ] {
        write("rgd.yaml", &MINI_DEFINITION.replace("MORE", more));
        let run = plinth(&["rehearse", &source, "-o", "json"]).await;
        let verdict: Value = serde_json::from_str(&run.stdout).unwrap();
        run.with_code(i32::from(lacking.is_some()));
        let found = verdict["lacking"].to_string().replace('\\', "");
        assert!(lacking.map_or(found == "[]", |lacking| found.contains(lacking)), "{more}: {verdict:#}");
    }
}

const MINI_CHANNEL: &str = "components:
  - name: example.org/mini
    version: v0.1.0
    provider: {name: example.org}
    resources:
      - {name: rgd, type: rgd, version: v0.1.0, relation: local, input: {type: file, path: rgd.yaml, mediaType: application/x-yaml}}
      - {name: instance, type: plinth.dev/instance, version: v0.1.0, relation: local,
         input: {type: file, path: instance.yaml, mediaType: application/x-yaml}}
      - {name: image, type: ociImage, version: v1, relation: external,
         access: {type: ociArtifact, imageReference: 'example.org/web:v1'}}
";
const MINI_DEFINITION: &str = "apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: mini}
spec:
  schema: {apiVersion: v1alpha1, kind: Mini, spec: {name: string}}
  resources:
    - id: web
      template:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: '${schema.spec.name}'}
        spec:
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec:
              containers: [{name: web, image: 'example.org/web:v1'}]
              MORE
";

/// An object that is refused for good ends a rehearsal, and rules that did nothing are told.
#[tokio::test(flavor = "multi_thread")]
async fn a_rehearsal_ends_although_something_is_refused_for_good() {
    let distribution = Distribution::sample();
    let recreate = "          replicas: 1\n          strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}";
    distribution.edit("rgds/openmcp-operator.yaml", "          replicas: 1", recreate);
    let rules = "  rules:\n    - {conflicts: {every: 3, times: 3}}\n    \
                 - {register: [{apiVersion: v1, kind: ConfigMap, metadata: {name: Upper}}]}\n    \
                 - {when: {apiVersion: apps/v1, kind: Deployment, name: operator}, available: true}";
    distribution.edit("scenario.yaml", "  rules:", rules);
    let (run, verdict) = rehearse(&distribution, &["--timeout", "20m"]).await;
    run.with_code(1);
    let message = verdict["message"].as_str().unwrap();
    assert!(!message.contains("not ready within"), "{message}");
    let warnings: Vec<&str> = verdict["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(warnings[0].starts_with("scenario: spec.rules[1]: register[0] (ConfigMap/v1 Upper) is refused: "), "{warnings:#?}");
    let never =
        "scenario: spec.rules[2]: never matched, as apps/v1 Deployment operator was never there: are kind and name right?";
    assert_eq!(warnings[1], never, "{warnings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scenario_that_is_none_is_refused() {
    let distribution = Distribution::sample();
    distribution.edit("scenario.yaml", "after: 2s", "after: soon");
    let refused = plinth(&["rehearse", &distribution.source()]).await.with_code(4);
    assert!(
        refused.stderr.contains("the distribution's scenario") && refused.stderr.contains("`soon` is no time"),
        "{}",
        refused.stderr
    );
}
