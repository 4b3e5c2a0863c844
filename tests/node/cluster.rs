//! The cluster of one node: the control plane, the registry, and the node itself.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use kube::Client;
use plinth_support::{ApiServer, Identity, Process, Registry, StartError, api_server::SERVICE, programs};

use crate::{containers, machine};

/// Longer than a node takes on a busy machine.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// Port of the registry, at the address that pods reach too.
const REGISTRY: u16 = 5000;

/// Everything that runs; each part is stopped when it is dropped, what needs another before that one.
pub(crate) struct Node {
    _kubelet: Process,
    _containerd: Process,
    _managers: [Process; 2],
    pub(crate) server: ApiServer,
    pub(crate) registry: Registry,
    folder: PathBuf,
}

impl Node {
    /// Starts all of it and waits until the node is ready.
    pub(crate) fn start() -> Result<Self, StartError> {
        let folder = machine::folder();
        let registry = Registry::start_at(SocketAddr::new(SERVICE.ip(), REGISTRY))?;
        let server = ApiServer::start_for_nodes()?;
        let kubeconfig = server.kubeconfig(Identity::Cluster);
        let managers = [start_controller_manager(&server, &folder, &kubeconfig)?, start_scheduler(&folder, &kubeconfig)?];
        let containerd = containers::start_containerd(&folder, &registry.host())?;
        let mut kubelet = containers::start_kubelet(&folder, &kubeconfig)?;
        kubelet.wait_until(READY_WITHIN, || is_ready(&kubeconfig))?;
        Ok(Self { _kubelet: kubelet, _containerd: containerd, _managers: managers, server, registry, folder })
    }

    /// A client that the audit log tells apart from plinth.
    pub(crate) async fn client(&self) -> Client {
        self.server.client(Identity::Cluster).await
    }

    /// Whom plinth is on the command line.
    pub(crate) fn kubeconfig(&self) -> String {
        self.server.kubeconfig(Identity::Admin).display().to_string()
    }

    /// The journal of the runs from the command line.
    pub(crate) fn journal(&self) -> String {
        self.folder.join("journal").display().to_string()
    }

    /// Whatever runs next is pulled anew.
    pub(crate) fn forget_images(&self) {
        containers::forget_images(&self.folder);
    }

    /// Tells what the cluster says, unless [`Told::not_needed`].
    pub(crate) fn tells_when_it_fails(&self) -> Told {
        Told { kubeconfig: self.server.kubeconfig(Identity::Cluster), folder: self.folder.clone(), is_needed: true }
    }
}

fn start_controller_manager(server: &ApiServer, folder: &Path, kubeconfig: &Path) -> Result<Process, StartError> {
    let mut command = Command::new(programs::server("kube-controller-manager")?);
    command.args([
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--service-account-private-key-file={}", server.folder().join("accounts.key").display()),
        format!("--root-ca-file={}", server.folder().join("ca.crt").display()),
        format!("--cert-dir={}", folder.join("controller-manager").display()),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
    ]);
    Process::start(&command, &folder.join("kube-controller-manager.log"))
}

fn start_scheduler(folder: &Path, kubeconfig: &Path) -> Result<Process, StartError> {
    let mut command = Command::new(programs::server("kube-scheduler")?);
    command.args([
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--cert-dir={}", folder.join("scheduler").display()),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
    ]);
    Process::start(&command, &folder.join("kube-scheduler.log"))
}

fn is_ready(kubeconfig: &Path) -> bool {
    let path = r#"jsonpath={.status.conditions[?(@.type=="Ready")].status}"#;
    kubectl(kubeconfig, &["get", "node", "node", "-o", path]) == "True"
}

/// What kubectl says; of its errors too.
fn kubectl(kubeconfig: &Path, arguments: &[&str]) -> String {
    let program = programs::server("kubectl").expect("./dev node builds it");
    let output = Command::new(program).arg("--kubeconfig").arg(kubeconfig).args(arguments).output().expect("it was built");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The last lines of every container's log.
fn tell_logs(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            tell_logs(&path);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        eprintln!("--- {}\n{}", path.display(), lines[lines.len().saturating_sub(20)..].join("\n"));
    }
}

/// What is told of the cluster when a test fails.
pub(crate) struct Told {
    kubeconfig: PathBuf,
    folder: PathBuf,
    is_needed: bool,
}

impl Told {
    pub(crate) fn not_needed(mut self) {
        self.is_needed = false;
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if !self.is_needed {
            return;
        }
        for arguments in [&["get", "pods", "-A", "-o", "wide"][..], &["describe", "pods", "-A"], &["get", "events", "-A"]] {
            eprintln!("--- kubectl {}\n{}", arguments.join(" "), kubectl(&self.kubeconfig, arguments));
        }
        for log in ["kubelet", "containerd", "kube-controller-manager"] {
            let text = fs::read_to_string(self.folder.join(format!("{log}.log"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            eprintln!("--- {log}\n{}", lines[lines.len().saturating_sub(20)..].join("\n"));
        }
        tell_logs(&self.folder.join("pods"));
    }
}
