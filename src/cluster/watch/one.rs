//! One object, followed by a watch of its own.
//!
//! [`super::Watches`] has one watch for a whole kind, in all namespaces. Whoever looks at a single ConfigMap needs neither the others nor
//! the right to read them: this watch asks for the object by its name, so that a Role which names it is enough.

use std::sync::Arc;

use plinth_api::{Object, ObjectKey};
use plinth_engine::ports::ReadError;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::feed::{Feed, Step};
use crate::{
    backoff::{Backoff, seed_of},
    cluster::Cluster,
};

/// What is known of the object.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Sight {
    /// Nothing yet.
    #[default]
    Unknown,
    /// It does not exist.
    Absent,
    /// It exists; this is the newest state.
    Present(Arc<Object>),
    /// It cannot be read, and is tried again.
    Failing(ReadError),
}

/// A followed object. What changes while nobody asks comes together: only the newest state is kept.
#[derive(Debug)]
pub struct One {
    seen: watch::Receiver<Sight>,
    _task: AbortOnDropHandle<()>,
}

impl One {
    /// Starts to follow it; ends when this is dropped. Must be called inside the runtime.
    pub fn follow(cluster: Arc<Cluster>, key: ObjectKey) -> Self {
        let (sender, seen) = watch::channel(Sight::Unknown);
        Self { seen, _task: AbortOnDropHandle::new(tokio::spawn(follow(cluster, key, sender))) }
    }

    /// What is known since the last call; waits until something is. May be dropped while it waits.
    pub async fn next(&mut self) -> Sight {
        if self.seen.changed().await.is_err() {
            // The task ends only with this value.
            std::future::pending::<()>().await;
        }
        self.seen.borrow_and_update().clone()
    }
}

async fn follow(cluster: Arc<Cluster>, key: ObjectKey, seen: watch::Sender<Sight>) {
    let (mut attempt, mut feed, mut last) = (0, None, Sight::Unknown);
    loop {
        let error = match cluster.catalog().find(&key.gvk).await {
            Ok(served) => {
                let path = served.path(key.namespace.as_deref());
                let of_key = || Feed::new(cluster.transport().clone(), path, key.gvk.clone()).named(&key.name);
                let feed = feed.get_or_insert_with(of_key);
                let fault = feed
                    .run(&mut |step| {
                        attempt = 0;
                        last = after(step, std::mem::take(&mut last));
                        seen.send_replace(last.clone());
                    })
                    .await;
                cluster.read_error(&served, "watch", fault)
            }
            Err(error) => error,
        };
        attempt += 1;
        seen.send_replace(Sight::Failing(error));
        tokio::time::sleep(Backoff::REQUESTS.delay(attempt, seed_of(&key.to_string()))).await;
    }
}

fn after(step: Step, before: Sight) -> Sight {
    match step {
        Step::Opened => before,
        Step::Reset(mut objects) => objects.pop().map_or(Sight::Absent, |object| Sight::Present(Arc::new(object))),
        Step::Applied(object) => Sight::Present(Arc::new(object)),
        Step::Deleted(_) => Sight::Absent,
    }
}
