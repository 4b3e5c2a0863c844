//! The loop in this process behind bootstrap's port.

use std::sync::Arc;

use plinth_bootstrap::Loop;
use plinth_controller::{Handle, Options, start};
use plinth_engine::ports::Answer;
use plinth_run::{Log, Observer, Recorder, feed::Feed};
use tokio::sync::Mutex;

use super::host::Host;

/// The loop, started on demand.
pub(crate) struct InProcess {
    host: Host,
    log: Arc<Log>,
    feed: Arc<Feed>,
    platform: String,
    repositories: plinth_releasechannel::Options,
    handle: Mutex<Option<Handle>>,
}

impl InProcess {
    pub(crate) fn new(
        host: Host,
        log: Arc<Log>,
        feed: Arc<Feed>,
        platform: &str,
        repositories: plinth_releasechannel::Options,
    ) -> Self {
        Self { host, log, feed, platform: platform.to_owned(), repositories, handle: Mutex::new(None) }
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
            let feed: Arc<dyn Observer> = self.feed.clone();
            Ok(feed)
        })
    }

    fn is_settled(&self) -> Answer<'_, bool> {
        Box::pin(async { self.handle.lock().await.as_ref().is_none_or(Handle::is_settled) })
    }

    fn stop(&self) -> Answer<'_, ()> {
        Box::pin(async {
            if let Some(handle) = self.handle.lock().await.take() {
                handle.stop().await;
            }
        })
    }
}
