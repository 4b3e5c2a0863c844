//! One controller of a cluster: it waits for the Lease, keeps the platform, and gives the Lease back, for as long as it runs.

use std::sync::Arc;

use plinth_cluster::chain;
use plinth_controller::Options;
use plinth_engine::ports::Clock;
use plinth_manager::{
    Gated, Health, Holder, Kept, Lease, Metrics,
    lease::{Attempt, LeaseError, Timing},
};
use plinth_releasechannel::RepositoryRef;
use plinth_run::Sink;
use tokio_util::sync::CancellationToken;

use super::{keeper::Keeper, standby::Standby};
use crate::{
    exit::Failure,
    wire::{self, Host},
};

/// What a controller is made of, behind its ports: the same in a pod and in a simulation.
pub struct Replica {
    /// Its cluster.
    pub host: Host,
    /// Whom others see; the next process is another one.
    pub identity: String,
    /// Name of the platform that is kept.
    pub platform: String,
    /// Where images are looked for first.
    pub mirror: Option<RepositoryRef>,
    /// Whether it is ready, and for what it waits.
    pub health: Health,
    /// Its figures.
    pub metrics: Arc<Metrics>,
    /// Who else is told of what it does while it leads.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// How its loop runs; what the Lease, the journal and the release lock say comes on top.
    pub options: Options,
}

impl Replica {
    /// Waits and leads, one after the other: a run on a laptop that asks for the Lease has its turn in between. Ends with `stop`, or with an
    /// error where the Lease is lost: then this process starts anew.
    pub async fn run(&self, stop: &CancellationToken) -> Result<(), Failure> {
        let holder = Holder { yields: true, ..Holder::from(self.identity.as_str()) };
        let lease = wire::lease(&self.host, holder, Arc::clone(self.clock()));
        loop {
            let standby = Standby::start(&self.host, &self.health);
            let leads = lease.acquire(stop, tell).await;
            standby.end().await;
            if !leads {
                return Ok(());
            }
            tracing::info!("this process leads");
            self.metrics.set_leader(true);
            let kept = self.lead(&lease, stop).await;
            self.metrics.set_leader(false);
            match kept? {
                Kept::Ended => return Ok(()),
                Kept::Asked => tracing::info!("another one asked for the Lease and has its turn"),
                Kept::Lost => {
                    let message = "the Lease was lost: another one writes, or it could not be renewed in time";
                    return Err(Failure::failed(message));
                }
            }
        }
    }

    /// Keeps the platform until it is to stop, or until another one is to write.
    async fn lead(&self, lease: &Arc<Lease>, stop: &CancellationToken) -> Result<Kept, Failure> {
        let applier = Arc::new(Gated { inner: Arc::clone(&self.host.0), lease: Arc::clone(lease) });
        // The Lease is renewed from the first moment on, also while the journal is read, and until passes in work have ended.
        let (ended, over) = (stop.child_token(), CancellationToken::new());
        let keeping = async {
            let kept = lease.keep(&over).await;
            ended.cancel();
            // Passes in work still write, for as long as the last renewal lets them.
            over.cancelled().await;
            kept
        };
        let keeper = Keeper { replica: self, lease, applier };
        let running = async {
            keeper.run(&ended).await;
            over.cancel();
        };
        let (kept, ()) = tokio::join!(keeping, running);
        let released = tokio::time::timeout(Timing::default().renew_deadline, lease.release()).await;
        if let Ok(Err(error)) = released {
            tracing::warn!(error = chain(&error), "the Lease could not be given back");
        }
        Ok(kept)
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.options.clock
    }
}

fn tell(answer: &Result<Attempt, LeaseError>) {
    match answer {
        Ok(Attempt::HeldBy { holder, .. }) => tracing::debug!(holder, "another one leads"),
        Ok(Attempt::Held) => {}
        Err(error) => tracing::warn!(error = chain(error), "the Lease cannot be asked for"),
    }
}
