//! The platform cluster behind bootstrap's ports.

use std::sync::Arc;

use plinth_api::{ClusterKey, GroupVersionKind};
use plinth_bootstrap::{Access, Permission, Schemas};
use plinth_cluster::{
    Cluster,
    access::{self, Source},
    review,
};
use plinth_engine::{
    ports::{Answer, ReadError},
    schema::SchemaSource,
};
use plinth_run::ClusterIdentity;

use crate::{args::Global, exit::Failure, load::chain};

/// The platform cluster.
#[derive(Clone)]
pub(crate) struct Host(pub(crate) Arc<Cluster>);

/// Reads the kubeconfig and makes a client; contacts nothing. Answers with the server's address too.
pub(crate) async fn connect(global: &Global) -> Result<(Host, String), Failure> {
    let refuse =
        |error: &dyn std::error::Error| Failure::refused(chain(error)).hint("--kubeconfig and --context choose a cluster");
    let source = Source::infer(global.kubeconfig.as_deref()).map_err(|error| refuse(&error))?;
    let config = access::configuration(&source, global.context.as_deref()).await.map_err(|error| refuse(&error))?;
    let server = config.cluster_url.to_string();
    let cluster = Cluster::new(ClusterKey::host(), config).map_err(|error| refuse(&error))?;
    Ok((Host(cluster), server))
}

impl Access for Host {
    fn identity(&self) -> Answer<'_, Result<ClusterIdentity, ReadError>> {
        Box::pin(async { self.0.identity().await.map(|identity| ClusterIdentity(identity.0)) })
    }

    fn can_i<'a>(&'a self, permission: &'a Permission) -> Answer<'a, Result<bool, ReadError>> {
        Box::pin(async move {
            let asked = review::Permission {
                verb: permission.verb.clone(),
                group: permission.group.clone(),
                resource: permission.resource.clone(),
                namespace: permission.namespace.clone(),
            };
            self.0.can_i(&asked).await
        })
    }
}

impl Schemas for Host {
    fn ensure<'a>(&'a self, kinds: &'a [GroupVersionKind]) -> Answer<'a, Result<Arc<dyn SchemaSource>, ReadError>> {
        Box::pin(async move { Ok(Arc::new(self.0.catalog().ensure(kinds).await?) as Arc<dyn SchemaSource>) })
    }
}
