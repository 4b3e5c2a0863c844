//! Waiting for a state to move.

use tokio::sync::Notify;

/// Wakes everybody who waits for a state, in the order in which they came. tokio's own `watch` wakes its receivers in an order
/// that it draws, and the same run must give the same events (contracts 23).
#[derive(Debug, Default)]
pub(crate) struct Revision(Notify);

impl Revision {
    /// The state has moved.
    pub(crate) fn step(&self) {
        self.0.notify_waiters();
    }

    /// Asks `settled` now and after each step until it answers.
    pub(crate) async fn until<T>(&self, mut settled: impl FnMut() -> Option<T>) -> T {
        loop {
            // Made before the look, so that a step in between is not missed.
            let moved = self.0.notified();
            if let Some(answer) = settled() {
                return answer;
            }
            moved.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Nine, because tokio's `watch` spreads its receivers over eight lines that it draws.
    #[tokio::test]
    async fn those_who_wait_wake_in_the_order_in_which_they_came() {
        let (revision, state, woken) = (Arc::new(Revision::default()), Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
        let waiters: Vec<_> = (0..9)
            .map(|number| {
                let (revision, state, woken) = (Arc::clone(&revision), Arc::clone(&state), Arc::clone(&woken));
                tokio::spawn(async move {
                    revision.until(|| (*state.lock().unwrap() == 2).then_some(())).await;
                    woken.lock().unwrap().push(number);
                })
            })
            .collect();
        for _ in 0..2 {
            tokio::task::yield_now().await;
            *state.lock().unwrap() += 1;
            revision.step();
        }
        futures::future::join_all(waiters).await;
        assert_eq!(*woken.lock().unwrap(), (0..9).collect::<Vec<_>>());
    }
}
