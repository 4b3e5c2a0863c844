//! Which Artifacts a ProviderConfig means (seed 004, "Discoverable Artifacts"). Pure.
//!
//! ```yaml
//! selectors:
//!   matchFields:                 # any of the entries; within one, all fields
//!     - artifactName: crossplane-chart
//!       artifactVersion: v2.0.2
//!   matchLabels:                 # all of them
//!     crossplane.services.open-control-plane.io/type: provider
//! ```
//!
//! Both parts hold together; without any, nothing is meant: a selector that was forgotten must not select everything.

use std::collections::BTreeMap;

use plinth_api::{Object, artifact::ArtifactSpec};
use serde::{Deserialize, Serialize};

/// `selectors` of a ProviderConfig.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Selectors {
    /// Alternatives of fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_fields: Vec<Fields>,
    /// Labels that all must be there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}

/// Fields that an Artifact must have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fields {
    /// `spec.name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_name: Option<String>,
    /// `spec.version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_version: Option<String>,
}

impl Selectors {
    /// Whether an Artifact is meant.
    pub fn matches(&self, artifact: &Object) -> bool {
        let Ok(spec) = serde_json::from_value::<ArtifactSpec>(artifact.spec().clone()) else { return false };
        let is_any = self.match_fields.is_empty() || self.match_fields.iter().any(|fields| fields.matches(&spec));
        let has_all = self.match_labels.iter().all(|(name, value)| artifact.label(name) == Some(value));
        *self != Self::default() && is_any && has_all
    }

    /// The same as queries to an API server, one for each alternative: field selector and label selector.
    pub fn queries(&self) -> Vec<(String, String)> {
        let labels: Vec<String> = self.match_labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let labels = labels.join(",");
        match self.match_fields.as_slice() {
            [] if labels.is_empty() => Vec::new(),
            [] => vec![(String::new(), labels)],
            all => {
                let asked = all.iter().filter(|fields| **fields != Fields::default());
                asked.map(|fields| (fields.query(), labels.clone())).collect()
            }
        }
    }
}

impl Fields {
    fn matches(&self, spec: &ArtifactSpec) -> bool {
        let fits = |wanted: &Option<String>, found: &String| wanted.as_ref().is_none_or(|wanted| wanted == found);
        *self != Self::default() && fits(&self.artifact_name, &spec.name) && fits(&self.artifact_version, &spec.version)
    }

    fn query(&self) -> String {
        let field = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("spec.{name}={value}"));
        let fields = [field("name", &self.artifact_name), field("version", &self.artifact_version)];
        fields.into_iter().flatten().collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn artifact(name: &str, version: &str, labels: Value) -> Object {
        Object::from_value(json!({"apiVersion": "plinth.dev/v1alpha1", "kind": "Artifact",
            "metadata": {"name": format!("{name}-{version}"), "labels": labels},
            "spec": {"name": name, "version": version, "url": "r.test/x:1"}}))
        .unwrap()
    }

    fn selectors(text: Value) -> Selectors {
        serde_json::from_value(text).unwrap()
    }

    type Case<'a> = (Value, &'a [usize], &'a [(&'a str, &'a str)]);

    #[test]
    fn fields_are_alternatives_and_labels_all_hold() {
        let provider = json!({"type": "provider"});
        let all = [
            artifact("crossplane-chart", "v1.20.1", json!({})),
            artifact("crossplane-chart", "v2.0.2", json!({})),
            artifact("crossplane-image", "v2.0.2", json!({})),
            artifact("provider-helm", "v1.3.0", provider),
        ];
        let cases: [Case<'_>; 6] = [
            (json!({"matchFields": [{"artifactName": "crossplane-chart"}]}), &[0, 1], &[("spec.name=crossplane-chart", "")]),
            (
                json!({"matchFields": [{"artifactName": "crossplane-chart", "artifactVersion": "v2.0.2"}]}),
                &[1],
                &[("spec.name=crossplane-chart,spec.version=v2.0.2", "")],
            ),
            (
                json!({"matchFields": [{"artifactName": "crossplane-image"}, {"artifactVersion": "v1.20.1"}]}),
                &[0, 2],
                &[("spec.name=crossplane-image", ""), ("spec.version=v1.20.1", "")],
            ),
            (json!({"matchLabels": {"type": "provider"}}), &[3], &[("", "type=provider")]),
            (
                json!({"matchFields": [{"artifactName": "provider-helm"}], "matchLabels": {"type": "x"}}),
                &[],
                &[("spec.name=provider-helm", "type=x")],
            ),
            (json!({}), &[], &[]),
        ];
        for (text, expected, queries) in cases {
            let selectors = selectors(text.clone());
            let found: Vec<usize> = (0..all.len()).filter(|index| selectors.matches(&all[*index])).collect();
            assert_eq!(found, expected, "{text}");
            let asked = selectors.queries();
            let asked: Vec<(&str, &str)> = asked.iter().map(|(fields, labels)| (fields.as_str(), labels.as_str())).collect();
            assert_eq!(asked, queries, "{text}");
        }
        let empty = selectors(json!({"matchFields": [{}]}));
        assert!(!empty.matches(&all[0]) && empty.queries().is_empty(), "an empty entry selects nothing");
        assert!(serde_json::from_value::<Selectors>(json!({"matchField": []})).is_err(), "a misspelt selector is told");
    }
}
