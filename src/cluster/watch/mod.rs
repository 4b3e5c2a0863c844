//! Shared watches: one per cluster and kind, as long as somebody declares an interest.
//!
//! An owner (a controller and the object it reconciles) declares the set of objects and selections it depends on, and swaps
//! that set at the end of each pass. Changes are routed to the owners whose set they touch; readers get snapshots without a
//! request. A kind that is not served yet parks its watch until the catalog says that it is: nothing here polls.

mod book;
pub(crate) mod feed;
mod hub;
mod one;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey};
use plinth_engine::ports::{Query, ReadError};

pub use hub::{Settings, Sink, Watches};
pub use one::{One, Sight};

/// Who is told about changes: a controller's role, and the object that it reconciles.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The controller; each has its own [`Sink`].
    pub role: &'static str,
    /// What it reconciles.
    pub key: ObjectKey,
}

/// One shared watch: a kind on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchKey {
    /// The API server.
    pub cluster: ClusterKey,
    /// The kind.
    pub gvk: GroupVersionKind,
}

impl WatchKey {
    /// The watch that sees an object.
    pub fn of(key: &ObjectKey) -> Self {
        Self { cluster: key.cluster.clone(), gvk: key.gvk.clone() }
    }

    /// The watch that sees what a query selects.
    pub fn of_query(query: &Query) -> Self {
        Self { cluster: query.cluster.clone(), gvk: query.gvk.clone() }
    }

    fn object(&self, namespace: Option<String>, name: String) -> ObjectKey {
        ObjectKey { cluster: self.cluster.clone(), gvk: self.gvk.clone(), namespace, name }
    }
}

/// What an owner depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchSet {
    /// Single objects, whether they exist or not.
    pub objects: BTreeSet<ObjectKey>,
    /// Selections; a [`Query`] without namespace and selector is every object of the kind.
    pub lists: BTreeSet<Query>,
}

impl WatchSet {
    /// Every object of a kind on a cluster.
    pub fn all_of(cluster: ClusterKey, gvk: GroupVersionKind) -> Self {
        let query = Query { cluster, gvk, namespace: None, selector: String::new() };
        Self { objects: BTreeSet::new(), lists: BTreeSet::from([query]) }
    }

    /// Whether it names nothing.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.lists.is_empty()
    }

    /// Both sets together.
    #[must_use]
    pub fn union(mut self, other: Self) -> Self {
        self.objects.extend(other.objects);
        self.lists.extend(other.lists);
        self
    }
}

impl From<plinth_engine::instance::Watch> for WatchSet {
    fn from(watch: plinth_engine::instance::Watch) -> Self {
        Self { objects: watch.objects, lists: watch.lists }
    }
}

/// What a [`Sink`] is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// An object that the owner's set touches is new, different or gone.
    Changed(Change),
    /// A watch that the owner declared holds everything there is now: what it does not have is absent.
    Synced(WatchKey),
    /// A watch that the owner declared is not permitted; it is tried again, and [`Notice::Synced`] tells when it is.
    Refused(WatchKey),
    /// The cluster was disengaged: nothing is known of its objects any more, which does not mean that they are gone.
    Lost(WatchKey),
}

/// One object's change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The object.
    pub key: ObjectKey,
    /// As it was known before, `None` where it is new.
    pub before: Option<Arc<Object>>,
    /// As it is now, `None` where it is gone.
    pub after: Option<Arc<Object>>,
}

impl Change {
    /// Whether more than the status changed: the object is new, gone, being deleted, or has another generation, labels,
    /// annotations or finalizers.
    pub fn is_more_than_status(&self) -> bool {
        let (Some(before), Some(after)) = (&self.before, &self.after) else { return true };
        let fields = ["generation", "labels", "annotations", "finalizers", "deletionTimestamp", "ownerReferences"];
        fields.iter().any(|field| before.at(&["metadata", field]) != after.at(&["metadata", field]))
            || (after.at(&["metadata", "generation"]).is_none() && before != after)
    }
}

/// What the index knows of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    /// No owner declared the kind.
    Unwatched,
    /// The watch has not listed yet, or cannot.
    Unknown,
    /// It does not exist.
    Absent,
    /// It exists; this is the newest state seen.
    Present(Arc<Object>),
}

/// Where a watch stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum WatchState {
    /// Not listed yet.
    #[default]
    Starting,
    /// The kind is not served; it starts when the catalog says so.
    Parked,
    /// The cluster is not engaged.
    Away,
    /// The index follows the server.
    Synced,
    /// It was synced or starting, and now fails; what it knew stays readable.
    Failing {
        /// Why.
        error: ReadError,
        /// Failed attempts so far.
        attempt: u32,
        /// Delay until the next one.
        next: Duration,
        /// Whether it had been synced before.
        synced: bool,
    },
}

impl WatchState {
    /// Whether absence from the index means something: a kind that is not served has no objects.
    pub fn is_current(&self) -> bool {
        matches!(self, Self::Synced | Self::Parked | Self::Failing { synced: true, .. })
    }

    /// Whether the index follows the server now: one that fails may have missed what happened meanwhile.
    pub fn is_live(&self) -> bool {
        matches!(self, Self::Synced | Self::Parked)
    }

    fn is_refused(&self) -> bool {
        matches!(self, Self::Failing { error: ReadError::Forbidden { .. }, .. })
    }

    fn recover(&mut self) {
        if matches!(self, Self::Failing { synced: true, .. }) {
            *self = Self::Synced;
        }
    }
}
