//! Rows of the views, made from the model by pure functions. Word first, glyph second, colour third.

mod events;
mod forest;
mod narrow;
mod plan;
mod timeline;
mod tree;

use jiff::Timestamp;
use plinth_api::{GroupVersionKind, ObjectKey};
use plinth_engine::graph::Plane;

pub use events::event_rows;
pub use narrow::{Narrow, Narrowed};
pub use plan::{check_rows, plan_rows, role_of_action};
pub use timeline::timeline_rows;
pub use tree::{Folds, tree_rows};

use crate::theme::Role;

/// One row of a view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The object, where the row is one.
    pub key: Option<ObjectKey>,
    /// The role of its cluster, where it has one.
    pub plane: Option<Plane>,
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
    /// Their plane, as it is called.
    pub plane: String,
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

    /// The plane: the role of the cluster or, where it has none, its key; empty for what is no object.
    pub fn plane(&self) -> &str {
        match (self.plane, &self.key, &self.group) {
            (Some(plane), ..) => plane.word(),
            (None, Some(key), _) => &key.cluster.0,
            (None, None, Some(group)) => &group.plane,
            (None, None, None) => "",
        }
    }
}

/// What something waits for, in words.
pub(crate) fn waits_for(missing: &[GroupVersionKind], expected_from: Option<&str>) -> String {
    let kinds: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let from = expected_from.map(|from| format!("; expected from {from}")).unwrap_or_default();
    format!("waits for {}{from}", kinds.join(", "))
}
