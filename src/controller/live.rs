//! The ports of [`World`](crate::world::World) over real clusters.

use std::{collections::BTreeSet, sync::Arc};

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, Permission};
use plinth_bootstrap::Listable;
use plinth_cluster::{
    Cluster, Watches,
    watch::{Look, Owner, WatchKey, WatchSet, WatchState},
};
use plinth_engine::{
    ports::{Access, Answer, Applier, Apply, Delete, Query, ReadError, Reader, ServiceAccount, WriteError},
    schema::SchemaSource,
};
use plinth_manager::Lease;
use plinth_run::ClusterIdentity;
use serde_json::Value;

use crate::{
    start::layered,
    world::{Accounts, Finalizers, Index, Schemas},
};

/// Attempts to take a finalizer off an object that others write at the same time.
const ATTEMPTS: usize = 5;

/// The shared watches as an [`Index`].
#[derive(Clone)]
pub struct LiveIndex(pub Arc<Watches>);

impl Index for LiveIndex {
    fn look(&self, key: &ObjectKey) -> Look {
        self.0.look(key)
    }

    fn list(&self, query: &Query) -> Option<Vec<Arc<Object>>> {
        self.0.list(query)
    }

    fn refused(&self, watch: &WatchKey) -> Option<ReadError> {
        match self.0.state(watch) {
            Some(WatchState::Failing { error: error @ ReadError::Forbidden { .. }, .. }) => Some(error),
            _ => None,
        }
    }

    fn declare(&self, owner: &Owner, set: WatchSet) {
        self.0.declare(owner, set);
    }

    fn extend(&self, owner: &Owner, set: WatchSet) {
        self.0.extend(owner, set);
    }

    fn forget(&self, owner: &Owner) {
        self.0.forget(owner);
    }
}

/// The engaged clusters as the engine's doors.
#[derive(Clone)]
pub struct LiveDoors(pub Arc<Watches>);

impl Applier for LiveDoors {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        self.0.clusters().apply(request)
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        self.0.clusters().delete(request)
    }
}

impl Reader for LiveDoors {
    fn get<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Option<Object>, ReadError>> {
        Reader::get(self.0.clusters(), key)
    }

    /// A query without version is about the version that the server names first.
    fn list<'a>(&'a self, query: &'a Query) -> Answer<'a, Result<Vec<Object>, ReadError>> {
        if !query.gvk.version.is_empty() {
            return self.0.clusters().list(query);
        }
        Box::pin(async move {
            let missing = || ReadError::NotServed(query.gvk.clone());
            let away = || ReadError::Unavailable(format!("the cluster {} is not connected", query.cluster));
            let cluster = self.0.clusters().get(&query.cluster).ok_or_else(away)?;
            let all = cluster.catalog().all().await?;
            let kind = query.gvk.group_kind();
            let found = all.into_iter().find(|served| served.gvk.group_kind() == kind).ok_or_else(missing)?;
            cluster.list(&Query { gvk: found.gvk, ..query.clone() }).await
        })
    }
}

/// Impersonation as [`Accounts`]: the API servers decide what an account may do.
#[derive(Clone)]
pub struct LiveAccounts {
    /// The engaged clusters.
    pub watches: Arc<Watches>,
    /// The Lease that must be held.
    pub lease: Option<Arc<Lease>>,
    /// Name of the platform whose label children get.
    pub platform: Option<String>,
}

impl Accounts for LiveAccounts {
    fn writes(&self, account: &ServiceAccount, cluster: &ClusterKey) -> Arc<dyn Applier> {
        let acting = Acting { watches: Arc::clone(&self.watches), account: account.clone(), cluster: cluster.clone() };
        layered(Arc::new(acting), self.lease.as_ref(), self.platform.as_deref())
    }

    fn may_read<'a>(&'a self, access: &'a Access) -> Answer<'a, Result<bool, ReadError>> {
        Box::pin(async move {
            let away = || ReadError::Unavailable(format!("the cluster {} is not connected", access.cluster));
            let cluster = self.watches.clusters().get(&access.cluster).ok_or_else(away)?;
            let served = cluster.catalog().find(&access.gvk).await?;
            let permission = Permission {
                group: served.gvk.group.clone(),
                resource: served.plural.clone(),
                verb: access.verb().to_owned(),
                namespace: access.namespace.clone(),
                name: access.name.clone(),
            };
            cluster.acting_as(&access.account).can_i(&permission).await
        })
    }
}

/// A cluster's doors in an account's name.
struct Acting {
    watches: Arc<Watches>,
    account: ServiceAccount,
    cluster: ClusterKey,
}

impl Acting {
    fn cluster(&self, key: &ObjectKey) -> Result<Cluster, WriteError> {
        if key.cluster != self.cluster {
            let message = format!("{} is an account of the cluster {}, and not of {}", self.account, self.cluster, key.cluster);
            return Err(WriteError::Invalid { key: key.clone(), message });
        }
        let found = self.watches.clusters().get(&key.cluster).map(|cluster| cluster.acting_as(&self.account));
        found.ok_or_else(|| {
            let message = format!("the cluster {} is not connected", key.cluster);
            WriteError::Unavailable { key: key.clone(), message }
        })
    }
}

