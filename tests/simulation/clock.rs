//! The time of a simulation: tokio's, which is paused and jumps to what is due next.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plinth_engine::ports::{Answer, Clock};
use tokio::time::Instant;

/// Begins at the same moment in every run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimulatedClock {
    start: Instant,
}

impl SimulatedClock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// Time since the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        let began = Timestamp::from_second(1_700_000_000).unwrap();
        began + SignedDuration::try_from(self.elapsed()).unwrap()
    }

    fn sleep(&self, duration: Duration) -> Answer<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
