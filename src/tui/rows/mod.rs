//! Rows of the views, made from the model by pure functions. Word first, glyph second, colour third.

mod events;
mod plan;
mod timeline;
mod tree;

use jiff::Timestamp;
use plinth_api::{GroupVersionKind, ObjectKey};
use plinth_run::filter::{Facts, Filter};

pub use events::event_rows;
pub use plan::{check_rows, plan_rows};
pub use timeline::timeline_rows;
pub use tree::{Folds, tree_rows};

use crate::theme::Role;

/// One row of a view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The object, where the row is one.
    pub key: Option<ObjectKey>,
    /// The siblings, where the row stands for several.
    pub group: Option<Group>,
    /// The entry of the log, where it is one.
    pub seq: Option<u64>,
    /// How deep it lies.
    pub depth: usize,
    /// Whether rows lie below it: `Some(true)` where they are folded away.
    pub folded: Option<bool>,
    /// What it is called.
    pub title: String,
    /// Its state in one word.
    pub word: String,
    /// One word in UpperCamelCase, where there is one.
    pub reason: String,
    /// Reason, message or kind: whatever a person wants to know next.
    pub detail: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// How it is drawn.
    pub role: Role,
    /// It is what the filter asked for, and not only on the way to it.
    pub hit: bool,
}

/// Siblings of one kind in one state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    /// What they lie below.
    pub parent: Option<ObjectKey>,
    /// Their kind.
    pub kind: String,
    /// Their state.
    pub word: String,
}

impl Row {
    /// Whether both are rows of the same thing.
    pub fn is_same(&self, other: &Self) -> bool {
        self.seq == other.seq && self.key == other.key && self.group == other.group && self.title == other.title
    }

    /// The plane: the cluster's key, empty for what is no object.
    pub fn plane(&self) -> &str {
        self.key.as_ref().or_else(|| self.group.as_ref()?.parent.as_ref()).map_or("", |key| key.cluster.0.as_str())
    }

    /// Whether a filter lets it through.
    fn passes(&self, filter: &Filter) -> bool {
        let kind = self.key.as_ref().map(|key| key.gvk.group_kind().to_string());
        filter.matches(&self.facts(kind.as_deref().unwrap_or_default()))
    }

    fn facts<'a>(&'a self, kind: &'a str) -> Facts<'a> {
        Facts {
            name: self.key.as_ref().map_or(&self.title, |key| &key.name),
            kind,
            plane: self.plane(),
            namespace: self.key.as_ref().and_then(|key| key.namespace.as_deref()).unwrap_or_default(),
            state: &self.word,
            reason: &self.reason,
        }
    }
}

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

impl Narrow<'_> {
    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.filter.is_empty() && self.plane.is_none() && !self.unhealthy_only
    }

    fn keeps(&self, row: &Row) -> bool {
        row.role != Role::Heading
            && !(self.unhealthy_only && row.role == Role::Ready)
            && self.plane.is_none_or(|plane| row.plane().is_empty() || row.plane() == plane)
            && row.passes(self.filter)
    }

    /// Keeps rows that pass, and whatever they lie below.
    pub fn apply(&self, rows: Vec<Row>) -> Vec<Row> {
        if self.is_empty() {
            return rows;
        }
        let mut kept: Vec<Row> = Vec::new();
        let mut above: Option<usize> = None;
        for mut row in rows.into_iter().rev() {
            row.hit = self.keeps(&row);
            if row.hit || above.is_some_and(|depth| row.depth < depth) {
                above = Some(row.depth);
                kept.push(row);
            }
        }
        kept.reverse();
        kept
    }

    /// Terms of the filter that no row has anything to do with.
    pub fn inactive(&self, rows: &[Row]) -> Vec<String> {
        if self.filter.is_empty() {
            return Vec::new();
        }
        let kinds: Vec<String> =
            rows.iter().map(|row| row.key.as_ref().map_or_else(String::new, |key| key.gvk.group_kind().to_string())).collect();
        let facts: Vec<Facts<'_>> = rows.iter().zip(&kinds).map(|(row, kind)| row.facts(kind)).collect();
        self.filter.inactive(&facts).iter().map(ToString::to_string).collect()
    }
}

/// What something waits for, in words.
pub(crate) fn waits_for(missing: &[GroupVersionKind], expected_from: Option<&str>) -> String {
    let kinds: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let from = expected_from.map(|from| format!("; expected from {from}")).unwrap_or_default();
    format!("waits for {}{from}", kinds.join(", "))
}
