//! Bootstrap's ports as the controller has them: it runs already, and it leads already.

use std::{collections::BTreeSet, sync::Arc};

use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey};
use plinth_bootstrap::{Alone, Loop, Ports, Stand};
use plinth_engine::ports::Answer;
use plinth_run::{Event, EventKind, Log, Observer, Recorder, RunId, RunState, Sink, memory::VecJournal, ports::Seen};

use super::Platforms;
use crate::{awaited::Awaited, instance::Instances};

impl Platforms {
    /// The ports of one run. Its own steps are nobody's news; what it writes is told as everything else.
    pub(super) fn ports(&self) -> Ports {
        let World { applier, reader, clock, recorder, awaited, .. } = self.world.clone();
        let run = RunId(format!("platform-{}", clock.now().strftime("%Y%m%dT%H%M%SZ")));
        let sinks: Vec<Arc<dyn Sink>> = vec![Arc::new(Written(recorder))];
        let log = Arc::new(Log::resume(run, RunState::default(), Arc::new(VecJournal::default()), clock, sinks));
        Ports {
            applier,
            reader,
            access: Arc::clone(&self.doors.access),
            schemas: Arc::clone(&self.doors.schemas),
            control: Arc::new(Running { awaited, instances: Arc::clone(&self.instances) }),
            lead: Arc::new(Alone),
            log,
        }
    }
}

use crate::world::World;

/// Passes on what was written.
struct Written(Arc<dyn Recorder>);

impl Sink for Written {
    fn take(&self, event: &Event) {
        if matches!(event.kind, EventKind::ChangeApplied { .. }) {
            self.0.record(event.kind.clone());
        }
    }
}

/// The loop that this reconciler is a part of.
struct Running {
    awaited: Arc<Awaited>,
    instances: Arc<Instances>,
}

impl Loop for Running {
    fn start(&self) -> Answer<'_, Result<Arc<dyn Observer>, String>> {
        Box::pin(async { Ok(Arc::new(Unobserved) as Arc<dyn Observer>) })
    }

    fn stands<'a>(&'a self, kind: &'a GroupVersionKind) -> Answer<'a, Stand> {
        Box::pin(async { self.instances.stands(&ClusterKey::host(), kind) })
    }

    fn awaits(&self, objects: BTreeSet<ObjectKey>) -> Answer<'_, ()> {
        self.awaited.declare_outside(objects);
        Box::pin(async {})
    }

    fn stop(&self) -> Answer<'_, ()> {
        Box::pin(async {})
    }
}

/// Nobody follows.
struct Unobserved;

impl Observer for Unobserved {
    fn next(&self) -> Answer<'_, Option<Seen>> {
        Box::pin(async { None })
    }
}
