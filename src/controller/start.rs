//! Running all of it in one process.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, rgd};
use plinth_cluster::{
    Cluster, Watches,
    catalog::{Catalog, SchemaChange, SchemaEvent, SchemaNotice},
    decorate::Labelled,
    watch::{self, Change, Notice, Owner, WatchSet},
};
use plinth_engine::{
    graph,
    naming::{self, keys},
    ports::{Answer, Applier, Apply, Clock, Delete, Query, WriteError},
};
use plinth_manager::{
    Gated, Lease, Metrics, Queue, SystemClock,
    reconcile::{OnReport, Reconciler, Settings, run_controller},
};
use plinth_run::{EventKind, Recorder, state};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    artifacts::{self, Artifacts},
    awaited::{Awaited, Wake},
    delivery::{
        self, Delivery,
        image::{Images, NotMirrored},
        sources::{LiveSources, Sources},
    },
    figures::{Figures, gvr, number},
    graphs::Graphs,
    instance::{self, Instances},
    live::{LiveAccounts, LiveDoors, LiveFinalizers, LiveHost, LiveIndex, LiveSchemas},
    platform::{self, Platforms},
    rgd::{self as definitions, Definitions},
    world::World,
};

/// Role under which everything of the definitions' and delivery's own kinds is watched.
const KINDS_ROLE: &str = "kinds";

/// Whose definitions and delivery objects a loop looks after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All of the cluster: the controller.
    Cluster,
    /// Those of its platform and those of none: a run is about one platform.
    Platform,
}

/// How the loop runs.
#[derive(Clone)]
pub struct Options {
    /// Name of the platform: children that the loop applies carry it as a label, by which they are removed.
    pub platform: Option<String>,
    /// Whose definitions and delivery objects are looked after.
    pub reach: Reach,
    /// What a journal proves to be applied (contracts 22).
    pub seed: BTreeMap<ObjectKey, state::Applied>,
    /// The Lease that must be held for every write (contracts 21).
    pub lease: Option<Arc<Lease>>,
    /// Groups whose ResourceGraphDefinitions are looked after.
    pub groups: BTreeSet<String>,
    /// Whether the delivery kinds are looked after; not where the OCM controllers run.
    pub delivery: bool,
    /// Where component versions are.
    pub sources: Arc<dyn Sources>,
    /// Where mirrored images are.
    pub images: Arc<dyn Images>,
    /// The Platform that is kept, where the loop keeps one; a run of `up` brings it up itself.
    pub kept: Option<platform::Kept>,
    /// Bounds of graphs.
    pub graph: graph::Options,
    /// A platform is on its way out: the loop carries deletions out and does nothing else.
    pub removing: bool,
    /// Passes at the same time, for each of the controllers.
    pub workers: usize,
    /// Where figures go.
    pub metrics: Option<Arc<Metrics>>,
    /// Whether an instance's conditions are told as Kubernetes events too; as with kro, off.
    pub condition_events: bool,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            platform: None,
            reach: Reach::Cluster,
            seed: BTreeMap::new(),
            lease: None,
            groups: BTreeSet::from([rgd::KRO_GROUP.to_owned()]),
            delivery: true,
            sources: Arc::new(LiveSources::default()),
            images: Arc::new(NotMirrored),
            kept: None,
            graph: graph::Options::default(),
            removing: false,
            workers: 4,
            metrics: None,
            condition_events: false,
            clock: Arc::new(SystemClock),
        }
    }
}

/// The running loop. Dropping it ends it at once; [`Handle::stop`] lets passes in work end first.
pub struct Handle {
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
    queues: Queues,
    /// What the loop watches, to look at without a request.
    pub watches: Arc<Watches>,
    /// The graphs in use.
    pub graphs: Arc<Graphs>,
    /// The instances, to ask for plinth's own Ready.
    pub instances: Arc<Instances>,
    /// What is made again once it is gone.
    awaited: Arc<Awaited>,
    /// What the clusters serve.
    catalogs: Vec<Arc<Catalog>>,
    definitions: Arc<Definitions>,
}

