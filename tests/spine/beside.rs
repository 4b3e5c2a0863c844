//! Platforms beside each other on one cluster, and definitions that change between two runs.

use std::fs;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use plinth_support::{ApiServer, AuditEvent, Identity};
use tempfile::TempDir;

use crate::plinth::plinth;

/// A distribution of one definition with one ConfigMap, and a Platform file of the same name beside it.
fn small(name: &str, schema: &str) -> TempDir {
    let folder = TempDir::with_prefix("plinth-small-").unwrap();
    let kind = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
    let write = |file: &str, text: String| fs::write(folder.path().join(file), text).unwrap();
    write(
        "channel.yaml",
        format!(
            "components:\n  - name: acme.example/{name}\n    version: 1.0.0\n    provider: {{name: acme.example}}\n    resources:\n      - \
             {{name: rgd, type: rgd, input: {{type: file, path: rgd.yaml, mediaType: application/x-yaml}}}}\n"
        ),
    );
    write("rgd.yaml", definition(name, &kind, schema));
    write("instance.yaml", format!("apiVersion: acme.example/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{}}\n"));
    let source = format!(
        "  source: {{channel: \"{}\"}}
",
        folder.path().display()
    );
    write(
        "platform.yaml",
        format!("apiVersion: plinth.dev/v1alpha1\nkind: Platform\nmetadata: {{name: {name}}}\nspec:\n{source}"),
    );
    folder
}

fn definition(name: &str, kind: &str, schema: &str) -> String {
    format!(
        "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {{name: {name}}}\nspec:\n  schema:\n    group: acme.example\n    \
         apiVersion: v1alpha1\n    kind: {kind}\n    spec: {{{schema}}}\n  resources:\n    - id: config\n      template:\n        apiVersion: v1\n        \
         kind: ConfigMap\n        metadata: {{name: {name}-config}}\n        data: {{made: by-{name}}}\n"
    )
}

/// Label and resource version of a platform's ConfigMap.
async fn state_of(client: &Client, name: &str) -> (String, Option<String>) {
    let configs: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let metadata = configs.get(&format!("{name}-config")).await.unwrap().metadata;
    (metadata.labels.unwrap()["plinth.dev/platform"].clone(), metadata.resource_version)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_platform_leaves_the_first_alone() {
    let server = tokio::task::spawn_blocking(ApiServer::start).await.unwrap().unwrap();
    let (client, kubeconfig) = (server.client(Identity::Cluster).await, server.kubeconfig(Identity::Admin).display().to_string());
    let (first, second) = (small("alpha", "count: integer"), small("beta", "count: integer"));
    let up = async |folder: &TempDir| {
        let file = folder.path().join("platform.yaml").display().to_string();
        plinth(&["up", &file, "--apply", "--kubeconfig", &kubeconfig]).await.with_code(0)
    };
    up(&first).await;
    let before = state_of(&client, "alpha").await;
    assert_eq!(before.0, "alpha");
    let written = server.audit().writes_by("admin").unwrap().len();

    let run = up(&second).await;
    assert!(!run.stdout.contains("/alpha"), "a run of beta tells of alpha:\n{}", run.stdout);
    assert_eq!(state_of(&client, "beta").await.0, "beta");
    assert_eq!(state_of(&client, "alpha").await, before);
    let of_the_first = |event: &&AuditEvent| event.object.as_ref().is_some_and(|object| object.name.contains("alpha"));
    let all = server.audit().writes_by("admin").unwrap();
    let touched: Vec<_> = all[written..].iter().filter(of_the_first).collect();
    assert!(touched.is_empty(), "{touched:#?}");

    plinth(&["down", "--platform", "beta", "--apply", "--kubeconfig", &kubeconfig]).await.with_code(0);
    assert_eq!(state_of(&client, "alpha").await, before);
    let status = plinth(&["status", "--kubeconfig", &kubeconfig]).await.with_code(0);
    assert!(status.stdout.contains("alpha"), "{}", status.stdout);
}

/// What the loop said of a definition before a run changed it is neither success nor failure of that run.
#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_judged_as_it_is_now() {
    let server = tokio::task::spawn_blocking(ApiServer::start).await.unwrap().unwrap();
    let kubeconfig = server.kubeconfig(Identity::Admin).display().to_string();
    let folder = small("alpha", "count: integer");
    let source = folder.path().display().to_string();
    let journal = folder.path().join("journal").display().to_string();
    let up = async |schema: &str| {
        fs::write(folder.path().join("rgd.yaml"), definition("alpha", "Alpha", schema)).unwrap();
        plinth(&["up", &source, "--apply", "--kubeconfig", &kubeconfig, "--journal", &journal]).await
    };
    up("count: integer").await.with_code(0);
    for _ in 0..3 {
        let broken = up("count: string").await;
        assert!([1, 4].contains(&broken.code), "{}\n{}", broken.code, broken.stdout);
        up("count: integer").await.with_code(0);
    }
}

/// A label moves no generation, so a journal cannot prove that it is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_was_taken_off_comes_back() {
    let server = tokio::task::spawn_blocking(ApiServer::start).await.unwrap().unwrap();
    let kubeconfig = server.kubeconfig(Identity::Admin).display().to_string();
    let folder = small("alpha", "count: integer");
    let source = folder.path().display().to_string();
    let journal = folder.path().join("journal").display().to_string();
    let up = ["up", source.as_str(), "--apply", "--kubeconfig", &kubeconfig, "--journal", &journal];
    plinth(&up).await.with_code(0);

    let kind = crate::watch::resource("kro.run", "v1alpha1", "ResourceGraphDefinition", "resourcegraphdefinitions");
    let definitions: Api<kube::api::DynamicObject> = Api::all_with(server.client(Identity::Cluster).await, &kind);
    let mut bare = definitions.get("alpha").await.unwrap();
    bare.metadata.labels.as_mut().unwrap().remove("plinth.dev/platform");
    definitions.replace("alpha", &kube::api::PostParams::default(), &bare).await.unwrap();

    let plan = plinth(&["plan", &source, "--kubeconfig", &kubeconfig]).await.with_code(0);
    assert!(plan.stdout.contains("configure  ResourceGraphDefinition.kro.run/alpha"), "{}", plan.stdout);
    plinth(&up).await.with_code(0);
    let label = definitions.get("alpha").await.unwrap().metadata.labels.unwrap().remove("plinth.dev/platform");
    assert_eq!(label.as_deref(), Some("default"));
}
