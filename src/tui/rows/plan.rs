//! The plan and the checks.

use plinth_run::{Action, CheckVerdict, RunState, state::Check};

use super::Row;
use crate::{planes::Planes, theme::Role};

/// The plan: stages, changes, and what is deferred with what it waits for.
pub fn plan_rows(run: &RunState, planes: &Planes) -> Vec<Row> {
    let Some(plan) = &run.plan else { return Vec::new() };
    let mut rows = Vec::new();
    for stage in &plan.stages {
        rows.push(Row {
            title: format!("stage {} {}", stage.id, stage.title),
            word: super::timeline::word(run, stage.id).to_owned(),
            detail: format!("until {}", stage.until),
            role: Role::Heading,
            ..Row::default()
        });
        rows.extend(stage.changes.iter().map(|change| Row {
            key: Some(change.subject.key.clone()),
            depth: 1,
            plane: change.subject.plane,
            title: planes.title(&change.subject),
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
        plane: deferred.subject.plane,
        title: format!("{} node {}", planes.title(&deferred.subject), deferred.node),
        word: "defer".to_owned(),
        detail: deferred.told(),
        role: Role::Waiting,
        ..Row::default()
    }));
    rows
}

/// Preflight checks.
pub fn check_rows(run: &RunState) -> Vec<Row> {
    let row = |check: &Check| Row {
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

/// How what is planned is drawn.
pub fn role_of_action(action: Action) -> Role {
    match action {
        Action::Create | Action::Configure => Role::Progressing,
        Action::Unchanged | Action::Skip => Role::Plain,
        Action::Delete => Role::Failed,
        Action::Defer => Role::Waiting,
    }
}
