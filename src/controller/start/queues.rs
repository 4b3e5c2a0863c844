//! One queue for each controller, and which of them a change goes to.

use std::sync::Arc;

use plinth_api::{ObjectKey, rgd};
use plinth_cluster::watch::Change;
use plinth_manager::Queue;

use crate::{artifacts, awaited::Wake, delivery::Delivery};

/// One queue for each controller.
#[derive(Clone, Default)]
pub(super) struct Queues {
    pub(super) definitions: Queue<ObjectKey>,
    pub(super) instances: Queue<ObjectKey>,
    pub(super) delivery: Queue<ObjectKey>,
    pub(super) artifacts: Queue<ObjectKey>,
    /// Of a loop that keeps a Platform.
    pub(super) platforms: Option<Queue<ObjectKey>>,
}

impl Queues {
    /// Asks for passes of instances.
    pub(super) fn instances(&self) -> Arc<dyn Fn(&ObjectKey) + Send + Sync> {
        let queue = self.instances.clone();
        Arc::new(move |key| queue.add(key.clone()))
    }

    /// Asks for a pass of whoever looks after an object of the definitions' or delivery's own kinds; nobody does after others.
    pub(super) fn owners(&self) -> Wake {
        let (definitions, delivery) = (self.definitions.clone(), self.delivery.clone());
        Arc::new(move |key| match key.gvk.group.as_str() {
            plinth_api::delivery::GROUP => delivery.add(key.clone()),
            _ if key.gvk.kind == rgd::KIND => definitions.add(key.clone()),
            _ => {}
        })
    }

    /// A definition or delivery object changed. Status alone is what we write ourselves; whoever depends on it declared so.
    pub(super) fn of_own_kind(&self, change: &Change) {
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
