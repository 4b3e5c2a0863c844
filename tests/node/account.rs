//! What the controller's pods may do, and did: the computed role, and nothing else.

use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};
use plinth_bootstrap::rights;
use plinth_support::{AuditEvent, AuditLog, code_of};
use serde_json::{Value, json};

use crate::{cluster::Node, watch::resource};

/// Whom the server sees behind the pods' token.
pub(crate) const ACCOUNT: &str = "system:serviceaccount:plinth-system:plinth";

/// Requests that the sample's platform gives no reason for.
const OUTSIDE: [(&str, &str); 12] = [
    ("POST", "/api/v1/namespaces/default/pods"),
    ("POST", "/api/v1/namespaces/kube-system/configmaps"),
    ("GET", "/api/v1/namespaces/kube-system/secrets"),
    ("GET", "/api/v1/namespaces/default/secrets/x"),
    ("GET", "/api/v1/nodes"),
    ("POST", "/api/v1/namespaces"),
    ("DELETE", "/api/v1/namespaces/kube-system"),
    ("POST", "/apis/apps/v1/namespaces/default/daemonsets"),
    ("DELETE", "/apis/apps/v1/namespaces/kube-system/deployments/x"),
    ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    ("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cluster-admin"),
    ("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/repositories.delivery.ocm.software"),
];

/// The account has the roles that were computed and no other; the server refuses it the rest. How many requests that were.
pub(crate) async fn assert_confined(node: &Node, client: &Client) -> usize {
    assert_bound(client).await;
    let account = node.server.client_of(rights::NAMESPACE, rights::NAME).await;
    for (method, path) in OUTSIDE {
        let body = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}});
        let body = Some(&body).filter(|_| method == "POST");
        assert_eq!(code_of(&account, &format!("{method} {path}"), body, None).await, 403, "{method} {path}");
    }
    OUTSIDE.len()
}

/// Whatever binds a role to it is plinth's, and no role has a wildcard.
async fn assert_bound(client: &Client) {
    let group = "rbac.authorization.k8s.io";
    for (kind, plural) in [("ClusterRoleBinding", "clusterrolebindings"), ("RoleBinding", "rolebindings")] {
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource(group, "v1", kind, plural));
        for binding in api.list(&ListParams::default()).await.unwrap() {
            let subjects = binding.data["subjects"].as_array().cloned().unwrap_or_default();
            let is_its = |subject: &Value| subject["name"] == rights::NAME && subject["namespace"] == rights::NAMESPACE;
            let name = binding.metadata.name.unwrap();
            assert!(!subjects.iter().any(is_its) || name == rights::NAME, "{kind} {name}");
        }
    }
    for (kind, plural) in [("ClusterRole", "clusterroles"), ("Role", "roles")] {
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource(group, "v1", kind, plural));
        let roles = api.list(&ListParams::default().fields(&format!("metadata.name={}", rights::NAME))).await.unwrap();
        assert!(!roles.items.is_empty(), "there is no {kind}");
        for role in roles {
            let rules = role.data["rules"].to_string();
            assert!(!rules.contains("\"*\"") && !rules.contains("escalate"), "{kind}: {rules}");
        }
    }
}

/// Its writes about the platform: neither the Lease, nor the journal, nor events.
pub(crate) fn writes(audit: &AuditLog) -> Vec<String> {
    let is_of_the_platform = |event: &&AuditEvent| {
        let object = event.object.clone().unwrap_or_default();
        event.user == ACCOUNT
            && event.is_write()
            && !["leases", "events"].contains(&object.resource.as_str())
            && object.name != rights::JOURNAL
    };
    audit.events().unwrap().iter().filter(is_of_the_platform).map(|event| format!("{} {}", event.verb, event.uri)).collect()
}

/// The role was enough: nothing was refused, except what a test asked by the same account.
pub(crate) fn assert_refused_nothing(audit: &AuditLog) {
    let refused: Vec<String> = audit
        .events()
        .unwrap()
        .iter()
        .filter(|event| event.user == ACCOUNT && event.code == 403)
        .map(|event| format!("{} {}", event.verb, event.uri))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}
