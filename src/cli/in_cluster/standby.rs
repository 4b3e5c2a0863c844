//! A controller that waits for the Lease: it reads everything that it would need, so that it is ready when its turn comes.

use std::sync::Arc;

use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey, rgd};
use plinth_cluster::{
    Watches,
    watch::{Owner, Settings, WatchKey, WatchSet},
};
use plinth_controller::delivery;
use plinth_manager::Health;
use tokio::task::JoinHandle;

use crate::wire::Host;

const ROLE: &str = "standby";

/// The watches of a waiting controller.
pub(super) struct Standby {
    task: JoinHandle<()>,
    _watches: Arc<Watches>,
}

impl Standby {
    /// Starts to read definitions and delivery objects, and says when they are read.
    pub(super) fn start(host: &Host, health: &Health) -> Self {
        let watches = Watches::new(Settings::default());
        host.0.catalog().follow();
        watches.engage(Arc::clone(&host.0));
        let definitions = GroupVersionKind::new(rgd::KRO_GROUP, rgd::VERSION, rgd::KIND);
        let kinds = delivery::Kind::ALL.into_iter().map(delivery::Kind::gvk).chain([definitions]);
        let set = kinds.fold(WatchSet::default(), |set, gvk| set.union(WatchSet::all_of(ClusterKey::host(), gvk)));
        let key =
            ObjectKey { cluster: ClusterKey::host(), gvk: GroupVersionKind::default(), namespace: None, name: ROLE.to_owned() };
        watches.declare(&Owner { role: ROLE, key }, set);
        let task = tokio::spawn(tell_when_read(Arc::clone(&watches), health.clone()));
        Self { task, _watches: watches }
    }

    /// Reads no more.
    pub(super) async fn end(self) {
        self.task.abort();
        let _ended = self.task.await;
    }
}

/// Waits until every watch that there is has read everything, and says so.
pub(super) async fn tell_when_read(watches: Arc<Watches>, health: Health) {
    loop {
        let waiting: Vec<WatchKey> =
            watches.states().into_iter().filter(|(_, state)| !state.is_current()).map(|(key, _)| key).collect();
        if waiting.is_empty() {
            health.ready("caches", Ok(()));
            return;
        }
        let kinds: Vec<String> = waiting.iter().map(|watch| watch.gvk.to_string()).collect();
        health.ready("caches", Err(format!("reading {}", kinds.join(", "))));
        watches.until_synced(&waiting).await;
    }
}
