//! What the reconcilers see and touch: ports, so that every reconciler runs in a test without a server.

use std::sync::Arc;

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey};
use plinth_cluster::watch::{Look, Owner, WatchKey, WatchSet};
use plinth_engine::{
    ports::{Access, Answer, Applier, Clock, Query, ReadError, Reader, ServiceAccount, WriteError},
    schema::SchemaSource,
};
use plinth_run::Recorder;

use crate::awaited::Awaited;
use crate::figures::Figures;

/// The watched state of all clusters.
pub trait Index: Send + Sync {
    /// What is known of an object, told apart from what is not known.
    fn look(&self, key: &ObjectKey) -> Look;

    /// What a query selects; `None` where that is not known.
    fn list(&self, query: &Query) -> Option<Vec<Arc<Object>>>;

    /// Why a kind cannot be followed, where that is for want of a right.
    fn refused(&self, watch: &WatchKey) -> Option<ReadError>;

    /// Replaces what an owner is told about.
    fn declare(&self, owner: &Owner, set: WatchSet);

    /// Adds to what an owner is told about.
    fn extend(&self, owner: &Owner, set: WatchSet);

    /// Ends what an owner is told about.
    fn forget(&self, owner: &Owner);
}

/// Schemas of the kinds of a cluster.
pub trait Schemas: Send + Sync {
    /// A snapshot that knows of each of these kinds whether it is served.
    fn of<'a>(
        &'a self,
        cluster: &'a ClusterKey,
        kinds: &'a [GroupVersionKind],
    ) -> Answer<'a, Result<Arc<dyn SchemaSource>, ReadError>>;
}

/// Takes finalizers off: server-side apply can only take off what the same manager put on.
pub trait Finalizers: Send + Sync {
    /// Removes one finalizer; an object that is gone, or without it, is no error.
    fn remove<'a>(&'a self, key: &'a ObjectKey, finalizer: &'a str) -> Answer<'a, Result<(), WriteError>>;
}

/// Acts for service accounts: what an account may not do is refused, and nothing is done by the controller's rights instead.
pub trait Accounts: Send + Sync {
    /// Writes of an account of a cluster; it has no rights in other clusters.
    fn writes(&self, account: &ServiceAccount, cluster: &ClusterKey) -> Arc<dyn Applier>;

    /// Whether an account may read.
    fn may_read<'a>(&'a self, access: &'a Access) -> Answer<'a, Result<bool, ReadError>>;
}

/// All ports together.
#[derive(Clone)]
pub struct World {
    /// The watched state.
    pub index: Arc<dyn Index>,
    /// Writes, by way of the decorators.
    pub applier: Arc<dyn Applier>,
    /// Writes and rights of service accounts.
    pub accounts: Arc<dyn Accounts>,
    /// Reads that the index cannot answer.
    pub reader: Arc<dyn Reader>,
    /// Finalizers.
    pub finalizers: Arc<dyn Finalizers>,
    /// Schemas.
    pub schemas: Arc<dyn Schemas>,
    /// Where events go.
    pub recorder: Arc<dyn Recorder>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Figures under kro's names.
    pub figures: Figures,
    /// Whether an instance's conditions are told as Kubernetes events too (kro's gate `InstanceConditionEvents`).
    pub condition_events: bool,
    /// What will be made again once it is gone.
    pub awaited: Arc<Awaited>,
    /// A platform is on its way out: nothing is made, changed or judged but what is being deleted.
    pub removing: bool,
}
