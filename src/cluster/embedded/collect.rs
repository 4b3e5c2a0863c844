//! What goes because something else is gone: objects of owners, of namespaces, and of CRDs.
//!
//! Runs after each request, over the changes since it last ran, so that its order is the order of writes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plinth_api::{ClusterKey, Object};
use serde_json::{Value, json};

use super::{
    api::state::State,
    filter::Filter,
    store::{Left, Part, Place, Precondition, Resource, Store},
};

/// Holds an owner until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Holds an owner until its dependents forgot it.
pub(crate) const ORPHAN: &str = "orphan";
/// Holds a CRD until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
/// Most rounds after one request: each takes a generation of dependents along.
const MAX_ROUNDS: usize = 1000;

/// Knows owners and dependents.
#[derive(Default)]
pub(crate) struct Collector {
    seen: u64,
    /// An owner in another cluster is none.
    families: BTreeMap<ClusterKey, Family>,
    /// Being deleted and held by something that is done here.
    held: BTreeSet<Place>,
}

/// Owners and dependents of one cluster, by UID.
#[derive(Default)]
struct Family {
    dependents: BTreeMap<String, BTreeSet<Place>>,
    uids: BTreeSet<String>,
}

impl State {
    /// Collects until nothing is left to do.
    pub(crate) fn collect(&mut self, now: Timestamp) {
        self.clean_definitions(now);
        let Some(mut collector) = self.collector.take() else { return };
        for _ in 0..MAX_ROUNDS {
            let doomed = collector.follow(&self.store);
            let before = self.store.version();
            for place in &doomed {
                self.doom(place, now);
            }
            for place in collector.held.clone() {
                collector.release(&mut self.store, &place, now);
            }
            if self.store.version() == before {
                break;
            }
        }
        self.collector = Some(collector);
    }

    /// Deletes an object nobody owns any more. A CRD is held until its objects are gone, as when a client deletes it.
    fn doom(&mut self, place: &Place, now: Timestamp) {
        let definition = is_definition(place);
        let held = self.store.delete_after(place, &Precondition::default(), now, |object| {
            if definition {
                with_finalizer(object, CLEANUP);
            }
            definition
        });
        if definition && matches!(held, Ok(Left::There(_))) {
            self.ending.insert(place.clone());
        }
    }

    /// CRDs that are being deleted take their objects along, with or without a collector: the API server itself does that.
    fn clean_definitions(&mut self, now: Timestamp) {
        for place in self.ending.clone() {
            let Some(crd) = self.store.get(&place) else {
                self.undefine(&place, now);
                continue;
            };
            let text = |path: &[&str]| crd.at(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            let defined = Resource { group: text(&["spec", "group"]), plural: text(&["spec", "names", "plural"]) };
            let objects = self
                .store
                .page(&defined, &Filter::of(&place.cluster), None, usize::MAX)
                .map(|page| page.items)
                .unwrap_or_default();
            let mut left = 0;
            for (object, _) in objects {
                let kept = self.store.delete(&object, &Precondition::default(), now);
                left += usize::from(matches!(kept, Ok(Left::There(_))));
            }
            if left == 0 && matches!(without_finalizer(&mut self.store, &place, CLEANUP), Some(Left::Gone(_))) {
                self.undefine(&place, now);
            }
        }
    }

    fn undefine(&mut self, place: &Place, now: Timestamp) {
        self.registry.define(&place.cluster, &place.name, Vec::new());
        self.ending.remove(place);
        self.names_are_free(&place.cluster, &place.name, now);
    }
}

/// Whether a place is a CRD's.
pub(crate) fn is_definition(place: &Place) -> bool {
    place.resource.plural == "customresourcedefinitions" && place.resource.group == "apiextensions.k8s.io"
}

/// Puts a finalizer onto an object that lacks it.
pub(crate) fn with_finalizer(object: &mut Object, finalizer: &str) {
    if object.finalizers().contains(&finalizer) {
        return;
    }
    let mut all: Vec<String> = object.finalizers().iter().map(|name| (*name).to_owned()).collect();
    all.push(finalizer.to_owned());
    object.metadata_mut().insert("finalizers".to_owned(), json!(all));
}

impl Collector {
    /// Takes the store's changes in, and answers with the objects whose owners are all gone.
    fn follow(&mut self, store: &Store) -> BTreeSet<Place> {
        let mut suspects = BTreeSet::new();
        for (place, before, after) in store.changes(self.seen) {
            let family = self.families.entry(place.cluster.clone()).or_default();
            suspects.extend(family.follow(&place, before.as_deref(), after.as_deref()));
            if after.is_none() {
                self.held.remove(&place);
            } else if after.is_some_and(|object| object.is_terminating()) {
                self.held.insert(place);
            }
        }
        self.seen = store.version();
        suspects
            .retain(|place| store.get(place).is_some_and(|object| !object.is_terminating() && !self.is_owned(place, &object)));
        suspects
    }

