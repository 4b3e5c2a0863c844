//! One line a change, for people without a terminal interface and for logs (ux.md section 4).
//!
//! `word  plane  subject  detail  (time since the run began)`, two blanks between columns. A line comes only when something
//! changed, not again for the same subject and reason. Words carry the meaning; there is no colour and no glyph.

use std::collections::BTreeMap;

use plinth_api::{GroupVersionKind, ObjectKey};

use super::one_line;
use crate::{
    duration,
    event::{Cause, CheckVerdict, Event, EventKind, LongWait, SkipReason, Verb},
    health::{self, Health},
    outcome::Outcome,
    plan::{Action, Plan},
    state::{RunState, Summary},
    subject::{StageId, Subject},
};

/// How much is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Failures, warnings and the end.
    Quiet,
    /// Changes.
    #[default]
    Normal,
    /// Also what is on its way and nothing to worry about.
    Verbose,
}

/// Turns events into lines. Holds the state of the run, so that the last line can sum it up.
#[derive(Clone, Debug, Default)]
pub struct Presenter {
    verbosity: Verbosity,
    /// Somebody else says the end's message where it has several lines.
    is_brief: bool,
    state: RunState,
    said: BTreeMap<ObjectKey, (Health, String)>,
}

impl Presenter {
    /// A presenter that says this much.
    pub fn new(verbosity: Verbosity) -> Self {
        Self { verbosity, ..Self::default() }
    }

    /// The same where somebody else says the end's message to the person who reads these lines: the last line says nothing again that a
    /// check said, and of several lines only the first one, without the hint.
    #[must_use]
    pub fn brief(self) -> Self {
        Self { is_brief: true, ..self }
    }

    /// The line for an event, without its end; `None` where it says nothing new. The last event gives several lines.
    pub fn line(&mut self, event: &Event) -> Option<String> {
        self.state.fold(event);
        let text = self.text(&event.kind)?;
        if self.verbosity == Verbosity::Quiet && !is_loud(&event.kind) {
            return None;
        }
        Some(format!("{text}  ({})", duration::short(self.state.elapsed())))
    }

    /// The last line of a run that never said how it ended: why nothing more is told, and the counts up to there.
    pub fn broken_off(&self, why: &str) -> String {
        let text = columns(&["cut off", why, &totals(&self.state.summary())]);
        format!("{text}  ({})", duration::short(self.state.elapsed()))
    }

    /// The state that the events so far make.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    fn text(&mut self, kind: &EventKind) -> Option<String> {
        Some(match kind {
            EventKind::RunStarted { verb, platform, source, resumed, .. } => {
                let resumed = resumed.as_ref().map(|run| format!("goes on with run {run}"));
                columns(&["started", &format!("{} {platform}", word_of(*verb)), source, &resumed.unwrap_or_default()])
            }
            EventKind::Resolved { root, components } => {
                columns(&["resolved", &format!("{} {}", root.name, root.version), &count(components.len(), "component")])
            }
            EventKind::CheckFinished { id, verdict, message, hint } => {
                let hint = hint.as_ref().map(|hint| format!("hint: {hint}"));
                columns(&[word_of_check(*verdict), &format!("check {id}"), message, &hint.unwrap_or_default()])
            }
            EventKind::Planned { plan } => planned(plan),
            EventKind::Approved { by } => columns(&["approved", by]),
            EventKind::StageStarted { stage, title } => columns(&["begins", &self.stage(*stage), title]),
            EventKind::StageFinished { stage, outcome } => columns(&[outcome.word(), &self.stage(*stage)]),
            EventKind::ChangeApplied { subject, action, .. } => about(action.done(), subject, ""),
            EventKind::ChangeSkipped { subject, reason } => about("skipped", subject, &skipped(reason)),
            EventKind::ChangeDeferred { subject, missing, expected_from } => {
                about("deferred", subject, &deferred(missing, expected_from.as_deref())?)
            }
            EventKind::SchemaServed { gvk } => columns(&["served", &gvk.to_string()]),
            EventKind::HealthChanged { subject, health, reason, message, causes } => {
                return self.health(subject, *health, reason, &explained(reason, message, causes));
            }
            EventKind::Retry { what, message, attempt, next_in_ms } => Self::retry(what, message, *attempt, *next_in_ms),
            EventKind::Heartbeat { stage, ready, total, longest } => self.heartbeat(*stage, *ready, *total, longest),
            EventKind::Warning { subject, reason, message } => {
                let detail = joined(reason, message);
                match subject {
                    Some(subject) => about("warning", subject, &detail),
                    None => columns(&["warning", &detail]),
                }
            }
            EventKind::RunFinished { outcome, message, hint } => self.finished(*outcome, message, hint.as_deref()),
        })
    }

    fn health(&mut self, subject: &Subject, health: Health, reason: &str, detail: &str) -> Option<String> {
        let now = (health, reason.to_owned());
        if self.said.get(&subject.key) == Some(&now) {
            return None;
        }
        self.said.insert(subject.key.clone(), now);
        let quiet = matches!(health, Health::InProgress | Health::Unknown) && self.verbosity < Verbosity::Verbose;
        (!quiet).then(|| about(health::word(health), subject, detail))
    }

    /// Every attempt: whoever waits sees how often it was tried, and when it is tried next.
    fn retry(what: &str, message: &str, attempt: u32, next_in_ms: u64) -> String {
        let next = duration::precise(jiff::SignedDuration::from_millis(i64::try_from(next_in_ms).unwrap_or(i64::MAX)));
        columns(&["retry", what, message, &format!("attempt {attempt}, next in {next}")])
    }

    fn heartbeat(&self, stage: Option<StageId>, ready: usize, total: usize, longest: &[LongWait]) -> String {
        let longest = longest.iter().map(|wait| {
            let since = duration::short(jiff::SignedDuration::from_millis(i64::try_from(wait.for_ms).unwrap_or(i64::MAX)));
            let parts = [wait.subject.place(), wait.subject.key.named(), wait.message.clone(), since];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
        });
        let longest = longest.collect::<Vec<_>>().join(", ");
        let longest = if longest.is_empty() { longest } else { format!("longest: {longest}") };
        let stage = stage.map(|stage| self.stage(stage)).unwrap_or_default();
        columns(&["still waiting", &stage, &format!("{ready} of {total} ready"), &longest])
    }

    fn stage(&self, stage: StageId) -> String {
        match &self.state.plan {
            Some(plan) => format!("stage {stage}/{}", plan.stages.len()),
            None => format!("stage {stage}"),
        }
    }

    fn finished(&self, outcome: Outcome, message: &str, hint: Option<&str>) -> String {
        let mut lines = message.lines().map(one_line).filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or_default();
        let mut lines = lines.peekable();
        let headline = first.trim_end_matches(':');
        let is_said = self.state.checks.iter().any(|check| check.verdict == CheckVerdict::Failed && check.message == headline);
        if self.is_brief && (is_said || lines.peek().is_some()) {
            let headline = if is_said { "" } else { headline };
            return columns(&[outcome.word(), headline, &totals(&self.state.summary())]);
        }
        let mut text = columns(&[outcome.word(), &first]);
        for line in lines {
            text.push_str("\n  ");
            text.push_str(&line);
        }
        if let Some(hint) = hint {
            text.push_str("\n  hint: ");
            text.push_str(&one_line(hint));
        }
        let separator = if text.contains('\n') { "\n  " } else { "  " };
        format!("{text}{separator}{}", totals(&self.state.summary()))
    }
}

