//! Owners and dependents of one cluster, and how an owner stands.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::Object;
use serde_json::Value;

use super::FOREGROUND;
use crate::embedded::{
    api::kinds::Registry,
    store::{Place, Store},
};

/// Owners and dependents of one cluster, by UID.
#[derive(Default)]
pub(super) struct Family {
    dependents: BTreeMap<String, BTreeSet<Place>>,
    places: BTreeMap<String, Place>,
    /// API version and kind of owners that went just now: they are gone, even if their kind went with them.
    gone: BTreeMap<String, (String, String)>,
}

/// How an owner stands, seen from its dependent.
pub(super) enum Standing {
    /// It is there.
    Solid,
    /// It is being deleted and waits for its dependents.
    Waiting,
    /// It is not there: gone, in another namespace, or another object by now.
    Absent,
    /// Its kind is not served.
    Unknown,
    /// It lives in a namespace, and its dependent does not.
    Misplaced,
}

impl Family {
    /// Takes one change in, and answers with those who may have to go now.
    pub(super) fn follow(&mut self, place: &Place, before: Option<&Object>, after: Option<&Object>) -> Vec<Place> {
        for owner in before.map(references).unwrap_or_default() {
            let uid = uid_of(owner);
            if let Some(dependents) = self.dependents.get_mut(uid) {
                dependents.remove(place);
                if dependents.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
        let Some(object) = after else { return before.map(|last| self.lose(last)).unwrap_or_default() };
        if let Some(uid) = object.uid() {
            self.places.insert(uid.to_owned(), place.clone());
        }
        for owner in references(object) {
            self.dependents.entry(uid_of(owner).to_owned()).or_default().insert(place.clone());
        }
        // Who has the owners that it had is looked at when one of those changes.
        let is_owned_anew = !references(object).is_empty() && before.map(references) != Some(references(object));
        let mut suspects: Vec<Place> = is_owned_anew.then(|| place.clone()).into_iter().collect();
        if is_waiting(object) && !before.is_some_and(is_waiting) {
            suspects.extend(object.uid().into_iter().flat_map(|uid| self.dependents(uid)).cloned());
        }
        suspects
    }

    fn lose(&mut self, last: &Object) -> Vec<Place> {
        let Some(uid) = last.uid() else { return Vec::new() };
        self.places.remove(uid);
        let dependents: Vec<Place> = self.dependents(uid).cloned().collect();
        if !dependents.is_empty() {
            let text = |name: &str| last.0.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            self.gone.insert(uid.to_owned(), (text("apiVersion"), text("kind")));
        }
        dependents
    }

    /// From here on who is gone is asked for like any other.
    pub(super) fn forget_gone(&mut self) {
        self.gone.clear();
    }

    pub(super) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Place> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// How the owner of a reference stands, seen from the dependent's place.
    pub(super) fn standing(&self, store: &Store, registry: &Registry, place: &Place, reference: &Value) -> Standing {
        let text = |name: &str| reference[name].as_str().unwrap_or_default();
        let uid = uid_of(reference);
        let served = registry.of_kind(&place.cluster, text("apiVersion"), text("kind"));
        let is_gone = |gone: &(String, String)| (gone.0.as_str(), gone.1.as_str()) == (text("apiVersion"), text("kind"));
        if served.is_none() && self.gone.get(uid).is_some_and(is_gone) {
            return Standing::Absent;
        }
        // Of kinds that another cluster brings the registry knows nothing.
        let known = || self.places.get(uid).map(|place| (place.resource.clone(), place.namespace.is_some()));
        let Some((resource, namespaced)) = served.map(|served| (served.resource(), served.namespaced)).or_else(known) else {
            return Standing::Unknown;
        };
        if namespaced && place.namespace.is_none() {
            return Standing::Misplaced;
        }
        let namespace = place.namespace.clone().filter(|_| namespaced);
        let owner = Place { resource, cluster: place.cluster.clone(), namespace, name: text("name").to_owned() };
        match store.get(&owner).filter(|owner| owner.uid() == Some(uid)) {
            None => Standing::Absent,
            Some(owner) if is_waiting(&owner) => Standing::Waiting,
            Some(_) => Standing::Solid,
        }
    }
}

/// The references to an object's owners.
pub(super) fn references(object: &Object) -> &[Value] {
    object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The owner's UID.
pub(super) fn uid_of(reference: &Value) -> &str {
    reference["uid"].as_str().unwrap_or_default()
}

/// Whether an object is being deleted after its dependents.
pub(super) fn is_waiting(object: &Object) -> bool {
    object.is_terminating() && object.finalizers().contains(&FOREGROUND)
}

/// Whether a dependent holds an owner that waits.
pub(super) fn blocks(object: &Object, uid: &str) -> bool {
    references(object).iter().any(|reference| uid_of(reference) == uid && reference["blockOwnerDeletion"] == true)
}
