//! The doors of the use case. Twins for tests are in `memory`.

use std::{collections::BTreeSet, sync::Arc};

use plinth_api::{GroupVersionKind, ObjectKey, Permission};
use plinth_engine::{
    ports::{Answer, Applier, ReadError, Reader},
    schema::SchemaSource,
};
use plinth_run::{ClusterIdentity, Log, Observer, Plan};

use crate::error::Error;

/// Who the cluster is and what we may do there.
pub trait Access: Send + Sync {
    /// UID of kube-system, or of the LogicalCluster.
    fn identity(&self) -> Answer<'_, Result<ClusterIdentity, ReadError>>;

    /// Whether our identity may do this (SelfSubjectAccessReview; writes nothing).
    fn can_i<'a>(&'a self, permission: &'a Permission) -> Answer<'a, Result<bool, ReadError>>;
}

/// What the cluster serves.
pub trait Schemas: Send + Sync {
    /// Fetches the schemas of these kinds, as they are now; kinds that are not served are no error. The answer is a snapshot.
    fn ensure<'a>(&'a self, kinds: &'a [GroupVersionKind]) -> Answer<'a, Result<Arc<dyn SchemaSource>, ReadError>>;

    /// Every kind that can be listed, each in one version, as discovery says it now.
    fn listable(&self) -> Answer<'_, Result<Vec<Listable>, ReadError>>;
}

/// A kind whose objects can be listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listable {
    /// The kind, in a version that is served.
    pub gvk: GroupVersionKind,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// The loop that carries graphs out: in this process, or in the cluster.
pub trait Loop: Send + Sync {
    /// Starts it, or finds it running. It records what it does itself; the observer tells what it sees.
    fn start(&self) -> Answer<'_, Result<Arc<dyn Observer>, String>>;

    /// Whether it has acted on everything that it sees: until then a status may be one that an earlier loop wrote. A loop that
    /// runs elsewhere cannot say, and counts as settled.
    fn is_settled(&self) -> Answer<'_, bool> {
        Box::pin(async { true })
    }

    /// How the instances of a kind stand. A loop that runs elsewhere cannot say, and is not waited for.
    fn stands<'a>(&'a self, _kind: &'a GroupVersionKind) -> Answer<'a, Stand> {
        Box::pin(async { Stand::Ready })
    }

    /// Says which objects the run makes again once they are gone, so that whoever holds them for the sake of those that build on
    /// them lets go. What was said before does not count any more. A loop that runs elsewhere is not told.
    fn awaits(&self, _objects: BTreeSet<ObjectKey>) -> Answer<'_, ()> {
        Box::pin(async {})
    }

    /// Says that the run has written what it writes itself: where the loop is to go on in the cluster, it goes there as soon as it can.
    fn hand_over(&self) -> Answer<'_, ()> {
        Box::pin(async {})
    }

    /// Stops it where it runs in this process; waits for what is in flight.
    fn stop(&self) -> Answer<'_, ()>;
}

/// How the instances of a kind stand, held against the graph that their definition has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stand {
    /// Each is ready by that graph, and so is everything that it made.
    Ready,
    /// Not yet.
    Moving {
        /// What is missing, a sentence.
        why: String,
        /// Something of it has failed, rather than not come to its end.
        has_failed: bool,
    },
}

/// The one turn to write on a cluster (contracts 21).
pub trait Lead: Send + Sync {
    /// Takes it, before the first write: waits for a dead holder's time to pass, and refuses where another one lives.
    fn take(&self) -> Answer<'_, Result<(), Error>>;

    /// Resolves once it is lost, with a sentence for people; what was to be written is dropped from then on.
    fn lost(&self) -> Answer<'_, String>;

    /// Gives it back, where it is ours.
    fn release(&self) -> Answer<'_, ()>;
}

/// Nobody else writes: rehearsals, and tests.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Lead for Alone {
    fn take(&self) -> Answer<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }

    fn lost(&self) -> Answer<'_, String> {
        Box::pin(std::future::pending())
    }

    fn release(&self) -> Answer<'_, ()> {
        Box::pin(async {})
    }
}

/// Says yes or no to a plan.
pub trait Approver: Send + Sync {
    /// Shows the plan and asks.
    fn approve<'a>(&'a self, plan: &'a Plan) -> Answer<'a, Approval>;
}

/// The answer of an [`Approver`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Go on; by whom or what, for the journal.
    Granted(String),
    /// Do not.
    Declined,
}

/// Agrees to everything: `--apply`.
#[derive(Clone, Debug)]
pub struct Always(pub String);

impl Approver for Always {
    fn approve<'a>(&'a self, _plan: &'a Plan) -> Answer<'a, Approval> {
        Box::pin(async { Approval::Granted(self.0.clone()) })
    }
}

/// Everything that the use case talks to.
#[derive(Clone)]
pub struct Ports {
    /// Writes.
    pub applier: Arc<dyn Applier>,
    /// Reads.
    pub reader: Arc<dyn Reader>,
    /// Identity and permissions.
    pub access: Arc<dyn Access>,
    /// Served kinds.
    pub schemas: Arc<dyn Schemas>,
    /// The loop.
    pub control: Arc<dyn Loop>,
    /// The turn to write.
    pub lead: Arc<dyn Lead>,
    /// Events, with the clock that dates them.
    pub log: Arc<Log>,
}
