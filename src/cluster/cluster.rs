//! One API server as the engine's doors [`Applier`] and [`Reader`].

use std::sync::Arc;

use http::Method;
use plinth_api::{ClusterKey, Object, ObjectKey};
use plinth_engine::ports::{Answer, Applier, Apply, Delete, Query, ReadError, Reader, ServiceAccount, WriteError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    access::AccessError,
    catalog::{Catalog, ServedKind},
    embedded::Answered,
    fault,
    http::{APPLY, Call, Fault, JSON, Transport},
    list, untyped,
};

/// One API server: its key, its client, and what it serves.
pub struct Cluster {
    key: ClusterKey,
    transport: Transport,
    catalog: Arc<Catalog>,
}

/// Which cluster this is, whatever its address: the UID of the namespace kube-system (design.md section 1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterIdentity(pub String);

impl Cluster {
    /// Prepares a client; contacts nothing.
    pub fn new(key: ClusterKey, config: kube::Config) -> Result<Arc<Self>, AccessError> {
        // Another part of the process may have chosen a provider before; whichever is there will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let server = plinth_api::login::hidden(&config.cluster_url.to_string());
        let client = kube::Client::try_from(config)
            .map_err(|error| AccessError::Client { server, message: crate::http::chain(&error) })?;
        Ok(Self::with_client(key, client))
    }

    /// A cluster behind any client: another transport, a virtual workspace, an API server in this process, a test's service.
    pub fn with_client(key: ClusterKey, client: kube::Client) -> Arc<Self> {
        let transport = Transport::new(client);
        let catalog = Catalog::new(transport.clone());
        Arc::new(Self { key, transport, catalog })
    }

    /// The same cluster in a service account's name: what that may not do is refused, and so is everything where the identity of
    /// the client may not impersonate it. What is served is still learnt by the identity of the client.
    #[must_use]
    pub fn acting_as(&self, account: &ServiceAccount) -> Self {
        Self { key: self.key.clone(), transport: self.transport.acting_as(account), catalog: Arc::clone(&self.catalog) }
    }

    /// Its key, with which all its objects' keys begin.
    pub fn key(&self) -> &ClusterKey {
        &self.key
    }

    /// What it serves.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The client, for what the doors do not cover.
    pub fn client(&self) -> &kube::Client {
        self.transport.client()
    }

    /// Bounds every request by what is left until then, and lets none wait longer than 30 s in any case. `None` takes the bound away.
    /// What is asked after that moment has a second for its answer. Watches go on.
    pub fn give_up_at(&self, until: Option<Instant>) {
        self.transport.give_up_at(until);
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The API server's version, such as `v1.34.4`.
    pub async fn version(&self) -> Result<String, ReadError> {
        let answer = self.transport.json(Call::get("/version")).await;
        let answer = answer.map_err(|fault| fault::read_error(&kind("Version"), "version", "get", fault))?;
        Ok(answer["gitVersion"].as_str().unwrap_or_default().to_owned())
    }

    /// Its identity: the UID of kube-system.
    pub async fn identity(&self) -> Result<ClusterIdentity, ReadError> {
        let answer = self.transport.json(Call::get("/api/v1/namespaces/kube-system")).await;
        let answer = answer.map_err(|fault| fault::read_error(&kind("Namespace"), "namespaces", "get", fault))?;
        match answer["metadata"]["uid"].as_str() {
            Some(uid) if !uid.is_empty() => Ok(ClusterIdentity(uid.to_owned())),
            _ => Err(ReadError::Unavailable("the namespace kube-system has no UID".to_owned())),
        }
    }

    /// Applies; `dry_run` lets the server answer without storing.
    pub(crate) async fn apply_as(&self, request: &Apply, dry_run: bool) -> Result<Object, WriteError> {
        let key = &request.key;
        let served = self.served_for_write(key).await?;
        let mut path = object_path(&served, key)?;
        if let Some(subresource) = request.subresource {
            path = format!("{path}/{subresource}");
        }
        let call = Call::new(Method::PATCH, &path)
            .query("fieldManager", &request.manager)
            .query("force", request.force.to_string())
            .body(APPLY, &request.object);
        let answer = match self.transport.answer(with_dry_run(call, dry_run)).await {
            Ok(answer) => untyped::tidy(&self.transport, &path, request, answer.into_object(), dry_run).await,
            Err(fault) if untyped::applies_to(request, &fault) => untyped::write(&self.transport, &path, request, dry_run).await,
            Err(fault) => Err(fault),
        };
        self.object(&served, key, "patch", answer).map_err(|error| of_subresource(error, request.subresource))
    }

    /// Creates an object that must not exist yet ([`WriteError::Conflict`] where it does).
    pub async fn create(&self, key: &ObjectKey, object: &Object) -> Result<Object, WriteError> {
        let served = self.served_for_write(key).await?;
        let call = Call::new(Method::POST, collection_path(&served, key)?).body(JSON, object);
        let answer = self.transport.answer(call).await.map(Answered::into_object);
        self.object(&served, key, "create", answer)
    }

    /// Replaces an object; its `metadata.resourceVersion` must be the current one ([`WriteError::Conflict`] where it is not).
    pub async fn replace(&self, key: &ObjectKey, object: &Object) -> Result<Object, WriteError> {
        let served = self.served_for_write(key).await?;
        let call = Call::new(Method::PUT, object_path(&served, key)?).body(JSON, object);
        let answer = self.transport.answer(call).await.map(Answered::into_object);
        self.object(&served, key, "update", answer)
    }

    pub(crate) async fn delete_as(&self, request: &Delete, dry_run: bool) -> Result<(), WriteError> {
        let key = &request.key;
        let served = self.served_for_write(key).await?;
        // Without this, a Job's pods would stay behind.
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        if let Some(uid) = &request.uid {
            options["preconditions"] = json!({"uid": uid});
        }
        if dry_run {
            options["dryRun"] = json!(["All"]);
        }
        let call = Call::new(Method::DELETE, object_path(&served, key)?).body(JSON, &options);
        match self.transport.json(call).await {
            Ok(_) => Ok(()),
            Err(Fault::Status(status)) if status.code == 404 && !fault::kind_is_missing(&status) => Ok(()),
            Err(fault) => Err(self.write_error(&served, key, "delete", fault)),
        }
    }

    async fn served_for_write(&self, key: &ObjectKey) -> Result<ServedKind, WriteError> {
        debug_assert_eq!(key.cluster, self.key, "a key of another cluster");
        self.catalog.find(&key.gvk).await.map_err(|error| match error {
            ReadError::NotServed(gvk) => WriteError::NotServed(gvk),
            ReadError::Forbidden { missing, message } => WriteError::Forbidden { missing, message },
            ReadError::Unauthenticated(message) => WriteError::Unauthenticated { key: key.clone(), message },
            ReadError::Unavailable(message) => WriteError::Unavailable { key: key.clone(), message },
        })
    }

    fn object(
        &self,
        served: &ServedKind,
        key: &ObjectKey,
        verb: &str,
        answer: Result<Option<Object>, Fault>,
    ) -> Result<Object, WriteError> {
        let object = answer.map_err(|fault| self.write_error(served, key, verb, fault))?;
        object.ok_or_else(|| WriteError::Unavailable { key: key.clone(), message: "the answer is no object".to_owned() })
    }

    fn write_error(&self, served: &ServedKind, key: &ObjectKey, verb: &str, fault: Fault) -> WriteError {
        let error = fault::write_error(key, served, verb, fault);
        if matches!(error, WriteError::NotServed(_)) {
            self.catalog.doubt(&key.gvk);
        }
        error
    }

    async fn read_one(&self, key: &ObjectKey) -> Result<Option<Object>, ReadError> {
        let served = self.catalog.find(&key.gvk).await?;
        let Ok(path) = object_path(&served, key) else { return Ok(None) };
        match self.transport.answer(Call::get(path)).await {
            Ok(answer) => Ok(answer.into_object()),
            Err(Fault::Status(status)) if status.code == 404 && !fault::kind_is_missing(&status) => Ok(None),
            Err(fault) => Err(of_object(self.read_error(&served, "get", fault), key)),
        }
    }

    async fn read_all(&self, query: &Query) -> Result<Vec<Object>, ReadError> {
        let served = self.catalog.find(&query.gvk).await?;
        let path = served.path(query.namespace.as_deref());
        let listed = list::all(&self.transport, &path, ("labelSelector", &query.selector), &served.gvk).await;
        listed.map(|list| list.objects).map_err(|fault| self.read_error(&served, "list", fault))
    }

    pub(crate) fn read_error(&self, served: &ServedKind, verb: &str, fault: Fault) -> ReadError {
        let error = fault::read_error(&served.gvk, &served.resource(), verb, fault);
        if matches!(error, ReadError::NotServed(_)) {
            self.catalog.doubt(&served.gvk);
        }
        error
    }
}

impl Applier for Cluster {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(self.apply_as(request, false))
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        Box::pin(self.delete_as(request, false))
    }

