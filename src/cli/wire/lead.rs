//! The turn to write: one Lease for every writer of a cluster (contracts 21).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use plinth_api::{ClusterKey, Object, ObjectKey};
use plinth_bootstrap::{Error, Lead, rights, wanted};
use plinth_cluster::chain;
use plinth_engine::{
    naming::{self, keys},
    ports::{Answer, Applier, Apply, Clock, ReadError, Reader, WriteError},
};
use plinth_manager::{
    Holder, Kept, Lease, SystemClock,
    lease::{Attempt, LeaseError, Timing},
};
use plinth_run::{EventKind, Log, Recorder, RunId};
use serde_json::json;
use tokio::sync::{Mutex, watch};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::host::Host;

/// How often a server that is away is asked again for the Lease.
const AGAIN: Duration = Duration::from_secs(2);

/// The Lease of this run, and who renews it.
pub(crate) struct ByLease {
    host: Host,
    log: Arc<Log>,
    lease: Arc<Lease>,
    break_lock: bool,
    /// Whose namespace it is where this run makes it.
    platform: Option<String>,
    lost: watch::Sender<Option<String>>,
    keeper: Mutex<Option<Keeper>>,
    /// Attempts to take it that were in vain.
    attempts: AtomicU32,
}

struct Keeper {
    stop: CancellationToken,
    /// Ends the renewals also where nobody stops them.
    task: AbortOnDropHandle<()>,
}

/// Where the Lease is.
pub(crate) fn key() -> ObjectKey {
    let namespace = Some(rights::NAMESPACE.to_owned());
    ObjectKey { cluster: ClusterKey::host(), gvk: Lease::kind(), namespace, name: rights::NAME.to_owned() }
}

/// The Lease of a cluster, as this holder sees it.
pub(crate) fn lease(host: &Host, holder: Holder, clock: Arc<dyn Clock>) -> Arc<Lease> {
    Lease::new(Arc::clone(&host.0) as _, clock, key(), holder, Timing::default())
}

/// Who a run is to others. The run before it in the same journal is dead, because the journal is locked as long as a run lives.
pub(crate) fn holder(run: &RunId, before: Option<&RunId>) -> Holder {
    let machine = machine();
    let of = |run: &RunId| format!("{machine}/{}", run.0);
    Holder { identity: of(run), heir_of: before.map(of), yields: false }
}

/// The machine's name, for people.
pub(crate) fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

impl ByLease {
    /// Takes nothing yet. The namespace, where it is missing, is made as `platform`'s.
    pub(crate) fn new(host: Host, log: Arc<Log>, lease: Arc<Lease>, break_lock: bool, platform: Option<String>) -> Self {
        Self {
            host,
            log,
            lease,
            break_lock,
            platform,
            lost: watch::Sender::new(None),
            keeper: Mutex::default(),
            attempts: AtomicU32::new(0),
        }
    }

    async fn acquire(&self) -> Result<(), Error> {
        self.namespace().await?;
        let tell = |answer: &Attempt| self.tell(answer);
        loop {
            match self.lease.take(self.break_lock, tell).await {
                Ok(Attempt::Held) => return Ok(()),
                Ok(Attempt::HeldBy { holder, since, .. }) => return Err(Error::Locked { holder, since }),
                Err(
                    LeaseError::Read(_, ReadError::Unavailable(message))
                    | LeaseError::Write(_, WriteError::Unavailable { message, .. }),
                ) => self.retry(message),
                Err(LeaseError::Write(_, WriteError::NotFound { .. } | WriteError::Conflict { .. })) => {}
                Err(error @ LeaseError::Read(..)) => return Err(Error::Failed(chain(&error))),
                Err(LeaseError::Write(_, error)) => return Err(error.into()),
            }
            SystemClock.sleep(AGAIN).await;
        }
    }

    /// Makes the namespace where it is missing; it is the run's first write.
    async fn namespace(&self) -> Result<(), Error> {
        let mut metadata = json!({"name": rights::NAMESPACE});
        if let Some(platform) = &self.platform {
            metadata["labels"] = json!({keys::PLATFORM: naming::label_value(platform)});
        }
        let value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        let object = Object::from_value(value).expect("a JSON object was just written");
        let key = object.key(&ClusterKey::host()).expect("it has a type");
        debug_assert_eq!(key.gvk, wanted::namespace_kind());
        if Reader::get(&*self.host.0, &key).await?.is_some() {
            return Ok(());
        }
        let apply = Apply { key, object, manager: keys::MANAGER.to_owned(), force: false, subresource: None };
        Ok(self.host.0.apply(&apply).await.map(drop)?)
    }

    fn tell(&self, answer: &Attempt) {
        if let Attempt::HeldBy { holder, since, .. } = answer {
            let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
            self.retry(format!("{holder} holds it{since}, and may be dead"));
        }
    }

    fn retry(&self, message: String) {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        self.log.record(vain("take the Lease", message, attempt));
    }

    /// Renews it until it is given back. While the server is away nothing is written, and the run waits.
    fn keep(&self) -> Keeper {
        let stop = CancellationToken::new();
        let (lease, lost, ended, log) = (Arc::clone(&self.lease), self.lost.clone(), stop.clone(), Arc::clone(&self.log));
        let task = tokio::spawn(async move {
            let tell = |attempt, why: &str| log.record(vain("renew the Lease", why.to_owned(), attempt));
            if lease.keep_patiently(&ended, tell).await == Kept::Lost && !ended.is_cancelled() {
                lost.send_replace(Some("the Lease was lost: another one took it, or it may not be renewed any more".to_owned()));
            }
        });
        Keeper { stop, task: AbortOnDropHandle::new(task) }
    }
}

fn vain(what: &str, message: String, attempt: u32) -> EventKind {
    let next_in_ms = u64::try_from(AGAIN.as_millis()).unwrap_or(u64::MAX);
    EventKind::Retry { what: what.to_owned(), message, attempt, next_in_ms }
}

impl Lead for ByLease {
    fn take(&self) -> Answer<'_, Result<(), Error>> {
        Box::pin(async {
            let mut keeper = self.keeper.lock().await;
            if keeper.is_none() {
                self.acquire().await?;
                *keeper = Some(self.keep());
            }
            Ok(())
        })
    }

    fn lost(&self) -> Answer<'_, String> {
        let mut lost = self.lost.subscribe();
        Box::pin(async move {
            let why = lost.wait_for(Option::is_some).await.map(|why| why.clone()).unwrap_or_default();
            match why {
                Some(why) => why,
                // The sender lives as long as this port.
                None => std::future::pending().await,
            }
        })
    }

    fn release(&self) -> Answer<'_, ()> {
        Box::pin(async {
            let Some(keeper) = self.keeper.lock().await.take() else { return };
            keeper.stop.cancel();
            let _ended = keeper.task.await;
            if let Err(error) = self.lease.release().await {
                // It ends by itself after its duration.
                tracing::warn!(error = chain(&error), "the Lease could not be given back");
            }
        })
    }
}
