//! The control plane in this process: store, API, what acts in it, and the client that reaches it without a socket.
//!
//! One store holds the default cluster, which is served at `/`, and any number of logical clusters ([`Embedded::add_cluster`]),
//! each at `/clusters/NAME`:
//!
//! | each cluster has its own | all have one |
//! | --- | --- |
//! | objects, names, namespaces | counter of resource versions: versions of any two clusters can be compared |
//! | CRDs, discovery, OpenAPI | history that watches go on from, as kcp's clusters share one etcd: who writes much makes others list again |
//! | roles, bindings, service accounts and their tokens | members of `system:masters`, users and groups |
//! | owners and dependents | faults, clock, seed |
//!
//! Objects of a logical cluster say which in the annotation `kcp.io/cluster`. `/clusters/*` lists and watches all of them, for
//! `system:masters`; the default cluster is not among them. A logical cluster that was not added answers 403 to everybody, as
//! kcp does. What is more than that, such as workspaces and virtual workspaces, comes in by a [`seam`].
//!
//! Invariant: nothing below [`Embedded`] reads a clock or draws a number but by its port; times come in with each request and
//! UIDs from a seed, so that the same requests give the same objects and the same events.

pub mod act;
pub mod api;
mod collect;
pub mod faults;
pub mod fields;
pub mod filter;
pub mod seam;
mod serve;
mod service;
pub mod store;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{
    rbac::User,
    route::is_cluster_name,
    state::{Call, Reply, State},
};
use faults::{Away, Faults};
use jiff::Timestamp;
use plinth_api::ClusterKey;
use plinth_engine::ports::Clock;
use seam::Seam;
use serde_json::json;
use thiserror::Error;

use crate::{Cluster, SystemClock, revision::Revision};

pub use act::{Acting, Actors, AtWork};
pub use api::watch::Line;
pub use serve::Serving;
pub use service::{Answered, News, Service, Watched};

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
    pub clock: Arc<dyn Clock>,
    /// Who is told of every request of a client.
    pub witness: Option<Arc<dyn Witness>>,
    /// Who looks at requests before the API.
    pub seam: Option<Arc<dyn Seam>>,
}

/// Not a name for a logical cluster.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is no name of a logical cluster: labels of lower case letters, digits and '-', with ':' between them, and not host"
)]
pub struct ClusterNameError(pub String);

/// Is told of the requests of clients, as an API server's audit log is. Must not block, and not ask the control plane.
pub trait Witness: Send + Sync {
    /// A request was answered with this code.
    fn saw(&self, call: &Call, code: u16);

    /// A request had no answer, as the API server was away.
    fn missed(&self, _call: &Call) {}
}

impl Default for Options {
    fn default() -> Self {
        Self { history: 100_000, seed: 0, collect: true, clock: Arc::new(SystemClock), witness: None, seam: None }
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
    versions: Revision,
    clock: Arc<dyn Clock>,
    witness: Option<Arc<dyn Witness>>,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Steps with every new resource version.
    pub(crate) fn versions(&self) -> &Revision {
        &self.versions
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Changes the state and wakes the watches.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let (version, cuts) = (state.store.version(), state.faults.cuts);
        let answer = change(&mut state);
        let has_moved = (state.store.version(), state.faults.cuts) != (version, cuts);
        drop(state);
        if has_moved {
            self.versions.step();
        }
        answer
    }

    /// Answers a client's request, unless a fault comes in between.
    fn answer(&self, call: &Call) -> Result<Reply, Away> {
        let reply = self.with(|state| {
            let conflicts = state.faults.hit(call)?;
            Ok(if conflicts { state.conflicting(call) } else { state.handle(call) })
        });
        if let Some(witness) = &self.witness {
            match &reply {
                Ok(reply) => witness.saw(call, reply.code()),
                Err(Away) => witness.missed(call),
            }
        }
        reply
    }
}

impl Embedded {
    /// A control plane with the namespaces and roles that every cluster has.
    pub fn new(options: &Options) -> Self {
        let state = State::new(options);
        let shared = Shared {
            state: Mutex::new(state),
            versions: Revision::default(),
            clock: Arc::clone(&options.clock),
            witness: options.witness.clone(),
        };
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

    /// A client for somebody whose requests all begin with a path, such as `/clusters/NAME`.
    pub fn client_at(&self, root: &str, user: User) -> kube::Client {
        kube::Client::new(self.service(user).at(root), "default")
    }

    /// A cluster of this control plane, the default one or a logical one, with a client that may do everything.
    pub fn cluster(&self, key: &ClusterKey) -> Arc<Cluster> {
        Cluster::with_client(key.clone(), self.client_at(&seam::root(key), User::admin()))
    }

    /// The API as a tower service, for any transport.
    pub fn service(&self, user: User) -> Service {
        Service::new(Arc::clone(&self.shared), user)
    }

    /// Makes things go wrong, or well again.
    pub fn fault(&self, change: impl FnOnce(&mut Faults)) {
        self.shared.with(|state| change(&mut state.faults));
    }

    /// Lets a bearer token stand for somebody.
    pub fn allow_token(&self, token: &str, user: User) {
        self.shared.lock().allow_token(token, user);
    }

    /// Makes a logical cluster with the namespaces and roles that every cluster has; it is reached below `/clusters/NAME`. One
    /// that is there already stays as it is.
    pub fn add_cluster(&self, name: &str) -> Result<ClusterKey, ClusterNameError> {
        if !is_cluster_name(name) {
            return Err(ClusterNameError(name.to_owned()));
        }
        let key = ClusterKey(name.to_owned());
        if self.shared.lock().clusters.insert(key.clone()) {
            self.furnish(&seam::root(&key));
        }
        Ok(key)
    }

    fn furnish(&self, root: &str) {
        let post = |path: &str, body: serde_json::Value| {
            let call = Call::internal(format!("{root}{path}"), &body, self.shared.now());
            self.shared.with(|state| state.handle(&call));
        };
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            post("/api/v1/namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        }
        let group = "rbac.authorization.k8s.io";
        for (name, whose, rules) in roles() {
            post(
                "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}),
            );
            post(
                "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
                       "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
                       "subjects": [{"apiGroup": group, "kind": "Group", "name": whose}]}),
            );
        }
    }
}

/// The roles that every cluster has, and whose they are: an administrator's, and what everybody may ask.
fn roles() -> [(&'static str, &'static str, serde_json::Value); 3] {
    let reviews = json!([
        {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], "verbs": ["create"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
    ]);
    let paths = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/readyz", "/openapi", "/openapi/*", "/version"];
    let everything = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]);
    [
        ("cluster-admin", "system:masters", everything),
        ("system:basic-user", "system:authenticated", reviews),
        ("system:discovery", "system:authenticated", json!([{"nonResourceURLs": paths, "verbs": ["get"]}])),
    ]
}
