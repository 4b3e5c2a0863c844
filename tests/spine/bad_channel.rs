//! Channels that are refused before anything is written.

use plinth_support::{ApiServer, Identity};

use crate::{
    distribution::Distribution,
    plinth::{Finished, plinth},
};

/// `up` refuses the source with exit code 4, says each of `parts`, and has written nothing.
pub(crate) async fn refused(source: &str, parts: &[&str]) -> Finished {
    let server = tokio::task::spawn_blocking(ApiServer::shared).await.unwrap();
    let kubeconfig = server.kubeconfig(Identity::Admin).display().to_string();
    let run = plinth(&["up", source, "--apply", "--kubeconfig", &kubeconfig]).await.with_code(4);
    for part in parts {
        assert!(run.stderr.contains(part), "the message lacks {part:?}:\n{}", run.stderr);
    }
    // All tests of this server are refused, so it has no writes at all.
    let written = server.audit().writes_by("admin").unwrap();
    assert!(written.is_empty(), "{written:#?}");
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_tampered_blob() {
    let distribution = Distribution::sample();
    let ctf = distribution.unpacked().await;
    let blob = ctf.blobs_with("openmcp-operator-scheduler-config").unwrap().into_iter().next().unwrap();
    ctf.tamper(&blob, "openmcp-operator-scheduler-config", "openmcp-operator-scheduler-confiX").unwrap();
    refused(&ctf.folder().display().to_string(), &["openmcp-operator-rgd", "digest", &blob[..19]]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_reference_to_a_missing_version() {
    let distribution = Distribution::sample();
    let from = "componentName: github.com/openmcp-project/platform-service-gateway, version: v0.0.10";
    distribution.edit("channel.yaml", from, &from.replace("v0.0.10", "v0.0.11"));
    refused(
        &distribution.source(),
        &["github.com/openmcp-project/platform-service-gateway", "v0.0.11", "open-control-plane-platform"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_reference_cycle() {
    let distribution = Distribution::sample();
    let component = "  - name: github.com/openmcp-project/openmcp-operator\n    version: v0.19.1\n";
    let back = "    componentReferences:\n      - {name: back, componentName: github.com/openmcp-project/openmcp-operator-rgd, version: v0.0.2}\n";
    distribution.edit("channel.yaml", component, &format!("{component}{back}"));
    let cycle = refused(&distribution.source(), &["cycle", "openmcp-operator-rgd", "openmcp-operator"]).await;
    assert!(cycle.stderr.contains("->") || cycle.stderr.contains('→'), "the cycle is not printed:\n{}", cycle.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_descriptor_schema() {
    let distribution = Distribution::sample();
    let ctf = distribution.unpacked().await;
    let descriptors = ctf.blobs_with("schemaVersion").unwrap();
    let named = |blob: &String| ctf.blobs_with("github.com/openmcp-project/platform-service-dns").unwrap().contains(blob);
    let descriptor = descriptors.iter().find(|blob| named(blob)).unwrap();
    let spelled = ["schemaVersion: v2", "schemaVersion\":\"v2\"", "schemaVersion\": \"v2\""];
    let spelled = spelled.iter().find(|text| ctf.blobs_with(text).unwrap().contains(descriptor)).unwrap();
    ctf.rewrite(descriptor, spelled, &spelled.replace("v2", "v9")).unwrap();
    refused(&ctf.folder().display().to_string(), &["v9", "github.com/openmcp-project/"]).await;
}
