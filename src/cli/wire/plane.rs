//! The embedded control plane behind bootstrap's ports: where rehearsals and demos take place.

use std::{sync::Arc, time::Duration};

use plinth_api::{ClusterKey, Object, Permission, Scenario};
use plinth_bootstrap::{Access, Ports, rehearsal::Venue};
use plinth_cluster::{
    Cluster,
    embedded::{
        Acting, AtWork, Embedded, Options, Serving,
        act::{ImageCatalog, ImageList},
        api::rbac::User,
    },
};
use plinth_engine::ports::{Answer, ReadError};
use plinth_run::ClusterIdentity;
use serde_json::{Map, Value, json};

use super::{host::Host, requests::Requests};
use crate::exit::Failure;

/// What the times of a scenario are multiplied by where nobody watches: its order stays, its waiting goes.
pub(crate) const AT_ONCE: f64 = 0.001;
/// How often a rehearsal looks whether anything still moves.
const LOOK: Duration = Duration::from_millis(50);
/// How many looks in a row must see nothing.
const QUIET: u32 = 30;
/// Whose permissions are rehearsed.
const REHEARSING: &str = "rehearsing";
/// How messages call the server.
const SERVER: &str = "the embedded control plane";

/// A control plane in this process, with a cluster's programs at work.
pub(crate) struct Plane {
    embedded: Embedded,
    at_work: AtWork,
    requests: Arc<Requests>,
    images: Arc<ImageList>,
    host: Host,
}

impl Plane {
    /// Opens one in which a scenario is followed at this pace, and in which these images can be pulled.
    pub(crate) fn open(scenario: Scenario, pace: f64, images: ImageList) -> Self {
        let requests = Arc::new(Requests::default());
        let embedded = Embedded::new(&Options { witness: Some(requests.clone()), ..Options::default() });
        let images = Arc::new(images);
        let at_work = embedded.act(Acting { scenario, pace, images: images.clone() });
        let host = Host(Cluster::with_client(ClusterKey::host(), embedded.client()), SERVER.to_owned());
        Self { embedded, at_work, requests, images, host }
    }

    /// The cluster.
    pub(crate) fn host(&self) -> Host {
        self.host.clone()
    }

    /// Listens on an address of this machine.
    pub(crate) async fn serve(&self, address: std::net::SocketAddr) -> Result<Serving, Failure> {
        let refuse = |error: std::io::Error| Failure::refused(format!("listen on {address}: {error}"));
        self.embedded.serve_at(address).await.map_err(refuse)
    }

    /// Access as somebody who may do what these rules say, and no more.
    pub(crate) async fn access(&self, rules: &[Map<String, Value>]) -> Result<Arc<dyn Access>, Failure> {
        let group = "rbac.authorization.k8s.io";
        let role =
            json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": REHEARSING}, "rules": rules});
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": REHEARSING},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": REHEARSING},
            "subjects": [{"apiGroup": group, "kind": "User", "name": REHEARSING}],
        });
        for value in [role, binding] {
            let object = Object::from_value(value).expect("a JSON object was just written");
            let key = object.key(&ClusterKey::host()).expect("it has a type");
            let refuse = |error| Failure::refused(format!("the scenario's permissions: {error}"));
            self.host.0.create(&key, &object).await.map_err(refuse)?;
        }
        let client = self.embedded.client_as(User::new(REHEARSING, &[]));
        let asking = Host(Cluster::with_client(ClusterKey::host(), client), SERVER.to_owned());
        Ok(Arc::new(Rehearsing { host: self.host(), asking }))
    }
}

/// Who the cluster is, as everybody sees it, and what somebody else may do there.
struct Rehearsing {
    host: Host,
    asking: Host,
}

impl Access for Rehearsing {
    fn identity(&self) -> Answer<'_, Result<ClusterIdentity, ReadError>> {
        self.host.identity()
    }

    fn can_i<'a>(&'a self, permission: &'a Permission) -> Answer<'a, Result<bool, ReadError>> {
        self.asking.can_i(permission)
    }
}

/// A plane with a run in it.
pub(crate) struct Room<'a> {
    /// Where it takes place.
    pub(crate) plane: &'a Plane,
    /// The run's ports.
    pub(crate) ports: &'a Ports,
}

impl Room<'_> {
    /// Whether nothing is to come: the plane has nothing due, the loop nothing to do, and nobody comes back to what only failed
    /// for the moment. Loops and runs that look again for other reasons do not count: they would for ever.
    async fn rests(&self) -> bool {
        let (begun, now) = (self.ports.log.read(|state| state.approved.is_some()), self.ports.log.clock().now());
        begun
            && !self.plane.at_work.outlook().moves
            && !self.plane.requests.is_one_open(now)
            && self.ports.control.is_settled().await
    }
}

impl Venue for Room<'_> {
    fn still(&self) -> Answer<'_, ()> {
        Box::pin(async {
            let (mut before, mut quiet) = (0, 0);
            while quiet < QUIET {
                self.ports.log.clock().sleep(LOOK).await;
                let requests = self.plane.requests.count();
                let rests = requests == before && self.rests().await;
                (before, quiet) = (requests, if rests { quiet + 1 } else { 0 });
            }
        })
    }

    fn has_image(&self, reference: &str) -> bool {
        self.plane.images.has(reference)
    }

    fn mishaps(&self, is_over: bool) -> Vec<String> {
        self.plane.at_work.mishaps(is_over).iter().map(ToString::to_string).collect()
    }
}