impl Handle {
    /// Stops handing out work and waits for passes in work, at most 20 s.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        while self.tasks.join_next().await.is_some() {}
    }

    /// Whether everything that was seen has been acted on: every watch follows, that of the CRDs too, and no pass waits for a
    /// worker or is in work. Until then a status may be one that an earlier loop wrote.
    pub fn is_settled(&self) -> bool {
        let Queues { definitions, instances, delivery, artifacts, platforms } = &self.queues;
        let mut queues = [definitions, instances, delivery, artifacts].into_iter().chain(platforms);
        self.watches.states().iter().all(|(_, state)| state.is_live())
            && self.catalogs.iter().all(|catalog| catalog.is_current())
            // The watch of the CRDs lags behind our own writes: who uses such a kind is not asked before.
            && self.definitions.written_crds().iter().all(|(name, generation)| {
                self.catalogs.iter().all(|catalog| catalog.has_seen(name, *generation))
            })
            && queues.all(Queue::is_settled)
    }

    /// Says what somebody outside the loop makes again once it is gone; what was said before does not count any more.
    pub fn awaits(&self, objects: BTreeSet<ObjectKey>) {
        self.awaited.declare_outside(objects);
    }

    /// Asks the loop to stop without waiting for it.
    pub fn shutdown(&self) -> CancellationToken {
        self.shutdown.clone()
    }
}

/// Starts the loop over these clusters. Returns at once; what happens is told to the recorder.
pub fn start(clusters: impl IntoIterator<Item = Arc<Cluster>>, recorder: Arc<dyn Recorder>, mut options: Options) -> Handle {
    let settings = watch::Settings { managers: true, ..watch::Settings::default() };
    let watches = Watches::new(settings);
    let queues = Queues { platforms: options.kept.as_ref().map(|_| Queue::default()), ..Queues::default() };
    let awaited = Arc::new(Awaited::new(queues.owners()));
    let world = world(&watches, recorder, Arc::clone(&awaited), &options);
    let graphs = Arc::new(Graphs::default());
    let instances =
        Arc::new(Instances::new(world.clone(), Arc::clone(&graphs), std::mem::take(&mut options.seed), queues.instances()));
    let definitions = Arc::new(Definitions::new(world.clone(), Arc::clone(&graphs), options.graph.clone(), queues.instances()));
    let delivery = Arc::new(Delivery::new(world.clone(), Arc::clone(&options.sources), Arc::clone(&options.images)));
    let artifacts = Arc::new(Artifacts::new(world.clone(), Arc::clone(&options.sources), Arc::clone(&options.images)));
    let platforms = options.kept.clone().map(|kept| {
        let host = LiveHost(Arc::clone(&watches));
        let doors = platform::Doors { access: Arc::new(host.clone()), schemas: Arc::new(host) };
        let sources = Arc::clone(&options.sources);
        Arc::new(Platforms::new(world.clone(), doors, sources, Arc::clone(&instances), kept))
    });
    let parts = Parts { watches: Arc::clone(&watches), queues, definitions, instances, delivery, artifacts, platforms };

    parts.route();
    let shutdown = CancellationToken::new();
    let (mut tasks, mut catalogs) = (JoinSet::new(), Vec::new());
    for cluster in clusters {
        catalogs.push(Arc::clone(cluster.catalog()));
        let changes = cluster.catalog().subscribe();
        let key = cluster.key().clone();
        watches.engage(cluster);
        parts.watch_kinds(&key, &options);
        // Once: revisions that an earlier loop left behind.
        parts.queues.definitions.add(definitions::leftovers(&key));
        let (parts, recorder, token) = (parts.clone(), Arc::clone(&world.recorder), shutdown.clone());
        tasks.spawn(async move { parts.follow_schemas(key, changes, &*recorder, token).await });
    }
    parts.run(&mut tasks, &shutdown, &options);
    let (instances, queues, definitions) = (Arc::clone(&parts.instances), parts.queues.clone(), Arc::clone(&parts.definitions));
    Handle { shutdown, tasks, queues, watches, graphs, instances, awaited, catalogs, definitions }
}

