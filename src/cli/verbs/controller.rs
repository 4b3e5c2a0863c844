//! `plinth controller`: the loop in the cluster. Waits for the Lease, keeps the platform, and gives the Lease back at the end.

use std::sync::Arc;

use plinth_bootstrap::rights;
use plinth_controller::{Options, delivery::sources::LiveSources};
use plinth_engine::{graph, naming::is_subdomain, ports::Clock};
use plinth_manager::{Health, Metrics, SystemClock};
use plinth_releasechannel::RepositoryRef;
use plinth_run::{Event, Outcome, Sink};

use crate::{
    args::{Controller, Global},
    exit::Failure,
    in_cluster::{Replica, Servers},
    load,
    wire::{self, before_the_run, connect, listen},
};

/// Runs `plinth controller`.
pub(crate) async fn run(global: &Global, args: &Controller) -> Result<Outcome, Failure> {
    check(args)?;
    let mirror = args.access.mirror.as_deref().map(RepositoryRef::parse).transpose().map_err(|error| load::refusal(&error))?;
    let signals = listen()?;
    let (health, metrics) = (Health::default(), Arc::new(Metrics::default()));
    let servers = Servers::start(args, &health, &metrics).await?;
    health.ready("caches", Err("nothing is read yet".to_owned()));
    let (host, server) = before_the_run(&signals, connect(global)).await?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), server, platform = args.platform, "the controller starts");
    let (identity, platform, sinks) = (identity(), args.platform.clone(), vec![Arc::new(Logged) as Arc<dyn Sink>]);
    let replica = Replica { host, identity, platform, mirror, health, metrics, sinks, options: options(args) };
    let outcome = replica.run(&signals.token()).await;
    servers.end().await;
    outcome.map(|()| Outcome::Done)
}

fn options(args: &Controller) -> Options {
    Options {
        sources: Arc::new(LiveSources::new(load::access(&args.access))),
        graph: graph::Options { account: args.default_service_account.clone(), ..graph::Options::default() },
        condition_events: args.instance_condition_events,
        ..Options::default()
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

/// Events as log lines.
struct Logged;

impl Sink for Logged {
    fn take(&self, event: &Event) {
        let text = serde_json::to_string(&event.kind).unwrap_or_default();
        tracing::info!(run = event.run.0, seq = event.seq, event = text, "event");
    }
}
