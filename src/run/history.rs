//! What earlier runs of a platform say about how long things take.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::{
    event::{Event, EventKind},
    outcome::Outcome,
    state::RunState,
    subject::{RunId, StageId},
};

/// How many durations a stage remembers, the newest: what took long years ago says little.
const REMEMBERED: usize = 10;

/// Durations of stages that ended well, by their titles, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    stages: BTreeMap<String, Vec<SignedDuration>>,
}

/// A guess, and what it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The median of earlier runs.
    pub usual: SignedDuration,
    /// How many earlier runs.
    pub runs: usize,
}

impl History {
    /// Learns from the events of a journal. Only stages that ended well count: a failure says nothing about how long success takes.
    pub fn learn<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut history = Self::default();
        let mut open: BTreeMap<(RunId, StageId), (String, Timestamp)> = BTreeMap::new();
        for event in events {
            match &event.kind {
                EventKind::StageStarted { stage, title } => {
                    open.insert((event.run.clone(), *stage), (title.clone(), event.at));
                }
                EventKind::StageFinished { stage, outcome: Outcome::Done } => {
                    if let Some((title, started)) = open.remove(&(event.run.clone(), *stage)) {
                        history.remember(title, event.at.duration_since(started));
                    }
                }
                _ => {}
            }
        }
        history
    }

    fn remember(&mut self, title: String, took: SignedDuration) {
        let known = self.stages.entry(title).or_default();
        if known.len() == REMEMBERED {
            known.remove(0);
        }
        known.push(took);
    }

    /// How long a stage usually takes; `None` where no earlier run got through it.
    pub fn usual(&self, title: &str) -> Option<Estimate> {
        let mut known = self.stages.get(title)?.clone();
        known.sort_unstable();
        Some(Estimate { usual: *known.get(known.len() / 2)?, runs: known.len() })
    }

    /// How long the run will still take, over all stages of its plan that are not over; `None` where one of them has no history.
    pub fn remaining(&self, run: &RunState, now: Timestamp) -> Option<SignedDuration> {
        let mut sum = SignedDuration::ZERO;
        for stage in run.plan.iter().flat_map(|plan| &plan.stages) {
            let state = run.stages.get(&stage.id);
            if state.is_some_and(|state| state.finished.is_some()) {
                continue;
            }
            let spent = state.map_or(SignedDuration::ZERO, |state| now.duration_since(state.started));
            let left = self.usual(&stage.title)?.usual.saturating_sub(spent);
            sum = sum.saturating_add(left.max(SignedDuration::ZERO));
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(run: &str, second: i64, kind: EventKind) -> Event {
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second);
        Event { v: 1, run: RunId(run.to_owned()), seq: u64::try_from(second).unwrap() + 1, at, kind }
    }

    fn run(id: &str, from: i64, took: i64, outcome: Outcome) -> [Event; 2] {
        let stage = StageId(1);
        [
            event(id, from, EventKind::StageStarted { stage, title: "operators".to_owned() }),
            event(id, from + took, EventKind::StageFinished { stage, outcome }),
        ]
    }

    #[test]
    fn the_median_of_runs_that_went_well_is_the_estimate() {
        let events: Vec<Event> = [
            run("a", 0, 10, Outcome::Done),
            run("b", 20, 90, Outcome::Done),
            run("c", 200, 20, Outcome::Done),
            run("d", 300, 1, Outcome::Failed),
        ]
        .concat();
        let usual = History::learn(&events).usual("operators");
        assert_eq!(usual, Some(Estimate { usual: SignedDuration::from_secs(20), runs: 3 }));
        assert_eq!(History::learn(&events).usual("another"), None);
    }

    #[test]
    fn old_runs_are_forgotten() {
        let events: Vec<Event> = (0..40).flat_map(|n| run(&format!("r{n}"), n * 100, n + 1, Outcome::Done)).collect();
        let usual = History::learn(&events).usual("operators").unwrap();
        assert_eq!((usual.runs, usual.usual.as_secs()), (10, 36));
    }
}
