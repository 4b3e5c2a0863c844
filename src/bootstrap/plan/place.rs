//! Where a platform lives: under names that a server takes, and in one place.

use plinth_api::GroupVersionKind;
use plinth_engine::{naming, ports::Reader};

use super::Place;
use crate::{
    error::Error,
    removal,
    settings::Settings,
    wanted::{self, Step, Wanted},
};

/// Longest namespace.
const LONGEST_LABEL: usize = 63;
/// Longest name.
const LONGEST_NAME: usize = 253;

/// Refuses names that no server takes; values and flags bring them.
pub(super) fn names(wanted: &[Wanted]) -> Result<(), Error> {
    for wanted in wanted {
        let key = &wanted.key;
        let is_namespace = key.gvk == wanted::namespace_kind();
        let (name, longest) = (key.name.as_str(), if is_namespace { LONGEST_LABEL } else { LONGEST_NAME });
        let is_good = if is_namespace { naming::is_label(name) } else { naming::is_subdomain(name) };
        if !is_good || name.len() > longest {
            let dot = if is_namespace { "" } else { " or ." };
            return Err(Error::Name { kind: key.gvk.kind.clone(), name: name.to_owned(), dot, longest });
        }
    }
    Ok(())
}

/// Refuses to bring another distribution up under the name of a platform that is there: one removal would take both.
pub(super) async fn same_distribution(wanted: &[Wanted], settings: &Settings, reader: &dyn Reader) -> Result<(), Error> {
    let Some(instance) = wanted.iter().find(|wanted| wanted.step == Step::Instance) else { return Ok(()) };
    for found in removal::tops(&settings.platform, reader).await? {
        let is_same = found.key.gvk.group_kind() == instance.key.gvk.group_kind();
        if !is_same && !found.object.is_terminating() {
            let (found, wanted) = (Box::new(found.key), Box::new(instance.key.clone()));
            return Err(Error::OtherDistribution { platform: settings.platform.clone(), found, wanted });
        }
    }
    Ok(())
}

/// Refuses names of children that no server takes, as far as names are known: what holds for every kind, and more where the kind
/// is one of Kubernetes' own.
pub(super) fn names_of(places: &[Place]) -> Result<(), Error> {
    for place in places.iter().filter(|place| place.is_named() && !place.subject.key.name.is_empty()) {
        let key = &place.subject.key;
        let Some(rule) = broken_rule(&key.gvk, &key.name) else { continue };
        let node = place.subject.node.clone().unwrap_or_default();
        let (rgd, kind, name) = (place.rgd.clone(), key.gvk.kind.clone(), key.name.clone());
        return Err(Error::ChildName { node, rgd, kind, name, rule });
    }
    Ok(())
}

/// The rule that a name breaks.
fn broken_rule(gvk: &GroupVersionKind, name: &str) -> Option<&'static str> {
    // A name is a segment of a path.
    if matches!(name, "." | "..") || name.contains(['/', '%']) {
        return Some("a name is no path: it is not . or .., and has neither / nor % in it");
    }
    if name.len() > LONGEST_NAME {
        return Some("a name has at most 253 characters");
    }
    let is_short = gvk.group.is_empty() && matches!(gvk.kind.as_str(), "Namespace" | "Service");
    if is_short && (!naming::is_label(name) || name.len() > LONGEST_LABEL) {
        return Some("it takes lower-case letters, digits and -, a letter or digit at both ends, at most 63 of them");
    }
    // Other groups have rules of their own: those of roles are looser.
    let is_strict = matches!(gvk.group.as_str(), "" | "apps" | "batch");
    (is_strict && !naming::is_subdomain(name))
        .then_some("it takes lower-case letters, digits, - and ., a letter or digit at both ends of each part")
}

/// Refuses a second place for a platform that lives somewhere already, or was begun there: what is there would stay behind.
pub(super) async fn only_one(wanted: &[Wanted], settings: &Settings, reader: &dyn Reader) -> Result<(), Error> {
    let selector = naming::platform_selector(&settings.platform);
    // The controller and what is kept of releases are in a namespace of their own, whose kinds the platform's children have too.
    let is_placed =
        |wanted: &&Wanted| wanted.step == Step::Instance || wanted.key.namespace.is_some() && wanted.step > Step::Controller;
    let places = wanted.iter().rev().filter(is_placed);
    for wanted in places {
        let there = removal::list(reader, &wanted.key.gvk, &selector).await?;
        let is_elsewhere = |key: &plinth_api::ObjectKey| {
            key.namespace != wanted.key.namespace || wanted.step == Step::Instance && key.name != wanted.key.name
        };
        if let Some(other) = there.into_iter().map(|found| found.key).find(is_elsewhere) {
            let (object, wanted) = (Box::new(other), Box::new(wanted.key.clone()));
            return Err(Error::Elsewhere { platform: settings.platform.clone(), object, wanted });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_kind_never_takes() {
        let long = "a".repeat(254);
        for (group, kind, name, is_good) in [
            ("", "ConfigMap", "a/b", false),
            ("x.test", "Thing", "a/b", false),
            ("x.test", "Thing", "50%", false),
            ("x.test", "Thing", "..", false),
            ("x.test", "Thing", long.as_str(), false),
            ("x.test", "Thing", "Odd_Name", true),
            ("rbac.authorization.k8s.io", "ClusterRole", "system:Viewer", true),
            ("", "ConfigMap", "Upper", false),
            ("apps", "Deployment", "a.b-c", true),
            ("", "Service", "a.b", false),
            ("", "Service", &long[..64], false),
            ("", "Secret", &long[..253], true),
        ] {
            let gvk = GroupVersionKind::new(group, "v1", kind);
            assert_eq!(broken_rule(&gvk, name).is_none(), is_good, "{kind} {name}");
        }
    }
}
