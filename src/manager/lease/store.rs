//! Where a Lease lives: a port, because applying has no way to say "only if it does not exist" or "only if unchanged".

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use plinth_api::{Object, ObjectKey};
use plinth_cluster::Cluster;
use plinth_engine::ports::{Answer, ReadError, Reader, WriteError};
use serde_json::json;

/// Reads and writes one object with the server's own guard against lost updates.
pub trait LeaseStore: Send + Sync {
    /// The object, where it exists.
    fn read<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Option<Object>, ReadError>>;

    /// Creates it; [`WriteError::Conflict`] where it exists.
    fn create<'a>(&'a self, key: &'a ObjectKey, object: &'a Object) -> Answer<'a, Result<Object, WriteError>>;

    /// Replaces it; [`WriteError::Conflict`] where its resourceVersion is another one by now.
    fn replace<'a>(&'a self, key: &'a ObjectKey, object: &'a Object) -> Answer<'a, Result<Object, WriteError>>;
}

impl LeaseStore for Cluster {
    fn read<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Option<Object>, ReadError>> {
        Reader::get(self, key)
    }

    fn create<'a>(&'a self, key: &'a ObjectKey, object: &'a Object) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(Cluster::create(self, key, object))
    }

    fn replace<'a>(&'a self, key: &'a ObjectKey, object: &'a Object) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(Cluster::replace(self, key, object))
    }
}

/// The twin in memory, for tests and simulations.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    objects: BTreeMap<ObjectKey, Object>,
    version: u64,
    away: bool,
}

impl MemoryStore {
    /// Lets every request fail, or succeed again.
    pub fn set_away(&self, away: bool) {
        self.rows().away = away;
    }

    fn rows(&self) -> std::sync::MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, key: &ObjectKey, object: &Object, fits: impl FnOnce(Option<&Object>) -> bool) -> Result<Object, WriteError> {
        let mut rows = self.rows();
        if rows.away {
            return Err(WriteError::Unavailable { key: key.clone(), message: "away".to_owned() });
        }
        if !fits(rows.objects.get(key)) {
            return Err(WriteError::Conflict { key: key.clone(), message: "it changed meanwhile".to_owned() });
        }
        rows.version += 1;
        let mut stored = object.clone();
        stored.metadata_mut().insert("resourceVersion".to_owned(), json!(rows.version.to_string()));
        rows.objects.insert(key.clone(), stored.clone());
        Ok(stored)
    }
}

impl LeaseStore for MemoryStore {
    fn read<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Option<Object>, ReadError>> {
        let rows = self.rows();
        let answer = if rows.away { Err(ReadError::Unavailable("away".to_owned())) } else { Ok(rows.objects.get(key).cloned()) };
        Box::pin(async move { answer })
    }

    fn create<'a>(&'a self, key: &'a ObjectKey, object: &'a Object) -> Answer<'a, Result<Object, WriteError>> {
        let answer = self.put(key, object, |old| old.is_none());
        Box::pin(async move { answer })
    }

    fn replace<'a>(&'a self, key: &'a ObjectKey, object: &'a Object) -> Answer<'a, Result<Object, WriteError>> {
        let version = |object: &Object| object.at(&["metadata", "resourceVersion"]).cloned();
        let answer = self.put(key, object, |old| old.is_some_and(|old| version(old) == version(object)));
        Box::pin(async move { answer })
    }
}
