//! The API on a loopback port, so that kubectl and others can look at it.

use std::{
    future::IntoFuture,
    io::ErrorKind,
    net::{IpAddr, SocketAddr},
};

use axum::{Router, response::IntoResponse};
use http::{StatusCode, header};
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
                if let Some(host) = foreign_host(&request) {
                    return (StatusCode::FORBIDDEN, refusal(&host)).into_response();
                }
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

/// The host that a request is sent to or comes from, where that is not this machine. A page of the web may send requests to a
/// loopback address under a name of its own (DNS rebinding), and everybody who is answered may do everything.
fn foreign_host(request: &axum::extract::Request) -> Option<String> {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or("?").to_owned());
    let target = request.uri().authority().map(|authority| authority.as_str().to_owned());
    let origin =
        header(header::ORIGIN).map(|origin| origin.split_once("://").map_or(origin.clone(), |(_, host)| host.to_owned()));
    let said = [header(header::HOST), target, origin];
    said.into_iter().flatten().find(|host| !is_local(host))
}

/// Whether a host, with or without a port, can only be this machine. An empty one is of a client that says none.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.');
    host.is_empty() || name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn refusal(host: &str) -> String {
    let host: String = host.chars().take(200).collect();
    format!("{host:?} is not this machine, and this API answers only who asks for it by localhost or a loopback address\n")
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
