//! How a loop runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use plinth_api::{ObjectKey, rgd};
use plinth_engine::{graph, ports::Clock};
use plinth_manager::{Lease, Metrics, SystemClock};
use plinth_run::state;

use crate::{
    delivery::{
        image::{Images, NotMirrored},
        sources::{LiveSources, Sources},
    },
    platform,
};

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
