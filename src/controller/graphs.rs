//! The graphs that instances run by, as the definitions publish them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use plinth_api::{ClusterKey, GroupKind, ObjectKey};
use plinth_engine::graph::Graph;

/// A graph in use.
#[derive(Clone, Debug)]
pub struct Published {
    /// The definition that it comes from.
    pub definition: ObjectKey,
    /// The graph.
    pub graph: Arc<Graph>,
}

/// All graphs in use, by the kind that their instances have. A kind belongs to one definition at a time.
#[derive(Debug, Default)]
pub struct Graphs(Mutex<BTreeMap<(ClusterKey, GroupKind), Published>>);

impl Graphs {
    /// Puts a graph into use; answers with the one that it replaces.
    pub fn publish(&self, definition: ObjectKey, graph: Arc<Graph>) -> Option<Published> {
        let place = (definition.cluster.clone(), graph.instance.gvk.group_kind());
        self.lock().insert(place, Published { definition, graph })
    }

    /// Takes a definition's graph out of use.
    pub fn withdraw(&self, definition: &ObjectKey) -> Option<Published> {
        let mut graphs = self.lock();
        let place = graphs.iter().find(|(_, published)| published.definition == *definition).map(|(place, _)| place.clone())?;
        graphs.remove(&place)
    }

    /// The graph of a definition.
    pub fn of_definition(&self, definition: &ObjectKey) -> Option<Published> {
        self.lock().values().find(|published| published.definition == *definition).cloned()
    }

    /// The graph that instances of a kind run by.
    pub fn of_kind(&self, cluster: &ClusterKey, kind: &GroupKind) -> Option<Published> {
        self.lock().get(&(cluster.clone(), kind.clone())).cloned()
    }

    /// All kinds that definitions define.
    pub fn kinds(&self) -> BTreeSet<GroupKind> {
        self.lock().keys().map(|(_, kind)| kind.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(ClusterKey, GroupKind), Published>> {
        // A panic elsewhere leaves a map of shared pointers as good as it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
