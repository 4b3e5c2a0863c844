//! SHOW 02: kubectl works against the embedded control plane on a loopback port.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{path::Path, process::Stdio, sync::Arc};

use plinth_cluster::embedded::{Acting, Embedded, Options, act::ImageList};
use plinth_support::programs;
use tokio::process::Command;

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: \"web:1\"}]}
";

/// Exit code and what was printed.
async fn kubectl(folder: &Path, line: &str) -> (i32, String) {
    let mut command = Command::new(programs::server("kubectl").unwrap());
    command.args(line.split(' ')).current_dir(folder).env("KUBECONFIG", folder.join("kubeconfig")).env("HOME", folder);
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code().unwrap_or(-1), text)
}

#[tokio::test]
async fn show_02_kubectl() {
    let embedded = Embedded::new(&Options::default());
    let serving = embedded.serve().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kubeconfig"), serving.kubeconfig()).unwrap();
    std::fs::write(folder.path().join("web.yaml"), DEPLOYMENT).unwrap();
    std::fs::write(folder.path().join("two.yaml"), DEPLOYMENT.replace("web:1", "web:2")).unwrap();
    std::fs::write(folder.path().join("extra.yaml"), "{apiVersion: v1, kind: Namespace, metadata: {name: extra}}").unwrap();
    let status = "{\"status\":{\"conditions\":[{\"type\":\"Available\",\"status\":\"True\"}]}}";
    let patch = format!("patch deployment web --subresource=status --type=merge -p {status}");
    let mut passed = 0;
    for (line, code, words) in [
        ("apply --server-side -f web.yaml", 0, "deployment.apps/web serverside-applied"),
        ("diff --server-side -f web.yaml", 0, ""),
        ("diff --server-side -f two.yaml", 1, "web:2"),
        ("get deployments", 0, "web"),
        ("get deploy web -o jsonpath={.spec.template.spec.containers[0].image}", 0, "web:1"),
        ("describe deployment web", 0, "RollingUpdateStrategy"),
        (&patch, 0, "patched"),
        ("wait --for=condition=Available deployment/web --timeout=10s", 0, "condition met"),
        ("apply --server-side -f two.yaml --field-manager=other", 1, "conflict with \"kubectl\""),
        ("api-resources --api-group=apps", 0, "deployments"),
        ("explain deployment.spec.replicas", 0, "integer"),
        ("scale deployment web --replicas=3", 0, "deployment.apps/web scaled"),
        ("get deploy web -o jsonpath={.spec.replicas}", 0, "3"),
        ("scale deployment web --replicas=4 --current-replicas=2", 1, "Expected replicas to be 2, was 3"),
        ("apply --server-side -f extra.yaml", 0, "namespace/extra serverside-applied"),
        ("delete -f web.yaml", 0, "deleted"),
        ("get deployment web", 1, "NotFound"),
        ("delete namespace extra", 0, "deleted"),
    ] {
        let (exit, text) = kubectl(folder.path(), line).await;
        assert!(exit == code && text.contains(words), "kubectl {line}: {exit}\n{text}");
        passed += 1;
    }
    println!("SHOW 02 kubectl {passed}");
}

/// What runs in a cluster shows: rollouts end, and descriptions tell what happened.
#[tokio::test]
async fn kubectl_sees_workloads_act() {
    let embedded = Embedded::new(&Options::default());
    let _at_work = embedded.act(Acting { images: Arc::new(ImageList::new(["web:1"])), ..Acting::default() });
    let serving = embedded.serve().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kubeconfig"), serving.kubeconfig()).unwrap();
    std::fs::write(folder.path().join("web.yaml"), DEPLOYMENT).unwrap();
    std::fs::write(folder.path().join("two.yaml"), DEPLOYMENT.replace("web:1", "web:2")).unwrap();
    for (line, words) in [
        ("apply --server-side -f web.yaml", "serverside-applied"),
        ("rollout status deployment/web --timeout=20s", "successfully rolled out"),
        ("describe deployment web", "MinimumReplicasAvailable"),
        ("describe pods -l app=web", "Successfully assigned"),
        ("apply --server-side -f two.yaml", "serverside-applied"),
        ("rollout status deployment/web --timeout=2s", "old replicas are pending termination"),
        ("describe pods -l app=web", "Failed to pull image \"web:2\""),
        ("delete deployment web", "deleted"),
        ("get pods", "No resources found"),
    ] {
        let (_, text) = kubectl(folder.path(), line).await;
        assert!(text.contains(words), "kubectl {line}:\n{text}");
    }
}
