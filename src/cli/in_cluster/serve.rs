//! Health and figures over HTTP, each at its own address.

use std::sync::Arc;

use plinth_manager::{
    Health, Metrics,
    serve::{self, Routes},
};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{args::Controller, exit::Failure};

/// What is served, until it is ended.
pub(crate) struct Servers {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Servers {
    /// Listens at both addresses.
    pub(crate) async fn start(args: &Controller, health: &Health, metrics: &Arc<Metrics>) -> Result<Self, Failure> {
        let mut servers = Self { stop: CancellationToken::new(), tasks: JoinSet::new() };
        servers.serve("health", &args.health_probe_bind_address, Routes::of_health(health.clone())).await?;
        servers.serve("metrics", &args.metrics_bind_address, Routes::of_metrics(Arc::clone(metrics))).await?;
        Ok(servers)
    }

    async fn serve(&mut self, what: &'static str, address: &str, routes: Routes) -> Result<(), Failure> {
        let Some(address) = listened(address) else { return Ok(()) };
        let refuse = |error: std::io::Error| Failure::refused(format!("listen on {address} for {what}: {error}"));
        let listener = TcpListener::bind(&address).await.map_err(refuse)?;
        let at = listener.local_addr().map_err(refuse)?;
        tracing::info!(what, %at, "serving");
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            if let Err(error) = serve::serve(listener, routes, stop).await {
                tracing::error!(what, %error, "serving ended");
            }
        });
        Ok(())
    }

    /// Lets answers in work end.
    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// An address as Go programs write it: `:8081` is every interface, `0` is none.
fn listened(address: &str) -> Option<String> {
    match address {
        "0" | "" => None,
        _ if address.starts_with(':') => Some(format!("[::]{address}")),
        _ => Some(address.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_go() {
        assert_eq!(listened("0"), None);
        assert_eq!(listened(":8081").as_deref(), Some("[::]:8081"));
        assert_eq!(listened("127.0.0.1:0").as_deref(), Some("127.0.0.1:0"));
    }
}
