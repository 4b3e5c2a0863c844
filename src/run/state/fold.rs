//! The one reducer.

use jiff::{SignedDuration, Timestamp};
use plinth_api::{GroupVersionKind, rgd};

use super::{Applied, Check, Finished, MAX_WARNINGS, Retrying, RunState, StageState, SubjectState, Warned};
use crate::{
    event::{Event, EventKind},
    health::Health,
    plan::Action,
    subject::{ClusterIdentity, RunId, Subject},
};

impl RunState {
    /// Takes one event. One that was taken already (same run, number not higher) changes nothing, so that a stream may repeat.
    pub fn fold(&mut self, event: &Event) {
        let same_run = self.run.as_ref() == Some(&event.run);
        if same_run && event.seq <= self.seq {
            return;
        }
        if !same_run || matches!(event.kind, EventKind::RunStarted { .. }) {
            self.begin(&event.run, event.at);
        }
        self.seq = event.seq;
        // What began before somebody looked is told with its own time, which is no step back.
        self.now = self.now.max(Some(event.at));
        if !matches!(event.kind, EventKind::Heartbeat { .. } | EventKind::Retry { .. }) {
            self.changed = self.changed.max(Some(event.at));
        }
        self.take(&event.kind, event.at);
    }

    /// Whether an event would say again what is known: the same verdict, the same deferral, a kind that is served already.
    pub fn is_echo(&self, kind: &EventKind) -> bool {
        match kind {
            EventKind::HealthChanged { subject, health, reason, message, causes } => {
                self.subjects.get(&subject.key).is_some_and(|known| {
                    known.health == Some(*health)
                        && known.reason == *reason
                        && known.message == *message
                        && known.causes == *causes
                        && (subject.plane.is_none() || subject.plane == known.subject.plane)
                        && !known.is_moved_by(subject, By::Another)
                })
            }
            EventKind::ChangeDeferred { subject, missing, .. } => {
                self.subjects.get(&subject.key).is_some_and(|known| !missing.is_empty() && known.missing == *missing)
            }
            EventKind::SchemaServed { gvk } => self.served.contains(gvk),
            _ => false,
        }
    }

    /// A new run in the same journal: what was proven stays, everything else is this run's.
    fn begin(&mut self, run: &RunId, at: Timestamp) {
        let earlier = std::mem::take(self);
        self.run = Some(run.clone());
        self.started = Some(at);
        self.cluster = earlier.cluster;
        self.applied = earlier.applied;
    }

    fn take(&mut self, kind: &EventKind, at: Timestamp) {
        match kind {
            EventKind::RunStarted { verb, platform, source, cluster, resumed } => {
                self.verb = Some(*verb);
                self.platform.clone_from(platform);
                self.source.clone_from(source);
                self.resumed.clone_from(resumed);
                self.on_cluster(cluster.as_ref());
            }
            EventKind::Resolved { root, components } => {
                self.root = Some(root.clone());
                self.components.clone_from(components);
            }
            EventKind::CheckFinished { id, verdict, message, hint } => {
                self.check(Check { id: id.clone(), verdict: *verdict, message: message.clone(), hint: hint.clone() });
            }
            EventKind::Planned { plan } => {
                self.on_cluster(plan.cluster.as_ref());
                self.plan = Some(plan.clone());
            }
            EventKind::Approved { by } => self.approved = Some(by.clone()),
            EventKind::StageStarted { stage, title } => {
                let state = StageState { title: title.clone(), started: at, finished: None, outcome: None };
                self.stages.insert(*stage, state);
            }
            EventKind::StageFinished { stage, outcome } => {
                if let Some(stage) = self.stages.get_mut(stage) {
                    (stage.finished, stage.outcome) = (Some(at), Some(*outcome));
                }
            }
            EventKind::ChangeApplied { subject, action, digest, generation, result, uid } => {
                let applied =
                    Applied { digest: digest.clone(), generation: *generation, result: result.clone(), uid: uid.clone() };
                self.applied(subject, *action, applied, at);
            }
            EventKind::ChangeSkipped { subject, reason } => {
                let known = self.subject(subject, By::Writer, at);
                known.skipped = Some(reason.clone());
                known.action.get_or_insert(Action::Skip);
            }
            EventKind::ChangeDeferred { subject, missing, expected_from } => {
                let known = self.subject(subject, By::Writer, at);
                known.missing.clone_from(missing);
                known.expected_from.clone_from(expected_from);
                known.action.get_or_insert(Action::Defer);
            }
            EventKind::SchemaServed { gvk } => self.schema_served(gvk),
            EventKind::HealthChanged { subject, health, reason, message, causes } => {
                let known = self.subject(subject, By::Another, at);
                if known.health != Some(*health) {
                    (known.health, known.since) = (Some(*health), at);
                }
                known.reason.clone_from(reason);
                known.message.clone_from(message);
                known.causes.clone_from(causes);
                if matches!(health, Health::Current | Health::NotFound) {
                    // What is ready waits for nothing, and what is gone neither.
                    known.missing.clear();
                }
                if *health == Health::NotFound {
                    self.applied.remove(&subject.key);
                }
            }
            EventKind::Retry { what, message, attempt, next_in_ms } => {
                let wait = SignedDuration::from_millis(i64::try_from(*next_in_ms).unwrap_or(i64::MAX));
                let next = at.checked_add(wait).unwrap_or(Timestamp::MAX);
                self.retries.insert(what.clone(), Retrying { message: message.clone(), attempt: *attempt, next });
            }
            EventKind::Heartbeat { .. } => {}
            EventKind::Warning { subject, reason, message } => {
                self.warned(Warned { subject: subject.clone(), reason: reason.clone(), message: message.clone() });
            }
            EventKind::RunFinished { outcome, message, hint } => {
                self.retries.clear();
                self.finished = Some(Finished { outcome: *outcome, message: message.clone(), hint: hint.clone() });
            }
        }
    }

