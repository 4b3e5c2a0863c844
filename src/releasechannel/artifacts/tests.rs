use super::*;
use crate::options::Options;
use crate::resolve::inspect;
use crate::selection::Selection;
use crate::source::SourceRef;
use crate::testing::offline;

const SERVICES: &str = include_str!("../../../tests/channel/services.yaml");

/// A third service with everything that is not a chart in a registry.
const THIRD: &str = r"
      - {name: velero, componentName: acme.example/services/velero, version: v2.0.0}
  - name: acme.example/services/velero
    version: v2.0.0
    provider: {name: acme.example}
    resources:
      - {name: velero-image, type: ociImage, version: v2.0.0, access: {type: ociArtifact, imageReference: 'one.example/velero:v2.0.0'}}
      - {name: chart, type: helmChart, version: 2.0.1, access: {type: helm, helmRepository: 'https://two.example/charts', helmChart: 'velero:2.0.1'}}
      - {name: rgd, type: rgd, version: v2.0.0, relation: local, input: {type: utf8, text: 'x'}}
      - {name: nothing, type: marker, version: v2.0.0, access: {type: none}}
";

fn channel() -> String {
    format!("{}{THIRD}", SERVICES.trim_end())
}

async fn listed(file: &str, text: &str, options: &Options) -> Vec<Artifact> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("channel.yaml"), channel()).unwrap();
    let path = folder.path().join(file);
    if !text.is_empty() {
        std::fs::write(&path, text).unwrap();
    }
    let source = SourceRef::parse(&path.display().to_string()).unwrap();
    artifacts(&inspect(&source, &Selection::default(), options).await.unwrap())
}

#[tokio::test]
async fn every_version_has_its_own_registry() {
    let found = listed("channel.yaml", "", &offline()).await;
    let short: Vec<_> = found
        .iter()
        .map(|artifact| {
            let reference = artifact.reference.as_deref().unwrap_or("-");
            format!(
                "{} {} {} {reference}",
                artifact.name,
                artifact.component.version,
                artifact.registry.as_deref().unwrap_or("-")
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            "crossplane-chart v1.10.0 one.example one.example/charts/crossplane:1.10.0",
            "crossplane-chart v1.11.0 two.example two.example/charts/crossplane:1.11.3",
            "flux-chart v2.2.0 one.example one.example/charts/flux:2.18.4",
            "velero-image v2.0.0 one.example one.example/velero:v2.0.0",
            "velero-chart v2.0.0 two.example https://two.example/charts/velero:2.0.1",
            "velero-rgd v2.0.0 - -",
        ]
    );
    assert!(found.iter().all(|artifact| artifact.pull_secrets.is_empty()));
}

#[tokio::test]
async fn the_credential_is_named_and_not_told() {
    let options = Options {
        docker_config_texts: vec![r#"{"auths": {"one.example": {"username": "u", "password": "hunter2"}}}"#.to_owned()],
        ..offline()
    };
    let found = listed("channel.yaml", "", &options).await;
    let from = |artifact: &Artifact| artifact.pull_secrets.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(from(&found[0]), ["one.example in a docker config.json from the cluster"]);
    assert!(from(&found[1]).is_empty(), "another registry");
}

/// As with the OCM controllers the source's Secret goes down to every artifact.
#[tokio::test]
async fn a_platforms_secret_is_every_artifacts() {
    let platform = "apiVersion: plinth.dev/v1alpha1\nkind: Platform\nspec:\n  source: {channel: channel.yaml, credentialsRef: {name: pull}}\n";
    let found = listed("platform.yaml", platform, &offline()).await;
    let secret = PullSecret::Cluster { name: "pull".into(), namespace: "plinth-system".into() };
    assert!(
        found.iter().filter(|artifact| artifact.registry.is_some()).all(|artifact| artifact.pull_secrets == [secret.clone()])
    );
}
