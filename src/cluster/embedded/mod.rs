//! The control plane in this process (issue 02): store, API, and the client that reaches it without a socket.
//!
//! Invariant: nothing below [`Embedded`] reads a clock or draws a number; times come in with each request and UIDs from a
//! seed, so that the same requests give the same objects and the same events.

pub mod api;
mod collect;
pub mod fields;
pub mod filter;
mod serve;
mod service;
pub mod store;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{
    rbac::User,
    state::{Call, Reply, State},
};
use jiff::Timestamp;
use serde_json::json;

pub use serve::Serving;
pub use service::Service;

/// How a control plane behaves.
#[derive(Clone)]
pub struct Options {
    /// Newest changes that watches can go on from.
    pub history: usize,
    /// Where UIDs and generated names come from.
    pub seed: u64,
    /// Whether namespaces and owners take their objects along; a bare kube-apiserver leaves that to others.
    pub collect: bool,
    /// The time of day.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Default for Options {
    fn default() -> Self {
        Self { history: 100_000, seed: 0, collect: true, clock: Arc::new(Timestamp::now) }
    }
}

/// A control plane in this process. Clones are the same one.
#[derive(Clone)]
pub struct Embedded {
    shared: Arc<Shared>,
}

/// What requests and watches share.
pub(crate) struct Shared {
    state: Mutex<State>,
    versions: tokio::sync::watch::Sender<u64>,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn versions(&self) -> tokio::sync::watch::Receiver<u64> {
        self.versions.subscribe()
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    fn handle(&self, call: &Call) -> Reply {
        let mut state = self.lock();
        let reply = state.handle(call);
        let version = state.store.version();
        drop(state);
        self.versions.send_if_modified(|known| std::mem::replace(known, version) != version);
        reply
    }
}

impl Embedded {
    /// A control plane with the namespaces and roles that every cluster has.
    pub fn new(options: &Options) -> Self {
        let state = State::new(options.history, options.seed, options.collect);
        let (versions, _) = tokio::sync::watch::channel(0);
        let shared = Shared { state: Mutex::new(state), versions, clock: Arc::clone(&options.clock) };
        let embedded = Self { shared: Arc::new(shared) };
        embedded.furnish("");
        embedded
    }

    /// A client that may do everything.
    pub fn client(&self) -> kube::Client {
        self.client_as(User::admin())
    }

    /// A client for somebody, whose permissions RBAC decides.
    pub fn client_as(&self, user: User) -> kube::Client {
        kube::Client::new(self.service(user), "default")
    }

    /// The API as a tower service, for any transport.
    pub fn service(&self, user: User) -> Service {
        Service::new(Arc::clone(&self.shared), user)
    }

    /// Lets a bearer token stand for somebody.
    pub fn allow_token(&self, token: &str, user: User) {
        self.shared.lock().allow_token(token, user);
    }

    /// Makes a logical cluster with the namespaces that every cluster has; it is reached below `/clusters/NAME`.
    pub fn add_cluster(&self, name: &str) {
        self.furnish(&format!("/clusters/{name}"));
    }

    fn furnish(&self, root: &str) {
        let post = |path: &str, body: serde_json::Value| {
            let call = Call::internal(format!("{root}{path}"), &body, self.shared.now());
            self.shared.handle(&call);
        };
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            post("/api/v1/namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        }
        let group = "rbac.authorization.k8s.io";
        let rules = json!([
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]}
        ]);
        post(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "cluster-admin"}, "rules": rules}),
        );
        post(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "cluster-admin"},
                   "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
                   "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:masters"}]}),
        );
    }
}
