//! Who watches what, and what is known: the pure half of [`super::Watches`].
//!
//! Invariant: a watch is in the book exactly as long as an owner's set names its kind.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use plinth_api::{Object, ObjectKey};
use plinth_engine::ports::Query;

use super::{Change, Look, Notice, Owner, WatchKey, WatchSet, WatchState, feed::Step};
use crate::selector::Selector;

/// Namespace and name.
type Place = (Option<String>, String);

/// All watches.
#[derive(Default)]
pub(super) struct Book {
    sets: BTreeMap<Owner, WatchSet>,
    watches: BTreeMap<WatchKey, Rows>,
}

/// One watch: its owners, and its objects.
#[derive(Default)]
struct Rows {
    state: WatchState,
    objects: BTreeMap<Place, Arc<Object>>,
    places: BTreeMap<Place, BTreeSet<Owner>>,
    queries: BTreeMap<Query, (Selector, BTreeSet<Owner>)>,
}

/// Watches that a new set starts and ends.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Turnover {
    pub(super) started: Vec<WatchKey>,
    pub(super) ended: Vec<WatchKey>,
}

impl Book {
    /// Replaces an owner's set.
    pub(super) fn declare(&mut self, owner: &Owner, set: WatchSet) -> Turnover {
        let old = self.sets.remove(owner).unwrap_or_default();
        let before: BTreeSet<WatchKey> = self.watches.keys().cloned().collect();
        // The new ones come first, so that a watch which both sets name never ends in between.
        for key in set.objects.difference(&old.objects) {
            self.rows(WatchKey::of(key)).places.entry(place(key)).or_default().insert(owner.clone());
        }
        for query in set.lists.difference(&old.lists) {
            self.rows(WatchKey::of_query(query)).watch_query(query, owner);
        }
        for key in old.objects.difference(&set.objects) {
            self.drop_place(key, owner);
        }
        for query in old.lists.difference(&set.lists) {
            self.drop_query(query, owner);
        }
        if !set.is_empty() {
            self.sets.insert(owner.clone(), set);
        }
        let idle = self.watches.extract_if(.., |_, rows| rows.is_idle()).map(|(key, _)| key);
        let ended: Vec<WatchKey> = idle.filter(|key| before.contains(key)).collect();
        let started = self.watches.keys().filter(|key| !before.contains(*key)).cloned().collect();
        Turnover { started, ended }
    }

    /// An owner's present set.
    pub(super) fn set_of(&self, owner: &Owner) -> WatchSet {
        self.sets.get(owner).cloned().unwrap_or_default()
    }

    fn rows(&mut self, key: WatchKey) -> &mut Rows {
        self.watches.entry(key).or_default()
    }

    fn drop_place(&mut self, key: &ObjectKey, owner: &Owner) {
        let Some(rows) = self.watches.get_mut(&WatchKey::of(key)) else { return };
        if let Entry::Occupied(mut owners) = rows.places.entry(place(key)) {
            owners.get_mut().remove(owner);
            if owners.get().is_empty() {
                owners.remove();
            }
        }
    }

    fn drop_query(&mut self, query: &Query, owner: &Owner) {
        let Some(rows) = self.watches.get_mut(&WatchKey::of_query(query)) else { return };
        if let Entry::Occupied(mut entry) = rows.queries.entry(query.clone()) {
            entry.get_mut().1.remove(owner);
            if entry.get().1.is_empty() {
                entry.remove();
            }
        }
    }

    /// Takes in what a watch reports, and says whom to tell.
    pub(super) fn take(&mut self, watch: &WatchKey, step: Step) -> Vec<(Owner, Notice)> {
        let Some(rows) = self.watches.get_mut(watch) else { return Vec::new() };
        let mut notices = Vec::new();
        match step {
            Step::Opened => rows.opened(watch, &mut notices),
            Step::Applied(object) => rows.put(watch, object, &mut notices),
            Step::Deleted(object) => rows.remove(watch, &place_of(&object), &mut notices),
            Step::Reset(objects) => rows.reset(watch, objects, &mut notices),
        }
        notices
    }

    /// The kind is not served any more, so its objects are gone.
    pub(super) fn gone(&mut self, watch: &WatchKey) -> Vec<(Owner, Notice)> {
        let Some(rows) = self.watches.get_mut(watch) else { return Vec::new() };
        let mut notices = Vec::new();
        for place in rows.objects.keys().cloned().collect::<Vec<_>>() {
            rows.remove(watch, &place, &mut notices);
        }
        rows.state = WatchState::Parked;
        notices
    }

    /// The cluster is not reachable by choice: nothing is known of its objects, which is not the same as gone.
    pub(super) fn lose(&mut self, watch: &WatchKey) -> Vec<(Owner, Notice)> {
        let Some(rows) = self.watches.get_mut(watch) else { return Vec::new() };
        rows.objects.clear();
        rows.state = WatchState::Away;
        rows.everyone().into_iter().map(|owner| (owner, Notice::Lost(watch.clone()))).collect()
    }

    /// A watch fails; whoever depends on it is told where that is for want of a right, once.
    pub(super) fn fail(&mut self, watch: &WatchKey, state: WatchState) -> Vec<(Owner, Notice)> {
        let Some(rows) = self.watches.get_mut(watch) else { return Vec::new() };
        let is_news = state.is_refused() && !rows.state.is_refused();
        rows.state = state;
        let owners = if is_news { rows.everyone() } else { BTreeSet::new() };
        owners.into_iter().map(|owner| (owner, Notice::Refused(watch.clone()))).collect()
    }

