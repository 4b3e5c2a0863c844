//! What is left out of a view: by a filter, by plane, by health.

use plinth_api::GroupVersionKind;
use plinth_run::filter::{Facts, Filter, Search};

use super::Row;
use crate::theme::Role;

/// What is left out of a view.
#[derive(Clone, Copy, Debug)]
pub struct Narrow<'a> {
    /// The filter.
    pub filter: &'a Filter,
    /// Only this plane.
    pub plane: Option<&'a str>,
    /// Only what is not ready.
    pub unhealthy_only: bool,
}

/// The rows that are left.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Narrowed {
    /// The rows.
    pub rows: Vec<Row>,
    /// Terms of the filter that nothing has anything to do with.
    pub inactive: Vec<String>,
}

impl Narrow<'_> {
    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.filter.is_empty() && self.plane.is_none() && !self.unhealthy_only
    }

    /// Keeps rows that pass, and whatever they lie below.
    pub fn apply(&self, rows: Vec<Row>) -> Narrowed {
        if self.is_empty() {
            return Narrowed { rows, inactive: Vec::new() };
        }
        let mut sieve = Sieve::new(*self);
        let mut kinds = KindText::default();
        let mut kept: Vec<Row> = Vec::new();
        let mut above: Option<usize> = None;
        for mut row in rows.into_iter().rev() {
            row.hit = row.role != Role::Heading && sieve.keeps(&facts(&row, &mut kinds), row.role == Role::Ready);
            if row.hit || above.is_some_and(|depth| row.depth < depth) {
                above = Some(row.depth);
                kept.push(row);
            }
        }
        kept.reverse();
        Narrowed { rows: kept, inactive: sieve.inactive() }
    }
}

fn facts<'a>(row: &'a Row, kinds: &'a mut KindText) -> Facts<'a> {
    let key = row.key.as_ref();
    Facts {
        name: key.map_or(&row.title, |key| &key.name),
        kind: key.map_or("", |key| kinds.of(&key.gvk)),
        plane: row.plane(),
        cluster: key.map_or("", |key| &key.cluster.0),
        namespace: key.and_then(|key| key.namespace.as_deref()).unwrap_or_default(),
        state: &row.word,
        reason: &row.reason,
    }
}

/// One look through everything: what passes, and which terms found anything at all.
pub(super) struct Sieve<'a> {
    narrow: Narrow<'a>,
    search: Search<'a>,
}

impl<'a> Sieve<'a> {
    pub(super) fn new(narrow: Narrow<'a>) -> Self {
        Self { narrow, search: Search::new(narrow.filter) }
    }

    pub(super) fn keeps_everything(&self) -> bool {
        self.narrow.is_empty()
    }

    /// Whether something passes; `is_well` is what is left out where only the rest is asked for.
    pub(super) fn keeps(&mut self, facts: &Facts<'_>, is_well: bool) -> bool {
        // Asked first, and always: a term finds something also in what is left out for another reason.
        self.search.matches(facts)
            && !(self.narrow.unhealthy_only && is_well)
            && self.narrow.plane.is_none_or(|plane| facts.plane.is_empty() || facts.plane == plane)
    }

    pub(super) fn inactive(&self) -> Vec<String> {
        self.search.inactive().iter().map(ToString::to_string).collect()
    }
}

/// A kind as a filter sees it. Objects come in the order of their keys, so that the last text is nearly always the right one.
#[derive(Default)]
pub(super) struct KindText {
    of: GroupVersionKind,
    text: String,
}

impl KindText {
    pub(super) fn of(&mut self, gvk: &GroupVersionKind) -> &str {
        if self.of != *gvk {
            self.text = gvk.group_kind().to_string();
            self.of = gvk.clone();
        }
        &self.text
    }
}