/// What [`Verbosity::Quiet`] lets through.
pub fn is_loud(kind: &EventKind) -> bool {
    match kind {
        EventKind::RunFinished { .. } | EventKind::Warning { .. } => true,
        EventKind::HealthChanged { health, .. } => *health == Health::Failed,
        EventKind::CheckFinished { verdict, .. } => *verdict != CheckVerdict::Passed,
        _ => false,
    }
}

/// Counts of a run in words, nothing left out, so that two presenters can be compared.
pub fn totals(summary: &Summary) -> String {
    let Summary { created, configured, skipped, deleted, deferred, total, ready, failed, warnings } = summary;
    format!(
        "{created} created, {configured} configured, {skipped} skipped, {deleted} deleted, {deferred} deferred; \
         {ready} of {total} ready, {failed} failed; {}",
        count(*warnings, "warning")
    )
}

fn planned(plan: &Plan) -> String {
    let actions = [Action::Create, Action::Configure, Action::Unchanged, Action::Skip, Action::Delete, Action::Defer];
    let counts = actions.iter().map(|action| (action, plan.count(*action))).filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts.map(|(action, count)| format!("{count} {action}")).collect();
    columns(&["planned", &count(plan.stages.len(), "stage"), &counts.join(", ")])
}

fn deferred(missing: &[GroupVersionKind], expected_from: Option<&str>) -> Option<String> {
    let kinds: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let from = expected_from.map(|from| format!("; expected from {from}")).unwrap_or_default();
    (!kinds.is_empty()).then(|| format!("waits for {}{from}", kinds.join(", ")))
}

/// Why an object was not written, in words.
pub fn skipped(reason: &SkipReason) -> String {
    match reason {
        SkipReason::Proven { generation, .. } => {
            format!("the journal proves it: same input, still generation {generation}")
        }
        SkipReason::Unchanged => "already as wanted".to_owned(),
        SkipReason::NotIncluded => "includeWhen says no".to_owned(),
        SkipReason::Gone => "already gone".to_owned(),
        SkipReason::Foreign { owner } => owner.clone(),
    }
}

/// Reason and message, then the root cause where there is a chain.
fn explained(reason: &str, message: &str, causes: &[Cause]) -> String {
    let Some(root) = causes.last() else { return joined(reason, message) };
    // Who only hands on what its cause says has nothing to add.
    let own = joined(reason, if root.message == message { "" } else { message });
    let subject = root.subject.as_ref().map(|subject| format!("{} ", subject.key.named())).unwrap_or_default();
    let root = format!("{subject}{}", joined(&root.reason, &root.message));
    if own.is_empty() { format!("because {root}") } else { format!("{own}; because {root}") }
}

fn joined(reason: &str, message: &str) -> String {
    match (reason.is_empty(), message.is_empty()) {
        (false, false) => format!("{reason}: {message}"),
        _ => format!("{reason}{message}"),
    }
}

fn about(word: &str, subject: &Subject, detail: &str) -> String {
    columns(&[word, &subject.place(), &subject.key.named(), detail])
}

fn columns(parts: &[&str]) -> String {
    let parts = parts.iter().map(|part| one_line(part)).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("  ")
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn word_of(verb: Verb) -> &'static str {
    match verb {
        Verb::Up => "up",
        Verb::Plan => "plan",
        Verb::Rehearse => "rehearse",
        Verb::Upgrade => "upgrade",
        Verb::Rollback => "rollback",
        Verb::Down => "down",
        Verb::Controller => "controller",
    }
}

fn word_of_check(verdict: CheckVerdict) -> &'static str {
    match verdict {
        CheckVerdict::Passed => "passed",
        CheckVerdict::Warned => "warned",
        CheckVerdict::Failed => "failed",
    }
}