    fn is_owned(&self, place: &Place, object: &Object) -> bool {
        let family = self.families.get(&place.cluster);
        family.is_some_and(|family| owners(object).iter().any(|owner| family.uids.contains(owner)))
    }

    fn dependents(&self, place: &Place, object: &Object) -> Vec<Place> {
        let found = self.families.get(&place.cluster).zip(object.uid()).and_then(|(family, uid)| family.dependents.get(uid));
        found.into_iter().flatten().cloned().collect()
    }

    /// Does what holds an object that is being deleted, as far as it can be done now.
    fn release(&self, store: &mut Store, place: &Place, now: Timestamp) {
        let Some(object) = store.get(place) else { return };
        let dependents = self.dependents(place, &object);
        if object.finalizers().contains(&ORPHAN) {
            for dependent in &dependents {
                forget_owner(store, dependent, object.uid().unwrap_or_default());
            }
            without_finalizer(store, place, ORPHAN);
        }
        if object.finalizers().contains(&FOREGROUND) {
            let mut left = false;
            for dependent in &dependents {
                left |= matches!(store.delete(dependent, &Precondition::default(), now), Ok(Left::There(kept)) if blocks(&kept));
            }
            if !left {
                without_finalizer(store, place, FOREGROUND);
            }
        }
        if place.resource.group.is_empty() && place.resource.plural == "namespaces" {
            empty_namespace(store, place, now);
        }
    }
}

impl Family {
    /// Takes one change in, and answers with those whose owners may all be gone now.
    fn follow(&mut self, place: &Place, before: Option<&Object>, after: Option<&Object>) -> Vec<Place> {
        for owner in before.map(owners).unwrap_or_default() {
            if let Some(dependents) = self.dependents.get_mut(&owner) {
                dependents.remove(place);
            }
        }
        let Some(object) = after else {
            let Some(uid) = before.and_then(Object::uid) else { return Vec::new() };
            self.uids.remove(uid);
            return self.dependents.remove(uid).into_iter().flatten().collect();
        };
        self.uids.extend(object.uid().map(str::to_owned));
        let owners = owners(object);
        let suspect = (!owners.is_empty()).then(|| place.clone());
        for owner in owners {
            self.dependents.entry(owner).or_default().insert(place.clone());
        }
        suspect.into_iter().collect()
    }
}

fn owners(object: &Object) -> Vec<String> {
    let references = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    references.iter().filter_map(|reference| reference["uid"].as_str().map(str::to_owned)).collect()
}

fn blocks(object: &Object) -> bool {
    let references = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    references.iter().any(|reference| reference["blockOwnerDeletion"] == true)
}

fn forget_owner(store: &mut Store, place: &Place, uid: &str) {
    let Some(object) = store.get(place) else { return };
    let mut next = (*object).clone();
    if let Some(Value::Array(references)) = next.metadata_mut().get_mut("ownerReferences") {
        references.retain(|reference| reference["uid"] != uid);
        if references.is_empty() {
            next.metadata_mut().remove("ownerReferences");
        }
    }
    let _ = store.update(place, next, Part::Whole, &Precondition::default());
}

fn without_finalizer(store: &mut Store, place: &Place, finalizer: &str) -> Option<Left> {
    let object = store.get(place)?;
    let kept: Vec<&str> = object.finalizers().into_iter().filter(|name| *name != finalizer).collect();
    let mut next = (*object).clone();
    if kept.is_empty() {
        next.metadata_mut().remove("finalizers");
    } else {
        next.metadata_mut().insert("finalizers".to_owned(), json!(kept));
    }
    store.update(place, next, Part::Whole, &Precondition::default()).ok()
}

fn empty_namespace(store: &mut Store, place: &Place, now: Timestamp) {
    let inside = store.inside(&place.cluster, &place.name);
    let mut left = 0;
    for object in &inside {
        left += usize::from(matches!(store.delete(object, &Precondition::default(), now), Ok(Left::There(_))));
    }
    let Some(object) = store.get(place).filter(|_| left == 0) else { return };
    let mut next = (*object).clone();
    next.0.insert("spec".to_owned(), json!({}));
    let _ = store.update(place, next, Part::Whole, &Precondition::default());
}
