//! What goes because something else is gone: objects of owners, of namespaces, and of CRDs.
//!
//! Runs after each request, over the changes since it last ran, so that its order is the order of writes. What it does with a
//! dependent is what Kubernetes' garbage collector does:
//!
//! | owners | dependent |
//! | --- | --- |
//! | one is of a kind that is not served | stays |
//! | one stands, others are gone or wait for their dependents | forgets the others |
//! | none stands, one waits for its dependents | goes, after its own dependents |
//! | all are gone | goes |

mod family;
mod namespace;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plinth_api::{ClusterKey, Object};
use serde_json::{Value, json};

use self::family::{Family, Standing, blocks, is_waiting, references, uid_of};
use super::{
    api::{kinds::Registry, state::State},
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
    /// Owned by something of a kind that is not served; looked at again when other kinds are.
    unresolved: BTreeSet<Place>,
    /// The definitions by which they are unresolved.
    changes: u64,
}

/// What is done with a dependent.
enum Verdict {
    Stays,
    /// An owner is of a kind that is not served, so that nobody knows whether it is there.
    Unresolved,
    /// It stays with its other owners.
    Forgets(Vec<String>),
    Goes,
    GoesAfterDependents {
        /// Whether one of those waits for it.
        in_circle: bool,
    },
}

impl State {
    /// Collects until nothing is left to do.
    pub(crate) fn collect(&mut self, now: Timestamp) {
        self.clean_definitions(now);
        let Some(mut collector) = self.collector.take() else { return };
        for _ in 0..MAX_ROUNDS {
            let suspects = collector.follow(&self.store, self.registry.changes());
            let before = self.store.version();
            for place in &suspects {
                self.attempt(&mut collector, place, now);
            }
            for place in collector.held.clone() {
                for blocking in collector.release(&mut self.store, &place, now) {
                    self.attempt(&mut collector, &blocking, now);
                }
            }
            if self.store.version() == before {
                break;
            }
        }
        self.collector = Some(collector);
    }

    /// Does with a dependent what its owners' state asks for.
    fn attempt(&mut self, collector: &mut Collector, place: &Place, now: Timestamp) {
        let Some(object) = self.store.get(place).filter(|object| !object.is_terminating()) else { return };
        match collector.judge(&self.store, &self.registry, place, &object) {
            Verdict::Stays => {}
            Verdict::Unresolved => drop(collector.unresolved.insert(place.clone())),
            Verdict::Forgets(owners) => forget_owners(&mut self.store, place, &owners),
            Verdict::Goes => self.doom(place, false, now),
            Verdict::GoesAfterDependents { in_circle } => {
                if in_circle {
                    unblock(&mut self.store, place);
                }
                self.doom(place, true, now);
            }
        }
    }