impl Applier for Acting {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(async move { self.cluster(&request.key)?.apply(request).await })
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        Box::pin(async move { self.cluster(&request.key)?.delete(request).await })
    }
}

/// The platform cluster as bootstrap's doors.
#[derive(Clone)]
pub struct LiveHost(pub Arc<Watches>);

impl LiveHost {
    fn cluster(&self) -> Result<Arc<Cluster>, ReadError> {
        let away = || ReadError::Unavailable("the platform cluster is not connected".to_owned());
        self.0.clusters().get(&ClusterKey::host()).ok_or_else(away)
    }
}

impl plinth_bootstrap::Access for LiveHost {
    fn identity(&self) -> Answer<'_, Result<ClusterIdentity, ReadError>> {
        Box::pin(async { self.cluster()?.identity().await.map(|identity| ClusterIdentity(identity.0)) })
    }

    fn can_i<'a>(&'a self, permission: &'a Permission) -> Answer<'a, Result<bool, ReadError>> {
        Box::pin(async { self.cluster()?.can_i(permission).await })
    }
}

impl plinth_bootstrap::Schemas for LiveHost {
    fn ensure<'a>(&'a self, kinds: &'a [GroupVersionKind]) -> Answer<'a, Result<Arc<dyn SchemaSource>, ReadError>> {
        Box::pin(async move { Ok(Arc::new(self.cluster()?.catalog().ensure(kinds).await?) as Arc<dyn SchemaSource>) })
    }

    /// Only a removal asks, which the controller does not do.
    fn listable(&self) -> Answer<'_, Result<Vec<Listable>, ReadError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// The catalogs of all clusters as [`Schemas`].
#[derive(Clone)]
pub struct LiveSchemas(pub Arc<Watches>);

impl Schemas for LiveSchemas {
    fn of<'a>(
        &'a self,
        cluster: &'a ClusterKey,
        kinds: &'a [GroupVersionKind],
    ) -> Answer<'a, Result<Arc<dyn SchemaSource>, ReadError>> {
        Box::pin(async move {
            let found = self
                .0
                .clusters()
                .get(cluster)
                .ok_or_else(|| ReadError::Unavailable(format!("the cluster {cluster} is not connected")))?;
            let kinds: BTreeSet<&GroupVersionKind> = kinds.iter().collect();
            let schemas: Arc<dyn SchemaSource> = Arc::new(found.catalog().ensure(kinds).await?);
            Ok(schemas)
        })
    }
}

/// Takes finalizers off by replacing the object.
#[derive(Clone)]
pub struct LiveFinalizers {
    /// The engaged clusters.
    pub watches: Arc<Watches>,
    /// The Lease that must be held.
    pub lease: Option<Arc<Lease>>,
}

impl Finalizers for LiveFinalizers {
    fn remove<'a>(&'a self, key: &'a ObjectKey, finalizer: &'a str) -> Answer<'a, Result<(), WriteError>> {
        Box::pin(async move {
            let mut last = None;
            for _ in 0..ATTEMPTS {
                match self.once(key, finalizer).await {
                    Err(conflict @ WriteError::Conflict { .. }) => last = Some(conflict),
                    Err(WriteError::NotFound { .. }) => return Ok(()),
                    answer => return answer,
                }
            }
            Err(last.expect("there is at least one attempt, and only conflicts are tried again"))
        })
    }
}

impl LiveFinalizers {
    async fn once(&self, key: &ObjectKey, finalizer: &str) -> Result<(), WriteError> {
        if self.lease.as_ref().is_some_and(|lease| !lease.is_held()) {
            return Err(WriteError::NotLeader { key: key.clone() });
        }
        let unavailable = |message: String| WriteError::Unavailable { key: key.clone(), message };
        let cluster = self
            .watches
            .clusters()
            .get(&key.cluster)
            .ok_or_else(|| unavailable(format!("the cluster {} is not connected", key.cluster)))?;
        let object = cluster.get(key).await.map_err(|error| unavailable(error.to_string()))?;
        let Some(mut object) = object else { return Ok(()) };
        if !without(&mut object, finalizer) {
            return Ok(());
        }
        cluster.replace(key, &object).await.map(drop)
    }
}

/// Takes a finalizer out of an object; whether it was there.
fn without(object: &mut Object, finalizer: &str) -> bool {
    let Some(Value::Array(list)) = object.metadata_mut().get_mut("finalizers") else { return false };
    let before = list.len();
    list.retain(|entry| entry.as_str() != Some(finalizer));
    list.len() < before
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_one_finalizer_goes() {
        let mut object = Object::from_value(json!({"metadata": {"finalizers": ["a", "b"]}})).unwrap();
        assert!(without(&mut object, "a"));
        assert!(!without(&mut object, "a"));
        assert_eq!(object.finalizers(), ["b"]);
    }
}
