//! What is different between two release locks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use plinth_api::lock::{LockedComponent, LockedResource, ReleaseLock};
use serde::Serialize;

/// One difference, by component name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difference {
    /// OCM component name.
    pub component: String,
    /// What happened to it.
    #[serde(flatten)]
    pub change: Change,
}

/// What happened to a component between two locks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub enum Change {
    /// It is new.
    Added {
        /// In these versions.
        versions: Vec<String>,
    },
    /// It is gone.
    Removed {
        /// With these versions.
        versions: Vec<String>,
    },
    /// Other versions than before: those that went, and those that came.
    Versions {
        /// Only in the old lock.
        removed: Vec<String>,
        /// Only in the new one.
        added: Vec<String>,
    },
    /// The same version with other content: nobody should see this.
    Content {
        /// The version.
        version: String,
        /// Resources whose digest or place differs; empty where only the descriptor does.
        resources: Vec<String>,
    },
}

/// Differences from `old` to `new`, ordered by component.
pub fn difference(old: &ReleaseLock, new: &ReleaseLock) -> Vec<Difference> {
    let (before, after) = (by_name(old), by_name(new));
    let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    let empty = BTreeMap::new();
    let mut differences = Vec::new();
    for name in names {
        let (before, after) = (before.get(name).unwrap_or(&empty), after.get(name).unwrap_or(&empty));
        let only = |these: &BTreeMap<&str, &LockedComponent>, those: &BTreeMap<&str, &LockedComponent>| -> Vec<String> {
            these.keys().filter(|version| !those.contains_key(*version)).map(|version| (*version).to_owned()).collect()
        };
        let (removed, added) = (only(before, after), only(after, before));
        let change = match (before.is_empty(), after.is_empty()) {
            (true, _) => Some(Change::Added { versions: added }),
            (_, true) => Some(Change::Removed { versions: removed }),
            _ if removed.is_empty() && added.is_empty() => None,
            _ => Some(Change::Versions { removed, added }),
        };
        let content = before.iter().filter_map(|(version, old)| content(version, old, after.get(version)?));
        let all = change.into_iter().chain(content).map(|change| Difference { component: name.to_owned(), change });
        differences.extend(all);
    }
    differences
}

fn by_name(lock: &ReleaseLock) -> BTreeMap<&str, BTreeMap<&str, &LockedComponent>> {
    let mut names: BTreeMap<&str, BTreeMap<&str, &LockedComponent>> = BTreeMap::new();
    for component in &lock.components {
        names.entry(&component.name).or_default().insert(&component.version, component);
    }
    names
}

fn content(version: &str, old: &LockedComponent, new: &LockedComponent) -> Option<Change> {
    let same = |a: &LockedResource, b: &LockedResource| {
        a.name == b.name && a.extra_identity == b.extra_identity && a.version == b.version
    };
    let differs = |resource: &&LockedResource| !new.resources.iter().any(|other| same(resource, other) && *other == **resource);
    let is_new = |resource: &&LockedResource| !old.resources.iter().any(|other| same(resource, other));
    let names =
        old.resources.iter().filter(differs).chain(new.resources.iter().filter(is_new)).map(|resource| resource.name.clone());
    let resources: Vec<String> = names.collect::<BTreeSet<_>>().into_iter().collect();
    (!resources.is_empty() || old.digest != new.digest).then(|| Change::Content { version: version.to_owned(), resources })
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.component;
        match &self.change {
            Change::Added { versions } => write!(f, "+ {name} {}", versions.join(", ")),
            Change::Removed { versions } => write!(f, "- {name} {}", versions.join(", ")),
            Change::Versions { removed, added } => {
                let list = |versions: &[String]| if versions.is_empty() { "nothing".to_owned() } else { versions.join(", ") };
                write!(f, "~ {name} {} → {}", list(removed), list(added))
            }
            Change::Content { version, resources } if resources.is_empty() => {
                write!(f, "! {name} {version}: another descriptor under the same version")
            }
            Change::Content { version, resources } => {
                write!(f, "! {name} {version}: other content under the same version: {}", resources.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(components: &[(&str, &str, &str)]) -> ReleaseLock {
        let component = |(name, version, digest): &(&str, &str, &str)| LockedComponent {
            name: (*name).into(),
            version: (*version).into(),
            resources: vec![LockedResource { name: "image".into(), digest: Some((*digest).into()), ..LockedResource::default() }],
            ..LockedComponent::default()
        };
        ReleaseLock { components: components.iter().map(component).collect(), ..ReleaseLock::default() }
    }

    #[test]
    fn says_what_came_went_and_changed() {
        let old = lock(&[("a", "1", "x"), ("b", "1", "x"), ("c", "1", "x"), ("c", "2", "x"), ("d", "1", "x")]);
        let new = lock(&[("b", "2", "x"), ("c", "2", "x"), ("c", "3", "x"), ("d", "1", "y"), ("e", "1", "x")]);
        let lines: Vec<String> = difference(&old, &new).iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["- a 1", "~ b 1 → 2", "~ c 1 → 3", "! d 1: other content under the same version: image", "+ e 1"]);
        assert!(difference(&old, &old).is_empty());
    }
}
