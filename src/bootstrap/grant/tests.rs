use std::sync::Arc;

use plinth_engine::schema::{KindInfo, Schema};
use plinth_run::Outcome;
use serde_json::json;

use super::*;
use crate::testing::{Bench, object};

/// A platform that is up, with the roles that its plan computes.
async fn installed() -> Bench {
    let mut bench = Bench::new();
    bench.cluster = crate::memory::FakeCluster::new("c", kinds());
    bench.cluster.put(&object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})));
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    let (_, planned) = bench.plan().await;
    for role in rights::roles(&planned.unwrap().plan.rights.unwrap()) {
        let mut role = role;
        role.metadata_mut().insert("labels".into(), json!({keys::PLATFORM: "default"}));
        bench.cluster.put(&role);
    }
    bench
}

fn kinds() -> Vec<KindInfo> {
    let kind = |group: &str, kind: &str, namespaced| KindInfo {
        gvk: GroupVersionKind::new(group, "v1", kind),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced,
        schema: Arc::new(Schema::any()),
    };
    let roles = [("Role", true), ("RoleBinding", true), ("ClusterRole", false), ("ClusterRoleBinding", false)];
    let kinds = [kind("", "ConfigMap", true), kind("apps", "Deployment", true)];
    let platform = KindInfo { gvk: install::platform_kind(), ..kind(platform::GROUP, "Platform", false) };
    let roles = roles.map(|(name, namespaced)| kind(rbac::GROUP, name, namespaced));
    kinds.into_iter().chain(roles).chain([platform]).collect()
}

async fn survey_of(bench: &Bench) -> Grant {
    survey(None, bench.cluster.as_ref(), bench.cluster.as_ref()).await.unwrap()
}

fn printed(grant: &Grant) -> Vec<String> {
    let inside =
        grant.missing.namespaces.iter().flat_map(|(name, rules)| rules.iter().map(move |rule| format!("{name}: {rule}")));
    grant.missing.cluster.iter().map(ToString::to_string).chain(inside).collect()
}

fn addon(name: &str) -> Object {
    object(json!({"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": {"name": name},
        "spec": {"schema": {"group": "addon.test", "apiVersion": "v1", "kind": "Addon", "spec": {}}, "resources": [{"id": "note",
            "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-note"}}}]}}))
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_is_installed_lacks_nothing_and_another_definition_does() {
    let bench = installed().await;
    let grant = survey_of(&bench).await;
    assert!(grant.is_empty(), "{:#?}", printed(&grant));

    bench.cluster.put(&addon("addon"));
    let grant = survey_of(&bench).await;
    assert_eq!(
        printed(&grant),
        [
            "get, list, patch, update, watch addons.addon.test",
            "patch addons.addon.test/status",
            "create, patch customresourcedefinitions.apiextensions.k8s.io (addons.addon.test)"
        ]
    );
    let roles = grant.objects();
    assert_eq!(roles[0].0.name, GRANTED);
    assert_eq!(roles[0].1.label(keys::PLATFORM), Some("default"));
    for (_, role) in roles {
        bench.cluster.put(&role);
    }
    assert!(survey_of(&bench).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_an_object_was_refused_is_granted_with_all_that_goes_with_it() {
    let bench = installed().await;
    let refused = Permission {
        resource: "configmaps".into(),
        verb: "create".into(),
        namespace: Some("default".into()),
        name: Some("theirs".into()),
        ..Permission::default()
    };
    let message = permission::message(&[refused].into());
    let condition = json!({"type": permission::MISSING, "status": "True", "message": message});
    bench.cluster.put(&object(json!({"apiVersion": "delivery.ocm.software/v1alpha1", "kind": "Deployer",
        "metadata": {"name": "d"}, "status": {"conditions": [condition]}})));
    let grant = survey_of(&bench).await;
    assert_eq!(printed(&grant), ["default: create, delete, get, patch configmaps (theirs)"]);
}

#[tokio::test(start_paused = true)]
async fn a_platform_gets_what_it_names_and_what_its_release_takes_and_no_more() {
    let bench = installed().await;
    let refused = |verb: &str| Permission {
        group: "kro.run".into(),
        resource: "resourcegraphdefinitions".into(),
        verb: verb.into(),
        name: Some("theirs".into()),
        ..Permission::default()
    };
    let message = permission::message(&[refused("create"), refused("patch")].into());
    let condition = json!({"type": permission::MISSING, "status": "True", "message": message});
    bench.cluster.put(&object(json!({"apiVersion": "plinth.dev/v1alpha1", "kind": "Platform",
        "metadata": {"name": "default"}, "status": {"conditions": [condition]}})));
    assert_eq!(printed(&survey_of(&bench).await), ["create resourcegraphdefinitions.kro.run (theirs)"]);
    let secret =
        Permission { resource: "secrets".into(), verb: "get".into(), name: Some("pull".into()), ..Permission::default() };
    let planned = rights::exactly(&[secret]);
    let grant = survey(Some(&planned), bench.cluster.as_ref(), bench.cluster.as_ref()).await.unwrap();
    assert!(printed(&grant).contains(&"get secrets (pull)".to_owned()), "{:?}", printed(&grant));
}

#[tokio::test(start_paused = true)]
async fn without_a_controller_there_is_nothing_to_grant() {
    let mut bench = Bench::new();
    bench.cluster = crate::memory::FakeCluster::new("c", kinds());
    let refused = survey(None, bench.cluster.as_ref(), bench.cluster.as_ref()).await.unwrap_err();
    assert!(refused.to_string().contains("no controller is installed"), "{refused}");
}
