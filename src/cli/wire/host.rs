//! The platform cluster behind bootstrap's ports.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use plinth_api::{ClusterKey, GroupVersionKind, Permission};
use plinth_bootstrap::{Access, Listable, Schemas};
use plinth_cluster::{
    Cluster,
    access::{self, Source},
    chain,
};
use plinth_engine::{
    ports::{Answer, ReadError},
    schema::SchemaSource,
};
use plinth_run::ClusterIdentity;
use tokio::time::Instant;

use crate::{args::Global, exit::Failure};

/// The platform cluster, and what messages call it: its server's address, with the context where there is one.
#[derive(Clone)]
pub struct Host(pub Arc<Cluster>, pub String);

impl Host {
    /// Lets no request wait for longer than what is left of `timeout` from now.
    pub(crate) fn give_up_after(&self, timeout: Duration) {
        self.0.give_up_at(Instant::now().checked_add(timeout));
    }

    /// The same error, saying which server did not answer.
    fn named(&self, error: ReadError) -> ReadError {
        match error {
            ReadError::Unavailable(message) => ReadError::Unavailable(format!("{}: {message}", self.1)),
            other => other,
        }
    }
}

/// Reads the kubeconfig and makes a client; contacts nothing. Answers with the server's address too.
pub(crate) async fn connect(global: &Global) -> Result<(Host, String), Failure> {
    let hint = "--kubeconfig and --context choose a cluster";
    let source = Source::infer(global.kubeconfig.as_deref()).map_err(|error| Failure::refused(chain(&error)).hint(hint))?;
    let refuse = |error: &dyn std::error::Error| Failure::refused(format!("{}: {}", place(&source), chain(error))).hint(hint);
    let asked = global.context.as_deref();
    let (config, context) = access::named_configuration(&source, asked).await.map_err(|error| refuse(&error))?;
    let server = config.cluster_url.to_string();
    let cluster = Cluster::new(ClusterKey::host(), config).map_err(|error| refuse(&error.of_context(context.as_deref())))?;
    let called = context.map_or_else(|| server.clone(), |context| format!("{server} (context {context})"));
    Ok((Host(cluster, called), server))
}

/// Where the configuration came from, for messages.
fn place(source: &Source) -> String {
    match source {
        Source::Files(files) => files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", "),
        Source::Bytes { name, .. } => name.clone(),
        Source::InCluster => "the pod's service account".to_owned(),
    }
}

impl Access for Host {
    fn identity(&self) -> Answer<'_, Result<ClusterIdentity, ReadError>> {
        Box::pin(async { self.0.identity().await.map(|identity| ClusterIdentity(identity.0)).map_err(|error| self.named(error)) })
    }

    fn can_i<'a>(&'a self, permission: &'a Permission) -> Answer<'a, Result<bool, ReadError>> {
        Box::pin(self.0.can_i(permission))
    }
}

impl Schemas for Host {
    fn ensure<'a>(&'a self, kinds: &'a [GroupVersionKind]) -> Answer<'a, Result<Arc<dyn SchemaSource>, ReadError>> {
        Box::pin(async move { Ok(Arc::new(self.0.catalog().ensure(kinds).await?) as Arc<dyn SchemaSource>) })
    }

    fn listable(&self) -> Answer<'_, Result<Vec<Listable>, ReadError>> {
        Box::pin(async {
            let mut seen = BTreeSet::new();
            // Objects are the same in every version.
            let all =
                self.0.catalog().all().await?.into_iter().filter(|kind| kind.listable && seen.insert(kind.gvk.group_kind()));
            Ok(all.map(|kind| Listable { gvk: kind.gvk, namespaced: kind.namespaced }).collect())
        })
    }
}
