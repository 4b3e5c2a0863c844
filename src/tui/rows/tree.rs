//! Objects below each other, over the planes: health rolled up, equal siblings grouped, echoes of a parent dropped.

use std::collections::{BTreeSet, HashMap};

use plinth_api::ObjectKey;
use plinth_run::{Action, Health, RunState, SubjectState, filter::Facts, state::Standing};

use super::{
    Group, Narrow, Narrowed, Row,
    forest::Forest,
    narrow::{KindText, Sieve},
    waits_for,
};
use crate::{
    log::{joined, role_of},
    planes::Planes,
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
}

/// Objects below their parents, depth first, in the order of their keys. Only what is kept, and whatever it lies below, becomes a row.
pub fn tree_rows(run: &RunState, planes: &Planes, folds: &Folds, narrow: &Narrow<'_>) -> Narrowed {
    let forest = Forest::of(run);
    let mut sieve = Sieve::new(*narrow);
    let kept = kept(&forest, &mut sieve);
    let shown = shown(&forest, &kept);
    // Whoever looks for something wants to see it, not a number of such things.
    let bunches = if narrow.filter.is_empty() { Bunches::of(&forest, &kept) } else { Bunches::default() };
    let tree =
        Tree { planes, folds, forest: &forest, kept: &kept, shown: &shown, bunches: &bunches, marks_hits: !narrow.is_empty() };
    Narrowed { rows: tree.rows(), inactive: sieve.inactive() }
}

/// Which objects pass, by number.
fn kept(forest: &Forest<'_>, sieve: &mut Sieve<'_>) -> Vec<bool> {
    if sieve.keeps_everything() {
        return vec![true; forest.len()];
    }
    let mut kinds = KindText::default();
    let keeps = |number| {
        let known = forest.object(number);
        let (key, (word, _)) = (&known.subject.key, state_of(known));
        // As the header counts: what it says is not ready is what is left.
        let is_well = known.standing().is_none_or(|standing| standing == Standing::Ready);
        let facts = Facts {
            name: &key.name,
            kind: kinds.of(&key.gvk),
            plane: known.subject.plane(),
            cluster: &key.cluster.0,
            namespace: key.namespace.as_deref().unwrap_or_default(),
            state: word,
            reason: &known.reason,
        };
        sieve.keeps(&facts, is_well)
    };
    (0..forest.len()).map(keeps).collect()
}

/// What passes, and whatever it lies below.
fn shown(forest: &Forest<'_>, kept: &[bool]) -> Vec<bool> {
    let mut shown = kept.to_vec();
    for number in forest.order().rev() {
        if let (true, Some(parent)) = (shown[number], forest.parent(number)) {
            shown[parent] = true;
        }
    }
    shown
}

/// Leaves that are drawn as one row: where there are many of one parent, plane, kind and state, and none of them failed.
#[derive(Default)]
struct Bunches {
    /// Their members.
    bunches: Vec<Vec<usize>>,
    /// The bunch of each object; empty where there are none.
    of: Vec<Option<usize>>,
}

impl Bunches {
    fn of(forest: &Forest<'_>, kept: &[bool]) -> Self {
        let mut found = Self { bunches: Vec::new(), of: vec![None; forest.len()] };
        for family in forest.families() {
            found.family(forest, family.filter(|child| kept[*child] && forest.is_leaf(*child)));
        }
        found
    }

    /// Siblings come in the order of their keys, but those of one plane may lie on many clusters.
    fn family(&mut self, forest: &Forest<'_>, members: impl Iterator<Item = usize>) {
        let mut known = HashMap::new();
        let mut last = None;
        for member in members.filter(|member| forest.object(*member).health != Some(Health::Failed)) {
            let object = forest.object(member);
            let alike = (object.subject.plane(), &object.subject.key.gvk, state_of(object).0);
            // Mostly it is one like the one before, which costs less to see than to look up.
            let bunch = match last {
                Some((before, bunch)) if before == alike => bunch,
                _ => *known.entry(alike).or_insert(self.bunches.len()),
            };
            last = Some((alike, bunch));
            match self.bunches.get_mut(bunch) {
                Some(members) => members.push(member),
                None => self.bunches.push(vec![member]),
            }
            self.of[member] = Some(bunch);
        }
    }

    /// The members that an object is drawn with, where they are enough.
    fn members(&self, number: usize) -> Option<&[usize]> {
        let members = self.bunches.get((*self.of.get(number)?)?)?;
        (members.len() >= GROUPED).then_some(members)
    }
}

struct Tree<'a> {
    planes: &'a Planes,
    folds: &'a Folds,
    forest: &'a Forest<'a>,
    kept: &'a [bool],
    shown: &'a [bool],
    bunches: &'a Bunches,
    /// Rows say whether they are what was asked for.
    marks_hits: bool,
}

impl Tree<'_> {
    fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        let mut hidden_below: Option<usize> = None;
        for number in self.forest.order().filter(|number| self.shown[*number]) {
            let depth = self.forest.depth(number);
            if hidden_below.is_some_and(|hidden| depth > hidden) {
                continue;
            }
            hidden_below = None;
            match self.bunches.members(number) {
                Some(members) if members[0] == number => self.group(members, depth, &mut rows),
                // It was drawn with the first of them.
                Some(_) => {}
                None => {
                    let row = self.object(number, depth);
                    hidden_below = (row.folded == Some(true)).then_some(depth);
                    rows.push(row);
                }
            }
        }
        rows
    }

    /// One row for all of them, and theirs below it where it is unfolded.
    fn group(&self, members: &[usize], depth: usize, rows: &mut Vec<Row>) {
        let first = self.forest.object(members[0]);
        let group = group_of(first);
        let (word, role) = state_of(first);
        let closed = !self.folds.opened.contains(&group);
        rows.push(Row {
            depth,
            folded: Some(closed),
            title: format!("{} {}", members.len(), group.kind),
            group: Some(group),
            word: word.to_owned(),
            since: members.iter().map(|member| self.forest.object(*member).since).max(),
            role,
            hit: self.marks_hits,
            ..Row::default()
        });
        if !closed {
            rows.extend(members.iter().map(|member| self.object(*member, depth + 1)));
        }
    }

    fn object(&self, number: usize, depth: usize) -> Row {
        let known = self.forest.object(number);
        let folded = (!self.forest.is_leaf(number)).then(|| self.folds.collapsed.contains(&known.subject.key));
        let above = self.forest.parent(number).map(|parent| self.forest.object(parent));
        let mut row = object_row(known, above, depth, folded);
        // A workspace is said once, where the tree comes to it.
        let is_said = above.is_some_and(|above| above.subject.key.cluster == known.subject.key.cluster);
        row.title = if is_said { known.subject.key.named() } else { self.planes.title(&known.subject) };
        row.hit = self.marks_hits && self.kept[number];
        if let Some(below) = self.forest.below(number).text(folded == Some(true)) {
            row.detail = if row.detail.is_empty() { below } else { format!("{below}; {}", row.detail) };
        }
        row
    }
}

fn group_of(known: &SubjectState) -> Group {
    let (key, (word, _)) = (&known.subject.key, state_of(known));
    Group {
        parent: known.subject.parent.clone(),
        plane: known.subject.plane().to_owned(),
        kind: key.gvk.group_kind().to_string(),
        word: word.to_owned(),
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
        plane: known.subject.plane,
        depth,
        folded,
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