    pub(super) fn set_state(&mut self, watch: &WatchKey, state: WatchState) {
        if let Some(rows) = self.watches.get_mut(watch) {
            rows.state = state;
        }
    }

    pub(super) fn state(&self, watch: &WatchKey) -> Option<WatchState> {
        self.watches.get(watch).map(|rows| rows.state.clone())
    }

    pub(super) fn watches(&self) -> impl Iterator<Item = (&WatchKey, &WatchState)> {
        self.watches.iter().map(|(key, rows)| (key, &rows.state))
    }

    pub(super) fn look(&self, key: &ObjectKey) -> Look {
        match self.watches.get(&WatchKey::of(key)) {
            None => Look::Unwatched,
            Some(rows) => match rows.objects.get(&place(key)) {
                Some(object) => Look::Present(Arc::clone(object)),
                None if rows.state.is_current() => Look::Absent,
                None => Look::Unknown,
            },
        }
    }

    /// Objects that a query selects, by namespace and name; `None` while that is not known.
    pub(super) fn list(&self, query: &Query) -> Option<Vec<Arc<Object>>> {
        let rows = self.watches.get(&WatchKey::of_query(query)).filter(|rows| rows.state.is_current())?;
        let selector = Selector::parse(&query.selector).ok()?;
        let selected = rows.objects.iter().filter(|(place, object)| selects(query, &selector, place, object));
        Some(selected.map(|(_, object)| Arc::clone(object)).collect())
    }
}

impl Rows {
    /// It goes on where it was; whoever heard that it is not permitted has to hear that it is.
    fn opened(&mut self, watch: &WatchKey, notices: &mut Vec<(Owner, Notice)>) {
        let was_refused = self.state.is_refused();
        self.state.recover();
        if was_refused && self.state.is_live() {
            notices.extend(self.everyone().into_iter().map(|owner| (owner, Notice::Synced(watch.clone()))));
        }
    }

    fn is_idle(&self) -> bool {
        self.places.is_empty() && self.queries.is_empty()
    }

    fn watch_query(&mut self, query: &Query, owner: &Owner) {
        // A selector that cannot be parsed selects nothing; the engine's own are always valid.
        let Ok(selector) = Selector::parse(&query.selector) else { return };
        let entry = self.queries.entry(query.clone()).or_insert_with(|| (selector, BTreeSet::new()));
        entry.1.insert(owner.clone());
    }

    fn everyone(&self) -> BTreeSet<Owner> {
        let by_place = self.places.values().flatten();
        by_place.chain(self.queries.values().flat_map(|(_, owners)| owners)).cloned().collect()
    }

    fn put(&mut self, watch: &WatchKey, object: Object, notices: &mut Vec<(Owner, Notice)>) {
        let place = place_of(&object);
        let before = self.objects.get(&place).cloned();
        if before.as_ref().is_some_and(|before| version(before) == version(&object) && version(&object).is_some()) {
            return;
        }
        let after = Arc::new(object);
        self.objects.insert(place.clone(), Arc::clone(&after));
        self.tell(watch, &place, before, Some(after), notices);
    }

    fn remove(&mut self, watch: &WatchKey, place: &Place, notices: &mut Vec<(Owner, Notice)>) {
        let Some(before) = self.objects.remove(place) else { return };
        self.tell(watch, place, Some(before), None, notices);
    }

    fn reset(&mut self, watch: &WatchKey, objects: Vec<Object>, notices: &mut Vec<(Owner, Notice)>) {
        let there: BTreeSet<Place> = objects.iter().map(place_of).collect();
        let missing: Vec<Place> = self.objects.keys().filter(|place| !there.contains(*place)).cloned().collect();
        for place in missing {
            self.remove(watch, &place, notices);
        }
        for object in objects {
            self.put(watch, object, notices);
        }
        self.state = WatchState::Synced;
        let synced = Notice::Synced(watch.clone());
        notices.extend(self.everyone().into_iter().map(|owner| (owner, synced.clone())));
    }

    fn tell(
        &self,
        watch: &WatchKey,
        place: &Place,
        before: Option<Arc<Object>>,
        after: Option<Arc<Object>>,
        notices: &mut Vec<(Owner, Notice)>,
    ) {
        let mut owners = self.places.get(place).cloned().unwrap_or_default();
        // Old and new labels count: an object that leaves a selection is a change of that selection. The same labels are looked at
        // once, because there may be a query for each of many owners.
        let mut states: Vec<&Object> = before.iter().chain(&after).map(AsRef::as_ref).collect();
        states.dedup_by_key(|object| object.at(&["metadata", "labels"]));
        for (query, (selector, of_query)) in &self.queries {
            if states.iter().any(|object| selects(query, selector, place, object)) {
                owners.extend(of_query.iter().cloned());
            }
        }
        let change = Change { key: watch.object(place.0.clone(), place.1.clone()), before, after };
        notices.extend(owners.into_iter().map(|owner| (owner, Notice::Changed(change.clone()))));
    }
}

fn selects(query: &Query, selector: &Selector, place: &Place, object: &Object) -> bool {
    query.namespace.as_ref().is_none_or(|namespace| place.0.as_ref() == Some(namespace)) && selector.matches(object)
}

fn place(key: &ObjectKey) -> Place {
    (key.namespace.clone(), key.name.clone())
}

fn place_of(object: &Object) -> Place {
    (object.namespace().map(str::to_owned), object.name().to_owned())
}

fn version(object: &Object) -> Option<&str> {
    object.at(&["metadata", "resourceVersion"]).and_then(serde_json::Value::as_str)
}

#[cfg(test)]
mod tests;
