//! How slowly a body may come: a byte now and then keeps a connection alive for ever.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::options::Limits;

/// Bytes that are a small answer.
const SMALL: u64 = 256 << 10;

/// The time that one body has taken so far. Only waiting for the other side counts: whoever reads may be slow.
#[derive(Debug)]
pub(crate) struct Pace {
    slow_bytes: u64,
    slow_time: Duration,
    answer_time: Duration,
    body_time: Duration,
    /// Bytes since the last time that there were enough, and the wait for them.
    got: u64,
    waited: Duration,
    /// The same for the whole body.
    all: u64,
    waited_in_all: Duration,
}

impl Pace {
    pub(crate) fn new(limits: &Limits) -> Self {
        let Limits { slow_bytes, slow_time, answer_time, body_time, .. } = *limits;
        Self {
            slow_bytes,
            slow_time,
            answer_time,
            body_time,
            got: 0,
            waited: Duration::ZERO,
            all: 0,
            waited_in_all: Duration::ZERO,
        }
    }

    /// Waits for the next part of the body; the error says in which way it is too slow.
    pub(crate) async fn wait<E>(
        &mut self,
        part: impl Future<Output = Result<Option<Bytes>, E>>,
    ) -> Result<Result<Option<Bytes>, E>, String> {
        let bound = if self.all <= SMALL { self.answer_time.min(self.body_time) } else { self.body_time };
        let whole = bound.saturating_sub(self.waited_in_all);
        let slow = self.slow_time.saturating_sub(self.waited);
        let begun = Instant::now();
        let Ok(part) = tokio::time::timeout(whole.min(slow), pin!(part)).await else {
            let seconds = |time: Duration| time.as_secs_f64();
            return Err(if whole <= slow {
                format!("its body did not end within {} s", seconds(bound))
            } else {
                format!(
                    "its body is too slow: {} bytes in {} s, at least {} are wanted",
                    self.got,
                    seconds(self.slow_time),
                    self.slow_bytes
                )
            });
        };
        let waited = begun.elapsed();
        let length = part.as_ref().ok().and_then(Option::as_ref).map_or(0, |bytes| bytes.len() as u64);
        self.all += length;
        self.waited_in_all += waited;
        self.got += length;
        self.waited += waited;
        if self.got >= self.slow_bytes {
            (self.got, self.waited) = (0, Duration::ZERO);
        }
        Ok(part)
    }
}
