//! Running all of it in one process.

mod layers;
mod options;
mod parts;
mod queues;

use std::{collections::BTreeSet, sync::Arc};

use plinth_api::ObjectKey;
use plinth_cluster::{Cluster, Watches, catalog::Catalog, watch};
use plinth_manager::Queue;
use plinth_run::Recorder;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) use layers::layered;
pub use options::{Options, Reach};
use parts::Parts;
use queues::Queues;

use crate::{
    artifacts::Artifacts,
    awaited::Awaited,
    delivery::Delivery,
    figures::Figures,
    graphs::Graphs,
    instance::Instances,
    live::{LiveAccounts, LiveDoors, LiveFinalizers, LiveHost, LiveIndex, LiveSchemas},
    platform::{self, Platforms},
    rgd::{self as definitions, Definitions},
    world::World,
};

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
