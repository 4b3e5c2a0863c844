//! An object goes: after what builds on it.

use plinth_api::{Object, ObjectKey};
use plinth_engine::{
    naming::keys,
    ports::{Query, ReadError},
};
use plinth_manager::{
    reconcile::{Failure, Outcome},
    status::write_if_changed,
};
use serde_json::Value;

use super::{
    config,
    kind::Kind,
    reconcile::{Delivery, SHORTEST},
    report::{self, Facts, Failed, Reason},
};

impl Delivery {
    pub(super) async fn remove(&self, kind: Kind, key: &ObjectKey, object: &Object) -> Result<Outcome, Failure> {
        let ours: Vec<&str> = object.finalizers().into_iter().filter(|finalizer| kind.finalizers().contains(finalizer)).collect();
        if ours.is_empty() {
            return Ok(Outcome::Done);
        }
        let in_the_way = match kind {
            Kind::Deployer => self.undeploy(key, object).await?,
            _ if self.world.awaited.is(key) => Vec::new(),
            _ => self.dependants(kind, key).await?,
        };
        if !in_the_way.is_empty() {
            let message = format!("waits for {} to be deleted", in_the_way.join(", "));
            let end = Err(Failed::wait(Reason::DeletionFailed, message.clone()));
            let facts = Facts { config: config::effective(object), fields: report::kept(object, kind.fields()) };
            let status = report::status(object, &end, report::SUCCEEDED, facts, self.world.clock.now());
            let written = write_if_changed(&*self.world.applier, key, object, status, keys::MANAGER).await?;
            written.into_iter().for_each(|written| self.wrote(key, written));
            // Members of a set are of any kind and are not all watched.
            return Ok(match kind {
                Kind::Deployer => Outcome::RequeueAfter(SHORTEST),
                _ => Outcome::Wait { reason: message },
            });
        }
        for finalizer in ours {
            self.world.finalizers.remove(key, finalizer).await?;
        }
        self.forget(key);
        Ok(Outcome::Done)
    }

    /// Objects that still build on this one.
    async fn dependants(&self, kind: Kind, key: &ObjectKey) -> Result<Vec<String>, ReadError> {
        let Some((dependant, reference)) = kind.dependants() else { return Ok(Vec::new()) };
        let namespace = if dependant == Kind::Deployer { None } else { key.namespace.clone() };
        let query = Query { cluster: key.cluster.clone(), gvk: dependant.gvk(), namespace, selector: String::new() };
        let refers = |object: &Object| {
            let Some(reference) = object.spec().get(reference) else { return false };
            let namespace = reference.get("namespace").and_then(Value::as_str);
            reference.get("name").and_then(Value::as_str) == Some(&key.name)
                && (namespace.is_none() || namespace == key.namespace.as_deref())
        };
        let list = match self.list(&query).await {
            Err(ReadError::NotServed(_)) => Vec::new(),
            other => other?,
        };
        let names = list.iter().filter(|object| refers(object)).filter_map(|object| object.key(&key.cluster));
        Ok(names.map(|key| key.to_string()).collect())
    }
}
