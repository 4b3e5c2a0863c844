//! What was chosen where a channel leaves a choice: versions by range, references by their labels.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::descriptor::{Descriptor, Reference};
use crate::error::ResolveError;
use crate::options::Limits;
use crate::repository::ComponentVersion;
use crate::versions;

/// What was chosen where a channel leaves a choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Distribution: component name or its last segment, and a version or range.
    pub distribution: Option<(String, Option<String>)>,
    /// Version or range by component name. Where a component refers to several versions of it, only the highest allowed stays.
    pub select: BTreeMap<String, String>,
    /// Value by label. Of the references to a component of which some have the label, only those with this value stay.
    pub labels: BTreeMap<String, String>,
    /// All that there is, where something was made with a selection and says what it holds: other references are left out.
    pub only: Option<BTreeSet<ComponentVersion>>,
}

/// Indices of the references that the selection keeps: first by their labels, and of those by version.
pub(crate) fn keep(descriptor: &Descriptor, selection: &Selection, limits: &Limits) -> Result<Vec<usize>, ResolveError> {
    if descriptor.references.len() > limits.references {
        let what = format!("the number of references of {}:{}", descriptor.name, descriptor.version);
        return Err(ResolveError::Limit { what, limit: limits.references });
    }
    let is_there = |reference: &Reference| {
        let at = || ComponentVersion::new(&reference.component, &reference.version);
        selection.only.as_ref().is_none_or(|only| only.contains(&at()))
    };
    let mut kept: Vec<usize> =
        (0..descriptor.references.len()).filter(|index| is_there(&descriptor.references[*index])).collect();
    for (label, value) in &selection.labels {
        kept = by_label(descriptor, kept, label, value)?;
    }
    for (component, wanted) in &selection.select {
        kept = by_version(descriptor, kept, component, wanted)?;
    }
    Ok(kept)
}

fn by_label(descriptor: &Descriptor, kept: Vec<usize>, label: &str, value: &str) -> Result<Vec<usize>, ResolveError> {
    // What there is to choose from, by component, and those of them that have something of the wanted value.
    let (mut there, mut fitting) = (BTreeMap::<&str, BTreeSet<String>>::new(), BTreeSet::new());
    for reference in kept.iter().map(|index| &descriptor.references[*index]) {
        let Some(found) = label_of(reference, label) else { continue };
        if found == value {
            fitting.insert(reference.component.as_str());
        }
        there.entry(&reference.component).or_default().insert(found);
    }
    if let Some((component, values)) = there.iter().find(|(component, _)| !fitting.contains(*component)) {
        return Err(ResolveError::Choice {
            question: format!("no reference to {component} has the label {label}={value}"),
            choices: values.iter().map(|value| format!("{label}={value}")).collect(),
            by: "--label NAME=VALUE chooses",
        });
    }
    let is_kept = |index: &usize| {
        let reference = &descriptor.references[*index];
        !there.contains_key(reference.component.as_str()) || label_of(reference, label).as_deref() == Some(value)
    };
    Ok(kept.into_iter().filter(is_kept).collect())
}

fn by_version(descriptor: &Descriptor, kept: Vec<usize>, component: &str, wanted: &str) -> Result<Vec<usize>, ResolveError> {
    let of_component = |index: &&usize| descriptor.references[**index].component == component;
    let there: Vec<&str> = kept.iter().filter(of_component).map(|index| descriptor.references[*index].version.as_str()).collect();
    if there.is_empty() {
        return Ok(kept);
    }
    let Some(version) = versions::pick(Some(wanted), there.iter().copied()) else {
        let there = versions::sorted(there).iter().map(|version| version.raw().to_owned()).collect();
        return Err(ResolveError::no_version(component, wanted, there));
    };
    let is_kept = |index: &usize| {
        let reference = &descriptor.references[*index];
        reference.component != component || reference.version == version
    };
    Ok(kept.into_iter().filter(is_kept).collect())
}

/// Refuses the channel itself where its version was asked for and it has another one: SOURCE says which one it is.
pub(crate) fn allows(selection: &Selection, name: &str, version: &str) -> Result<(), ResolveError> {
    match selection.select.get(name) {
        Some(wanted) if versions::pick(Some(wanted), [version]).is_none() => {
            Err(ResolveError::no_version(name, wanted, vec![version.to_owned()]))
        }
        _ => Ok(()),
    }
}

