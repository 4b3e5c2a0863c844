//! Objects of many logical clusters under one counter of resource versions, with the history that watches need.
//!
//! | operation | resourceVersion | generation | event |
//! | --- | --- | --- | --- |
//! | create | next | 1 | added |
//! | update that changes nothing | stays | stays | none |
//! | update of the status or of metadata | next | stays | modified |
//! | update of anything else | next | +1 | modified |
//! | delete, with finalizers left | next | +1, once | modified |
//! | delete, or the last finalizer of a deleted object goes | next | stays | deleted |

mod history;

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use plinth_api::{ClusterKey, Object};
use serde_json::{Value, json};
use thiserror::Error;

pub use history::{Change, Event, EventKind, Expired, Page};
use history::{History, Record};

/// Where an object is kept. Versions of a kind share their place, as in Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The resource.
    pub resource: Resource,
    /// The logical cluster.
    pub cluster: ClusterKey,
    /// `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
}

/// Group and plural of a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// API group, empty for the core group.
    pub group: String,
    /// Such as `deployments`.
    pub plural: String,
}

/// What a request brings along instead of a clock and of randomness.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// Now.
    pub now: Timestamp,
    /// UID of an object that is created.
    pub uid: String,
    /// Whether the kind counts generations; ConfigMaps and Secrets, for example, do not.
    pub generation: bool,
}

/// What an update is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything; for kinds without a status subresource.
    Whole,
    /// Everything but the status.
    Main,
    /// The status alone.
    Status,
}

/// What must hold of the stored object before it is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// Its UID.
    pub uid: Option<String>,
    /// Its resource version.
    pub version: Option<String>,
}

/// Why a request is not done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// 409, reason AlreadyExists.
    #[error("it exists already")]
    Exists,
    /// 404.
    #[error("it does not exist")]
    NotFound,
    /// 409, reason Conflict: a precondition does not hold.
    #[error("the precondition {field} does not hold: {wanted} is wanted, {stored} is stored")]
    Conflict {
        /// `UID` or `resourceVersion`.
        field: &'static str,
        /// The request's.
        wanted: String,
        /// The object's.
        stored: String,
    },
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Left {
    /// It is there, like this.
    There(Arc<Object>),
    /// It is gone; this was its last state.
    Gone(Arc<Object>),
}

/// The objects and their history.
pub struct Store {
    version: u64,
    rows: BTreeMap<Place, Arc<Object>>,
    history: History,
    /// Resources whose watches can go on only from here, in each cluster.
    expired: BTreeMap<(Resource, ClusterKey), u64>,
}

impl Store {
    /// An empty store that keeps the newest `events` events for watches.
    pub fn new(events: usize) -> Self {
        Self { version: 1, rows: BTreeMap::new(), history: History::new(events), expired: BTreeMap::new() }
    }

    /// The newest resource version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One object.
    pub fn get(&self, place: &Place) -> Option<Arc<Object>> {
        self.rows.get(place).cloned()
    }

    /// Stores a new object.
    pub fn create(&mut self, place: &Place, mut object: Object, stamp: &Stamp) -> Result<Arc<Object>, Refusal> {
        if self.rows.contains_key(place) {
            return Err(Refusal::Exists);
        }
        let metadata = object.metadata_mut();
        metadata.insert("uid".to_owned(), json!(stamp.uid));
        metadata.insert("creationTimestamp".to_owned(), seconds(stamp.now));
        for field in ["generation", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            metadata.remove(field);
        }
        if stamp.generation {
            metadata.insert("generation".to_owned(), json!(1));
        }
        Ok(self.put(place, object))
    }

    /// Stores another state of an object.
    pub fn update(&mut self, place: &Place, object: Object, part: Part, precondition: &Precondition) -> Result<Left, Refusal> {
        let old = self.checked(place, precondition)?;
        let mut next = merged(&old, object, part);
        if next == *old {
            return Ok(Left::There(old));
        }
        if part != Part::Status && wanted(&old, part) != wanted(&next, part) {
            count_generation(&mut next);
        }
        if next.is_terminating() && !held(&next) {
            return Ok(Left::Gone(self.remove(place, next)));
        }
        Ok(Left::There(self.put(place, next)))
    }

    /// Removes an object, or marks it where finalizers hold it.
    pub fn delete(&mut self, place: &Place, precondition: &Precondition, now: Timestamp) -> Result<Left, Refusal> {
        self.delete_after(place, precondition, now, |_| false)
    }

    /// The same, after `prepare` put what holds the object onto it; it answers whether the API server itself ends the object,
    /// as it does with namespaces and CRDs, which have no grace period then.
    pub fn delete_after(
        &mut self,
        place: &Place,
        precondition: &Precondition,
        now: Timestamp,
        prepare: impl FnOnce(&mut Object) -> bool,
    ) -> Result<Left, Refusal> {
        let old = self.checked(place, precondition)?;
        let mut next = (*old).clone();
        let own = prepare(&mut next);
        if old.is_terminating() && held(&next) {
            return Ok(Left::There(if next == *old { old } else { self.put(place, next) }));
        }
        if !held(&next) {
            return Ok(Left::Gone(self.remove(place, (*old).clone())));
        }
        let metadata = next.metadata_mut();
        metadata.insert("deletionTimestamp".to_owned(), seconds(now));
        if !own {
            metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
            count_generation(&mut next);
        }
        Ok(Left::There(self.put(place, next)))
    }