    fn replace<'a>(&'a self, key: &'a ObjectKey, object: &'a Object) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(Self::replace(self, key, object))
    }
}

impl Reader for Cluster {
    fn get<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Option<Object>, ReadError>> {
        Box::pin(self.read_one(key))
    }

    fn list<'a>(&'a self, query: &'a Query) -> Answer<'a, Result<Vec<Object>, ReadError>> {
        Box::pin(self.read_all(query))
    }
}

/// Names the object that may not be read.
fn of_object(mut error: ReadError, key: &ObjectKey) -> ReadError {
    if let ReadError::Forbidden { missing, .. } = &mut error {
        (missing.namespace, missing.name) = (key.namespace.clone(), Some(key.name.clone()));
    }
    error
}

/// Says that a part of an object may not be written.
fn of_subresource(mut error: WriteError, subresource: Option<&str>) -> WriteError {
    if let (WriteError::Forbidden { missing, .. }, Some(subresource)) = (&mut error, subresource) {
        missing.resource = format!("{}/{subresource}", missing.resource);
    }
    error
}

fn kind(kind: &str) -> plinth_api::GroupVersionKind {
    plinth_api::GroupVersionKind::new("", "v1", kind)
}

pub(crate) fn with_dry_run(call: Call, dry_run: bool) -> Call {
    if dry_run { call.query("dryRun", "All") } else { call }
}

fn collection_path(served: &ServedKind, key: &ObjectKey) -> Result<String, WriteError> {
    if served.namespaced && key.namespace.is_none() {
        let message = format!("{} lives in namespaces, and none is given", served.resource());
        return Err(WriteError::Invalid { key: key.clone(), message });
    }
    Ok(served.path(key.namespace.as_deref()))
}

fn object_path(served: &ServedKind, key: &ObjectKey) -> Result<String, WriteError> {
    if key.name.is_empty() {
        return Err(WriteError::Invalid { key: key.clone(), message: "the object has no name".to_owned() });
    }
    // A server takes such a path for that of something else, and answers that it serves no such kind.
    if matches!(key.name.as_str(), "." | "..") || key.name.contains(['/', '%']) {
        let message = format!("{:?} is no name: it is a segment of a path, without / and %, and not . or ..", key.name);
        return Err(WriteError::Invalid { key: key.clone(), message });
    }
    Ok(format!("{}/{}", collection_path(served, key)?, crate::http::escape(&key.name)))
}

#[cfg(test)]
mod tests;
