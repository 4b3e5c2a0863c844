//! The servers that one test of the whole product runs on: a real one with a stand-in, and the embedded one.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use kube::Client;
use plinth_cluster::embedded::{Acting, AtWork, Embedded, Options, Serving, Witness, api::state::Call};
use tempfile::TempDir;

use crate::{
    distribution::Distribution,
    plinth::{Finished, Run},
    show::AT_MOST,
    world::{World, scenario},
};

/// What a test needs to know of a server.
pub(crate) trait Server {
    /// How it is called in figures.
    const NAME: &'static str;
    /// From a CRD Established to the object that waited for it.
    const AT_MOST: Duration;

    async fn client(&self) -> Client;

    fn kubeconfig(&self) -> String;

    fn journal(&self) -> PathBuf;

    /// How many objects plinth wrote, subresources and Leases aside.
    fn written(&self) -> usize;

    /// `plinth up SOURCE --apply -o json` with this server's kubeconfig and journal, to its end.
    async fn up(&self, source: &str, more: &[&str]) -> Finished {
        let (kubeconfig, journal) = (self.kubeconfig(), self.journal().display().to_string());
        let fixed = ["up", source, "--apply", "-o", "json", "--kubeconfig", &kubeconfig, "--journal", &journal];
        Run::start(&[&fixed, more].concat()).finish().await
    }
}

impl Server for World {
    const NAME: &'static str = "real";
    const AT_MOST: Duration = AT_MOST;

    async fn client(&self) -> Client {
        World::client(self).await
    }

    fn kubeconfig(&self) -> String {
        World::kubeconfig(self)
    }

    fn journal(&self) -> PathBuf {
        World::journal(self)
    }

    fn written(&self) -> usize {
        self.writes().len()
    }
}

/// The embedded control plane on a port, with its own workloads and the distribution's scenario.
pub(crate) struct Plane {
    embedded: Embedded,
    serving: Serving,
    writes: Arc<Writes>,
    _at_work: AtWork,
    folder: TempDir,
}

/// Paths that plinth wrote to; requests without a socket are the test's own.
#[derive(Default)]
struct Writes(Mutex<BTreeSet<String>>);

impl Witness for Writes {
    fn saw(&self, call: &Call, code: u16) {
        let is_object = call.method == "PATCH" && !call.path.ends_with("/status") && !call.path.contains("/leases/");
        if is_object && (200..300).contains(&code) && call.query.some("dryRun").is_none() {
            self.0.lock().unwrap().insert(call.path.clone());
        }
    }
}

impl Plane {
    pub(crate) async fn start(distribution: &Distribution) -> Self {
        let writes = Arc::new(Writes::default());
        let embedded = Embedded::new(&Options { witness: Some(writes.clone()), ..Options::default() });
        let at_work = embedded.act(Acting { scenario: scenario(distribution), ..Acting::default() });
        let serving = embedded.serve().await.unwrap();
        let folder = TempDir::with_prefix("plinth-plane-").unwrap();
        std::fs::write(folder.path().join("kubeconfig"), serving.kubeconfig()).unwrap();
        Self { embedded, serving, writes, _at_work: at_work, folder }
    }
}

impl Server for Plane {
    const NAME: &'static str = "embedded";
    /// The server is as unoptimised as the test, and shares its process.
    const AT_MOST: Duration = AT_MOST.saturating_mul(5);

    async fn client(&self) -> Client {
        assert!(self.serving.address().ip().is_loopback());
        self.embedded.client()
    }

    fn kubeconfig(&self) -> String {
        self.folder.path().join("kubeconfig").display().to_string()
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    fn written(&self) -> usize {
        self.writes.0.lock().unwrap().len()
    }
}
