//! `/healthz`, `/readyz` and `/metrics` over plain HTTP.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// What keeps the process from being ready or alive, by name. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<Checks>>);

#[derive(Debug, Default)]
struct Checks {
    ready: BTreeMap<&'static str, Result<(), String>>,
    alive: BTreeMap<&'static str, Result<(), String>>,
}

impl Health {
    /// States whether a part is ready; `Err` says what it waits for.
    pub fn ready(&self, part: &'static str, state: Result<(), String>) {
        self.checks().ready.insert(part, state);
    }

    /// States whether a part is alive; `Err` asks the kubelet for a restart.
    pub fn alive(&self, part: &'static str, state: Result<(), String>) {
        self.checks().alive.insert(part, state);
    }

    /// Whether every part that stated something is ready.
    pub fn is_ready(&self) -> bool {
        self.checks().ready.values().all(Result::is_ok)
    }

    fn checks(&self) -> MutexGuard<'_, Checks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is served at one address.
#[derive(Clone, Debug)]
pub struct Routes(Router);

impl Routes {
    /// `/healthz` and `/readyz`.
    pub fn of_health(health: Health) -> Self {
        Self(Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)).with_state(health))
    }

    /// `/metrics`.
    pub fn of_metrics(metrics: Arc<Metrics>) -> Self {
        Self(Router::new().route("/metrics", get(figures)).with_state(metrics))
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0.merge(other.0))
    }
}

/// Serves until `shutdown`, and lets answers in work end.
pub async fn serve(listener: TcpListener, routes: Routes, shutdown: CancellationToken) -> io::Result<()> {
    axum::serve(listener, routes.0).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

async fn healthz(State(health): State<Health>) -> Response {
    answer(&health.checks().alive)
}

async fn readyz(State(health): State<Health>) -> Response {
    answer(&health.checks().ready)
}

async fn figures(State(metrics): State<Arc<Metrics>>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics.text()).into_response()
}

fn answer(checks: &BTreeMap<&'static str, Result<(), String>>) -> Response {
    let mut text = String::new();
    for (part, state) in checks {
        let words = state.as_ref().map_or_else(String::as_str, |()| "ok");
        let _ = writeln!(text, "{part}: {words}");
    }
    let good = checks.values().all(Result::is_ok);
    text.push_str(if good { "ok\n" } else { "not ok\n" });
    (if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, text).into_response()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn fetch(address: std::net::SocketAddr, path: &str) -> String {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn health_and_figures_are_served_until_shutdown() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (health, metrics, shutdown) = (Health::default(), Arc::new(Metrics::default()), CancellationToken::new());
        metrics.set_leader(true);
        let server =
            tokio::spawn(serve(listener, Routes::of_health(health.clone()).and(Routes::of_metrics(metrics)), shutdown.clone()));
        assert!(fetch(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        health.ready("watches", Err("Deployment.apps/v1 is not synced".into()));
        let answer = fetch(address, "/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("watches: Deployment.apps/v1 is not synced"), "{answer}");
        health.ready("watches", Ok(()));
        assert!(fetch(address, "/readyz").await.starts_with("HTTP/1.1 200"));
        assert!(fetch(address, "/metrics").await.contains("plinth_leader 1"));
        shutdown.cancel();
        server.await.unwrap().unwrap();
    }
}