    /// A store with one object of this one, in which a dry run leaves no trace.
    #[must_use]
    pub fn scratch(&self, place: &Place) -> Self {
        let rows = self.get(place).map(|object| (place.clone(), object)).into_iter().collect();
        Self { version: self.version, rows, history: History::new(0), expired: BTreeMap::new() }
    }

    /// Forgets what watches of a resource in a cluster would go on from: each of them meets [`Expired`] next.
    pub fn expire(&mut self, resource: &Resource, cluster: &ClusterKey) {
        self.version += 1;
        self.expired.insert((resource.clone(), cluster.clone()), self.version);
    }

    /// The objects of a resource in one place, in the order of their names.
    pub fn list<'a>(
        &'a self,
        resource: &Resource,
        cluster: &ClusterKey,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = (&'a Place, &'a Arc<Object>)> + use<'a> {
        let first = Place {
            resource: resource.clone(),
            cluster: cluster.clone(),
            namespace: namespace.map(str::to_owned),
            name: String::new(),
        };
        let here = first.clone();
        let is_here = move |place: &Place| {
            (&place.resource, &place.cluster, &place.namespace) == (&here.resource, &here.cluster, &here.namespace)
        };
        self.rows.range(first..).take_while(move |(place, _)| is_here(place))
    }

    /// Places of all objects in a namespace.
    pub fn inside(&self, cluster: &ClusterKey, namespace: &str) -> Vec<Place> {
        let here = |place: &&Place| place.cluster == *cluster && place.namespace.as_deref() == Some(namespace);
        self.rows.keys().filter(here).cloned().collect()
    }

    /// The stored object, if the precondition holds.
    pub(crate) fn checked(&self, place: &Place, precondition: &Precondition) -> Result<Arc<Object>, Refusal> {
        let old = self.get(place).ok_or(Refusal::NotFound)?;
        for (field, wanted, name) in
            [("UID", &precondition.uid, "uid"), ("resourceVersion", &precondition.version, "resourceVersion")]
        {
            let stored = old.at(&["metadata", name]).and_then(Value::as_str).unwrap_or_default();
            if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != stored) {
                return Err(Refusal::Conflict { field, wanted: wanted.to_owned(), stored: stored.to_owned() });
            }
        }
        Ok(old)
    }

    fn put(&mut self, place: &Place, object: Object) -> Arc<Object> {
        let object = self.stamped(object);
        let before = self.rows.insert(place.clone(), Arc::clone(&object));
        let shown = Arc::clone(&object);
        self.history.push(Record { version: self.version, place: place.clone(), before, stays: true, shown });
        object
    }

    /// The last state carries the version of its removal, by which watches go on.
    fn remove(&mut self, place: &Place, last: Object) -> Arc<Object> {
        let last = self.stamped(last);
        let before = self.rows.remove(place);
        let shown = Arc::clone(&last);
        self.history.push(Record { version: self.version, place: place.clone(), before, stays: false, shown });
        last
    }

    fn stamped(&mut self, mut object: Object) -> Arc<Object> {
        self.version += 1;
        object.metadata_mut().insert("resourceVersion".to_owned(), json!(self.version.to_string()));
        Arc::new(object)
    }
}

/// Whether something must still be done before the object may go.
fn held(object: &Object) -> bool {
    let by_spec = object.at(&["kind"]) == Some(&json!("Namespace"))
        && object.at(&["spec", "finalizers"]).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    by_spec || !object.finalizers().is_empty()
}

impl Left {
    /// The object, there or gone.
    pub fn object(&self) -> &Object {
        match self {
            Self::There(object) | Self::Gone(object) => object,
        }
    }
}

/// The part that is meant from the request, the rest and what no request may change from what is stored.
fn merged(old: &Object, new: Object, part: Part) -> Object {
    let (mut next, status) = match part {
        Part::Whole => return kept(old, new),
        Part::Main => (new, old.0.get("status").cloned()),
        Part::Status => {
            let status = new.0.get("status").cloned();
            let mut next = old.clone();
            // The status subresource takes managed fields along, and nothing else of the metadata.
            if let Some(managed) = new.at(&["metadata", "managedFields"]).cloned() {
                next.metadata_mut().insert("managedFields".to_owned(), managed);
            }
            (next, status)
        }
    };
    match status {
        Some(status) => next.0.insert("status".to_owned(), status),
        None => next.0.remove("status"),
    };
    kept(old, next)
}

fn kept(old: &Object, mut next: Object) -> Object {
    let fields = ["uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"];
    for field in fields {
        match old.at(&["metadata", field]).cloned() {
            Some(value) => next.metadata_mut().insert(field.to_owned(), value),
            None => next.metadata_mut().remove(field),
        };
    }
    next
}

/// What moves the generation: everything but metadata and, where it is a subresource, status.
fn wanted(object: &Object, part: Part) -> Vec<(&String, &Value)> {
    let counts = |name: &str| name != "metadata" && (name != "status" || part == Part::Whole);
    object.0.iter().filter(|(name, _)| counts(name)).collect()
}

fn count_generation(object: &mut Object) {
    if let Some(generation) = object.at(&["metadata", "generation"]).and_then(Value::as_i64) {
        object.metadata_mut().insert("generation".to_owned(), json!(generation + 1));
    }
}

/// `metav1.Time`: to the second.
fn seconds(at: Timestamp) -> Value {
    let whole = Timestamp::from_second(at.as_second()).expect("a timestamp's own second is in range");
    Value::String(whole.to_string())
}

#[cfg(test)]
mod tests;
