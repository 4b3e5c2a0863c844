//! GitHub workflow commands: groups for stages, annotations for what needs eyes, and a step summary in Markdown.

use std::fmt::Write;

use super::{lines, one_line};
use crate::{
    duration,
    event::{CheckVerdict, Event, EventKind},
    health::{self, Health},
    outcome::Outcome,
    state::RunState,
};

/// Turns events into log lines with workflow commands around them.
#[derive(Clone, Debug, Default)]
pub struct Presenter {
    lines: lines::Presenter,
    /// A group is open. GitHub knows no group within a group.
    is_in_group: bool,
}

impl Presenter {
    /// A presenter on top of the lines presenter.
    pub fn new(verbosity: lines::Verbosity) -> Self {
        Self { lines: lines::Presenter::new(verbosity), is_in_group: false }
    }

    /// The text for an event, without the last line's end.
    pub fn line(&mut self, event: &Event) -> Option<String> {
        let line = self.lines.line(event)?;
        // A message from a cluster must not be able to issue a workflow command.
        let line: Vec<String> = line.lines().map(|line| line.replace("::", ": :")).collect();
        let line = line.join("\n");
        Some(match &event.kind {
            EventKind::StageStarted { .. } => {
                let before = self.end_group();
                self.is_in_group = true;
                format!("{before}::group::{line}")
            }
            EventKind::StageFinished { .. } => format!("{line}\n{}", self.end_group()).trim_end().to_owned(),
            // The end is what is looked for first; a stage that was broken off hides it no more.
            EventKind::RunFinished { .. } => format!("{}{}", self.end_group(), annotated(&event.kind, &line)),
            kind => annotated(kind, &line),
        })
    }

    /// The last line of a run that never said how it ended, in no group.
    pub fn broken_off(&mut self, why: &str) -> String {
        let line = self.lines.broken_off(why).replace("::", ": :");
        format!("{}{line}\n::warning title=cut off::{}", self.end_group(), data(why))
    }

    /// Ends the group that is open; nothing where none is.
    fn end_group(&mut self) -> &'static str {
        if std::mem::take(&mut self.is_in_group) { "::endgroup::\n" } else { "" }
    }

    /// The state that the events so far make.
    pub fn state(&self) -> &RunState {
        self.lines.state()
    }
}

/// The line, with an annotation where it needs eyes.
fn annotated(kind: &EventKind, line: &str) -> String {
    match annotation(kind) {
        Some((level, title, message)) => format!("{line}\n::{level} title={}::{}", property(&title), data(&message)),
        None => line.to_owned(),
    }
}

fn annotation(kind: &EventKind) -> Option<(&'static str, String, String)> {
    match kind {
        EventKind::HealthChanged { subject, health: Health::Failed, reason, message, .. } => {
            Some(("error", format!("{subject} failed"), format!("{reason}: {message}")))
        }
        EventKind::CheckFinished { id, verdict: CheckVerdict::Failed, message, .. } => {
            Some(("error", format!("check {id} failed"), message.clone()))
        }
        EventKind::CheckFinished { id, verdict: CheckVerdict::Warned, message, .. } => {
            Some(("warning", format!("check {id}"), message.clone()))
        }
        EventKind::Warning { reason, message, .. } => Some(("warning", reason.clone(), message.clone())),
        EventKind::RunFinished { outcome, message, .. } if !matches!(outcome, Outcome::Done | Outcome::Changes) => {
            Some(("error", format!("{outcome} (exit {})", outcome.exit_code()), message.clone()))
        }
        _ => None,
    }
}

/// The step summary: outcome, counts, stages, and everything that is not ready.
pub fn summary(state: &RunState) -> String {
    let outcome = state.outcome_of_replay();
    let mut text = format!("## plinth {}: {outcome}\n\n", cell(&state.platform));
    let _ = writeln!(text, "{} in {}.\n", lines::totals(&state.summary()), duration::short(state.elapsed()));
    if let Some(plan) = &state.plan {
        text.push_str("| stage | what | took |\n| --- | --- | --- |\n");
        for stage in &plan.stages {
            let took = state.stage_duration(stage.id).map_or_else(|| "–".to_owned(), duration::short);
            let _ = writeln!(text, "| {} | {} | {took} |", stage.id, cell(&stage.title));
        }
    }
    let waits = state.now.map(|now| state.waits(now)).unwrap_or_default();
    if !waits.is_empty() {
        text.push_str("\n| not ready | state | why |\n| --- | --- | --- |\n");
        for wait in waits.iter().take(50) {
            let state = health::word(wait.health);
            let _ = writeln!(text, "| {} | {state} | {} |", cell(&wait.subject.to_string()), cell(&wait.message));
        }
    }
    text
}

/// Text in a table cell: no pipes, no markup of its own.
fn cell(text: &str) -> String {
    let line = one_line(text).replace('|', "\\|").replace('<', "&lt;").replace('`', "'");
    if line.is_empty() { "–".to_owned() } else { line }
}

fn data(text: &str) -> String {
    let clean: String = text.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    clean.replace('%', "%25").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(&one_line(text)).replace(':', "%3A").replace(',', "%2C")
}
