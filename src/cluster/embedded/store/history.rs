//! Lists as of one version, and watches from one: the newest events, and what was before each.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

use plinth_api::{ClusterKey, Object};
use thiserror::Error;

use super::{Place, Resource, Store};
use crate::embedded::filter::{Filter, Reach};

/// One change, as it was stored.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) version: u64,
    pub(super) place: Place,
    pub(super) before: Option<Arc<Object>>,
    /// Whether the object is there afterwards.
    pub(super) stays: bool,
    /// The object afterwards, or its last state; either with the version of the change.
    pub(super) shown: Arc<Object>,
}

/// The newest changes.
pub(super) struct History {
    records: VecDeque<Record>,
    limit: usize,
    /// The newest version that was forgotten.
    forgotten: u64,
}

/// 410: the version asked for is older than the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the version {asked} is too old, the oldest is {oldest}")]
pub struct Expired {
    /// Asked for.
    pub asked: u64,
    /// The oldest that can be asked for.
    pub oldest: u64,
}

/// What a watch says.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What happened, as the watch's filter sees it.
    pub kind: EventKind,
    /// Resource version, from which another watch goes on.
    pub version: u64,
    /// Where.
    pub place: Place,
    /// The object; its last state where it is gone.
    pub object: Arc<Object>,
}

/// Kinds of [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// New, or newly selected.
    Added,
    /// Changed.
    Modified,
    /// Gone, or no longer selected.
    Deleted,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The objects, by cluster, namespace and name.
    pub items: Vec<(Place, Arc<Object>)>,
    /// The version of the whole list, all pages.
    pub version: u64,
    /// Where the next page begins, and how many objects are still to come.
    pub rest: Option<(Place, usize)>,
}

impl History {
    pub(super) fn new(limit: usize) -> Self {
        Self { records: VecDeque::new(), limit, forgotten: 0 }
    }

    pub(super) fn push(&mut self, record: Record) {
        self.records.push_back(record);
        while self.records.len() > self.limit {
            self.forgotten = self.records.pop_front().map_or(self.forgotten, |record| record.version);
        }
    }

    /// Changes after a version.
    fn after(&self, version: u64) -> Result<impl DoubleEndedIterator<Item = &Record>, Expired> {
        if version < self.forgotten {
            return Err(Expired { asked: version, oldest: self.forgotten });
        }
        let start = self.records.partition_point(|record| record.version <= version);
        Ok(self.records.range(start..))
    }
}

/// A place, what was there before a change, and what is there after it.
pub type Change = (Place, Option<Arc<Object>>, Option<Arc<Object>>);

impl Store {
    /// All changes after a version, of every resource; those that are forgotten are left out.
    pub fn changes(&self, version: u64) -> Vec<Change> {
        let start = self.history.records.partition_point(|record| record.version <= version);
        let changed = |record: &Record| {
            let after = record.stays.then(|| Arc::clone(&record.shown));
            (record.place.clone(), record.before.clone(), after)
        };
        self.history.records.range(start..).map(changed).collect()
    }

    /// What a watch from `version` has to say until now.
    pub fn events(&self, resource: &Resource, filter: &Filter, version: u64) -> Result<Vec<Event>, Expired> {
        let here = self.expired.iter().filter(|((expired, cluster), _)| expired == resource && filter.reach.covers(cluster));
        if let Some(oldest) = here.map(|(_, oldest)| *oldest).max().filter(|oldest| version < *oldest) {
            return Err(Expired { asked: version, oldest });
        }
        let records = self.history.after(version)?.filter(|record| record.place.resource == *resource);
        Ok(records.filter_map(|record| seen(record, filter)).collect())
    }

    /// One page of a list: of now, or of an earlier `version` (so that the pages of one list agree), after `start`.
    pub fn page(&self, resource: &Resource, filter: &Filter, from: Option<(u64, &Place)>, limit: usize) -> Result<Page, Expired> {
        let version = from.map_or(self.version, |(version, _)| version);
        let rows = self.rows_at(resource, filter, version)?;
        let start = from.map_or(Bound::Unbounded, |(_, place)| Bound::Excluded(place));
        let mut left = rows.range::<Place, _>((start, Bound::Unbounded)).filter(|(place, object)| filter.selects(place, object));
        let items: Vec<_> = left.by_ref().take(limit).map(|(place, object)| ((*place).clone(), Arc::clone(object))).collect();
        let remaining = left.count();
        let rest = items.last().filter(|_| remaining > 0).map(|(place, _)| (place.clone(), remaining));
        Ok(Page { items, version, rest })
    }

    /// The rows of a resource as they were at a version: the rows of now, with newer changes taken back.
    fn rows_at<'a>(
        &'a self,
        resource: &Resource,
        filter: &Filter,
        version: u64,
    ) -> Result<BTreeMap<&'a Place, &'a Arc<Object>>, Expired> {
        let (cluster, namespace) = match &filter.reach {
            Reach::One(cluster) => (cluster.clone(), filter.namespace.clone()),
            Reach::Logical => (ClusterKey(String::new()), None),
        };
        let first = Place { resource: resource.clone(), cluster, namespace, name: String::new() };
        let is_beyond = |place: &Place| place.resource != *resource || filter.is_behind(place);
        let all = self.rows.range(first..).take_while(|(place, _)| !is_beyond(place));
        let mut rows: BTreeMap<&Place, &Arc<Object>> = all.filter(|(place, _)| filter.covers(place)).collect();
        for record in self.history.after(version)?.rev().filter(|record| record.place.resource == *resource) {
            match &record.before {
                Some(before) if filter.covers(&record.place) => rows.insert(&record.place, before),
                _ => rows.remove(&record.place),
            };
        }
        Ok(rows)
    }
}

/// A change through a filter: what enters a selection is added, what leaves it is deleted.
fn seen(record: &Record, filter: &Filter) -> Option<Event> {
    let before = record.before.as_ref().filter(|before| filter.selects(&record.place, before));
    let stays = record.stays && filter.selects(&record.place, &record.shown);
    let (kind, object) = match before {
        None if stays => (EventKind::Added, Arc::clone(&record.shown)),
        Some(_) if stays => (EventKind::Modified, Arc::clone(&record.shown)),
        Some(_) if !record.stays => (EventKind::Deleted, Arc::clone(&record.shown)),
        // What leaves a selection is shown as it was in it, as the API server does.
        Some(before) => (EventKind::Deleted, Arc::new(at_version(before, record.version))),
        None => return None,
    };
    Some(Event { kind, version: record.version, place: record.place.clone(), object })
}

fn at_version(object: &Object, version: u64) -> Object {
    let mut object = object.clone();
    object.metadata_mut().insert("resourceVersion".to_owned(), serde_json::json!(version.to_string()));
    object
}
