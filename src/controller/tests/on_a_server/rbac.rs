//! Seed 004's platform by the rights that are computed for it, and by no others.

use std::sync::Arc;

use plinth_api::{ClusterKey, Object, lock::LockedRef, rbac::Rights};
use plinth_bootstrap::{Content, Settings, distribution, plan, rights};
use plinth_cluster::Cluster;
use plinth_controller::Options;
use plinth_releasechannel::{Options as Sources, Selection, SourceRef, resolve};
use plinth_support::{AuditEvent, Identity, StandIn, code_of, scenario};
use serde_json::{Value, json};

use super::{
    platform::{definitions, rgd, root},
    stage::{Stage, archive, data, object, of_seed_004, workspace},
};

/// Whom the server sees.
const USER: &str = "system:serviceaccount:plinth-system:plinth";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn show_05_rbac() {
    let Some(definitions) = definitions() else {
        eprintln!("1 test did not run: PLINTH_DATA has no seeds/004 beside it");
        return;
    };
    let mut stage = Stage::set().await;
    let rights = computed(&stage).await;
    let rules = rights.cluster.len() + rights.namespaces.values().map(Vec::len).sum::<usize>();
    let all = || rights.cluster.iter().chain(rights.namespaces.values().flatten());
    assert!(all().all(|rule| !rule.has_wildcard() && !rule.verbs.contains(&"escalate".to_owned())));
    let lifts: Vec<&str> = rights.lifts.iter().map(|lift| lift.role.as_str()).collect();
    assert_eq!((lifts, rights.open.len()), (vec!["ClusterRole cluster-admin"], 0), "{rights:#?}");
    install(&stage, &rights).await;

    let client = stage.server.client_of(rights::NAMESPACE, rights::NAME).await;
    let admin = std::mem::replace(&mut stage.cluster, Cluster::with_client(ClusterKey::host(), client.clone()));
    stage.cluster.catalog().follow();
    stage.start(Options { platform: Some("test".into()), ..Options::default() });
    stage.cluster = admin;
    for definition in definitions {
        stage.apply(definition).await;
    }
    for object in [repository(&archive(stage.server.folder())), instance()] {
        stage.apply(object).await;
    }
    let followed = scenario::read(&workspace().join("distributions/open-control-plane-kind/scenario.yaml")).unwrap();
    let followed = scenario::with_registered(followed, &data("openmcp/crds/history/v0.19.1")).unwrap();
    let _stand_in = StandIn::start(stage.server.client(Identity::Cluster).await, followed);
    stage.until(&root(), "ready", |_| stage.is_ready(&root())).await;
    for name in ["openmcp-operator", "platform-service", "cluster-provider-kind", "open-control-plane-platform"] {
        stage.until(&rgd(name), "active", |rgd| rgd.is_some_and(|rgd| rgd.status()["state"] == "Active")).await;
    }
    let asked: Vec<_> = stage.server.audit().events().unwrap().into_iter().filter(|event| event.user == USER).collect();
    let refused: Vec<_> = asked.iter().filter(|event| event.code == 403).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(asked.iter().any(AuditEvent::is_write));

    let outside = outside();
    for (line, body, user) in &outside {
        assert_eq!(code_of(&client, line, body.as_ref(), *user).await, 403, "{line}");
    }
    stage.stop().await;
    eprintln!(
        "SHOW 05 rbac {rules} rules, all Ready, 0 of {} requests of the loop refused, {} of {} requests outside the role refused",
        asked.len(),
        outside.len(),
        outside.len()
    );
}

/// What the plan says for seed 004's definitions in the sample's channel.
async fn computed(stage: &Stage) -> Rights {
    let source = SourceRef::Path(workspace().join("distributions/open-control-plane-kind"));
    let channel = resolve(&source, &Selection::default(), &Sources { no_user_config: true, ..Sources::default() }).await.unwrap();
    let mut content = Content::from(&channel);
    for rgd in &mut content.rgds {
        let name = rgd.component.name.rsplit('/').next().unwrap().trim_end_matches("-rgd").to_owned();
        rgd.text = of_seed_004(&name).unwrap_or_else(|| rgd.text.clone());
    }
    let distribution = distribution::choose(&content, None).unwrap();
    let at = LockedRef::clone(&distribution.component);
    let settings = Settings { repository: content.repository(&at).cloned(), ..Settings::default() };
    let kinds = plan::kinds(&distribution, &settings);
    let served = Arc::new(stage.cluster.catalog().ensure(&kinds).await.unwrap());
    plan::draft(&content, &distribution, &settings, served).unwrap().rights
}

