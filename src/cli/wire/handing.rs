//! The hand-over: the loop runs in this process until a pod of the controller is ready, and then in the cluster (contracts 21).
//!
//! 1. The controller's pods start beside the loop, and wait for the Lease.
//! 2. When one is ready and the run has written what it writes itself, the loop here ends: passes in work end, no other begins.
//! 3. What it did goes into the cluster's journal, and the Lease back.
//! 4. From then on this process only watches.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey};
use plinth_bootstrap::{Lead, Loop, Stand, install, rights};
use plinth_cluster::{
    Watches,
    watch::{Owner, Settings, WatchSet},
};
use plinth_controller::journal;
use plinth_engine::ports::{Answer, Applier, Clock};
use plinth_manager::SystemClock;
use plinth_run::{CheckVerdict, EventKind, Log, Observer, Recorder, RunState};
use serde_json::Value;
use tokio::sync::{Mutex, Notify, watch};
use tokio_util::task::AbortOnDropHandle;

use super::{host::Host, looped::InProcess};
use crate::follow::Follower;

/// The check that says who keeps the platform.
const HANDED_OVER: &str = "handed-over";
/// How long a write of the journal that failed waits.
const AGAIN: Duration = Duration::from_secs(1);
const ROLE: &str = "hand-over";

/// The loop, wherever it runs.
pub(crate) struct Handing {
    parts: Arc<Parts>,
    handing: Mutex<Option<AbortOnDropHandle<()>>>,
}

struct Parts {
    inner: InProcess,
    host: Host,
    log: Arc<Log>,
    lead: Arc<dyn Lead>,
    /// Writes, as long as the Lease is held.
    applier: Arc<dyn Applier>,
    platform: String,
    handed: watch::Sender<bool>,
}

impl Handing {
    /// The loop in this process, to be handed over.
    pub(crate) fn new(
        inner: InProcess,
        host: Host,
        log: Arc<Log>,
        (lead, applier): (Arc<dyn Lead>, Arc<dyn Applier>),
        platform: &str,
    ) -> Self {
        let (platform, handed) = (platform.to_owned(), watch::Sender::new(false));
        Self { parts: Arc::new(Parts { inner, host, log, lead, applier, platform, handed }), handing: Mutex::default() }
    }
}

impl Loop for Handing {
    fn start(&self) -> Answer<'_, Result<Arc<dyn Observer>, String>> {
        self.parts.inner.start()
    }

    /// Not before the controller has it: a run that ended earlier would leave nobody behind.
    fn is_settled(&self) -> Answer<'_, bool> {
        Box::pin(async { *self.parts.handed.borrow() })
    }

    fn stands<'a>(&'a self, kind: &'a GroupVersionKind) -> Answer<'a, Stand> {
        self.parts.inner.stands(kind)
    }

    fn awaits(&self, objects: BTreeSet<ObjectKey>) -> Answer<'_, ()> {
        self.parts.inner.awaits(objects)
    }

    fn hand_over(&self) -> Answer<'_, ()> {
        Box::pin(async {
            let parts = Arc::clone(&self.parts);
            let mut handing = self.handing.lock().await;
            handing.get_or_insert_with(|| AbortOnDropHandle::new(tokio::spawn(async move { parts.hand_over().await })));
        })
    }

    fn stop(&self) -> Answer<'_, ()> {
        Box::pin(async {
            drop(self.handing.lock().await.take());
            self.parts.inner.stop().await;
        })
    }
}

impl Parts {
    async fn hand_over(&self) {
        self.until_ready().await;
        self.inner.stop().await;
        let state = self.proven().await;
        let mut attempt = 0;
        while let Err(error) = journal::write(&*self.applier, &state, "").await {
            attempt += 1;
            let (what, message) = ("write the cluster's journal".to_owned(), error.to_string());
            self.log.record(EventKind::Retry { what, message, attempt, next_in_ms: 1000 });
            SystemClock.sleep(AGAIN).await;
        }
        self.lead.release().await;
        let message = "the controller in the cluster keeps the platform from here on".to_owned();
        self.log.record(EventKind::CheckFinished { id: HANDED_OVER.into(), verdict: CheckVerdict::Passed, message, hint: None });
        self.handed.send_replace(true);
        self.watch().await;
    }

    /// The state here, with what an earlier controller proved besides.
    async fn proven(&self) -> RunState {
        let mut state = self.log.state();
        let before = journal::read(&*self.host.0).await.ok().flatten().unwrap_or_default();
        for (key, applied) in before.applied {
            state.applied.entry(key).or_insert(applied);
        }
        state
    }

    /// Waits until a pod of the controller is ready, as its Deployment says.
    async fn until_ready(&self) {
        let key = ObjectKey {
            cluster: ClusterKey::host(),
            gvk: install::deployment_kind(),
            namespace: Some(rights::NAMESPACE.to_owned()),
            name: rights::NAME.to_owned(),
        };
        let (watches, changed) = (Watches::new(Settings::default()), Arc::new(Notify::new()));
        let wake = Arc::clone(&changed);
        watches.route(ROLE, Arc::new(move |_, _| wake.notify_one()));
        watches.engage(Arc::clone(&self.host.0));
        let set = WatchSet { objects: BTreeSet::from([key.clone()]), lists: BTreeSet::new() };
        watches.declare(&Owner { role: ROLE, key: key.clone() }, set);
        while !watches.get(&key).is_some_and(|deployment| has_ready_pod(&deployment)) {
            changed.notified().await;
        }
    }

    /// Tells of the platform what the cluster says.
    async fn watch(&self) {
        let mut follower = Follower::new(self.host.clone(), &self.platform).of_what_is_there();
        loop {
            for event in follower.next().await {
                self.log.record(event.kind);
            }
        }
    }
}

/// A pod of what the Deployment is now, not of what it was.
fn has_ready_pod(deployment: &Object) -> bool {
    let number = |field: &str| deployment.status()[field].as_i64().unwrap_or_default();
    let is_seen = deployment.status().get("observedGeneration").and_then(Value::as_i64) >= Some(deployment.generation());
    // More ready ones than old ones.
    is_seen && number("readyReplicas") > number("replicas") - number("updatedReplicas")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_of_an_earlier_deployment_is_not_waited_for() {
        let with = |status: Value| Object::from_value(json!({"metadata": {"generation": 2}, "status": status})).unwrap();
        assert!(has_ready_pod(&with(json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 2, "updatedReplicas": 2}))));
        for status in [
            json!({}),
            json!({"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2}),
            json!({"observedGeneration": 2, "replicas": 2, "readyReplicas": 2}),
            json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2}),
        ] {
            assert!(!has_ready_pod(&with(status.clone())), "{status}");
        }
    }
}