/// Refuses a label that nothing has: a slip of the pen would go without effect.
pub(crate) fn are_known<'a>(
    descriptors: impl Iterator<Item = &'a Descriptor>,
    selection: &Selection,
) -> Result<(), ResolveError> {
    let mut unknown: BTreeSet<&String> = selection.labels.keys().collect();
    for reference in descriptors.flat_map(|descriptor| &descriptor.references) {
        unknown.retain(|label| label_of(reference, label).is_none());
    }
    match unknown.first() {
        None => Ok(()),
        Some(label) => Err(ResolveError::Option {
            option: format!("--label {label}"),
            reason: "no component reference of the channel has a label of that name".to_owned(),
        }),
    }
}

/// The label's value: a text as it is, anything else as JSON.
fn label_of(reference: &Reference, label: &str) -> Option<String> {
    let found = reference.labels.iter().find(|own| own.name == label)?;
    Some(match &found.value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn umbrella() -> Descriptor {
        let reference = |name: &str, component: &str, version: &str, labels: Value| json!({"name": name, "componentName": format!("acme.example/{component}"), "version": version, "labels": labels});
        let track = |value: Value| json!([{"name": "track", "value": value}]);
        let references = json!([
            reference("a-old", "a", "1.0.0", track(json!("old"))),
            reference("a-new", "a", "2.0.0", track(json!("new"))),
            reference("a-newer", "a", "2.1.0", track(json!("new"))),
            reference("a-bare", "a", "3.0.0", json!([])),
            reference("b", "b", "1.0.0", json!([{"name": "other", "value": true}])),
        ]);
        let component =
            json!({"name": "acme.example/c", "version": "1.0.0", "provider": "acme", "componentReferences": references});
        Descriptor::from_value(json!({"meta": {"schemaVersion": "v2"}, "component": component})).unwrap()
    }

    fn kept(labels: &[(&str, &str)], select: &[(&str, &str)]) -> Result<Vec<usize>, ResolveError> {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let selection = Selection { labels: map(labels), select: map(select), ..Selection::default() };
        let descriptor = umbrella();
        let kept = keep(&descriptor, &selection, &Limits::default())?;
        are_known([&descriptor].into_iter(), &selection)?;
        Ok(kept)
    }

    #[test]
    fn references_are_chosen_by_label_and_then_by_version() {
        assert_eq!(kept(&[], &[]).unwrap(), [0, 1, 2, 3, 4]);
        assert_eq!(kept(&[("track", "old")], &[]).unwrap(), [0, 4]);
        assert_eq!(kept(&[("track", "new")], &[]).unwrap(), [1, 2, 4]);
        assert_eq!(kept(&[("track", "new")], &[("acme.example/a", "*")]).unwrap(), [2, 4]);
        assert_eq!(kept(&[("track", "new"), ("other", "true")], &[("acme.example/a", "2.0.x")]).unwrap(), [1, 4]);
        assert_eq!(kept(&[], &[("acme.example/a", "*")]).unwrap(), [3, 4]);
    }

    #[test]
    fn the_channel_itself_has_to_be_of_the_selected_version() {
        let selection = |wanted: &str| Selection {
            select: BTreeMap::from([("acme.example/c".to_owned(), wanted.to_owned())]),
            ..Selection::default()
        };
        allows(&selection("1.x"), "acme.example/c", "1.0.0").unwrap();
        allows(&selection(">2"), "acme.example/other", "1.0.0").unwrap();
        let error = allows(&selection(">2"), "acme.example/c", "1.0.0").unwrap_err();
        assert!(matches!(&error, ResolveError::NoVersion { there, .. } if there == &["1.0.0"]), "{error}");
    }

    #[test]
    fn what_nothing_has_is_refused_with_what_there_is() {
        let error = kept(&[("track", "beta")], &[]).unwrap_err();
        assert!(matches!(&error, ResolveError::Choice { choices, .. } if choices == &["track=new", "track=old"]), "{error}");
        let error = kept(&[("trak", "new")], &[]).unwrap_err();
        assert!(error.to_string().contains("trak"), "{error}");
        let error = kept(&[("track", "old")], &[("acme.example/a", ">1")]).unwrap_err();
        assert!(matches!(&error, ResolveError::NoVersion { there, .. } if there == &["1.0.0"]), "{error}");
    }
}
