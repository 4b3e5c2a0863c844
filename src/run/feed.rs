//! An observer of what is recorded in this process: wakes whoever follows the run, once however much happened.

use std::{
    future::poll_fn,
    sync::Mutex,
    task::{Poll, Waker},
};

use plinth_engine::ports::Answer;

use crate::{
    event::{Event, EventKind},
    memory::lock,
    ports::{Observer, Seen, Sink},
};

/// A sink of the log and an observer for one follower. Holds no events, so that it needs no bound.
#[derive(Debug, Default)]
pub struct Feed(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    fresh: bool,
    closed: bool,
    waker: Option<Waker>,
}

impl Feed {
    /// Nothing will come any more; what has come is still given out.
    pub fn close(&self) {
        let mut inner = lock(&self.0);
        inner.closed = true;
        inner.wake();
    }
}

impl Inner {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Sink for Feed {
    fn take(&self, event: &Event) {
        // What the follower records itself is no news to it.
        if matches!(event.kind, EventKind::Heartbeat { .. } | EventKind::StageStarted { .. } | EventKind::StageFinished { .. }) {
            return;
        }
        let mut inner = lock(&self.0);
        inner.fresh = true;
        inner.wake();
    }
}

impl Observer for Feed {
    fn next(&self) -> Answer<'_, Option<Seen>> {
        Box::pin(poll_fn(|context| {
            let mut inner = lock(&self.0);
            if std::mem::take(&mut inner.fresh) {
                return Poll::Ready(Some(Seen::Recorded));
            }
            if inner.closed {
                return Poll::Ready(None);
            }
            inner.waker = Some(context.waker().clone());
            Poll::Pending
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, pin::pin, task::Context};

    use jiff::Timestamp;

    use super::*;
    use crate::subject::RunId;

    fn next(feed: &Feed) -> Poll<Option<Seen>> {
        pin!(feed.next()).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn many_events_are_one_wake_up_and_none_is_lost() {
        let feed = Feed::default();
        let event = |kind| Event { v: 1, run: RunId("r".into()), seq: 1, at: Timestamp::UNIX_EPOCH, kind };
        assert_eq!(next(&feed), Poll::Pending);
        (0..3).for_each(|_| feed.take(&event(EventKind::Approved { by: "x".into() })));
        assert_eq!(next(&feed), Poll::Ready(Some(Seen::Recorded)));
        feed.take(&event(EventKind::StageFinished { stage: crate::StageId(1), outcome: crate::Outcome::Done }));
        assert_eq!(next(&feed), Poll::Pending);
        feed.take(&event(EventKind::Approved { by: "x".into() }));
        feed.close();
        assert_eq!(next(&feed), Poll::Ready(Some(Seen::Recorded)));
        assert_eq!(next(&feed), Poll::Ready(None));
    }
}
