//! A controller that leads: the journal, and the loop over it.

use std::sync::Arc;

use plinth_api::lock::ReleaseLock;
use plinth_bootstrap::release;
use plinth_cluster::Cluster;
use plinth_controller::{
    Options,
    delivery::{image::SharedImages, sources::LiveSources},
    journal::{self, ClusterJournal},
    platform::Kept,
    start,
};
use plinth_engine::{
    graph,
    ports::{Applier, Clock, ReadError},
};
use plinth_manager::{Gated, Health, Lease, Metrics, SystemClock};
use plinth_releasechannel::{RepositoryRef, localization::Localization};
use plinth_run::{ClusterIdentity, Event, EventKind, Log, Outcome, Recorder, RunId, RunState, Sink, Verb};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::standby::tell_when_read;
use crate::{
    args::Controller,
    exit::Failure,
    load,
    wire::{self, Host},
};

/// How long a server that is away is left alone.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// Everything that a leading controller holds.
pub(crate) struct Keeper<'a> {
    pub(crate) host: &'a Host,
    pub(crate) args: &'a Controller,
    pub(crate) lease: &'a Arc<Lease>,
    pub(crate) applier: Arc<Gated<Arc<Cluster>>>,
    pub(crate) health: &'a Health,
    pub(crate) metrics: &'a Arc<Metrics>,
}

impl Keeper<'_> {
    /// Keeps the platform until it is asked to end; passes in work end first, and what happened is in the journal then.
    pub(crate) async fn run(&self, ended: &CancellationToken) -> Result<(), Failure> {
        let Some((state, lock)) = self.read(ended).await else { return Ok(()) };
        let journal = Arc::new(ClusterJournal::default());
        let log = Arc::new(self.begin(state, Arc::clone(&journal) as _).await);
        let flushed = CancellationToken::new();
        let writing = {
            let (journal, log, flushed) = (Arc::clone(&journal), Arc::clone(&log), flushed.clone());
            let applier: Arc<dyn Applier> = self.applier.clone();
            tokio::spawn(async move { journal.keep(&log, applier, &SystemClock, &flushed).await })
        };
        let options = Options { delivery: !wire::leaves(self.host).await, ..self.options(&log, lock.as_ref())? };
        self.health.ready("caches", Err("the loop starts".to_owned()));
        let handle = start([Arc::clone(&self.host.0)], Arc::clone(&log) as Arc<dyn Recorder>, options);
        let reading = AbortOnDropHandle::new(tokio::spawn(tell_when_read(Arc::clone(&handle.watches), self.health.clone())));
        ended.cancelled().await;
        self.health.ready("caches", Err("the controller ends".to_owned()));
        drop(reading);
        handle.stop().await;
        let (message, hint) = ("the controller ended".to_owned(), Some("the next one that leads goes on with it".to_owned()));
        log.record(EventKind::RunFinished { outcome: Outcome::Interrupted, message, hint });
        flushed.cancel();
        // It ends with its last write.
        let _ended = writing.await;
        Ok(())
    }

    /// The journal and the release lock that are there; `None` where it is to end before the server answers.
    async fn read(&self, ended: &CancellationToken) -> Option<(RunState, Option<ReleaseLock>)> {
        loop {
            let both = async { Ok::<_, ReadError>((journal::read(&*self.host.0).await?, release::read(&*self.host.0).await?)) };
            match both.await {
                Ok((state, releases)) => return Some((state.unwrap_or_default(), releases.current.map(|release| release.lock))),
                Err(error) => tracing::warn!(%error, "the journal cannot be read yet"),
            }
            tokio::select! {
                biased;
                () = ended.cancelled() => return None,
                () = SystemClock.sleep(AGAIN) => {}
            }
        }
    }

    /// The log of this process, on what the cluster's journal proves.
    async fn begin(&self, state: RunState, journal: Arc<dyn plinth_run::Journal>) -> Log {
        let run = RunId(format!("controller-{}-{}", SystemClock.now().strftime("%Y%m%dT%H%M%SZ"), std::process::id()));
        let cluster = self.host.0.identity().await.ok().map(|identity| ClusterIdentity(identity.0));
        let is_done = state.finished.as_ref().is_some_and(|finished| finished.outcome == Outcome::Done);
        let (resumed, source) = (state.run.clone().filter(|_| !is_done), state.source.clone());
        let sinks: Vec<Arc<dyn Sink>> = vec![Arc::new(Logged)];
        let log = Log::resume(run, state, journal, Arc::new(SystemClock), sinks);
        let platform = self.args.platform.clone();
        log.record(EventKind::RunStarted { verb: Verb::Controller, platform, source, cluster, resumed });
        log
    }

    fn options(&self, log: &Log, lock: Option<&ReleaseLock>) -> Result<Options, Failure> {
        let images = Arc::new(SharedImages::new(self.images(lock)?));
        let installed = lock.map(|lock| lock.root.clone());
        Ok(Options {
            kept: Some(Kept { name: self.args.platform.clone(), installed, images: Arc::clone(&images) }),
            platform: Some(self.args.platform.clone()),
            seed: log.read(|state| state.applied.clone()),
            lease: Some(Arc::clone(self.lease)),
            sources: Arc::new(LiveSources::new(load::access(&self.args.access))),
            images,
            metrics: Some(Arc::clone(self.metrics)),
            graph: graph::Options { account: self.args.default_service_account.clone(), ..graph::Options::default() },
            condition_events: self.args.instance_condition_events,
            ..Options::default()
        })
    }

    fn images(&self, lock: Option<&ReleaseLock>) -> Result<Arc<Localization>, Failure> {
        let empty = ReleaseLock::default();
        let lock = lock.unwrap_or(&empty);
        let map = match &self.args.access.mirror {
            None => Localization::describing(lock),
            Some(mirror) => {
                let mirror = RepositoryRef::parse(mirror).map_err(|error| load::refusal(&error))?;
                Localization::new(lock, None, &mirror)
            }
        };
        Ok(Arc::new(map))
    }
}

/// Events as log lines.
struct Logged;

impl Sink for Logged {
    fn take(&self, event: &Event) {
        let text = serde_json::to_string(&event.kind).unwrap_or_default();
        tracing::info!(run = event.run.0, seq = event.seq, event = text, "event");
    }
}
