//! The loop in this process behind bootstrap's port.

use std::{collections::BTreeSet, sync::Arc};

use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey};
use plinth_bootstrap::{
    Loop, Stand,
    others::{self, Tool},
};
use plinth_controller::{
    Handle, Options,
    delivery::image::{Images, NotMirrored},
    start,
};
use plinth_engine::ports::Answer;
use plinth_run::{Log, Observer, Recorder, feed::Feed};
use tokio::sync::Mutex;

use super::host::Host;

/// How the loop runs: how it reaches the channel, and what it is there for.
pub(crate) struct Delivery {
    /// Repositories.
    pub(crate) repositories: plinth_releasechannel::Options,
    /// Images.
    pub(crate) images: Arc<dyn Images>,
    /// It carries a removal out and does nothing else.
    pub(crate) removing: bool,
    /// It goes on in the cluster once the controller is there.
    pub(crate) hands_over: bool,
    /// Delivery objects are left to the OCM controllers, which run here.
    pub(crate) leaves: bool,
    /// How it comes to its turn to write.
    pub(crate) turn: Turn,
}

/// How a run comes to its turn to write.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// By the cluster's Lease.
    Lease {
        /// Takes it from whoever holds it.
        break_lock: bool,
        /// Whose its namespace is where this run makes it.
        platform: Option<String>,
    },
    /// It writes nothing, or where nobody else does.
    Alone,
}

/// Whether the OCM controllers run in a cluster. Who may not see that is told by the plan of nothing either.
pub(crate) async fn leaves(host: &Host) -> bool {
    let others = others::look(host.0.as_ref(), host).await.unwrap_or_default();
    others.iter().any(|other| other.tool == Tool::OcmControllers && other.runs())
}

/// Without a channel at hand: everything is where it says.
impl Default for Delivery {
    fn default() -> Self {
        let repositories = plinth_releasechannel::Options::default();
        Self { repositories, images: Arc::new(NotMirrored), removing: false, hands_over: false, leaves: false, turn: Turn::Alone }
    }
}

/// The loop, started on demand.
pub struct InProcess {
    host: Host,
    log: Arc<Log>,
    feed: Arc<Feed>,
    options: Options,
    handle: Mutex<Option<Handle>>,
}

impl InProcess {
    /// The loop with these options; what the log proves to be applied is added to them.
    pub fn new(host: Host, log: Arc<Log>, feed: Arc<Feed>, options: Options) -> Self {
        Self { host, log, feed, options, handle: Mutex::new(None) }
    }

    fn options(&self) -> Options {
        Options { seed: self.log.read(|state| state.applied.clone()), ..self.options.clone() }
    }
}

impl Loop for InProcess {
    fn start(&self) -> Answer<'_, Result<Arc<dyn Observer>, String>> {
        Box::pin(async {
            let mut handle = self.handle.lock().await;
            if handle.is_none() {
                self.host.0.catalog().follow();
                let recorder: Arc<dyn Recorder> = self.log.clone();
                *handle = Some(start([Arc::clone(&self.host.0)], recorder, self.options()));
            }
            let feed: Arc<dyn Observer> = self.feed.clone();
            Ok(feed)
        })
    }

    fn is_settled(&self) -> Answer<'_, bool> {
        Box::pin(async { self.handle.lock().await.as_ref().is_none_or(Handle::is_settled) })
    }

    fn stands<'a>(&'a self, kind: &'a GroupVersionKind) -> Answer<'a, Stand> {
        Box::pin(async {
            let handle = self.handle.lock().await;
            let Some(handle) = handle.as_ref() else { return Stand::Ready };
            match handle.instances.stands(&ClusterKey::host(), kind) {
                // What was not looked at yet is not known either.
                Stand::Ready if !handle.is_settled() => {
                    Stand::Moving { why: "the loop has not looked at everything yet".to_owned(), has_failed: false }
                }
                stand => stand,
            }
        })
    }

    fn awaits(&self, objects: BTreeSet<ObjectKey>) -> Answer<'_, ()> {
        Box::pin(async {
            if let Some(handle) = self.handle.lock().await.as_ref() {
                handle.awaits(objects);
            }
        })
    }

    fn stop(&self) -> Answer<'_, ()> {
        Box::pin(async {
            if let Some(handle) = self.handle.lock().await.take() {
                handle.stop().await;
            }
        })
    }
}
