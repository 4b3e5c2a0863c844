//! What an API server serves: kinds by discovery, schemas by CRD objects and OpenAPI, current by a watch of the CRDs.
//!
//! A CRD's schema is taken from the CRD object itself, never from the server's OpenAPI, which lags behind (contracts 12). A
//! new kind is announced once its endpoint answers: the condition `Established` comes a moment before that.

mod discovery;
mod documents;
mod follow;
mod schemas;
mod state;

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use plinth_api::GroupVersionKind;
use plinth_engine::ports::ReadError;
use tokio::sync::{Mutex as AsyncMutex, broadcast};
use tokio_util::task::AbortOnDropHandle;

pub use state::CrdState;
use state::State;

use crate::{fault, http::Transport, revision::Revision};

/// Changes that a slow subscriber may be behind before it is told to look at everything again.
const CHANGES: usize = 1024;

/// A kind and where it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedKind {
    /// The kind.
    pub gvk: GroupVersionKind,
    /// Name in URLs and RBAC rules, such as `deployments`.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether objects can be listed: those of a review, for one, cannot.
    pub listable: bool,
}

impl ServedKind {
    /// `plural.group`, or `plural` in the core group: how RBAC rules and people name it.
    pub fn resource(&self) -> String {
        if self.gvk.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.gvk.group) }
    }

    /// URL path of the collection, of all namespaces where `namespace` is `None`.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let root = discovery::root(&self.gvk.group, &self.gvk.version);
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{}/{}", crate::http::escape(namespace), self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }
}

/// A change in what is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// The kind.
    pub gvk: GroupVersionKind,
    /// What happened to it.
    pub event: SchemaEvent,
}

/// What happened to a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaEvent {
    /// It is served now, and its endpoint answers.
    Served,
    /// Its schema is another one now.
    Changed,
    /// It is not served any more.
    Gone,
}

/// A stream of [`SchemaChange`]s.
pub struct SchemaChanges(broadcast::Receiver<SchemaChange>);

/// What [`SchemaChanges::next`] answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaNotice {
    /// One change.
    Change(SchemaChange),
    /// Changes were missed: look at everything again.
    Missed,
}

