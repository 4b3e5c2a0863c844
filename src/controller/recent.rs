//! What the server answered to our own writes, until the index has caught up.
//!
//! The index lags behind by one round trip: a pass in between would find an object as it was, and write the same again.

use std::collections::BTreeMap;

use plinth_api::{Object, ObjectKey};

/// Answers that may be newer than the index. Whoever finds an object gone forgets it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent(BTreeMap<ObjectKey, Object>);

impl Recent {
    /// Remembers an answer.
    pub(crate) fn wrote(&mut self, key: &ObjectKey, object: Object) {
        self.0.insert(key.clone(), object);
    }

    /// The newer of what was seen and what was written; what the index has caught up with is forgotten.
    pub(crate) fn newest(&mut self, key: &ObjectKey, seen: &Object) -> Object {
        if self.0.get(key).is_some_and(|written| version(written) <= version(seen)) {
            self.0.remove(key);
        }
        self.0.get(key).unwrap_or(seen).clone()
    }

    /// Forgets an object; whether there was an answer about it.
    pub(crate) fn forget(&mut self, key: &ObjectKey) -> bool {
        self.0.remove(key).is_some()
    }
}

/// Kubernetes' resource versions are numbers that grow; anything else counts as oldest.
pub(crate) fn version(object: &Object) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default()
}
