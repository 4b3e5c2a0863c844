//! Discovery in its three forms: one group and version, aggregated, and the old list of groups.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use plinth_api::GroupVersionKind;
use serde::Deserialize;
use serde_json::Value;

use super::ServedKind;
use crate::http::{Call, Fault, Transport};

/// Asks for aggregated discovery, and takes the old form from a server that has none.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
/// Requests at a time, where each group is asked for.
const CONCURRENT: usize = 8;

/// Kinds by group and version.
pub(super) type Groups = BTreeMap<(String, String), Vec<ServedKind>>;

/// URL path of a group and version.
pub(super) fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// The kinds of one group and version; none where the group or version is not served.
pub(super) async fn group(transport: &Transport, group: &str, version: &str) -> Result<Vec<ServedKind>, Fault> {
    match transport.json(Call::get(root(group, version))).await {
        Ok(answer) => Ok(resources(group, version, answer)),
        Err(Fault::Status(status)) if status.code == 404 => Ok(Vec::new()),
        Err(fault) => Err(fault),
    }
}

/// Everything, in two requests where the server can, else one request for each group and version.
pub(super) async fn all(transport: &Transport) -> Result<Groups, Fault> {
    let mut groups = Groups::new();
    for path in ["/api", "/apis"] {
        let answer = transport.json(Call::get(path).accept(AGGREGATED)).await?;
        if answer.get("kind").and_then(Value::as_str) == Some("APIGroupDiscoveryList") {
            groups.extend(aggregated(answer));
            continue;
        }
        let wanted = versions(&answer);
        let answers = futures::stream::iter(wanted).map(async |(name, version)| {
            let kinds = group(transport, &name, &version).await?;
            Ok::<_, Fault>(((name, version), kinds))
        });
        groups.extend(answers.buffer_unordered(CONCURRENT).try_collect::<Groups>().await?);
    }
    Ok(groups)
}

/// `APIVersions` of the core group, or `APIGroupList`.
fn versions(answer: &Value) -> Vec<(String, String)> {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let core = list(answer.get("versions")).into_iter().filter_map(|version| Some((String::new(), version.as_str()?.to_owned())));
    let groups = list(answer.get("groups")).into_iter().flat_map(|group| {
        let name = group.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let versions = list(group.get("versions")).into_iter();
        versions.filter_map(move |version| Some((name.clone(), version.get("version")?.as_str()?.to_owned()))).collect::<Vec<_>>()
    });
    core.chain(groups).collect()
}

#[derive(Deserialize)]
struct ResourceList {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

/// `APIResourceList`; subresources have a slash in their name.
fn resources(group: &str, version: &str, answer: Value) -> Vec<ServedKind> {
    let list = ResourceList::deserialize(answer).map(|list| list.resources).unwrap_or_default();
    let whole = list.into_iter().filter(|resource| !resource.name.contains('/'));
    whole
        .map(|resource| ServedKind {
            gvk: GroupVersionKind::new(group, version, resource.kind),
            plural: resource.name,
            namespaced: resource.namespaced,
            listable: has_list(&resource.verbs),
        })
        .collect()
}

fn has_list(verbs: &[String]) -> bool {
    verbs.iter().any(|verb| verb == "list")
}

#[derive(Deserialize)]
struct Discovery {
    #[serde(default)]
    items: Vec<DiscoveredGroup>,
}

#[derive(Deserialize)]
struct DiscoveredGroup {
    #[serde(default)]
    metadata: Name,
    #[serde(default)]
    versions: Vec<DiscoveredVersion>,
}

#[derive(Default, Deserialize)]
struct Name {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct DiscoveredVersion {
    version: String,
    #[serde(default)]
    resources: Vec<DiscoveredResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoveredResource {
    resource: String,
    #[serde(default)]
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

/// `APIGroupDiscoveryList`.
fn aggregated(answer: Value) -> Groups {
    let items = Discovery::deserialize(answer).map(|list| list.items).unwrap_or_default();
    let mut groups = Groups::new();
    for group in items {
        for version in group.versions {
            let name = &group.metadata.name;
            let kinds = version.resources.into_iter().filter_map(|resource| {
                let kind = resource.response_kind.filter(|kind| !kind.kind.is_empty())?.kind;
                let gvk = GroupVersionKind::new(name, &version.version, kind);
                let (namespaced, listable) = (resource.scope == "Namespaced", has_list(&resource.verbs));
                Some(ServedKind { gvk, plural: resource.resource, namespaced, listable })
            });
            groups.insert((name.clone(), version.version.clone()), kinds.collect());
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_name_the_same_kinds() {
        let old = resources(
            "apps",
            "v1",
            json!({"resources": [
                {"name": "deployments", "kind": "Deployment", "namespaced": true, "verbs": ["get", "list"]},
                {"name": "deployments/scale", "kind": "Scale", "namespaced": true},
            ]}),
        );
        let new = aggregated(json!({"items": [{"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [
            {"resource": "deployments", "responseKind": {"kind": "Deployment"}, "scope": "Namespaced", "verbs": ["list"],
             "subresources": [{"subresource": "scale"}]},
        ]}]}]}));
        assert_eq!(new[&("apps".to_owned(), "v1".to_owned())], old);
        assert!(old[0].listable && !resources("", "v1", json!({"resources": [{"name": "x", "kind": "X"}]}))[0].listable);
        assert_eq!(old[0].path(Some("ns")), "/apis/apps/v1/namespaces/ns/deployments");
        assert_eq!(old[0].path(None), "/apis/apps/v1/deployments");
    }

    #[test]
    fn the_old_group_lists_are_read() {
        assert_eq!(versions(&json!({"kind": "APIVersions", "versions": ["v1"]})), [(String::new(), "v1".to_owned())]);
        let groups = json!({"groups": [{"name": "apps", "versions": [{"version": "v1"}, {"version": "v1beta1"}]}]});
        let pairs = [("apps".to_owned(), "v1".to_owned()), ("apps".to_owned(), "v1beta1".to_owned())];
        assert_eq!(versions(&groups), pairs);
    }

    #[test]
    fn what_is_no_discovery_names_nothing() {
        assert!(resources("", "v1", json!("text")).is_empty());
        assert!(aggregated(json!({"items": 5})).is_empty());
        assert!(versions(&json!([])).is_empty());
    }
}
