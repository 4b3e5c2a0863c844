//! The delivery kinds, and who builds on whom.

use plinth_api::{
    GroupVersionKind, Object, ObjectKey,
    delivery::{GROUP, VERSION},
};
use serde_json::Value;

/// The delivery kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Where components are.
    Repository,
    /// A component in one version.
    Component,
    /// One resource of it.
    Resource,
    /// Applies what a resource holds.
    Deployer,
    /// Tells what a component leads to.
    Discovery,
}

impl Kind {
    /// All of them, parents first.
    pub const ALL: [Self; 5] = [Self::Repository, Self::Component, Self::Resource, Self::Deployer, Self::Discovery];

    /// The kind's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Repository => "Repository",
            Self::Component => "Component",
            Self::Resource => "Resource",
            Self::Deployer => "Deployer",
            Self::Discovery => "Discovery",
        }
    }

    /// Group, version, kind.
    pub fn gvk(self) -> GroupVersionKind {
        GroupVersionKind::new(GROUP, VERSION, self.name())
    }

    pub(super) fn of(gvk: &GroupVersionKind) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.gvk() == *gvk)
    }

    /// The OCM controllers' own finalizers, so that an installation can be taken over; the first is put on, all are taken off.
    pub(super) fn finalizers(self) -> &'static [&'static str] {
        match self {
            Self::Repository => &["finalizers.ocm.software/repository"],
            Self::Component => &["finalizers.ocm.software/component"],
            Self::Resource => &["finalizers.ocm.software/resource"],
            Self::Deployer => &super::deploy::FINALIZERS,
            Self::Discovery => &[],
        }
    }

    /// Who builds on an object of this kind, and the reference by which it does.
    pub(super) fn dependants(self) -> Option<(Self, &'static str)> {
        match self {
            Self::Repository => Some((Self::Component, "repositoryRef")),
            Self::Component => Some((Self::Resource, "componentRef")),
            Self::Resource => Some((Self::Deployer, "resourceRef")),
            Self::Deployer | Self::Discovery => None,
        }
    }

    /// Fields of the status that a failed pass keeps.
    pub(super) fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Repository => &[],
            Self::Component => &["component"],
            Self::Resource => &["component", "resource", "additional"],
            Self::Deployer => &["deployed"],
            Self::Discovery => &["discovery", "unresolved"],
        }
    }
}

/// The object that this one builds on, by its reference.
pub(super) fn parent_of(key: &ObjectKey, object: &Object) -> Option<ObjectKey> {
    let child = Kind::of(&key.gvk)?;
    let (parent, (_, reference)) = Kind::ALL
        .into_iter()
        .filter_map(|kind| Some((kind, kind.dependants()?)))
        .find(|(_, (dependant, _))| *dependant == child)?;
    let reference = object.spec().get(reference)?;
    let namespace = reference.get("namespace").and_then(Value::as_str).map(str::to_owned).or_else(|| key.namespace.clone());
    let name = reference.get("name")?.as_str()?.to_owned();
    Some(ObjectKey { cluster: key.cluster.clone(), gvk: parent.gvk(), namespace, name })
}