fn world(watches: &Arc<Watches>, recorder: Arc<dyn Recorder>, awaited: Arc<Awaited>, options: &Options) -> World {
    World {
        index: Arc::new(LiveIndex(Arc::clone(watches))),
        applier: layered(Arc::new(LiveDoors(Arc::clone(watches))), options.lease.as_ref(), options.platform.as_deref()),
        accounts: Arc::new(LiveAccounts {
            watches: Arc::clone(watches),
            lease: options.lease.clone(),
            platform: options.platform.clone(),
        }),
        reader: Arc::new(LiveDoors(Arc::clone(watches))),
        finalizers: Arc::new(LiveFinalizers { watches: Arc::clone(watches), lease: options.lease.clone() }),
        schemas: Arc::new(LiveSchemas(Arc::clone(watches))),
        recorder,
        clock: Arc::clone(&options.clock),
        figures: Figures::new(options.metrics.clone()),
        condition_events: options.condition_events,
        awaited,
        removing: options.removing,
    }
}

/// Which objects of a kind are looked after: all, or those of one platform and those of none.
fn selectors(options: &Options, gvk: &GroupVersionKind) -> Vec<String> {
    match &options.platform {
        Some(platform) if options.reach == Reach::Platform && *gvk != artifacts::platform_gvk() => {
            vec![naming::platform_selector(platform), format!("!{}", keys::PLATFORM)]
        }
        _ => vec![String::new()],
    }
}

/// Labels outside, the gate inside: what is refused was not labelled for nothing, and what is labelled passed the gate.
pub(crate) fn layered(doors: Arc<dyn Applier>, lease: Option<&Arc<Lease>>, platform: Option<&str>) -> Arc<dyn Applier> {
    let gated: Arc<dyn Applier> = match lease {
        Some(lease) => Arc::new(Gated { inner: doors, lease: Arc::clone(lease) }),
        None => doors,
    };
    match platform {
        Some(platform) => Arc::new(OfPlatform::new(gated, platform)),
        None => gated,
    }
}

/// Labels children and CRDs, and leaves alone what only patches an object of somebody else (finalizers, inventories), and what has the
/// label of its parent.
struct OfPlatform {
    plain: Arc<dyn Applier>,
    labelled: Labelled<ByArc>,
}

impl OfPlatform {
    fn new(plain: Arc<dyn Applier>, platform: &str) -> Self {
        let labels = BTreeMap::from([(keys::PLATFORM.to_owned(), platform.to_owned())]);
        Self { labelled: Labelled { inner: ByArc(Arc::clone(&plain)), labels }, plain }
    }
}

impl Applier for OfPlatform {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        let is_whole = [keys::MANAGER_APPLYSET, keys::MANAGER, delivery::deploy::MANAGER].contains(&request.manager.as_str());
        let is_parent = request.manager == delivery::deploy::MANAGER && request.key.gvk == delivery::Kind::Deployer.gvk();
        let is_somebodys = request.object.label(keys::PLATFORM).is_some();
        if is_whole && !is_parent && !is_somebodys { self.labelled.apply(request) } else { self.plain.apply(request) }
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        self.plain.delete(request)
    }
}

/// An applier behind a shared pointer.
struct ByArc(Arc<dyn Applier>);

impl Applier for ByArc {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        self.0.apply(request)
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        self.0.delete(request)
    }
}

/// One queue for each controller.
#[derive(Clone, Default)]
struct Queues {
    definitions: Queue<ObjectKey>,
    instances: Queue<ObjectKey>,
    delivery: Queue<ObjectKey>,
    artifacts: Queue<ObjectKey>,
    /// Of a loop that keeps a Platform.
    platforms: Option<Queue<ObjectKey>>,
}

impl Queues {
    /// Asks for passes of instances.
    fn instances(&self) -> Arc<dyn Fn(&ObjectKey) + Send + Sync> {
        let queue = self.instances.clone();
        Arc::new(move |key| queue.add(key.clone()))
    }

    /// Asks for a pass of whoever looks after an object of the definitions' or delivery's own kinds; nobody does after others.
    fn owners(&self) -> Wake {
        let (definitions, delivery) = (self.definitions.clone(), self.delivery.clone());
        Arc::new(move |key| match key.gvk.group.as_str() {
            plinth_api::delivery::GROUP => delivery.add(key.clone()),
            _ if key.gvk.kind == rgd::KIND => definitions.add(key.clone()),
            _ => {}
        })
    }
}