    /// Another cluster than before: what was proven there proves nothing here.
    fn on_cluster(&mut self, cluster: Option<&ClusterIdentity>) {
        if let Some(cluster) = cluster.filter(|cluster| Some(*cluster) != self.cluster.as_ref()) {
            self.applied.clear();
            self.cluster = Some(cluster.clone());
        }
    }

    fn check(&mut self, check: Check) {
        match self.checks.iter_mut().find(|known| known.id == check.id) {
            Some(known) => *known = check,
            None => self.checks.push(check),
        }
    }

    fn applied(&mut self, subject: &Subject, action: Action, applied: Applied, at: Timestamp) {
        if action == Action::Delete {
            self.applied.remove(&subject.key);
        } else {
            self.applied.insert(subject.key.clone(), applied);
        }
        let known = self.subject(subject, By::Writer, at);
        // A definition that was written may still wait for the kinds of its nodes.
        if subject.key.gvk.kind != rgd::KIND {
            known.missing.clear();
        }
        known.skipped = None;
        if action == Action::Create && matches!(known.health, Some(Health::Terminating | Health::NotFound)) {
            // That was about an earlier object of the name.
            known.health = None;
        }
        if !(known.action == Some(Action::Create) && action == Action::Configure) {
            known.action = Some(action);
        }
    }

    fn schema_served(&mut self, gvk: &GroupVersionKind) {
        self.served.insert(gvk.clone());
        for known in self.subjects.values_mut() {
            known.missing.retain(|missing| missing != gvk);
        }
    }

    fn warned(&mut self, warning: Warned) {
        self.warning_count += 1;
        if self.warnings.len() == MAX_WARNINGS {
            self.warnings.remove(0);
        }
        self.warnings.push(warning);
    }

    /// The object's state, made where it is new. A place in a graph that is known is never forgotten.
    fn subject(&mut self, subject: &Subject, by: By, at: Timestamp) -> &mut SubjectState {
        let known = self.subjects.entry(subject.key.clone()).or_insert_with(|| SubjectState::new(subject.clone(), at));
        known.subject.plane = subject.plane.or(known.subject.plane);
        if known.is_moved_by(subject, by) {
            known.subject.node.clone_from(&subject.node);
            known.subject.parent.clone_from(&subject.parent);
        }
        known
    }
}

/// Who says where an object lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// Whoever writes it, or would.
    Writer,
    /// Whoever sees it: an instance tells also of what it only reads.
    Another,
}

impl SubjectState {
    /// Whether it lies elsewhere by what is said. An object lies below whoever writes it; one that several instances only read, below
    /// the first of them in the order of keys: so it is the same in every run, whoever speaks first.
    fn is_moved_by(&self, said: &Subject, by: By) -> bool {
        let is_written = self.action.is_some();
        match (&self.subject.parent, &said.parent) {
            (_, None) => false,
            (Some(known), Some(said_parent)) if known == said_parent => self.subject.node != said.node,
            (None, Some(_)) => by == By::Writer || !is_written,
            (Some(known), Some(said_parent)) => by == By::Writer || !is_written && said_parent < known,
        }
    }

    fn new(subject: Subject, at: Timestamp) -> Self {
        Self {
            subject,
            action: None,
            skipped: None,
            missing: Vec::new(),
            expected_from: None,
            health: None,
            reason: String::new(),
            message: String::new(),
            causes: Vec::new(),
            since: at,
        }
    }
}
