//! A bare API server where a stand-in plays the operator.

use std::path::PathBuf;

use kube::Client;
use plinth_support::{ApiServer, AuditObject, Identity, Scenario, StandIn, scenario};
use tempfile::TempDir;

use crate::{
    distribution::{Distribution, data},
    plinth::{Finished, Run},
};

/// The distribution's scenario, with the real CRDs where they are there.
pub(crate) fn scenario(distribution: &Distribution) -> Scenario {
    let followed = scenario::read(&distribution.file("scenario.yaml")).unwrap();
    let Some(data) = data() else {
        eprintln!("not run: the operator's own CRDs (PLINTH_DATA has none); the scenario's instead");
        return followed;
    };
    scenario::with_registered(followed, &data.join("openmcp/crds/history/v0.19.1")).unwrap()
}

/// One test's cluster.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    _stand_in: StandIn,
    folder: TempDir,
}

impl World {
    /// Starts a cluster whose stand-in follows the distribution's scenario.
    pub(crate) async fn start(distribution: &Distribution) -> Self {
        let server = tokio::task::spawn_blocking(ApiServer::start).await.unwrap().unwrap();
        let stand_in = StandIn::start(server.client(Identity::Cluster).await, scenario(distribution));
        Self { server, _stand_in: stand_in, folder: TempDir::with_prefix("plinth-world-").unwrap() }
    }

    pub(crate) async fn client(&self) -> Client {
        self.server.client(Identity::Cluster).await
    }

    pub(crate) fn kubeconfig(&self) -> String {
        self.server.kubeconfig(Identity::Admin).display().to_string()
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    /// `plinth up SOURCE --apply -o json` with this world's kubeconfig and journal.
    pub(crate) fn start_up(&self, source: &str, more: &[&str]) -> Run {
        let (kubeconfig, journal) = (self.kubeconfig(), self.journal().display().to_string());
        let fixed = ["up", source, "--apply", "-o", "json", "--kubeconfig", &kubeconfig, "--journal", &journal];
        Run::start(&[&fixed, more].concat())
    }

    /// The same, to its end.
    pub(crate) async fn up(&self, source: &str, more: &[&str]) -> Finished {
        self.start_up(source, more).finish().await
    }

    /// Objects that plinth has written so far, subresources and Leases aside, with how often.
    pub(crate) fn writes(&self) -> Vec<(AuditObject, usize)> {
        let counts = self.server.audit().write_counts(Identity::Admin.name()).unwrap();
        counts.into_iter().filter(|(object, _)| object.resource != "leases" && object.subresource.is_empty()).collect()
    }
}
