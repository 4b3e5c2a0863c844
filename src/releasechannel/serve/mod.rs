//! A small registry in the process: read-only, from a CTF, by the pull part of the OCI distribution specification.
//!
//! For a rehearsal, a demonstration and a first node, which pull before there is any mirror. It serves what is in the archive and nothing
//! else; whole blobs are hashed on their way out, and an answer whose bytes are wrong is cut off instead of being finished.

mod answer;
mod path;
mod range;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::ctf::{ContentStore, Contents};
use crate::error::RepositoryError;
use crate::options::Limits;

/// A running registry; it stops when it is dropped.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Serving {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening, lets open answers end, and waits for that.
    pub async fn stop(mut self) {
        self.stop.take();
        // The task ends by itself; that it was cancelled is an end too.
        let _ended = (&mut self.task).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.stop.take().is_some() {
            self.task.abort();
        }
    }
}

/// Starts one at an address, such as `127.0.0.1:0` for any free port.
pub async fn serve(contents: Contents, address: SocketAddr, limits: Limits) -> Result<Serving, RepositoryError> {
    let failed = |error: std::io::Error| RepositoryError::Unavailable {
        what: contents.place.clone(),
        place: address.to_string(),
        attempts: 1,
        cause: format!("listen there: {error}"),
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let router = axum::Router::new().fallback(handle).with_state(contents.into_store(limits));
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let until = async {
            let _dropped = stopped.await;
        };
        if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(until).await {
            tracing::warn!(%address, %error, "the registry in the process ended");
        }
    });
    Ok(Serving { address, stop: Some(stop), task })
}

async fn handle(State(store): State<Arc<ContentStore>>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    answer::to(&store, &method, &uri, &headers).await
}

#[cfg(test)]
mod tests;
