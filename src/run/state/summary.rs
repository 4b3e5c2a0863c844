//! Counts and waits, read off a state. Every presenter takes them from here, so that they agree.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{RunState, SubjectState};
use crate::{
    duration,
    event::{Cause, EventKind, LongWait},
    health::{Health, MISSING},
    next::{Link, next_step},
    outcome::Outcome,
    plan::Action,
};

/// How many waits a heartbeat names.
const LONGEST: usize = 3;

/// Counts of objects in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Objects that did not exist and were written.
    pub created: usize,
    /// Objects that existed and were written.
    pub configured: usize,
    /// Objects that needed no write.
    pub skipped: usize,
    /// Objects that were deleted.
    pub deleted: usize,
    /// Objects that still wait for a kind.
    pub deferred: usize,
    /// Objects that were judged, or wait for a kind.
    pub total: usize,
    /// Of these, ready.
    pub ready: usize,
    /// Of these, failed.
    pub failed: usize,
    /// Warnings.
    pub warnings: usize,
}

impl RunState {
    /// Counts of objects.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary { warnings: self.warning_count, ..Summary::default() };
        for known in self.subjects.values() {
            summary.count(known);
        }
        summary
    }

    /// How long the run took, or has taken up to its newest event.
    pub fn elapsed(&self) -> SignedDuration {
        match (self.started, self.now) {
            (Some(started), Some(now)) => now.duration_since(started),
            _ => SignedDuration::ZERO,
        }
    }

    /// How long the run took or, while it goes on, has taken up to now: nothing may happen for minutes.
    pub fn elapsed_at(&self, now: Timestamp) -> SignedDuration {
        match (self.started, &self.finished) {
            (Some(started), None) => now.duration_since(started).max(self.elapsed()),
            _ => self.elapsed(),
        }
    }

    /// Objects that are not ready and were expected to be, longest wait first.
    pub fn waits(&self, now: Timestamp) -> Vec<LongWait> {
        let mut waits: Vec<LongWait> = self.subjects.values().filter_map(|known| known.wait(now)).collect();
        waits.sort_by(|a, b| b.for_ms.cmp(&a.for_ms).then_with(|| a.subject.cmp(&b.subject)));
        waits
    }

    /// What to say when nothing changed for a while.
    pub fn heartbeat(&self, now: Timestamp) -> EventKind {
        let summary = self.summary();
        let mut longest = self.waits(now);
        longest.truncate(LONGEST);
        EventKind::Heartbeat { stage: self.stage(), ready: summary.ready, total: summary.total, longest }
    }

    /// How long a stage took; `None` while it goes on.
    pub fn stage_duration(&self, stage: crate::StageId) -> Option<SignedDuration> {
        let stage = self.stages.get(&stage)?;
        Some(stage.finished?.duration_since(stage.started))
    }

    /// The outcome; a run that stopped without saying so was interrupted.
    pub fn outcome_of_replay(&self) -> Outcome {
        self.finished.as_ref().map_or(Outcome::Interrupted, |finished| finished.outcome)
    }
}

impl Summary {
    fn count(&mut self, known: &SubjectState) {
        match known.action {
            Some(Action::Create) => self.created += 1,
            Some(Action::Configure) => self.configured += 1,
            Some(Action::Skip | Action::Unchanged) => self.skipped += 1,
            Some(Action::Delete) => self.deleted += 1,
            Some(Action::Defer) | None => {}
        }
        if known.is_gone() {
            return;
        }
        self.deferred += usize::from(!known.missing.is_empty());
        let Some(standing) = known.standing() else { return };
        self.total += 1;
        self.ready += usize::from(standing == Standing::Ready);
        self.failed += usize::from(standing == Standing::Failed);
    }

    /// Objects that are neither ready nor failed: whatever is still to come.
    pub fn open(&self) -> usize {
        self.total.saturating_sub(self.ready + self.failed)
    }
}

/// Where an object stands, in as many words as are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As wanted.
    Ready,
    /// Failed for good.
    Failed,
    /// Neither yet.
    Open,
}

impl SubjectState {
    /// Where it stands; `None` for what is gone, and for what nobody has judged and nothing is waited for.
    pub fn standing(&self) -> Option<Standing> {
        if self.is_gone() {
            return None;
        }
        match self.health {
            Some(Health::Current) => Some(Standing::Ready),
            Some(Health::Failed) => Some(Standing::Failed),
            Some(_) => Some(Standing::Open),
            None => (!self.missing.is_empty()).then_some(Standing::Open),
        }
    }

    /// It was deleted, or was a child that is not there and nobody asks for any more. An instance of its own that is not there is
    /// missing, and so is a child that is told to be [`MISSING`].
    pub fn is_gone(&self) -> bool {
        let is_not_wanted = || self.subject.parent.is_some() && self.reason != MISSING;
        self.action == Some(Action::Delete) || self.health == Some(Health::NotFound) && is_not_wanted()
    }

    fn wait(&self, now: Timestamp) -> Option<LongWait> {
        let health = self.health.filter(|health| *health != Health::Current)?;
        if self.is_gone() && health != Health::Terminating {
            return None;
        }
        Some(LongWait {
            subject: self.subject.clone(),
            health,
            message: self.why(),
            for_ms: duration::millis(now.duration_since(self.since)),
        })
    }

    /// The next step against its root cause; nothing where it is ready. `goes_on` is whether a run is at it.
    pub fn next<'a>(&'a self, goes_on: bool) -> Option<String> {
        if self.health == Some(Health::Current) {
            return None;
        }
        let own = Link { key: &self.subject.key, reason: &self.reason, message: &self.message };
        let link =
            |cause: &'a Cause| Some(Link { key: &cause.subject.as_ref()?.key, reason: &cause.reason, message: &cause.message });
        let causes = self.causes.iter().filter_map(link);
        next_step(&std::iter::once(own).chain(causes).collect::<Vec<_>>(), goes_on)
    }

    /// Reason and message in one; the root cause where there is a chain.
    pub fn why(&self) -> String {
        let (reason, message) = match self.causes.last() {
            Some(root) => (&root.reason, &root.message),
            None => (&self.reason, &self.message),
        };
        match (reason.is_empty(), message.is_empty()) {
            (false, false) => format!("{reason}: {message}"),
            (true, _) => message.clone(),
            (_, true) => reason.clone(),
        }
    }
}
