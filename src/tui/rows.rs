//! Rows of the views, made from the run's state by pure functions. Word first, glyph second, colour third.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plinth_api::ObjectKey;
use plinth_run::{Action, CheckVerdict, Health, RunState, SubjectState};

use crate::theme::Role;

/// One row of a view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The object, where the row is one.
    pub key: Option<ObjectKey>,
    /// How deep it lies.
    pub depth: usize,
    /// Whether rows lie below it: `Some(true)` where they are folded away.
    pub folded: Option<bool>,
    /// What it is called.
    pub title: String,
    /// Its state in one word.
    pub word: String,
    /// Reason, message or kind: whatever a person wants to know next.
    pub detail: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// How it is drawn.
    pub role: Role,
}

/// The plan: stages, changes, and what is deferred with what it waits for.
pub fn plan_rows(run: &RunState) -> Vec<Row> {
    let Some(plan) = &run.plan else { return Vec::new() };
    let mut rows = Vec::new();
    for stage in &plan.stages {
        let word = run.stages.get(&stage.id).map_or("planned", |state| match state.outcome {
            Some(outcome) => outcome.word(),
            None => "running",
        });
        rows.push(Row {
            title: format!("stage {} {}", stage.id, stage.title),
            word: word.to_owned(),
            detail: format!("until {}", stage.until),
            role: Role::Heading,
            ..Row::default()
        });
        rows.extend(stage.changes.iter().map(|change| Row {
            key: Some(change.subject.key.clone()),
            depth: 1,
            title: change.subject.to_string(),
            word: change.action.verb().to_owned(),
            detail: change.note.clone().unwrap_or_else(|| change.fields.join(", ")),
            role: role_of_action(change.action),
            ..Row::default()
        }));
    }
    if !plan.deferred.is_empty() {
        rows.push(Row { title: "deferred".to_owned(), role: Role::Heading, ..Row::default() });
    }
    rows.extend(plan.deferred.iter().map(|deferred| Row {
        key: Some(deferred.subject.key.clone()),
        depth: 1,
        title: format!("{} node {}", deferred.subject, deferred.node),
        word: "defer".to_owned(),
        detail: waits_for(&deferred.missing, deferred.expected_from.as_deref()),
        role: Role::Waiting,
        ..Row::default()
    }));
    rows
}

/// Preflight checks.
pub fn check_rows(run: &RunState) -> Vec<Row> {
    let row = |check: &plinth_run::state::Check| Row {
        title: check.id.to_string(),
        word: match check.verdict {
            CheckVerdict::Passed => "passed",
            CheckVerdict::Warned => "warned",
            CheckVerdict::Failed => "failed",
        }
        .to_owned(),
        detail: match &check.hint {
            Some(hint) => format!("{}; {hint}", check.message),
            None => check.message.clone(),
        },
        role: match check.verdict {
            CheckVerdict::Passed => Role::Ready,
            CheckVerdict::Warned => Role::Waiting,
            CheckVerdict::Failed => Role::Failed,
        },
        ..Row::default()
    };
    run.checks.iter().map(row).collect()
}

/// Objects below their parents, depth first, in the order of their keys.
pub fn tree_rows(run: &RunState, collapsed: &BTreeSet<ObjectKey>, unhealthy_only: bool) -> Vec<Row> {
    let mut children: BTreeMap<Option<&ObjectKey>, Vec<&SubjectState>> = BTreeMap::new();
    for known in run.subjects.values() {
        // A parent that nobody has reported yet must not hide its children.
        let parent = known.subject.parent.as_ref().filter(|parent| run.subjects.contains_key(*parent));
        children.entry(parent).or_default().push(known);
    }
    let mut walk = Walk { children: &children, collapsed, unhealthy_only, rows: Vec::new(), seen: BTreeSet::new() };
    walk.below(None, 0);
    walk.rows
}

struct Walk<'a> {
    children: &'a BTreeMap<Option<&'a ObjectKey>, Vec<&'a SubjectState>>,
    collapsed: &'a BTreeSet<ObjectKey>,
    unhealthy_only: bool,
    rows: Vec<Row>,
    /// Guards against two objects that claim to be each other's parent.
    seen: BTreeSet<&'a ObjectKey>,
}

impl<'a> Walk<'a> {
    fn below(&mut self, parent: Option<&'a ObjectKey>, depth: usize) {
        let children = self.children;
        for known in children.get(&parent).into_iter().flatten() {
            let key = &known.subject.key;
            if !self.seen.insert(key) {
                continue;
            }
            let folded = children.contains_key(&Some(key)).then(|| self.collapsed.contains(key));
            let at = self.rows.len();
            self.rows.push(object_row(known, depth, folded));
            if folded != Some(true) {
                self.below(Some(key), depth + 1);
            }
            if self.unhealthy_only && self.rows.len() == at + 1 && self.rows[at].role == Role::Ready {
                self.rows.pop();
            }
        }
    }
}

fn object_row(known: &SubjectState, depth: usize, folded: Option<bool>) -> Row {
    let (word, role) = state_of(known);
    let detail = if known.missing.is_empty() || known.health == Some(Health::Current) {
        [known.reason.as_str(), known.message.as_str()].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ")
    } else {
        waits_for(&known.missing, known.expected_from.as_deref())
    };
    Row {
        key: Some(known.subject.key.clone()),
        depth,
        folded,
        title: known.subject.to_string(),
        word: word.to_owned(),
        detail,
        since: Some(known.since),
        role,
    }
}

/// One word for an object: its health, else that it is deferred, else what was done to it.
fn state_of(known: &SubjectState) -> (&'static str, Role) {
    match (known.health, known.action) {
        (Some(Health::Current), _) => ("ready", Role::Ready),
        (Some(Health::Failed), _) => ("failed", Role::Failed),
        _ if !known.missing.is_empty() => ("deferred", Role::Waiting),
        (Some(health @ (Health::InProgress | Health::Terminating)), _) => (plinth_run::health::word(health), Role::Progressing),
        (Some(health), _) => (plinth_run::health::word(health), Role::Waiting),
        (None, Some(action)) => (action.done(), Role::Plain),
        (None, None) => ("known", Role::Plain),
    }
}

fn role_of_action(action: Action) -> Role {
    match action {
        Action::Create | Action::Configure => Role::Progressing,
        Action::Unchanged | Action::Skip => Role::Plain,
        Action::Delete => Role::Failed,
        Action::Defer => Role::Waiting,
    }
}

fn waits_for(missing: &[plinth_api::GroupVersionKind], expected_from: Option<&str>) -> String {
    let kinds: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let from = expected_from.map(|from| format!("; expected from {from}")).unwrap_or_default();
    format!("waits for {}{from}", kinds.join(", "))
}
