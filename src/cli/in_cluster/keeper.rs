//! A controller that leads: the journal, and the loop over it.

use std::sync::Arc;

use plinth_api::lock::ReleaseLock;
use plinth_bootstrap::release;
use plinth_cluster::Cluster;
use plinth_controller::{
    Options,
    delivery::image::SharedImages,
    journal::{self, ClusterJournal},
    platform::Kept,
    start,
};
use plinth_engine::ports::{Applier, ReadError};
use plinth_manager::{Gated, Lease};
use plinth_releasechannel::localization::Localization;
use plinth_run::{ClusterIdentity, EventKind, Log, Outcome, Recorder, RunId, RunState, Verb};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{replica::Replica, standby::tell_when_read};
use crate::wire;

/// How long a server that is away is left alone.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// Everything that a leading controller holds.
pub(super) struct Keeper<'a> {
    pub(super) replica: &'a Replica,
    pub(super) lease: &'a Arc<Lease>,
    pub(super) applier: Arc<Gated<Arc<Cluster>>>,
}

impl Keeper<'_> {
    /// Keeps the platform until it is asked to end; passes in work end first, and what happened is in the journal then.
    pub(super) async fn run(&self, ended: &CancellationToken) {
        let Replica { host, health, .. } = self.replica;
        let Some((state, lock)) = self.read(ended).await else { return };
        let journal = Arc::new(ClusterJournal::default());
        let log = Arc::new(self.begin(state, Arc::clone(&journal) as _).await);
        let flushed = CancellationToken::new();
        let writing = {
            let (journal, log, flushed) = (Arc::clone(&journal), Arc::clone(&log), flushed.clone());
            let (applier, clock): (Arc<dyn Applier>, _) = (self.applier.clone(), Arc::clone(self.replica.clock()));
            tokio::spawn(async move { journal.keep(&log, applier, &*clock, &flushed).await })
        };
        let options = Options { delivery: self.looks_after_delivery().await, ..self.options(&log, lock.as_ref()) };
        health.ready("caches", Err("the loop starts".to_owned()));
        let handle = start([Arc::clone(&host.0)], Arc::clone(&log) as Arc<dyn Recorder>, options);
        let reading = AbortOnDropHandle::new(tokio::spawn(tell_when_read(Arc::clone(&handle.watches), health.clone())));
        ended.cancelled().await;
        health.ready("caches", Err("the controller ends".to_owned()));
        drop(reading);
        handle.stop().await;
        let (message, hint) = ("the controller ended".to_owned(), Some("the next one that leads goes on with it".to_owned()));
        log.record(EventKind::RunFinished { outcome: Outcome::Interrupted, message, hint });
        flushed.cancel();
        // It ends with its last write.
        let _ended = writing.await;
    }

    /// Not where the OCM controllers run.
    async fn looks_after_delivery(&self) -> bool {
        self.replica.options.delivery && !wire::leaves(&self.replica.host).await
    }

    /// The journal and the release lock that are there; `None` where it is to end before the server answers.
    async fn read(&self, ended: &CancellationToken) -> Option<(RunState, Option<ReleaseLock>)> {
        let cluster = &*self.replica.host.0;
        loop {
            let both = async { Ok::<_, ReadError>((journal::read(cluster).await?, release::read(cluster).await?)) };
            match both.await {
                Ok((state, releases)) => return Some((state.unwrap_or_default(), releases.current.map(|release| release.lock))),
                Err(error) => tracing::warn!(%error, "the journal cannot be read yet"),
            }
            tokio::select! {
                biased;
                () = ended.cancelled() => return None,
                () = self.replica.clock().sleep(AGAIN) => {}
            }
        }
    }

    /// The log of this process, on what the cluster's journal proves.
    async fn begin(&self, state: RunState, journal: Arc<dyn plinth_run::Journal>) -> Log {
        let clock = Arc::clone(self.replica.clock());
        let run = RunId(format!("controller-{}-{}", clock.now().strftime("%Y%m%dT%H%M%SZ"), std::process::id()));
        let cluster = self.replica.host.0.identity().await.ok().map(|identity| ClusterIdentity(identity.0));
        let is_done = state.finished.as_ref().is_some_and(|finished| finished.outcome == Outcome::Done);
        let (resumed, source) = (state.run.clone().filter(|_| !is_done), state.source.clone());
        let log = Log::resume(run, state, journal, clock, self.replica.sinks.clone());
        let platform = self.replica.platform.clone();
        log.record(EventKind::RunStarted { verb: Verb::Controller, platform, source, cluster, resumed });
        log
    }

    fn options(&self, log: &Log, lock: Option<&ReleaseLock>) -> Options {
        let Replica { platform, metrics, options, .. } = self.replica;
        let images = Arc::new(SharedImages::new(Arc::new(self.images(lock))));
        let installed = lock.map(|lock| lock.root.clone());
        Options {
            kept: Some(Kept { name: platform.clone(), installed, images: Arc::clone(&images) }),
            platform: Some(platform.clone()),
            seed: log.read(|state| state.applied.clone()),
            lease: Some(Arc::clone(self.lease)),
            images,
            metrics: Some(Arc::clone(metrics)),
            ..options.clone()
        }
    }

    fn images(&self, lock: Option<&ReleaseLock>) -> Localization {
        let empty = ReleaseLock::default();
        let lock = lock.unwrap_or(&empty);
        match &self.replica.mirror {
            None => Localization::describing(lock),
            Some(mirror) => Localization::new(lock, None, mirror),
        }
    }
}
