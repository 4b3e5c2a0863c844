//! Objects below each other, over the planes: health rolled up, equal siblings grouped, echoes of a parent dropped.

use std::collections::{BTreeSet, HashMap, HashSet};

use plinth_api::ObjectKey;
use plinth_run::{Action, Health, RunState, SubjectState};

use super::{Group, Row, waits_for};
use crate::{
    log::{joined, role_of},
    theme::Role,
};

/// Siblings of one kind and state that are drawn as one row: fewer are worth their lines.
const GROUPED: usize = 4;

/// What is folded away.
#[derive(Clone, Debug, Default)]
pub struct Folds {
    /// Subtrees that are folded.
    pub collapsed: BTreeSet<ObjectKey>,
    /// Groups that are unfolded.
    pub opened: BTreeSet<Group>,
    /// Nothing is grouped: whoever looks for something wants to see it.
    pub flat: bool,
}

/// Objects below their parents, depth first, in the order of their keys.
pub fn tree_rows(run: &RunState, folds: &Folds) -> Vec<Row> {
    let mut children: HashMap<Option<&ObjectKey>, Vec<&SubjectState>> = HashMap::new();
    for known in run.subjects.values() {
        // A parent that nobody has reported yet must not hide its children.
        let parent = known.subject.parent.as_ref().filter(|parent| run.subjects.contains_key(*parent));
        children.entry(parent).or_default().push(known);
    }
    let order = Order::of(run, &children);
    Tree { folds, children: &children, below: order.rolled_up(), order }.rows()
}

/// One object in its place.
struct Node<'a> {
    known: &'a SubjectState,
    depth: usize,
    parent: Option<usize>,
}

/// All objects, depth first. Made without recursion: how deep a graph is, is up to others.
struct Order<'a>(Vec<Node<'a>>);

impl<'a> Order<'a> {
    fn of(run: &'a RunState, children: &HashMap<Option<&'a ObjectKey>, Vec<&'a SubjectState>>) -> Self {
        let mut order = Self(Vec::with_capacity(run.subjects.len()));
        let mut seen: HashSet<&ObjectKey> = HashSet::with_capacity(run.subjects.len());
        let roots = children.get(&None).into_iter().flatten().copied();
        // Two objects that claim to be each other's parent have no root; the first of them is taken for one.
        for root in roots.chain(run.subjects.values()) {
            let mut open = vec![(root, 0, None)];
            while let Some((known, depth, parent)) = open.pop() {
                if !seen.insert(&known.subject.key) {
                    continue;
                }
                order.0.push(Node { known, depth, parent });
                let index = order.0.len() - 1;
                let below = children.get(&Some(&known.subject.key)).into_iter().flatten();
                open.extend(below.rev().map(|child| (*child, depth + 1, Some(index))));
            }
        }
        order
    }

    /// What lies below each object, itself not counted.
    fn rolled_up(&self) -> Vec<Below> {
        let mut below = vec![Below::default(); self.0.len()];
        for (index, node) in self.0.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                let Below { total, ready, failed } = below[index];
                let above = &mut below[parent];
                above.total += total + 1;
                above.ready += ready + usize::from(node.known.health == Some(Health::Current));
                above.failed += failed + usize::from(node.known.health == Some(Health::Failed));
            }
        }
        below
    }
}

/// Counts of what lies below an object.
#[derive(Clone, Copy, Debug, Default)]
struct Below {
    total: usize,
    ready: usize,
    failed: usize,
}

impl Below {
    /// Nothing where all is well and can be seen.
    fn text(self, folded: bool) -> Option<String> {
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        let tell = self.total > 0 && (folded || self.ready < self.total);
        tell.then(|| format!("{} of {} below ready{failed}", self.ready, self.total))
    }
}

struct Tree<'a> {
    folds: &'a Folds,
    children: &'a HashMap<Option<&'a ObjectKey>, Vec<&'a SubjectState>>,
    below: Vec<Below>,
    order: Order<'a>,
}

