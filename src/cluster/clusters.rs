//! The set of clusters that are engaged, as one pair of doors: each request goes where its key says.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use plinth_api::{ClusterKey, Object, ObjectKey};
use plinth_engine::ports::{Answer, Applier, Apply, Delete, Query, ReadError, Reader, WriteError};

use crate::cluster::Cluster;

/// The engaged clusters by key; they come and go at run time.
#[derive(Default)]
pub struct Clusters(RwLock<BTreeMap<ClusterKey, Arc<Cluster>>>);

impl Clusters {
    /// Adds a cluster, or replaces it.
    pub(crate) fn insert(&self, cluster: Arc<Cluster>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(cluster.key().clone(), cluster);
    }

    pub(crate) fn remove(&self, key: &ClusterKey) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// One cluster.
    pub fn get(&self, key: &ClusterKey) -> Option<Arc<Cluster>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// All of them, by key.
    pub fn all(&self) -> Vec<Arc<Cluster>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn for_write(&self, key: &ObjectKey) -> Result<Arc<Cluster>, WriteError> {
        self.get(&key.cluster).ok_or_else(|| WriteError::Unavailable { key: key.clone(), message: not_engaged(&key.cluster) })
    }

    fn for_read(&self, key: &ClusterKey) -> Result<Arc<Cluster>, ReadError> {
        self.get(key).ok_or_else(|| ReadError::Unavailable(not_engaged(key)))
    }
}

fn not_engaged(key: &ClusterKey) -> String {
    format!("the cluster {key} is not connected")
}

impl Applier for Clusters {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(async move { self.for_write(&request.key)?.apply(request).await })
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        Box::pin(async move { self.for_write(&request.key)?.delete(request).await })
    }
}

impl Reader for Clusters {
    fn get<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Option<Object>, ReadError>> {
        Box::pin(async move { self.for_read(&key.cluster)?.get(key).await })
    }

    fn list<'a>(&'a self, query: &'a Query) -> Answer<'a, Result<Vec<Object>, ReadError>> {
        Box::pin(async move { self.for_read(&query.cluster)?.list(query).await })
    }
}
