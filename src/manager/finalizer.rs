//! Finalizers, by server-side apply: the list is a set, so each manager owns its own entry.
//!
//! The field manager must own nothing else of the object, because an apply without a field gives that field up.

use plinth_api::{Object, ObjectKey};
use plinth_engine::ports::{Applier, Apply, WriteError};
use serde_json::json;

use crate::status::identity;

/// Adds a finalizer where it is missing; answers with the object as it is then.
pub async fn add(
    applier: &dyn Applier,
    key: &ObjectKey,
    object: &Object,
    finalizer: &str,
    manager: &str,
) -> Result<Object, WriteError> {
    if object.finalizers().contains(&finalizer) {
        return Ok(object.clone());
    }
    let mut wanted = identity(key, object);
    wanted.metadata_mut().insert("finalizers".to_owned(), json!([finalizer]));
    applier.apply(&request(key, wanted, manager)).await
}

/// Takes a finalizer away where it is there. Where another manager owns it too it stays, and that is a conflict.
pub async fn remove(
    applier: &dyn Applier,
    key: &ObjectKey,
    object: &Object,
    finalizer: &str,
    manager: &str,
) -> Result<(), WriteError> {
    if !object.finalizers().contains(&finalizer) {
        return Ok(());
    }
    let left = applier.apply(&request(key, identity(key, object), manager)).await?;
    if left.finalizers().contains(&finalizer) {
        let message = format!("the finalizer {finalizer} stays, because another field manager owns it too");
        return Err(WriteError::Conflict { key: key.clone(), message });
    }
    Ok(())
}

fn request(key: &ObjectKey, object: Object, manager: &str) -> Apply {
    Apply { key: key.clone(), object, manager: manager.to_owned(), force: false, subresource: None }
}
