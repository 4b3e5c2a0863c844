//! What an object builds on: looked up, watched, and waited for.

use plinth_api::{Object, ObjectKey};

use super::{
    kind::Kind,
    reconcile::{Delivery, Pass, owner},
    report::{self, Failed, Reason},
};

impl Delivery {
    /// The object that this one builds on; it must be Ready.
    pub(super) async fn parent(&self, pass: &mut Pass<'_>, kind: Kind, name: &str, reason: Reason) -> Result<Object, Failed> {
        let key = ObjectKey {
            cluster: pass.key.cluster.clone(),
            gvk: kind.gvk(),
            namespace: pass.key.namespace.clone(),
            name: name.to_owned(),
        };
        self.ready_object(pass, key, reason).await
    }

    /// The object that this one builds on, also where it is not Ready any more: this one was Ready by it, and asks for itself.
    pub(super) async fn known_parent(
        &self,
        pass: &mut Pass<'_>,
        kind: Kind,
        name: &str,
        reason: Reason,
    ) -> Result<Object, Failed> {
        let failed = match self.parent(pass, kind, name, reason).await {
            Err(failed) if report::is_ready(pass.object) => failed,
            other => return other,
        };
        let key = ObjectKey { gvk: kind.gvk(), name: name.to_owned(), ..pass.key.clone() };
        let found = self.get(&key).await.map_err(|error| Failed::retry(reason, error.to_string()))?;
        found.filter(|object| !object.is_terminating()).ok_or(failed)
    }

    /// An object that has to be there and Ready; a pass follows when that changes.
    pub(super) async fn ready_object(&self, pass: &mut Pass<'_>, key: ObjectKey, reason: Reason) -> Result<Object, Failed> {
        pass.watch.objects.insert(key.clone());
        // Told of changes before it is looked at: a parent that turns Ready in between would be missed, and nothing asks again.
        self.world.index.extend(&owner(pass.key), pass.watch.clone());
        let found = self.get(&key).await.map_err(|error| Failed::retry(reason, error.to_string()))?;
        let Some(object) = found else { return Err(Failed::wait(reason, format!("{key} does not exist"))) };
        if object.is_terminating() {
            return Err(Failed::wait(reason, format!("{key} is being deleted")));
        }
        if !report::is_ready(&object) {
            let why = report::why_not_ready(&object);
            return Err(Failed::wait(Reason::ResourceIsNotAvailable, format!("{key} is not ready: {why}")));
        }
        Ok(object)
    }
}