/// The namespace, the account and its roles.
async fn install(stage: &Stage, rights: &Rights) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": rights::NAMESPACE}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": rights::NAME, "namespace": rights::NAMESPACE}});
    for value in [namespace, account] {
        stage.apply(Object::from_value(value).unwrap()).await;
    }
    for role in rights::roles(rights) {
        stage.apply(role).await;
    }
}

fn repository(archive: &std::path::Path) -> Object {
    let value = json!({"apiVersion": "delivery.ocm.software/v1alpha1", "kind": "Repository",
        "metadata": {"name": "openmcp-repository", "namespace": "default"},
        "spec": {"repositorySpec": {"type": "CommonTransportFormat", "filePath": archive}, "interval": "1m"}});
    Object::from_value(value).unwrap()
}

fn instance() -> Object {
    let path = workspace().join("distributions/open-control-plane-kind/instance.yaml");
    let mut instance = object(&std::fs::read_to_string(path).unwrap());
    instance.metadata_mut().insert("namespace".into(), "default".into());
    instance
}

/// Requests that the role has nothing to say about, or about another object than the one that it names.
fn outside() -> Vec<(&'static str, Option<Value>, Option<&'static str>)> {
    let named =
        |api_version: &str, kind: &str, name: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    let rbac = "rbac.authorization.k8s.io/v1";
    let binding = json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": "mine"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}, "subjects": []});
    let wider = json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "plinth"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let lease = named("coordination.k8s.io/v1", "Lease", "other");
    let patch = "?fieldManager=x&force=true&dryRun=All";
    let patches = |path: &str| -> &'static str { format!("PATCH {path}{patch}").leak() };
    let read = |line: &'static str| (line, None, None);
    vec![
        read("GET /api/v1/secrets"),
        read("GET /api/v1/namespaces/default/secrets"),
        read("GET /api/v1/namespaces/kube-system/secrets/any"),
        read("GET /api/v1/nodes"),
        read("GET /api/v1/namespaces/default/pods"),
        read("GET /apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin"),
        read("GET /metrics"),
        read("DELETE /api/v1/namespaces/default?dryRun=All"),
        read("DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterproviders.openmcp.cloud?dryRun=All"),
        read("DELETE /apis/kro.run/v1alpha1/resourcegraphdefinitions/openmcp-operator?dryRun=All"),
        read("DELETE /apis/apps/v1/namespaces/default/deployments?dryRun=All"),
        (patches("/apis/apps/v1/namespaces/default/deployments/other"), Some(named("apps/v1", "Deployment", "other")), None),
        (
            patches("/apis/apps/v1/namespaces/kube-system/deployments/openmcp-operator"),
            Some(named("apps/v1", "Deployment", "openmcp-operator")),
            None,
        ),
        (patches("/api/v1/namespaces/kube-system/configmaps/any"), Some(named("v1", "ConfigMap", "any")), None),
        (patches("/api/v1/namespaces/default/secrets/any"), Some(named("v1", "Secret", "any")), None),
        (patches("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/mine"), Some(binding), None),
        (patches("/apis/rbac.authorization.k8s.io/v1/clusterroles/plinth"), Some(wider), None),
        (
            patches("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterproviders.openmcp.cloud"),
            Some(named("apiextensions.k8s.io/v1", "CustomResourceDefinition", "clusterproviders.openmcp.cloud")),
            None,
        ),
        (patches("/apis/coordination.k8s.io/v1/namespaces/plinth-system/leases/other"), Some(lease), None),
        ("POST /api/v1/namespaces/plinth-system/serviceaccounts/plinth/token", Some(token), None),
        ("GET /api/v1/namespaces/default/configmaps", None, Some("admin")),
    ]
}
