//! What is different between two release locks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use plinth_api::lock::{LockedComponent, LockedResource, ReleaseLock};
use serde::Serialize;

use crate::access::Access;
use crate::image::ImageReference;

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
        /// Resources that differ in more than their place; empty where only the descriptor does.
        resources: Vec<String>,
    },
    /// The same version with the same content in another place.
    Moved {
        /// The version.
        version: String,
        /// Resources whose access differs; empty where only the descriptor says other places.
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
        let both = before.iter().filter_map(|(version, old)| Some((version, old, after.get(version)?)));
        let inside = both.flat_map(|(version, old, new)| of_version(version, old, new));
        let all = change.into_iter().chain(inside).map(|change| Difference { component: name.to_owned(), change });
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

/// What became of a version that both have: other content, and the same content in another place.
fn of_version(version: &str, old: &LockedComponent, new: &LockedComponent) -> Vec<Change> {
    let mut resources = BTreeSet::new();
    let mut moved = BTreeSet::new();
    for resource in &old.resources {
        match new.resources.iter().find(|other| is_same(resource, other)) {
            Some(other) if other == resource => {}
            Some(other) if is_moved(resource, other) => {
                moved.insert(resource.name.clone());
            }
            _ => drop(resources.insert(resource.name.clone())),
        }
    }
    let is_new = |resource: &&LockedResource| !old.resources.iter().any(|other| is_same(resource, other));
    resources.extend(new.resources.iter().filter(is_new).map(|resource| resource.name.clone()));
    let is_other = !resources.is_empty() || is_other_descriptor(old, new, !moved.is_empty());
    let has_moved = !moved.is_empty() || (old.digest != new.digest && !is_other);
    let list = |names: BTreeSet<String>| names.into_iter().collect();
    let version = version.to_owned();
    let content = is_other.then(|| Change::Content { version: version.clone(), resources: list(resources) });
    content.into_iter().chain(has_moved.then(|| Change::Moved { version: version.clone(), resources: list(moved) })).collect()
}

/// Whether the descriptor says other things. Of locks that do not know what it says apart from places, what they have is compared. One digest
/// is no proof that both locks say the same of it: they are files, and one of them may be edited.
fn is_other_descriptor(old: &LockedComponent, new: &LockedComponent, has_moved: bool) -> bool {
    match (&old.content, &new.content) {
        _ if old.digest == new.digest && (old.content.is_none() || new.content.is_none()) => old.signatures != new.signatures,
        (Some(before), Some(after)) => before != after || old.signatures != new.signatures,
        _ => !has_moved || old.references != new.references,
    }
}

/// Whether only the place is another: something must say that the bytes are the same.
fn is_moved(old: &LockedResource, new: &LockedResource) -> bool {
    let is_pinned = pin(old).is_some_and(|pinned| pin(new) == Some(pinned));
    is_pinned && LockedResource { access: old.access.clone(), ..new.clone() } == *old
}

/// The digest of a resource, else the one that its access leads to.
fn pin(resource: &LockedResource) -> Option<String> {
    let of_access = || match Access::read(&resource.access) {
        Access::LocalBlob { reference, .. } => Some(reference.to_string()),
        Access::OciBlob { digest, .. } => Some(digest.to_string()),
        Access::OciArtifact { image } => ImageReference::parse(&image)?.digest.map(|digest| digest.to_string()),
        _ => None,
    };
    resource.digest.clone().or_else(of_access)
}

fn is_same(a: &LockedResource, b: &LockedResource) -> bool {
    a.name == b.name && a.extra_identity == b.extra_identity && a.version == b.version
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
            Change::Moved { version, resources } if resources.is_empty() => {
                write!(f, "> {name} {version}: moved, the same content is in another place")
            }
            Change::Moved { version, resources } => {
                write!(f, "> {name} {version}: moved, the same content is in another place: {}", resources.join(", "))
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

    /// The same digest in another place is no other content.
    #[test]
    fn says_moved_apart_from_changed() {
        let at = |place: &str, descriptor: &str, content: Option<&str>| {
            let mut lock = lock(&[("a", "1", "x")]);
            let component = &mut lock.components[0];
            component.digest = descriptor.into();
            component.content = content.map(str::to_owned);
            component.resources[0].access = place.into();
            lock
        };
        // Nothing says that the bytes are the same.
        let unknown = |place: &str| {
            let mut lock = at(place, "d1", Some("c"));
            lock.components[0].resources[0].digest = None;
            lock
        };
        let moved = "> a 1: moved, the same content is in another place: image";
        let changed = "! a 1: another descriptor under the same version";
        for (old, new, expected) in [
            (at("here", "d1", Some("c")), at("there", "d2", Some("c")), vec![moved]),
            (at("here", "d1", None), at("there", "d2", Some("c")), vec![moved]),
            (
                at("here", "d1", Some("c")),
                at("here", "d2", Some("c")),
                vec!["> a 1: moved, the same content is in another place"],
            ),
            (at("here", "d1", Some("c")), at("here", "d2", Some("other")), vec![changed]),
            (at("here", "d1", None), at("here", "d2", None), vec![changed]),
            (at("here", "d1", Some("c")), at("there", "d2", Some("other")), vec![changed, moved]),
            (unknown("here"), unknown("there"), vec!["! a 1: other content under the same version: image"]),
        ] {
            let lines: Vec<String> = difference(&old, &new).iter().map(ToString::to_string).collect();
            assert_eq!(lines, expected, "{old:?} {new:?}");
        }
    }
}
