//! Status, written only where it differs.

use plinth_api::{Object, ObjectKey};
use plinth_engine::ports::{Applier, Apply, WriteError};
use serde_json::{Map, Value, json};

/// Applies `status` to the status subresource where it differs from what `object` has; `None` where nothing was to be done.
///
/// For kinds whose status this manager alone writes: the whole status is compared. An object that is gone meanwhile is
/// [`WriteError::NotFound`].
pub async fn write_if_changed(
    applier: &dyn Applier,
    key: &ObjectKey,
    object: &Object,
    status: Value,
    manager: &str,
) -> Result<Option<Object>, WriteError> {
    if *object.status() == status {
        return Ok(None);
    }
    let mut wanted = identity(key, object);
    wanted.0.insert("status".to_owned(), status);
    let request =
        Apply { key: key.clone(), object: wanted, manager: manager.to_owned(), force: true, subresource: Some("status") };
    applier.apply(&request).await.map(Some)
}

/// Type, name and UID: what an apply needs to mean this very object. With the UID, an apply cannot bring an object back
/// that was deleted meanwhile.
pub(crate) fn identity(key: &ObjectKey, object: &Object) -> Object {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(key.name));
    metadata.extend(key.namespace.as_ref().map(|namespace| ("namespace".to_owned(), json!(namespace))));
    metadata.extend(object.uid().map(|uid| ("uid".to_owned(), json!(uid))));
    let mut bare = Map::new();
    bare.insert("apiVersion".to_owned(), json!(key.gvk.api_version()));
    bare.insert("kind".to_owned(), json!(key.gvk.kind));
    bare.insert("metadata".to_owned(), Value::Object(metadata));
    Object(bare.into())
}
