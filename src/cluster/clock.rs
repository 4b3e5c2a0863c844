//! The system's clock behind the engine's port.

use std::time::Duration;

use jiff::Timestamp;
use plinth_engine::ports::{Answer, Clock};

/// The clock of the machine. Sleeping follows tokio's time, which tests may pause.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep(&self, duration: Duration) -> Answer<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
