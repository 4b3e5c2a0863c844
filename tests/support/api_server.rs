//! A real kube-apiserver with its own etcd on 127.0.0.1.
//!
//! There is no controller manager, unless a test starts one: namespaces, owner references and Deployments do nothing by themselves.

mod account;
mod kubeconfig;

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

use tempfile::TempDir;

pub use account::code_of;
pub use kubeconfig::Identity;

use crate::{
    audit::AuditLog,
    block_on,
    certificates::{self, Authority},
    process::{Process, StartError, free_port, with_free_ports},
    programs,
};

/// On two busy cores the server took 40 s; idle it takes 7 s.
const READY_WITHIN: Duration = Duration::from_mins(3);

/// Where pods find the API server: the first address of the service range, and the port of the service `kubernetes`.
pub const SERVICE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 233, 0, 1)), 443);

/// A running API server; stopped, with its files removed, when dropped.
#[derive(Debug)]
pub struct ApiServer {
    // Order matters: processes are stopped before the folder is removed.
    server: Option<Process>,
    etcd: Process,
    etcd_port: u16,
    address: SocketAddr,
    folder: TempDir,
}

impl ApiServer {
    /// Starts etcd and kube-apiserver and waits until it is ready.
    pub fn start() -> Result<Self, StartError> {
        crate::use_ring();
        let folder = TempDir::with_prefix("plinth-api-server-").map_err(StartError::io("make a folder for an API server"))?;
        prepare(folder.path())?;
        let (etcd, etcd_port) = with_free_ports(|| start_etcd(folder.path()))?;
        let (server, address) = with_free_ports(|| {
            let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
            Ok((start_server(folder.path(), etcd_port, address)?, address))
        })?;
        Ok(Self { server: Some(server), etcd, etcd_port, address, folder })
    }

    /// Starts one for a cluster with nodes, at the address that its pods find it at ([`SERVICE`]): this machine must have it.
    pub fn start_for_nodes() -> Result<Self, StartError> {
        crate::use_ring();
        let folder = TempDir::with_prefix("plinth-api-server-").map_err(StartError::io("make a folder for an API server"))?;
        prepare(folder.path())?;
        let (etcd, etcd_port) = with_free_ports(|| start_etcd(folder.path()))?;
        let server = start_server(folder.path(), etcd_port, SERVICE)?;
        Ok(Self { server: Some(server), etcd, etcd_port, address: SERVICE, folder })
    }

    /// One server for all tests of a process that keep to their own namespaces and names.
    ///
    /// # Panics
    /// Where it cannot be started, with the reason.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<ApiServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start().unwrap_or_else(|error| panic!("start the API server for tests: {error}")))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its folder: logs, certificates, kubeconfigs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A kubeconfig file with one context for each [`Identity`], `identity`'s being the current one.
    pub fn kubeconfig(&self, identity: Identity) -> PathBuf {
        self.kubeconfig_at(identity, self.address())
    }

    /// The same for a server that is reached through another address, such as a [`crate::Proxy`]'s.
    ///
    /// # Panics
    /// Where the file cannot be written into the server's own folder.
    pub fn kubeconfig_at(&self, identity: Identity, address: SocketAddr) -> PathBuf {
        let path = self.folder.path().join(format!("{}-{}.kubeconfig", identity.name(), address.port()));
        let text = kubeconfig::render(identity, address, &self.folder.path().join("ca.crt"));
        fs::write(&path, text).expect("the server's own folder is writable");
        path
    }

    /// A client for `identity`.
    ///
    /// # Panics
    /// Where the kubeconfig written by this server is not valid, which is a defect of this crate.
    pub async fn client(&self, identity: Identity) -> kube::Client {
        crate::use_ring();
        client(&self.kubeconfig(identity)).await
    }

    /// What was asked of it so far.
    pub fn audit(&self) -> AuditLog {
        AuditLog::new(self.folder.path().join("audit.log"))
    }

    /// Stops the API server; etcd keeps the objects.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Starts it again on the same port after [`ApiServer::stop`].
    pub fn resume(&mut self) -> Result<(), StartError> {
        self.server = None;
        self.server = Some(start_server(self.folder.path(), self.etcd_port, self.address)?);
        Ok(())
    }

    /// Stops and starts it.
    pub fn restart(&mut self) -> Result<(), StartError> {
        self.stop();
        self.resume()
    }

