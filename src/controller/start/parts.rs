//! Everything that runs, and who is woken by what.

use std::sync::Arc;

use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey, rgd};
use plinth_cluster::{
    Watches,
    catalog::{SchemaChange, SchemaChanges, SchemaEvent, SchemaNotice},
    watch::{self, Notice, Owner, WatchSet},
};
use plinth_engine::{
    naming::{self, keys},
    ports::Query,
};
use plinth_manager::{
    Queue,
    reconcile::{OnReport, Reconciler, Settings, run_controller},
};
use plinth_run::{EventKind, Recorder};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    options::{Options, Reach},
    queues::Queues,
};
use crate::{
    artifacts::{self, Artifacts},
    delivery::{self, Delivery},
    figures::{gvr, number},
    instance::{self, Instances},
    platform::{self, Platforms},
    rgd::{self as definitions, Definitions},
};

/// Role under which everything of the definitions' and delivery's own kinds is watched.
const KINDS_ROLE: &str = "kinds";

/// Everything that runs.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) watches: Arc<Watches>,
    pub(super) queues: Queues,
    pub(super) definitions: Arc<Definitions>,
    pub(super) instances: Arc<Instances>,
    pub(super) delivery: Arc<Delivery>,
    pub(super) artifacts: Arc<Artifacts>,
    pub(super) platforms: Option<Arc<Platforms>>,
}

impl Parts {
    /// Says which queue a change goes to.
    pub(super) fn route(&self) {
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
    pub(super) fn watch_kinds(&self, cluster: &ClusterKey, options: &Options) {
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
    pub(super) async fn follow_schemas(
        &self,
        cluster: ClusterKey,
        mut changes: SchemaChanges,
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

    pub(super) fn run(&self, tasks: &mut JoinSet<()>, shutdown: &CancellationToken, options: &Options) {
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

/// Which objects of a kind are looked after: all, or those of one platform and those of none.
fn selectors(options: &Options, gvk: &GroupVersionKind) -> Vec<String> {
    match &options.platform {
        Some(platform) if options.reach == Reach::Platform && *gvk != artifacts::platform_gvk() => {
            vec![naming::platform_selector(platform), format!("!{}", keys::PLATFORM)]
        }
        _ => vec![String::new()],
    }
}
