//! RBAC: rules as Kubernetes writes them, and what an identity may do all in all.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// One rule of a Role or ClusterRole.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// API groups; the core group is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// Plurals, with a subresource behind a slash where that is meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The objects by name; empty for all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths that are no resources.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
    /// What may be done.
    pub verbs: Vec<String>,
}

impl PolicyRule {
    /// Whether anything in it is `*`.
    pub fn has_wildcard(&self) -> bool {
        let all = [&self.api_groups, &self.resources, &self.non_resource_urls, &self.verbs];
        all.into_iter().flatten().any(|text| text.contains('*'))
    }
}

/// Prints `get, list configmaps, secrets (a, b)`, each resource with its group.
impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_group = |resource: &String, group: &String| match resource.split_once('/') {
            _ if group.is_empty() => resource.clone(),
            Some((resource, below)) => format!("{resource}.{group}/{below}"),
            None => format!("{resource}.{group}"),
        };
        let resources =
            self.resources.iter().flat_map(|resource| self.api_groups.iter().map(move |group| in_group(resource, group)));
        let all: Vec<String> = resources.chain(self.non_resource_urls.iter().cloned()).collect();
        write!(f, "{} {}", self.verbs.join(", "), all.join(", "))?;
        if !self.resource_names.is_empty() {
            write!(f, " ({})", self.resource_names.join(", "))?;
        }
        Ok(())
    }
}

/// What an identity may do: in all namespaces and on objects of the cluster, and in single namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rights {
    /// Rules of a ClusterRole.
    pub cluster: Vec<PolicyRule>,
    /// Rules of a Role, by namespace.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub namespaces: BTreeMap<String, Vec<PolicyRule>>,
    /// Roles that may be handed on to others, and so could be taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lifts: Vec<Lift>,
    /// What will be needed and is not in the rules, because it cannot be known or may not be given; sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
}

/// A binding that a graph makes: whoever may make it may bind its role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lift {
    /// The role that is bound: `ClusterRole cluster-admin`.
    pub role: String,
    /// The binding.
    pub binding: String,
    /// The definition that makes it.
    pub rgd: String,
    /// To whom the graph binds it.
    pub subjects: Vec<String>,
}

/// Prints a sentence.
impl fmt::Display for Lift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role, binding, rgd, subjects } = self;
        write!(
            f,
            "{rgd} binds {role} to {} by {binding}: the controller may bind that role, which lifts it to {role}",
            subjects.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_written_as_kubernetes_does_and_printed_for_people() {
        let text = r#"{"apiGroups":["apps"],"resources":["deployments"],"resourceNames":["a","b"],"verbs":["get","patch"]}"#;
        let rule: PolicyRule = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&rule).unwrap(), text);
        assert_eq!(rule.to_string(), "get, patch deployments.apps (a, b)");
        assert!(!rule.has_wildcard());
        assert!(PolicyRule { verbs: vec!["*".into()], ..rule }.has_wildcard());
    }
}
