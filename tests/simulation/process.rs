//! One process of plinth: the same parts behind the same ports as the command line puts together, on a client that weather
//! lies over, with a journal that survives the process.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use plinth_api::ClusterKey;
use plinth_bootstrap::{Alone, Ports, Request, ports::Always, removal, runner};
use plinth_cli::wire::{Host, InProcess, unfinished};
use plinth_cluster::{
    Cluster,
    embedded::{Embedded, api::rbac::User},
};
use plinth_controller::{Handle, Options, start};
use plinth_engine::ports::Applier;
use plinth_run::{
    Event, Journal, Log, Outcome, Recorder, RunId, Verb,
    feed::Feed,
    journal::{Replay, decode, encode},
    ports::JournalError,
};
use tokio_util::sync::CancellationToken;

use crate::{
    audit::Audit,
    clock::SimulatedClock,
    door::Door,
    planted::Plant,
    platform::{Platform, Values},
    random::Random,
    trace::Trace,
    weather::{Climate, Weather},
};

/// What outlives a process.
pub(crate) struct World {
    pub(crate) plane: Embedded,
    pub(crate) door: Door,
    pub(crate) clock: SimulatedClock,
    pub(crate) trace: Arc<Trace>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) platform: &'static Platform,
    pub(crate) plant: Plant,
    disk: Arc<Mutex<Vec<u8>>>,
    processes: AtomicU64,
}

impl World {
    pub(crate) fn new(plane: Embedded, clock: SimulatedClock, platform: &'static Platform, plant: Plant) -> Self {
        let (door, trace) = (Door::to(&plane), Trace::new(clock));
        let audit = Audit::new(door.clone(), Arc::clone(&trace));
        Self { plane, door, clock, trace, audit, platform, plant, disk: Arc::default(), processes: AtomicU64::new(0) }
    }

    /// Starts a process. `torn` is the journal line in the middle of which it dies.
    pub(crate) fn process(&self, climate: Climate, random: Random, torn: Option<u64>) -> Process<'_> {
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        let death = CancellationToken::new();
        let service = self.plane.service(User::admin());
        let weather = Weather::new(service, climate, random, death.clone(), Arc::clone(&self.audit), Arc::clone(&self.trace));
        let cluster = Cluster::with_client(ClusterKey::host(), kube::Client::new(weather, "default"));
        let journal = Pen { disk: Arc::clone(&self.disk), death: death.clone(), lines: AtomicU64::new(0), torn };
        let feed = Arc::new(Feed::default());
        let log = Log::open(
            RunId(format!("run-{number}")),
            Arc::new(journal),
            Arc::new(self.clock),
            vec![feed.clone(), self.trace.clone(), self.audit.clone()],
        );
        let log = Arc::new(log.unwrap());
        log.read(|state| self.audit.begin(state));
        self.trace.say(&format!("process {number} begins"));
        Process { world: self, cluster, feed, log, death }
    }
}

/// A running process; it dies when it is dropped.
pub(crate) struct Process<'a> {
    world: &'a World,
    cluster: Arc<Cluster>,
    feed: Arc<Feed>,
    log: Arc<Log>,
    death: CancellationToken,
}

impl Process<'_> {
    /// `plinth up`; `None` where the process died in between.
    pub(crate) async fn up(&self, values: &Values) -> Option<Outcome> {
        let platform = self.world.platform;
        let settings = platform.settings(values);
        let request = Request {
            content: &platform.content,
            distribution: &platform.distribution,
            settings: &settings,
            saved: None,
            resumed: self.log.read(unfinished(Verb::Up)),
        };
        let ports = self.ports();
        self.alive(runner::up(&request, &ports, &Always("--apply".into()))).await
    }

    /// `plinth down`.
    pub(crate) async fn down(&self, values: &Values) -> Option<Outcome> {
        let ports = self.ports();
        let (settings, approver) = (self.world.platform.settings(values), Always("--apply".into()));
        self.alive(removal::down(&settings, self.log.read(unfinished(Verb::Down)), &ports, &approver)).await
    }

    /// The loop alone, for as long as `until` takes; whether it lived that long.
    pub(crate) async fn keep(&self, until: impl AsyncFnOnce(&Handle)) -> bool {
        let recorder: Arc<dyn Recorder> = self.log.clone();
        let seed = match self.world.plant {
            Plant::Forgets => BTreeMap::new(),
            _ => self.log.read(|state| state.applied.clone()),
        };
        let options = Options { seed, ..self.options() };
        let handle = start([Arc::clone(&self.cluster)], recorder, options);
        let lived = self.alive(until(&handle)).await.is_some();
        if lived {
            handle.stop().await;
        }
        lived
    }

    /// Why the run did not end well.
    pub(crate) fn message(&self) -> String {
        self.log.read(|state| state.finished.as_ref().map(|finished| finished.message.clone())).unwrap_or_default()
    }

    /// Dies after a time.
    pub(crate) fn dies_after(&self, time: std::time::Duration) {
        let (death, trace) = (self.death.clone(), Arc::clone(&self.world.trace));
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = death.cancelled() => {}
                () = tokio::time::sleep(time) => {
                    trace.say("killed in between");
                    death.cancel();
                }
            }
        });
    }

    async fn alive<T>(&self, run: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.death.cancelled() => None,
            answer = run => Some(answer),
        }
    }

    fn options(&self) -> Options {
        let options = Options { platform: Some("simulated".into()), clock: Arc::new(self.world.clock), ..Options::default() };
        match &self.world.platform.sources {
            Some(sources) => Options { sources: Arc::clone(sources), ..options },
            None => Options { delivery: false, ..options },
        }
    }

    fn ports(&self) -> Ports {
        let host = Host(Arc::clone(&self.cluster), "simulated".into());
        let control = InProcess::new(host.clone(), Arc::clone(&self.log), Arc::clone(&self.feed), self.options());
        let applier: Arc<dyn Applier> = Arc::clone(&self.cluster) as _;
        Ports {
            applier: self.world.plant.over(applier),
            reader: Arc::clone(&self.cluster) as _,
            access: Arc::new(host.clone()),
            schemas: Arc::new(host),
            control: Arc::new(control),
            lead: Arc::new(Alone),
            log: Arc::clone(&self.log),
        }
    }
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        self.death.cancel();
    }
}

/// A process's hold on the journal: what it writes after its death is not written.
struct Pen {
    disk: Arc<Mutex<Vec<u8>>>,
    death: CancellationToken,
    lines: AtomicU64,
    torn: Option<u64>,
}

impl Journal for Pen {
    fn append(&self, event: &Event) -> Result<(), JournalError> {
        if self.death.is_cancelled() {
            return Ok(());
        }
        let line = encode(event)?;
        let mut written = line.as_bytes();
        if self.torn == Some(self.lines.fetch_add(1, Ordering::Relaxed)) {
            written = &written[..written.len() / 2];
            self.death.cancel();
        }
        self.disk.lock().unwrap().extend_from_slice(written);
        Ok(())
    }

    /// As the journal file does, it cuts off a line that a kill left half written.
    fn load(&self) -> Result<Replay, JournalError> {
        let mut disk = self.disk.lock().unwrap();
        let replay = decode(&disk)?;
        if let Some(cut) = replay.cut {
            disk.truncate(cut.whole_bytes);
        }
        Ok(replay)
    }
}
