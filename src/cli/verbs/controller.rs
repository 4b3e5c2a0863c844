//! `plinth controller`: the loop in the cluster. Waits for the Lease, keeps the platform, and gives the Lease back at the end.

use std::sync::Arc;

use plinth_bootstrap::rights;
use plinth_cluster::chain;
use plinth_engine::{naming::is_subdomain, ports::Clock};
use plinth_manager::{
    Gated, Health, Holder, Kept, Lease, Metrics, SystemClock,
    lease::{Attempt, LeaseError, Timing},
};
use plinth_run::Outcome;
use tokio_util::sync::CancellationToken;

use crate::{
    args::{Controller, Global},
    exit::Failure,
    in_cluster::{Keeper, Servers, Standby},
    wire::{self, Host, before_the_run, connect, listen},
};

/// Runs `plinth controller`.
pub(crate) async fn run(global: &Global, args: &Controller) -> Result<Outcome, Failure> {
    check(args)?;
    let signals = listen()?;
    let stop = signals.token();
    let (health, metrics) = (Health::default(), Arc::new(Metrics::default()));
    let servers = Servers::start(args, &health, &metrics).await?;
    health.ready("caches", Err("nothing is read yet".to_owned()));
    let (host, server) = before_the_run(&signals, connect(global)).await?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), server, platform = args.platform, "the controller starts");
    let lease = wire::lease(&host, Holder { yields: true, ..Holder::from(identity()) });
    let outcome = turns(&host, args, &lease, (&health, &metrics), &stop).await;
    servers.end().await;
    outcome.map(|()| Outcome::Done)
}

/// Waits and leads, one after the other: a run on a laptop that asks for the Lease has its turn in between.
async fn turns(
    host: &Host,
    args: &Controller,
    lease: &Arc<Lease>,
    (health, metrics): (&Health, &Arc<Metrics>),
    stop: &CancellationToken,
) -> Result<(), Failure> {
    loop {
        let standby = Standby::start(host, health);
        let leads = lease.acquire(stop, tell).await;
        standby.end().await;
        if !leads {
            return Ok(());
        }
        tracing::info!("this process leads");
        metrics.set_leader(true);
        let kept = lead(host, args, lease, (health, metrics), stop).await;
        metrics.set_leader(false);
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

/// What every writer of a cluster agrees on cannot be chosen for one of them.
fn check(args: &Controller) -> Result<(), Failure> {
    if !args.leader_elect {
        let message = "--leader-elect=false: every writer of a cluster holds its Lease, one that does not would write beside it";
        return Err(Failure::new(Outcome::Usage, message));
    }
    if args.leader_election_namespace != rights::NAMESPACE {
        let message = format!(
            "--leader-election-namespace {}: `plinth up` looks for the Lease in {}",
            args.leader_election_namespace,
            rights::NAMESPACE
        );
        return Err(Failure::new(Outcome::Usage, message));
    }
    if let Some(name) = args.default_service_account.as_deref().filter(|name| !is_subdomain(name)) {
        let message = format!("--default-service-account {name:?}: that is no name of a service account");
        return Err(Failure::new(Outcome::Usage, message));
    }
    Ok(())
}

/// Whom others see: the pod, and the process in it, because a pod keeps its name when its container starts again.
fn identity() -> String {
    let pod = std::env::var("POD_NAME").ok().filter(|name| !name.is_empty()).unwrap_or_else(wire::machine);
    let started = SystemClock.now().strftime("%Y%m%dT%H%M%S%.3fZ").to_string();
    format!("{pod}/controller-{started}-{}", std::process::id())
}

fn tell(answer: &Result<Attempt, LeaseError>) {
    match answer {
        Ok(Attempt::HeldBy { holder, .. }) => tracing::debug!(holder, "another one leads"),
        Ok(Attempt::Held) => {}
        Err(error) => tracing::warn!(error = chain(error), "the Lease cannot be asked for"),
    }
}

/// Keeps the platform until a signal, or until another one is to write; where the Lease is lost this process starts anew.
async fn lead(
    host: &Host,
    args: &Controller,
    lease: &Arc<Lease>,
    (health, metrics): (&Health, &Arc<Metrics>),
    stop: &CancellationToken,
) -> Result<Kept, Failure> {
    let applier = Arc::new(Gated { inner: Arc::clone(&host.0), lease: Arc::clone(lease) });
    // The Lease is renewed from the first moment on, also while the journal is read, and until passes in work have ended.
    let (ended, over) = (stop.child_token(), CancellationToken::new());
    let keeping = async {
        let kept = lease.keep(&over).await;
        ended.cancel();
        // Passes in work still write, for as long as the last renewal lets them.
        over.cancelled().await;
        kept
    };
    let keeper = Keeper { host, args, lease, applier, health, metrics };
    let running = async {
        let done = keeper.run(&ended).await;
        over.cancel();
        done
    };
    let (kept, done) = tokio::join!(keeping, running);
    let released = tokio::time::timeout(Timing::default().renew_deadline, lease.release()).await;
    if let Ok(Err(error)) = released {
        tracing::warn!(error = chain(&error), "the Lease could not be given back");
    }
    done.map(|()| kept)
}
