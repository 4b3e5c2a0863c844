//! The API on a loopback port, so that kubectl and others can look at it.

use std::{future::IntoFuture, io::ErrorKind, net::SocketAddr};

use axum::{Router, response::IntoResponse};
use http::StatusCode;
use tokio::{net::TcpListener, task::JoinHandle};
use tower::ServiceExt;

use super::{Embedded, api::rbac::User};

/// A control plane that listens; it stops when this is dropped.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Embedded {
    /// Listens on a free port of 127.0.0.1. Everybody on this machine may do everything.
    pub async fn serve(&self) -> std::io::Result<Serving> {
        self.serve_at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Listens on an address, which has to be one that only this machine reaches: there is no TLS and no login.
    pub async fn serve_at(&self, address: SocketAddr) -> std::io::Result<Serving> {
        if !address.ip().is_loopback() {
            let message = format!("{address} is no loopback address, and everybody who reaches it may do everything");
            return Err(std::io::Error::new(ErrorKind::InvalidInput, message));
        }
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let service = self.service(User::admin());
        let app = Router::new().fallback(move |request: axum::extract::Request| {
            let service = service.clone();
            async move {
                match service.oneshot(request).await {
                    Ok(response) => response.map(axum::body::Body::new).into_response(),
                    // A socket cannot be refused once it is open; this is what a proxy before a server that is away says.
                    Err(away) => (StatusCode::SERVICE_UNAVAILABLE, away.to_string()).into_response(),
                }
            }
        });
        // Ends with the task; a listener that fails leaves clients with a refused connection, which says it.
        let task = tokio::spawn(async move { drop(axum::serve(listener, app).into_future().await) });
        Ok(Serving { address, task })
    }
}

impl Serving {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A kubeconfig for the default cluster.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_at("")
    }

    /// A kubeconfig whose server's address ends in a path, such as that of a logical cluster, `/clusters/NAME`.
    pub fn kubeconfig_at(&self, root: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: embedded\nclusters:\n- name: embedded\n  cluster: {{server: \"http://{}{root}\"}}\ncontexts:\n- name: embedded\n  context: {{cluster: embedded, user: admin}}\nusers:\n- name: admin\n  user: {{}}\n",
            self.address
        )
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}