impl Tree<'_> {
    fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        let groups = if self.folds.flat { HashMap::new() } else { self.groups() };
        let mut drawn: HashSet<&Group> = HashSet::new();
        let mut hidden_below: Option<usize> = None;
        for (index, node) in self.order.0.iter().enumerate() {
            if hidden_below.is_some_and(|depth| node.depth > depth) {
                continue;
            }
            hidden_below = None;
            let mut depth = node.depth;
            let is_leaf = self.is_leaf(node.known);
            let grouped = (is_leaf && !groups.is_empty()).then(|| groups.get(&group_of(node.known))).flatten();
            if let Some((group, members)) = grouped {
                let closed = !self.folds.opened.contains(group);
                if drawn.insert(group) {
                    rows.push(group_row(group, members, depth, closed));
                }
                if closed {
                    continue;
                }
                depth += 1;
            }
            let folded = (!is_leaf).then(|| self.folds.collapsed.contains(&node.known.subject.key));
            let above = node.parent.map(|parent| self.order.0[parent].known);
            let mut row = object_row(node.known, above, depth, folded);
            if let Some(below) = self.below[index].text(folded == Some(true)) {
                row.detail = if row.detail.is_empty() { below } else { format!("{below}; {}", row.detail) };
            }
            rows.push(row);
            if folded == Some(true) {
                hidden_below = Some(node.depth);
            }
        }
        rows
    }

    fn is_leaf(&self, known: &SubjectState) -> bool {
        !self.children.contains_key(&Some(&known.subject.key))
    }

    /// Leaves of one parent, kind and state, where there are many and none of them failed.
    fn groups(&self) -> HashMap<Group, (Group, Vec<&SubjectState>)> {
        let mut groups: HashMap<Group, (Group, Vec<&SubjectState>)> = HashMap::new();
        for node in self.order.0.iter().filter(|node| node.known.health != Some(Health::Failed) && self.is_leaf(node.known)) {
            let group = group_of(node.known);
            groups.entry(group.clone()).or_insert_with(|| (group, Vec::new())).1.push(node.known);
        }
        groups.retain(|_, (_, members)| members.len() >= GROUPED);
        groups
    }
}

fn group_of(known: &SubjectState) -> Group {
    let (word, _) = state_of(known);
    Group { parent: known.subject.parent.clone(), kind: known.subject.key.gvk.group_kind().to_string(), word: word.to_owned() }
}

fn group_row(group: &Group, members: &[&SubjectState], depth: usize, closed: bool) -> Row {
    Row {
        group: Some(group.clone()),
        depth,
        folded: Some(closed),
        title: format!("{} {}", members.len(), group.kind),
        word: group.word.clone(),
        since: members.iter().map(|known| known.since).max(),
        role: members.first().map_or(Role::Plain, |known| state_of(known).1),
        ..Row::default()
    }
}

fn object_row(known: &SubjectState, above: Option<&SubjectState>, depth: usize, folded: Option<bool>) -> Row {
    let (word, role) = state_of(known);
    let is_echo = above.is_some_and(|above| {
        !known.message.is_empty()
            && known.health == above.health
            && known.message == above.message
            && known.reason == above.reason
    });
    let detail = if !known.missing.is_empty() && known.health != Some(Health::Current) {
        waits_for(&known.missing, known.expected_from.as_deref())
    } else if is_echo {
        "as above".to_owned()
    } else {
        joined(&known.reason, &known.message)
    };
    Row {
        key: Some(known.subject.key.clone()),
        depth,
        folded,
        title: known.subject.to_string(),
        word: word.to_owned(),
        reason: known.reason.clone(),
        detail,
        since: Some(known.since),
        role,
        ..Row::default()
    }
}

/// One word for an object: its health, else that it is deferred, else what was done to it.
fn state_of(known: &SubjectState) -> (&'static str, Role) {
    match (known.health, known.action) {
        (Some(health @ (Health::Current | Health::Failed)), _) => (plinth_run::health::word(health), role_of(health)),
        _ if !known.missing.is_empty() => ("deferred", Role::Waiting),
        (Some(health), _) => (plinth_run::health::word(health), role_of(health)),
        (None, Some(action @ Action::Delete)) => (action.done(), Role::Dim),
        (None, Some(action)) => (action.done(), Role::Plain),
        (None, None) => ("known", Role::Plain),
    }
}