/// Everything that runs.
#[derive(Clone)]
struct Parts {
    watches: Arc<Watches>,
    queues: Queues,
    definitions: Arc<Definitions>,
    instances: Arc<Instances>,
    delivery: Arc<Delivery>,
    artifacts: Arc<Artifacts>,
    platforms: Option<Arc<Platforms>>,
}

impl Parts {
    /// Says which queue a change goes to.
    fn route(&self) {
        let own_key = |queue: &Queue<ObjectKey>| -> watch::Sink {
            let queue = queue.clone();
            Arc::new(move |owner: &Owner, _: &Notice| queue.add(owner.key.clone()))
        };
        self.watches.route(definitions::ROLE, own_key(&self.queues.definitions));
        self.watches.route(instance::ROLE, own_key(&self.queues.instances));
        self.watches.route(delivery::ROLE, own_key(&self.queues.delivery));
        self.watches.route(artifacts::ROLE, own_key(&self.queues.artifacts));
        if let (Some(platforms), Some(queue)) = (&self.platforms, &self.queues.platforms) {
            self.watches.route(platform::ROLE, own_key(queue));
            // A platform is ready by what its instance's reconciler says, of which not all is in the instance's status.
            let (queue, key) = (queue.clone(), platforms.key(&ClusterKey::host()));
            self.instances.on_readiness(Arc::new(move || queue.add(key.clone())));
        }
        let (definitions, instances) = (self.queues.definitions.clone(), self.queues.instances.clone());
        // Weak: the watches hold this, and the definitions hold the watches, so that a loop that ended would stay.
        let known = Arc::downgrade(&self.definitions);
        self.watches.route(
            definitions::INSTANCES_ROLE,
            Arc::new(move |owner, notice| {
                let change = match notice {
                    Notice::Changed(change) => change,
                    Notice::Refused(_) => return definitions.add(owner.key.clone()),
                    Notice::Synced(_) if known.upgrade().is_some_and(|known| known.lacks_rights(&owner.key)) => {
                        return definitions.add(owner.key.clone());
                    }
                    Notice::Synced(_) | Notice::Lost(_) => return,
                };
                if change.is_more_than_status() {
                    instances.add(change.key.clone());
                }
                if change.after.is_none() {
                    // A definition that is being deleted may have waited for this one.
                    definitions.add(owner.key.clone());
                }
            }),
        );
        let queues = self.queues.clone();
        self.watches.route(
            KINDS_ROLE,
            Arc::new(move |_, notice| {
                if let Notice::Changed(change) = notice {
                    queues.of_own_kind(change);
                }
            }),
        );
    }

    /// Watches all definitions, all delivery objects and all Platforms of a cluster.
    fn watch_kinds(&self, cluster: &ClusterKey, options: &Options) {
        let definitions = options.groups.iter().map(|group| GroupVersionKind::new(group.as_str(), rgd::VERSION, rgd::KIND));
        let delivery = delivery::Kind::ALL.into_iter().filter(|_| options.delivery).map(delivery::Kind::gvk);
        let mut set = WatchSet::default();
        for gvk in definitions.chain(delivery).chain([artifacts::platform_gvk()]) {
            for selector in selectors(options, &gvk) {
                let query = Query { cluster: cluster.clone(), gvk: gvk.clone(), namespace: None, selector };
                set.lists.insert(query);
            }
        }
        let key = ObjectKey { cluster: cluster.clone(), gvk: GroupVersionKind::default(), namespace: None, name: String::new() };
        self.watches.declare(&Owner { role: KINDS_ROLE, key }, set);
    }

