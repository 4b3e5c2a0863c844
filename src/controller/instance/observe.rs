//! The observation that a pass starts with.

use plinth_api::{Object, ObjectKey};
use plinth_cluster::watch::WatchKey;
use plinth_engine::instance::{Failure, Observation};

use super::{
    Instances,
    memory::{Known, Memory},
};

impl Instances {
    /// Everything that the last decision asked about, as far as it is known without a request; the rest is asked again.
    pub(super) fn observe(&self, key: &ObjectKey, instance: Object, memory: &mut Memory) -> Observation {
        let now = self.world.clock.now();
        let mut observation = Observation {
            instance,
            cluster: key.cluster.clone(),
            failures: memory.failures(now),
            list_failures: memory.list_failures(now),
            reviews: memory.reviews(now),
            applied: memory.applied.clone(),
            instance_kinds: self.graphs.kinds(),
            now,
            ..Observation::default()
        };
        for asked in memory.objects.clone() {
            // What cannot be followed is not known, whatever was seen before. The watch tells when it can.
            if let Some(error) = self.world.index.refused(&WatchKey::of(&asked)) {
                observation.failures.insert(asked, Failure::Read(error));
                continue;
            }
            if let Known::Is(object) = memory.newest(&asked, self.world.index.look(&asked)) {
                observation.objects.insert(asked, object);
            }
        }
        for asked in &memory.lists {
            if let Some(error) = self.world.index.refused(&WatchKey::of_query(asked)) {
                observation.list_failures.insert(asked.clone(), error);
                continue;
            }
            let Some(listed) = self.world.index.list(asked) else { continue };
            let newest = listed.iter().map(|object| memory.marked(object.as_ref().clone())).collect();
            observation.lists.insert(asked.clone(), newest);
        }
        observation.ready_instances = self.lock().ready.clone();
        observation
    }
}
