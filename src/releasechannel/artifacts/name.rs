//! What an artifact of a channel is called. Pure.
//!
//! SERVICE is the last part of the component's name. The rule, in order:
//!
//! 1. The value of the resource's OCM label `plinth.dev/artifact-name`.
//! 2. The only chart of the component is SERVICE-chart, its only image SERVICE-image.
//! 3. Else SERVICE-RESOURCE, where RESOURCE is the resource's name without SERVICE or `image` before it; where nothing else is left of it,
//!    as in rule 2.
//!
//! So `flux` ships `flux-chart` and `flux-helm-controller`, `crossplane` ships `crossplane-chart` and `crossplane-image`.

use plinth_api::artifact::NAME_LABEL;

use crate::descriptor::Resource;

/// The names of a component's artifacts, in their order.
pub(super) fn names(component: &str, resources: &[&Resource]) -> Vec<String> {
    let service = component.rsplit('/').next().unwrap_or_default();
    let count =
        |word: &str| resources.iter().filter(|resource| label(resource).is_none() && self::word(resource) == word).count();
    let name = |resource: &&Resource| match (label(resource), word(resource)) {
        (Some(label), _) => label.to_owned(),
        (None, word) if !word.is_empty() && count(word) == 1 => format!("{service}-{word}"),
        (None, word) => joined(service, &resource.identity.name, word),
    };
    resources.iter().map(name).collect()
}

fn label(resource: &Resource) -> Option<&str> {
    let label = resource.labels.iter().find(|label| label.name == NAME_LABEL)?;
    label.value.as_str().filter(|name| !name.is_empty())
}

/// What kind of artifact it is, in a consumer's word; empty for anything but a chart or image.
fn word(resource: &Resource) -> &'static str {
    match resource.kind.split('/').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "helmchart" => "chart",
        "ociimage" => "image",
        _ => "",
    }
}

fn joined(service: &str, resource: &str, word: &str) -> String {
    let without = |text: &str, prefix: &str| text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-')).map(str::to_owned);
    let bare = without(resource, service).or_else(|| without(resource, "image")).unwrap_or_else(|| resource.to_owned());
    match bare.as_str() {
        rest if rest == service && !word.is_empty() => format!("{service}-{word}"),
        rest => format!("{service}-{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::descriptor::Descriptor;

    fn names_of(component: &str, resources: &[(&str, &str)]) -> Vec<String> {
        let resource = |(name, kind): &(&str, &str)| {
            let (name, label) = name.split_once('=').map_or((*name, None), |(name, label)| (name, Some(label)));
            let labels: Vec<Value> = label.map(|label| json!({"name": NAME_LABEL, "value": label})).into_iter().collect();
            json!({"name": name, "version": "1", "type": kind, "relation": "external", "labels": labels,
                "access": {"type": "ociArtifact", "imageReference": "r.test/x:1"}})
        };
        let resources: Vec<Value> = resources.iter().map(resource).collect();
        let found =
            Descriptor::from_value(json!({"meta": {"schemaVersion": "v2"}, "component": {"name": component, "version": "1",
            "provider": "acme", "repositoryContexts": [], "sources": [], "componentReferences": [], "resources": resources}}))
            .unwrap();
        names(&found.name, &found.resources.iter().collect::<Vec<_>>())
    }

    #[test]
    fn names_follow_the_written_rule() {
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);
        let cases: [Case<'_>; 6] = [
            // As the project's own channel has them.
            (
                "a.test/channel/crossplane",
                &[("crossplane", "helmChart"), ("image-crossplane", "ociImage")],
                &["crossplane-chart", "crossplane-image"],
            ),
            ("a.test/channel/flux", &[("flux2", "helmChart")], &["flux-chart"]),
            ("a.test/crossplane/provider-helm", &[("provider-helm", "ociImage")], &["provider-helm-image"]),
            // As the document has them.
            (
                "a.test/flux",
                &[("chart", "helmChart"), ("helm-controller", "ociImage"), ("source-controller", "ociImage")],
                &["flux-chart", "flux-helm-controller", "flux-source-controller"],
            ),
            (
                "a.test/kyverno",
                &[("image-kyverno", "ociImage"), ("kyverno-reports", "ociImage"), ("bundle", "ociArtifact")],
                &["kyverno-image", "kyverno-reports", "kyverno-bundle"],
            ),
            ("a.test/op", &[("x=operator", "ociImage"), ("y", "ociImage")], &["operator", "op-image"]),
        ];
        for (component, resources, expected) in cases {
            assert_eq!(names_of(component, resources), expected, "{component}");
        }
    }
}
