//! Schemas on demand: the CRD object where there is one, else the OpenAPI document of the group.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use plinth_api::{GroupVersionKind, Object};
use plinth_engine::{
    ports::ReadError,
    schema::{KindInfo, Schema, SchemaMap},
};

use super::{Catalog, ServedKind, discovery, documents, state::Crd};
use crate::{
    fault,
    http::{Call, Fault},
};

/// URL path of the CRDs.
pub(super) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

impl Catalog {
    /// The schemas of these kinds as of now, for the engine. A kind that is not served is not in the answer, and looking it up
    /// there says so; a kind that was not asked for is not in it either.
    pub async fn ensure(&self, kinds: impl IntoIterator<Item = &GroupVersionKind>) -> Result<SchemaMap, ReadError> {
        let (mut map, since) = (SchemaMap::default(), self.moment());
        for gvk in kinds.into_iter().collect::<BTreeSet<_>>() {
            match self.describe(gvk, since).await {
                Ok(kind) => map.insert(kind),
                Err(ReadError::NotServed(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(map)
    }

    async fn describe(&self, gvk: &GroupVersionKind, since: u64) -> Result<Arc<KindInfo>, ReadError> {
        if let Some(kind) = self.lock().schema(gvk) {
            return Ok(kind);
        }
        let served = self.find_since(gvk, since).await?;
        let _loading = self.loading.lock().await;
        if let Some(kind) = self.lock().schema(gvk) {
            return Ok(kind);
        }
        if self.may_be_of_a_crd(&served) {
            self.load_crd(&served).await?;
        }
        if let Some(kind) = self.lock().schema(gvk) {
            return Ok(kind);
        }
        self.load_group(&served).await
    }

    /// While the CRDs are followed they are all known; else a CRD may be there that was not read yet.
    fn may_be_of_a_crd(&self, served: &ServedKind) -> bool {
        let state = self.lock();
        !served.gvk.group.is_empty() && !state.is_complete() && !state.has_crd(&served.resource())
    }

    async fn load_crd(&self, served: &ServedKind) -> Result<(), ReadError> {
        match self.transport.json(Call::get(format!("{CRDS}/{}", served.resource()))).await {
            Ok(value) => {
                if let Some(crd) = Object::from_value(value).as_ref().and_then(Crd::read) {
                    self.lock().put(crd);
                }
                Ok(())
            }
            // No such CRD, no CRDs at all (a virtual workspace), or none of our business: OpenAPI has to do.
            Err(Fault::Status(status)) if [403, 404].contains(&status.code) => Ok(()),
            Err(fault) => Err(fault::read_error(&served.gvk, "customresourcedefinitions.apiextensions.k8s.io", "get", fault)),
        }
    }

    async fn load_group(&self, served: &ServedKind) -> Result<Arc<KindInfo>, ReadError> {
        let gvk = &served.gvk;
        let kinds = match self.document(gvk).await {
            Ok(Some(text)) => documents::kinds(&text).unwrap_or_else(|error| {
                tracing::warn!(group = gvk.group, version = gvk.version, %error, "an OpenAPI document cannot be used");
                Arc::default()
            }),
            Ok(None) => Arc::default(),
            Err(fault) => return Err(fault::read_error(gvk, "OpenAPI documents", "get", fault)),
        };
        let mut state = self.lock();
        state.described(kinds.iter().cloned());
        if state.schema(gvk).is_none() {
            // Served without a description, as aggregated API servers may: its objects go unchecked.
            let schema = Arc::new(Schema::open_object());
            let plural = served.plural.clone();
            state.described([Arc::new(KindInfo { gvk: gvk.clone(), plural, namespaced: served.namespaced, schema })]);
        }
        Ok(state.schema(gvk).expect("was described just now"))
    }

    async fn document(&self, gvk: &GroupVersionKind) -> Result<Option<Bytes>, Fault> {
        let index = match self.transport.json(Call::get("/openapi/v3")).await {
            Err(Fault::Status(status)) if status.code == 404 => return Ok(None),
            answer => answer?,
        };
        let root = discovery::root(&gvk.group, &gvk.version);
        let path = index["paths"][root.trim_start_matches('/')]["serverRelativeURL"].as_str();
        match path.filter(|path| path.starts_with('/')) {
            None => Ok(None),
            Some(path) => self.transport.bytes(Call::get(path)).await.map(Some),
        }
    }
}