impl SchemaChanges {
    /// The next change; `None` when the catalog is gone.
    pub async fn next(&mut self) -> Option<SchemaNotice> {
        match self.0.recv().await {
            Ok(change) => Some(SchemaNotice::Change(change)),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(SchemaNotice::Missed),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// What one API server serves.
pub struct Catalog {
    transport: Transport,
    state: Mutex<State>,
    /// Moves with every change of `state`.
    revision: Revision,
    changes: broadcast::Sender<SchemaChange>,
    /// Held during requests that fill the cache, so that many askers make one request.
    loading: AsyncMutex<()>,
    /// Counts, so that of two things it is known which was first.
    moments: AtomicU64,
    follower: Mutex<Option<AbortOnDropHandle<()>>>,
    followed: Followed,
}

/// How far the follower is.
#[derive(Default)]
struct Followed {
    /// What the watch told and was not taken in yet.
    waiting: AtomicUsize,
    /// Whether the watch failed and was not opened again.
    is_broken: AtomicBool,
}

impl Catalog {
    pub(crate) fn new(transport: Transport) -> Arc<Self> {
        Arc::new(Self {
            transport,
            state: Mutex::default(),
            revision: Revision::default(),
            changes: broadcast::Sender::new(CHANGES),
            loading: AsyncMutex::default(),
            moments: AtomicU64::default(),
            follower: Mutex::default(),
            followed: Followed::default(),
        })
    }

    /// Starts to follow the CRDs, once; ends when the catalog is dropped. Without it, what was read once stays.
    pub fn follow(self: &Arc<Self>) {
        let mut follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        if follower.is_none() {
            *follower = Some(AbortOnDropHandle::new(tokio::spawn(follow::run(Arc::downgrade(self), self.transport.clone()))));
        }
    }

    /// Where a kind is served. A kind that is not known costs one request, for its group and version; those who ask for the same group
    /// and version at the same time share it.
    pub async fn find(&self, gvk: &GroupVersionKind) -> Result<ServedKind, ReadError> {
        self.find_since(gvk, self.moment()).await
    }

    /// The same, where an answer of the server that was asked for after `since` is new enough.
    async fn find_since(&self, gvk: &GroupVersionKind, since: u64) -> Result<ServedKind, ReadError> {
        if let Some(served) = self.known(gvk) {
            return Ok(served);
        }
        if !can_be_served(gvk) {
            return Err(ReadError::NotServed(gvk.clone()));
        }
        let _loading = self.loading.lock().await;
        if let Some(served) = self.known(gvk) {
            return Ok(served);
        }
        if self.lock().was_asked_after(gvk, since) {
            return Err(ReadError::NotServed(gvk.clone()));
        }
        let asked = self.moment();
        let kinds = discovery::group(&self.transport, &gvk.group, &gvk.version).await;
        let kinds = kinds.map_err(|fault| fault::read_error(gvk, &format!("API group {}", gvk.group), "get", fault))?;
        self.lock().answered(gvk, asked, kinds);
        self.announce(Vec::new());
        self.known(gvk).ok_or_else(|| ReadError::NotServed(gvk.clone()))
    }

    /// Where a kind is served, as far as it is known without a request.
    pub fn known(&self, gvk: &GroupVersionKind) -> Option<ServedKind> {
        self.lock().find(gvk)
    }

    /// Everything that is served, by discovery: for questions about the whole server.
    pub async fn all(&self) -> Result<Vec<ServedKind>, ReadError> {
        let _loading = self.loading.lock().await;
        let groups = discovery::all(&self.transport).await;
        let groups = groups.map_err(|fault| fault::read_error(&GroupVersionKind::default(), "discovery", "get", fault))?;
        let mut state = self.lock();
        for ((group, version), kinds) in groups {
            state.discovered(&group, &version, kinds);
        }
        Ok(state.all())
    }

    /// Waits until a kind is served; only useful while the catalog follows the CRDs. Bound it by a deadline.
    pub async fn until_served(&self, gvk: &GroupVersionKind) {
        self.until(|state| state.find(gvk).map(|_| ())).await;
    }

    /// Waits until a CRD (by name, `plural.group`) is Established and its kinds are served, or its names are refused because
    /// another CRD has them. Only useful while the catalog follows the CRDs. Bound it by a deadline.
    pub async fn until_established(&self, crd: &str) -> CrdState {
        self.until(|state| match state.crd(crd) {
            CrdState::Absent | CrdState::Pending => None,
            settled => Some(settled),
        })
        .await
    }

    /// Where a CRD stands, as far as it was seen.
    pub fn crd(&self, name: &str) -> CrdState {
        self.lock().crd(name)
    }

    /// Whether a generation of a CRD is known here, or a later one; a CRD that is not known is not waited for.
    pub fn has_seen(&self, name: &str, generation: i64) -> bool {
        self.lock().has_seen(name, generation)
    }

    /// Whether the CRDs are known completely, so that an unknown one does not exist.
    pub fn is_following(&self) -> bool {
        self.lock().is_complete()
    }

    /// Whether everything that the watch of the CRDs told is known here, and it goes on telling. Who does not follow them has
    /// nothing to wait for.
    pub fn is_current(&self) -> bool {
        self.followed.waiting.load(Ordering::Relaxed) == 0 && !self.followed.is_broken.load(Ordering::Relaxed)
    }

    /// Waits until the CRDs are known completely. Bound it by a deadline.
    pub async fn until_following(&self) {
        self.until(|state| state.is_complete().then_some(())).await;
    }

    /// Changes from now on.
    pub fn subscribe(&self) -> SchemaChanges {
        SchemaChanges(self.changes.subscribe())
    }

    /// A request found nothing where the kind should be: ask again next time. A CRD's kind stays until its CRD goes.
    pub(crate) fn doubt(&self, gvk: &GroupVersionKind) {
        self.lock().doubt(gvk);
    }

    async fn until<T>(&self, mut settled: impl FnMut(&State) -> Option<T>) -> T {
        self.revision.until(|| settled(&self.lock())).await
    }

    fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self, changes: Vec<SchemaChange>) {
        self.revision.step();
        for change in changes {
            tracing::debug!(kind = %change.gvk, event = ?change.event, "the served kinds changed");
            // Nobody listening is fine.
            let _ = self.changes.send(change);
        }
    }
}

/// Whether group and version are of the letters that servers take. Others name no kind that was ever served, and some no path
/// that can be asked for.
fn can_be_served(gvk: &GroupVersionKind) -> bool {
    let is_name =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte));
    is_name(&gvk.group) && is_name(&gvk.version)
}

#[cfg(test)]
mod tests;