    /// Lets it take connections and answer nothing, until [`ApiServer::thaw`].
    ///
    /// # Panics
    /// Where it does not run.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it answer again.
    ///
    /// # Panics
    /// Where it does not run.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let pid = self.server.as_ref().and_then(Process::pid).expect("the server runs");
        let sent = std::process::Command::new("kill").args([name, &pid.to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {name} {pid}");
    }

    /// Whether both programs run.
    pub fn is_running(&mut self) -> bool {
        self.etcd.is_running() && self.server.as_mut().is_some_and(Process::is_running)
    }
}

/// A client from a kubeconfig file. It repeats nothing by itself: a kind's first watch is answered with 429 and `Retry-After: 1` until the
/// server's cache is filled, and a test that waited so long would see late what it times.
pub(crate) async fn client(kubeconfig: &Path) -> kube::Client {
    let config = kube::config::Kubeconfig::read_from(kubeconfig).expect("we wrote this kubeconfig");
    let mut config = kube::Config::from_custom_kubeconfig(config, &kube::config::KubeConfigOptions::default())
        .await
        .expect("we wrote this kubeconfig");
    config.default_retry = false;
    kube::Client::try_from(config).expect("ring is the TLS provider")
}

const AUDIT_POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

fn prepare(folder: &Path) -> Result<(), StartError> {
    let authority = Authority::create(folder)?;
    authority.issue("server")?;
    certificates::key_pair(folder, "accounts")?;
    for (file, text) in [("tokens.csv", kubeconfig::tokens()), ("audit-policy.yaml", AUDIT_POLICY.to_owned())] {
        fs::write(folder.join(file), text).map_err(StartError::io(format!("write {file}")))?;
    }
    Ok(())
}

fn start_etcd(folder: &Path) -> Result<(Process, u16), StartError> {
    let (port, peer_port) = (free_port()?, free_port()?);
    let (url, peer_url) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer_port}"));
    let mut command = Command::new(programs::server("etcd")?);
    command
        .arg("--data-dir")
        .arg(folder.join("etcd"))
        .args(["--unsafe-no-fsync", "--log-level", "warn"])
        .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
        .args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url])
        .args(["--initial-cluster", &format!("default={peer_url}")]);
    let mut etcd = Process::start_with_folder(&command, &folder.join("etcd.log"), folder)?;
    etcd.wait_until(READY_WITHIN, || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())?;
    Ok((etcd, port))
}

fn start_server(folder: &Path, etcd_port: u16, address: SocketAddr) -> Result<Process, StartError> {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut command = Command::new(programs::server("kube-apiserver")?);
    command.args([
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        format!("--secure-port={}", address.port()),
        format!("--bind-address={}", address.ip()),
        format!("--advertise-address={}", address.ip()),
        // The `kubernetes` Service would need an address that is not a loopback one.
        format!("--endpoint-reconciler-type={}", if address.ip().is_loopback() { "none" } else { "lease" }),
        "--service-cluster-ip-range=10.233.0.0/24".to_owned(),
        format!("--cert-dir={}", folder.display()),
        format!("--tls-cert-file={}", file("server.crt")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--token-auth-file={}", file("tokens.csv")),
        format!("--service-account-key-file={}", file("accounts.pub")),
        format!("--service-account-signing-key-file={}", file("accounts.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--profiling=false".to_owned(),
        "--shutdown-delay-duration=0s".to_owned(),
        format!("--audit-policy-file={}", file("audit-policy.yaml")),
        format!("--audit-log-path={}", file("audit.log")),
    ]);
    let mut server = Process::start(&command, &folder.join("kube-apiserver.log"))?;
    let kubeconfig = folder.join("readiness.kubeconfig");
    fs::write(&kubeconfig, kubeconfig::render(Identity::Admin, address, &folder.join("ca.crt")))
        .map_err(StartError::io("write the kubeconfig of the readiness check"))?;
    server.wait_until(READY_WITHIN, || block_on(is_ready(&kubeconfig)))?;
    Ok(server)
}

/// Ready for a test means: its own start-up hooks are done and the namespaces that every cluster has are there.
async fn is_ready(kubeconfig: &Path) -> bool {
    let client = client(kubeconfig).await;
    let asked = async {
        let request = |path: &str| http::Request::get(path).body(Vec::new());
        client.request_text(request("/readyz").ok()?).await.ok()?;
        for namespace in ["default", "kube-system"] {
            client.request_text(request(&format!("/api/v1/namespaces/{namespace}")).ok()?).await.ok()?;
        }
        Some(())
    };
    matches!(tokio::time::timeout(Duration::from_secs(10), asked).await, Ok(Some(())))
}

#[cfg(test)]
mod tests;
