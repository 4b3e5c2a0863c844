//! Which kinds there are: the port that the engine asks, and its twin for tests and offline use.

use std::{collections::BTreeMap, sync::Arc};

use plinth_api::GroupVersionKind;

use super::Schema;

/// A served kind.
#[derive(Clone, Debug, PartialEq)]
pub struct KindInfo {
    /// Group, version, kind.
    pub gvk: GroupVersionKind,
    /// Name in URLs and RBAC rules, such as `deployments`.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The whole object's schema, `apiVersion`, `kind` and `metadata` included.
    pub schema: Arc<Schema>,
}

/// The answer of a [`SchemaSource`]. A kind that is not served yet is an answer, not an error.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// The API server has it.
    Served(Arc<KindInfo>),
    /// It does not (yet).
    NotServed,
}

/// Gives schemas of kinds: discovery of a cluster, CRD files, built-in kinds, or all of them.
pub trait SchemaSource: Send + Sync {
    /// Looks a kind up; never blocks (adapters fetch before).
    fn kind(&self, gvk: &GroupVersionKind) -> Lookup;
}

/// Schemas in memory: CRD files, built-in kinds, and the double in tests.
#[derive(Clone, Debug, Default)]
pub struct SchemaMap(BTreeMap<GroupVersionKind, Arc<KindInfo>>);

impl SchemaMap {
    /// Adds a kind, or replaces it.
    pub fn insert(&mut self, kind: impl Into<Arc<KindInfo>>) {
        let kind = kind.into();
        self.0.insert(kind.gvk.clone(), kind);
    }

    /// Takes a kind away.
    pub fn remove(&mut self, gvk: &GroupVersionKind) {
        self.0.remove(gvk);
    }

    /// All kinds, ordered by group, version, kind.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<KindInfo>> {
        self.0.values()
    }

    /// Number of kinds.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl SchemaSource for SchemaMap {
    fn kind(&self, gvk: &GroupVersionKind) -> Lookup {
        self.0.get(gvk).map_or(Lookup::NotServed, |kind| Lookup::Served(Arc::clone(kind)))
    }
}

impl FromIterator<KindInfo> for SchemaMap {
    fn from_iter<T: IntoIterator<Item = KindInfo>>(kinds: T) -> Self {
        let mut map = Self::default();
        map.extend(kinds);
        map
    }
}

impl Extend<KindInfo> for SchemaMap {
    fn extend<T: IntoIterator<Item = KindInfo>>(&mut self, kinds: T) {
        kinds.into_iter().for_each(|kind| self.insert(kind));
    }
}
