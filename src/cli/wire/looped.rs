//! The loop in this process behind bootstrap's port, and the observer that wakes whoever follows the run.

use std::sync::Arc;

use plinth_bootstrap::Loop;
use plinth_controller::{Handle, Options, start};
use plinth_engine::ports::Answer;
use plinth_run::{Event, Log, Observer, Recorder, Seen, Sink};
use tokio::sync::{Mutex, watch};

use super::host::Host;

/// The loop, started on demand.
pub(crate) struct InProcess {
    host: Host,
    log: Arc<Log>,
    wake: Arc<Wake>,
    platform: String,
    repositories: plinth_releasechannel::Options,
    handle: Mutex<Option<Handle>>,
}

impl InProcess {
    pub(crate) fn new(
        host: Host,
        log: Arc<Log>,
        wake: Arc<Wake>,
        platform: &str,
        repositories: plinth_releasechannel::Options,
    ) -> Self {
        Self { host, log, wake, platform: platform.to_owned(), repositories, handle: Mutex::new(None) }
    }

    fn options(&self) -> Options {
        Options {
            platform: Some(self.platform.clone()),
            seed: self.log.read(|state| state.applied.clone()),
            repositories: self.repositories.clone(),
            ..Options::default()
        }
    }
}

impl Loop for InProcess {
    fn start(&self) -> Answer<'_, Result<Arc<dyn Observer>, String>> {
        Box::pin(async {
            let mut handle = self.handle.lock().await;
            if handle.is_none() {
                self.host.0.catalog().follow();
                let recorder: Arc<dyn Recorder> = self.log.clone();
                *handle = Some(start([Arc::clone(&self.host.0)], recorder, self.options()));
            }
            Ok(Arc::new(self.wake.observer()) as Arc<dyn Observer>)
        })
    }

    fn stop(&self) -> Answer<'_, ()> {
        Box::pin(async {
            if let Some(handle) = self.handle.lock().await.take() {
                handle.stop().await;
            }
        })
    }
}

/// A sink that counts events, so that an observer can wait for the next one.
pub(crate) struct Wake(watch::Sender<u64>);

impl Default for Wake {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Wake {
    fn observer(&self) -> Recorded {
        Recorded(Mutex::new(self.0.subscribe()))
    }
}

impl Sink for Wake {
    fn take(&self, _event: &Event) {
        self.0.send_modify(|count| *count += 1);
    }
}

/// Says that something was recorded; several events while nobody looked are one.
struct Recorded(Mutex<watch::Receiver<u64>>);

impl Observer for Recorded {
    fn next(&self) -> Answer<'_, Option<Seen>> {
        Box::pin(async {
            let mut events = self.0.lock().await;
            events.changed().await.is_ok().then_some(Seen::Recorded)
        })
    }
}
