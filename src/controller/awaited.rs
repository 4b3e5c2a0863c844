//! Objects that are being deleted although they are wanted: as soon as they are gone they are made again.
//!
//! An object that others build on is held by a finalizer until they are gone (ocm.md section 16). Where somebody deletes it by hand,
//! the others stay, because their graph wants them: both would wait for ever. Whoever holds such an object asks here, and lets go:
//! those that build on it keep what they found and go on with the new one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey};

/// Asks for a pass of whoever looks after an object.
pub type Wake = Arc<dyn Fn(&ObjectKey) + Send + Sync>;

/// Who waits for which objects to be gone.
pub struct Awaited {
    by: Mutex<BTreeMap<ObjectKey, BTreeSet<ObjectKey>>>,
    wake: Wake,
}

impl Awaited {
    /// Nobody waits yet.
    pub fn new(wake: Wake) -> Self {
        Self { by: Mutex::default(), wake }
    }

    /// Says what `who` will make again once it is gone; what it said before does not count any more.
    pub fn declare(&self, who: &ObjectKey, objects: BTreeSet<ObjectKey>) {
        let new: Vec<ObjectKey> = {
            let mut by = self.lock();
            let before = by.remove(who).unwrap_or_default();
            let new = objects.difference(&before).cloned().collect();
            if !objects.is_empty() {
                by.insert(who.clone(), objects);
            }
            new
        };
        new.iter().for_each(|key| (self.wake)(key));
    }

    /// What somebody outside the loop makes again.
    pub fn declare_outside(&self, objects: BTreeSet<ObjectKey>) {
        // An owner that no object has.
        let outside =
            ObjectKey { cluster: ClusterKey::host(), gvk: GroupVersionKind::default(), namespace: None, name: String::new() };
        self.declare(&outside, objects);
    }

    /// Whether an object will be made again once it is gone.
    pub fn is(&self, key: &ObjectKey) -> bool {
        self.lock().values().any(|objects| objects.contains(key))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, BTreeSet<ObjectKey>>> {
        // Each entry is whole in itself, so a panic elsewhere leaves them usable.
        self.by.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes nobody.
impl Default for Awaited {
    fn default() -> Self {
        Self::new(Arc::new(|_| {}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_awaited_is_woken_once_and_forgotten_with_its_last_waiter() {
        let key = |name: &str| ObjectKey {
            cluster: ClusterKey::host(),
            gvk: GroupVersionKind::new("", "v1", "ConfigMap"),
            namespace: None,
            name: name.into(),
        };
        let woken = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&woken);
        let awaited = Awaited::new(Arc::new(move |key: &ObjectKey| log.lock().unwrap().push(key.name.clone())));
        awaited.declare(&key("one"), BTreeSet::from([key("a")]));
        awaited.declare(&key("one"), BTreeSet::from([key("a"), key("b")]));
        assert_eq!(*woken.lock().unwrap(), ["a", "b"]);
        assert!(awaited.is(&key("a")) && !awaited.is(&key("one")));
        awaited.declare(&key("one"), BTreeSet::new());
        assert!(!awaited.is(&key("a")));
    }
}
