//! Our loop over one cluster, for definitions of kro.run and nothing else: `peer-loop KUBECONFIG`.

use std::{io::Write, path::PathBuf, process::ExitCode, sync::Arc};

use plinth_api::ClusterKey;
use plinth_cluster::{
    Cluster,
    access::{self, Source},
};
use plinth_controller::{Options, start};
use plinth_run::{EventKind, Recorder};

/// Nobody listens here: the bench looks at the server.
struct Silent;

impl Recorder for Silent {
    fn record(&self, _: EventKind) {}
}

#[tokio::main]
async fn main() -> ExitCode {
    plinth_support::use_ring();
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody reads this where standard error is closed.
            let _ = writeln!(std::io::stderr(), "peer-loop: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> plinth_peer::Result<()> {
    let file = std::env::args_os().nth(1).ok_or("usage: peer-loop KUBECONFIG")?;
    let config = access::configuration(&Source::Files(vec![PathBuf::from(file)]), None).await?;
    let cluster = Cluster::new(ClusterKey::host(), config)?;
    cluster.catalog().follow();
    let handle = start([cluster], Arc::new(Silent), Options { delivery: false, ..Options::default() });
    tokio::signal::ctrl_c().await?;
    handle.stop().await;
    Ok(())
}