    /// Deletes an object that nobody owns any more. A CRD is held until its objects are gone, as when a client deletes it.
    fn doom(&mut self, place: &Place, foreground: bool, now: Timestamp) {
        let definition = is_definition(place);
        let held = self.store.delete_after(place, &Precondition::default(), now, |object| {
            if definition {
                with_finalizer(object, CLEANUP);
            } else if foreground {
                with_finalizer(object, FOREGROUND);
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
            if self.store.get(&place).is_none() {
                self.undefine(&place, now);
                continue;
            }
            let objects = self
                .store
                .page(&defined_by(&place), &Filter::of(&place.cluster), None, usize::MAX)
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
        self.retired.insert((defined_by(place), place.cluster.clone()));
        self.names_are_free(&place.cluster, &place.name, now);
    }
}

/// The resource that a CRD defines, which its name says.
pub(crate) fn defined_by(place: &Place) -> Resource {
    let (plural, group) = place.name.split_once('.').unwrap_or((&place.name, ""));
    Resource { group: group.to_owned(), plural: plural.to_owned() }
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
    /// Takes the store's changes in, and answers with the objects that may have to go.
    fn follow(&mut self, store: &Store, changes: u64) -> BTreeSet<Place> {
        let mut suspects = BTreeSet::new();
        if self.changes != changes {
            self.changes = changes;
            suspects.append(&mut self.unresolved);
        }
        for family in self.families.values_mut() {
            family.forget_gone();
        }
        for (place, before, after) in store.changes(self.seen) {
            let family = self.families.entry(place.cluster.clone()).or_default();
            suspects.extend(family.follow(&place, before.as_deref(), after.as_deref()));
            if after.is_none() {
                self.held.remove(&place);
                self.unresolved.remove(&place);
            } else if after.is_some_and(|object| object.is_terminating()) {
                self.held.insert(place);
            }
        }
        self.seen = store.version();
        suspects
    }

    fn dependents(&self, place: &Place, object: &Object) -> Vec<Place> {
        let found = self.families.get(&place.cluster).zip(object.uid()).map(|(family, uid)| family.dependents(uid));
        found.into_iter().flatten().cloned().collect()
    }

    /// What a dependent's owners ask for; the cases are those of Kubernetes' `attemptToDeleteItem`.
    fn judge(&self, store: &Store, registry: &Registry, place: &Place, object: &Object) -> Verdict {
        let Some(family) = self.families.get(&place.cluster) else { return Verdict::Stays };
        let (mut solid, mut waiting, mut absent) = (false, false, Vec::new());
        let mut left = Vec::new();
        for reference in references(object) {
            match family.standing(store, registry, place, reference) {
                Standing::Unknown => return Verdict::Unresolved,
                Standing::Misplaced => return Verdict::Stays,
                Standing::Solid => solid = true,
                Standing::Waiting => {
                    waiting = true;
                    left.push(uid_of(reference).to_owned());
                }
                Standing::Absent => absent.push(uid_of(reference).to_owned()),
            }
        }
        left.append(&mut absent);
        if left.is_empty() {
            return Verdict::Stays;
        }
        if solid {
            return Verdict::Forgets(left);
        }
        let dependents = self.dependents(place, object);
        if !waiting || dependents.is_empty() {
            return Verdict::Goes;
        }
        let in_circle = dependents.iter().filter_map(|place| store.get(place)).any(|dependent| is_waiting(&dependent));
        Verdict::GoesAfterDependents { in_circle }
    }

    /// Does what holds an object that is being deleted, as far as it can be done now; answers with the dependents that hold it.
    fn release(&self, store: &mut Store, place: &Place, now: Timestamp) -> Vec<Place> {
        let Some(object) = store.get(place) else { return Vec::new() };
        let uid = object.uid().unwrap_or_default();
        if object.finalizers().contains(&ORPHAN) {
            for dependent in self.dependents(place, &object) {
                forget_owners(store, &dependent, &[uid.to_owned()]);
            }
            without_finalizer(store, place, ORPHAN);
        }
        let mut blocking = Vec::new();
        if object.finalizers().contains(&FOREGROUND) {
            blocking = self.dependents(place, &object);
            blocking.retain(|dependent| store.get(dependent).is_some_and(|dependent| blocks(&dependent, uid)));
            if blocking.is_empty() {
                without_finalizer(store, place, FOREGROUND);
            }
        }
        if place.resource.group.is_empty() && place.resource.plural == "namespaces" {
            namespace::empty(store, place, now);
        }
        blocking
    }
}

fn forget_owners(store: &mut Store, place: &Place, uids: &[String]) {
    edit(store, place, |object| {
        if let Some(Value::Array(references)) = object.metadata_mut().get_mut("ownerReferences") {
            references.retain(|reference| !uids.iter().any(|uid| uid == uid_of(reference)));
            if references.is_empty() {
                object.metadata_mut().remove("ownerReferences");
            }
        }
    });
}

/// Lets owners go first where they wait for each other.
fn unblock(store: &mut Store, place: &Place) {
    edit(store, place, |object| {
        if let Some(Value::Array(references)) = object.metadata_mut().get_mut("ownerReferences") {
            for reference in references.iter_mut().filter(|reference| reference["blockOwnerDeletion"] == true) {
                reference["blockOwnerDeletion"] = json!(false);
            }
        }
    });
}

fn without_finalizer(store: &mut Store, place: &Place, finalizer: &str) -> Option<Left> {
    edit(store, place, |object| {
        let kept: Vec<String> = object.finalizers().into_iter().filter(|name| *name != finalizer).map(str::to_owned).collect();
        if kept.is_empty() {
            object.metadata_mut().remove("finalizers");
        } else {
            object.metadata_mut().insert("finalizers".to_owned(), json!(kept));
        }
    })
}

/// Stores another state of an object, if it is there.
fn edit(store: &mut Store, place: &Place, change: impl FnOnce(&mut Object)) -> Option<Left> {
    let mut next = (*store.get(place)?).clone();
    change(&mut next);
    store.update(place, next, Part::Whole, &Precondition::default()).ok()
}
