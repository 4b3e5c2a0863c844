//! A state told as events, for whoever comes in the middle of a run and missed what made it.
//!
//! Invariant: folding what is told gives the state that is told, as far as people are shown it. Each event stands for at least one that
//! the run recorded, so that the numbers of the run suffice.

use jiff::{SignedDuration, Timestamp};

use super::{RunState, SubjectState};
use crate::{
    event::{Event, EventKind, VERSION},
    plan::Action,
};

impl RunState {
    /// Events that lead from `known`, an earlier state of the same journal, to this one; from nothing where it is of another run. They
    /// have the run's last numbers, and the times at which what they tell began to be so, where that is known.
    #[must_use]
    pub fn told_since(&self, known: &Self) -> Vec<Event> {
        let (Some(run), Some(now)) = (&self.run, self.now) else { return Vec::new() };
        let nothing = Self::default();
        let known = if known.run == self.run { known } else { &nothing };
        let mut told = Told { now, started: self.started.unwrap_or(now), events: Vec::new() };
        told.run(self, known);
        told.stages(self, known);
        let changed = self.subjects.iter().filter(|(key, state)| known.subjects.get(*key) != Some(state));
        changed.for_each(|(_, state)| told.subject(state, self));
        told.rest(self, known);
        let first = self.seq.saturating_sub(told.events.len() as u64);
        let numbered = (first + 1..).zip(told.events);
        numbered.map(|(seq, (at, kind))| Event { v: VERSION, run: run.clone(), seq, at, kind }).collect()
    }
}

/// What is told so far.
struct Told {
    started: Timestamp,
    now: Timestamp,
    events: Vec<(Timestamp, EventKind)>,
}

impl Told {
    /// What comes before the first stage.
    fn run(&mut self, state: &RunState, known: &RunState) {
        let at = self.started;
        if let Some(verb) = state.verb.filter(|_| known.run.is_none()) {
            let (platform, source) = (state.platform.clone(), state.source.clone());
            let (cluster, resumed) = (state.cluster.clone(), state.resumed.clone());
            self.events.push((at, EventKind::RunStarted { verb, platform, source, cluster, resumed }));
        }
        if let Some(root) = state.root.clone().filter(|_| state.root != known.root || state.components != known.components) {
            self.events.push((at, EventKind::Resolved { root, components: state.components.clone() }));
        }
        for check in state.checks.iter().filter(|check| !known.checks.contains(check)).cloned() {
            let (id, verdict, message, hint) = (check.id, check.verdict, check.message, check.hint);
            self.events.push((at, EventKind::CheckFinished { id, verdict, message, hint }));
        }
        if let Some(plan) = state.plan.clone().filter(|_| state.plan != known.plan) {
            self.events.push((at, EventKind::Planned { plan }));
        }
        if let Some(by) = state.approved.clone().filter(|_| state.approved != known.approved) {
            self.events.push((at, EventKind::Approved { by }));
        }
        // Before what waits for them: a kind that went again is waited for again.
        for gvk in state.served.difference(&known.served).cloned() {
            self.events.push((at, EventKind::SchemaServed { gvk }));
        }
    }

    fn stages(&mut self, state: &RunState, known: &RunState) {
        for (&stage, of) in state.stages.iter().filter(|(id, stage)| known.stages.get(id) != Some(stage)) {
            if known.stages.get(&stage).is_none_or(|known| known.started != of.started) {
                self.events.push((of.started, EventKind::StageStarted { stage, title: of.title.clone() }));
            }
            if let (Some(finished), Some(outcome)) = (of.finished, of.outcome) {
                self.events.push((finished, EventKind::StageFinished { stage, outcome }));
            }
        }
    }

    /// An object, in the order that leaves each part as it is: a write clears what was waited for, and so does being ready.
    fn subject(&mut self, of: &SubjectState, state: &RunState) {
        let subject = || of.subject.clone();
        let mut tell = |kind| self.events.push((of.since, kind));
        if let Some(action @ (Action::Create | Action::Configure | Action::Delete | Action::Unchanged)) = of.action {
            let applied = state.applied.get(&of.subject.key);
            tell(EventKind::ChangeApplied {
                subject: subject(),
                action,
                digest: applied.map(|applied| applied.digest.clone()).unwrap_or_default(),
                generation: applied.map(|applied| applied.generation).unwrap_or_default(),
                result: applied.and_then(|applied| applied.result.clone()),
                uid: applied.and_then(|applied| applied.uid.clone()),
            });
        }
        if let Some(reason) = of.skipped.clone() {
            tell(EventKind::ChangeSkipped { subject: subject(), reason });
        }
        if let Some(health) = of.health {
            let (reason, message, causes) = (of.reason.clone(), of.message.clone(), of.causes.clone());
            tell(EventKind::HealthChanged { subject: subject(), health, reason, message, causes });
        }
        if !of.missing.is_empty() || of.action == Some(Action::Defer) {
            let (missing, expected_from) = (of.missing.clone(), of.expected_from.clone());
            tell(EventKind::ChangeDeferred { subject: subject(), missing, expected_from });
        }
    }

    fn rest(&mut self, state: &RunState, known: &RunState) {
        // The sort is stable: what is told of one object stays in its order.
        self.events.sort_by_key(|(at, _)| *at);
        let new = state.warning_count.saturating_sub(known.warning_count).min(state.warnings.len());
        for warning in state.warnings[state.warnings.len() - new..].iter().cloned() {
            let (subject, reason, message) = (warning.subject, warning.reason, warning.message);
            self.events.push((self.now, EventKind::Warning { subject, reason, message }));
        }
        if let Some(finished) = state.finished.clone().filter(|_| state.finished != known.finished) {
            let (outcome, message, hint) = (finished.outcome, finished.message, finished.hint);
            self.events.push((self.now, EventKind::RunFinished { outcome, message, hint }));
        }
        // After the end, which clears them.
        for (what, of) in state.retries.iter().filter(|(what, of)| known.retries.get(*what) != Some(of)) {
            let wait = of.next.duration_since(self.now).max(SignedDuration::ZERO);
            let next_in_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let (what, message, attempt) = (what.clone(), of.message.clone(), of.attempt);
            self.events.push((self.now, EventKind::Retry { what, message, attempt, next_in_ms }));
        }
    }
}