    /// Wakes whoever a change of the served kinds concerns. Nothing polls.
    async fn follow_schemas(
        &self,
        cluster: ClusterKey,
        mut changes: plinth_cluster::catalog::SchemaChanges,
        recorder: &dyn Recorder,
        shutdown: CancellationToken,
    ) {
        loop {
            let notice = tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                notice = changes.next() => notice,
            };
            match notice {
                Some(SchemaNotice::Change(change)) => self.schema_changed(&cluster, &change, recorder),
                Some(SchemaNotice::Missed) => self.look_at_everything(&cluster),
                None => return,
            }
        }
    }

    fn schema_changed(&self, cluster: &ClusterKey, change: &SchemaChange, recorder: &dyn Recorder) {
        let SchemaChange { gvk, event } = change;
        let using = self.definitions.using(&gvk.group_kind());
        if *event == SchemaEvent::Served {
            if !using.is_empty() {
                recorder.record(EventKind::SchemaServed { gvk: gvk.clone() });
            }
            self.delivery.waiting_for(gvk).into_iter().for_each(|key| self.queues.delivery.add(key));
            self.instances.served(cluster, gvk);
        }
        for key in using {
            self.queues.definitions.add(key);
        }
    }

    fn look_at_everything(&self, cluster: &ClusterKey) {
        let of_cluster = |key: &ObjectKey| key.cluster == *cluster;
        self.definitions.all().into_iter().filter(of_cluster).for_each(|key| self.queues.definitions.add(key));
        self.instances.all().into_iter().filter(of_cluster).for_each(|key| self.queues.instances.add(key));
    }

    /// Tells of each pass over an instance under kro's names.
    fn on_instance(&self) -> OnReport<ObjectKey> {
        let parts = self.clone();
        Arc::new(move |key, report| {
            // Without a definition the series would stay for ever; that the pass found none is counted elsewhere.
            let Some(published) = parts.instances.graphs().of_kind(&key.cluster, &key.gvk.group_kind()) else { return };
            let figures = parts.instances.figures();
            figures.passed(&gvr(&key.gvk, &published.graph.instance.plural), report, parts.queues.instances.len());
            figures.tell("dynamic_controller_watch_count", &[], number(parts.watches.states().len()));
        })
    }

    fn run(&self, tasks: &mut JoinSet<()>, shutdown: &CancellationToken, options: &Options) {
        let mut run = |name: &'static str, queue: &Queue<ObjectKey>, reconciler: Arc<dyn Reconciler<ObjectKey>>| {
            let on_report = (name == "instances").then(|| self.on_instance());
            let settings =
                Settings { workers: options.workers, metrics: options.metrics.clone(), on_report, ..Settings::new(name) };
            let run = run_controller(queue.clone(), reconciler, settings, shutdown.clone());
            tasks.spawn(async move {
                let summary = run.await;
                tracing::debug!(controller = name, ?summary, "a controller ended");
            });
        };
        run("definitions", &self.queues.definitions, Arc::clone(&self.definitions) as _);
        run("instances", &self.queues.instances, Arc::clone(&self.instances) as _);
        run("delivery", &self.queues.delivery, Arc::clone(&self.delivery) as _);
        run("artifacts", &self.queues.artifacts, Arc::clone(&self.artifacts) as _);
        if let (Some(platforms), Some(queue)) = (&self.platforms, &self.queues.platforms) {
            run("platforms", queue, Arc::clone(platforms) as _);
        }
    }
}

impl Queues {
    /// A definition or delivery object changed. Status alone is what we write ourselves; whoever depends on it declared so.
    fn of_own_kind(&self, change: &Change) {
        if change.key.gvk.kind == rgd::KIND {
            if change.is_more_than_status() {
                self.definitions.add(change.key.clone());
            }
            return;
        }
        if change.key.gvk == artifacts::platform_gvk() {
            if change.is_more_than_status() {
                self.artifacts.add(change.key.clone());
                self.platforms.iter().for_each(|queue| queue.add(change.key.clone()));
            }
            return;
        }
        if change.is_more_than_status() {
            for key in Delivery::concerned(change) {
                self.delivery.add(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plinth_run::memory::VecRecorder;

    use super::{Options, start};

    #[tokio::test]
    async fn nothing_stays_of_a_loop_that_ended() {
        let handle = start([], Arc::new(VecRecorder::default()), Options::default());
        let (watches, instances) = (Arc::downgrade(&handle.watches), Arc::downgrade(&handle.instances));
        handle.stop().await;
        assert_eq!((watches.strong_count(), instances.strong_count()), (0, 0));
    }
}
