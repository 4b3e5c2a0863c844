//! The operator of the document, from its instance to Ready.

use plinth_api::Object;
use serde_json::{Value, json};

use crate::{
    graph::tests::seed::texts,
    instance::{InstanceState, NodeState, WaitsFor},
    schema::SchemaMap,
    testing::{cluster::Cluster, core, delivery, graph},
};

fn schemas() -> SchemaMap {
    let mut schemas = core();
    schemas.extend(delivery());
    schemas
}

/// What the OCM controllers and the Deployment controller do.
fn controllers(object: &mut Object) {
    let ready = json!([{"type": "Ready", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let status = match object.gvk().unwrap().kind.as_str() {
        "Component" => json!({"conditions": ready}),
        "Resource" => json!({"conditions": ready, "effectiveOCMConfig": [{"kind": "Secret", "name": "pull"}],
            "additional": {"oci": {"registry": "r.example", "repository": "image", "digest": "sha256:1"}},
            "resource": {"name": "i", "type": "ociImage", "version": "1", "access": {"type": "ociArtifact", "imageReference": "r.example/image:1"}}}),
        "Deployment" => json!({"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}),
        _ => return,
    };
    object.0.insert("status".to_owned(), status);
}

fn cluster() -> Cluster {
    Cluster::new(
        graph(&texts()[0], &schemas()),
        json!({"ocmRepoName": "repository", "environment": "local", "configData": "a: b\n"}),
    )
}

fn repository() -> Value {
    json!({"apiVersion": "delivery.ocm.software/v1alpha1", "kind": "Repository", "metadata": {"name": "repository", "namespace": "ns"}})
}

#[test]
fn it_waits_for_the_repository_and_goes_on_where_it_can() {
    let mut cluster = cluster();
    let decision = cluster.settle();
    assert_eq!(decision.state, InstanceState::InProgress);
    let WaitsFor::Object(key) = decision.node("ocmrepo").unwrap().waits_for.clone().unwrap() else { panic!() };
    assert_eq!(key.to_string(), "Repository.delivery.ocm.software/ns/repository");
    assert_eq!(decision.node("component").unwrap().waits_for, Some(WaitsFor::Node("ocmrepo".to_owned())));
    // The service account and its binding do not read the repository.
    assert_eq!(decision.node("clusterrolebinding").unwrap().state, NodeState::Ready);
    assert!(decision.watch.objects.contains(&key));
}

#[test]
fn it_comes_up_with_every_expression_of_the_document() {
    let mut cluster = cluster();
    cluster.controller = Box::new(controllers);
    cluster.put(repository());
    let decision = cluster.settle();
    let states: Vec<_> = decision.nodes.iter().map(|node| (node.id.as_str(), node.state, node.message.as_str())).collect();
    assert_eq!(decision.state, InstanceState::Active, "{states:#?}");
    assert!(decision.ready);
    let object = |kind: &str| cluster.objects.iter().find(|(key, _)| key.gvk.kind == kind).unwrap().1;
    let pod = object("Deployment").at(&["spec", "template", "spec"]).unwrap();
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "pull"}]));
    assert_eq!(pod["containers"][0]["image"], "r.example/image:1");
    assert_eq!(pod["containers"][0]["args"][1], "--environment=local");
    assert_eq!(object("ClusterRoleBinding").name(), "ns:openmcp-operator");
    assert_eq!(object("ClusterRoleBinding").namespace(), None);
    assert_eq!(object("ConfigMap").at(&["data", "config"]).unwrap(), "a: b\n");
    let status = cluster.objects[&cluster.key].status();
    assert_eq!(status["state"], "ACTIVE");
    assert_eq!(status["conditions"][3]["type"], "Ready");
    assert_eq!(status["conditions"][3]["status"], "True");
}

#[test]
fn a_missing_field_is_named() {
    let mut cluster = cluster();
    cluster.controller = Box::new(|object| {
        controllers(object);
        if let Some(Value::Object(resource)) =
            object.0.get_mut("status").and_then(|status| status.pointer_mut("/resource/access"))
        {
            resource.remove("imageReference");
        }
    });
    cluster.put(repository());
    let decision = cluster.settle();
    let deployment = decision.node("deployment").unwrap();
    let expected = WaitsFor::Field {
        node: "resourceImage".to_owned(),
        path: "resourceImage.status.resource.access.imageReference".to_owned(),
    };
    assert_eq!((deployment.state, deployment.waits_for.clone()), (NodeState::Pending, Some(expected)));
}

#[test]
fn creating_takes_few_writes_and_a_pass_with_nothing_to_do_takes_none() {
    let mut cluster = cluster();
    cluster.controller = Box::new(controllers);
    cluster.put(repository());
    cluster.settle();
    let applies = cluster.log.iter().filter(|line| line.starts_with("apply")).count();
    assert_eq!(applies, 6, "{:#?}", cluster.log);
    let before = cluster.log.len();
    cluster.settle();
    assert_eq!(cluster.log.len(), before, "{:#?}", cluster.log);
}
