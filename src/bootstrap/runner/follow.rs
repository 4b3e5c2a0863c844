//! Watching a platform until it is ready, has failed, or the deadline passes.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use plinth_api::{GroupKind, Object, ObjectKey};
use plinth_run::{
    EventKind, Health, Observer, Outcome, Recorder, RunState, Seen, Sighting, SkipReason, Stage, StageId, SubjectState, health,
    plan::Writer as By,
};
use serde_json::Value;

use super::steps;
use crate::{error::Error, plan::Planned, write::Writer};

/// How soon a loop that has work left is asked again whether it has settled; no event says so.
const SETTLE: Duration = Duration::from_millis(50);
/// How long nothing has to move before what the server refuses ends the run: others may be about to begin.
const QUIET: Duration = Duration::from_secs(5);
/// How many objects an error names.
const NAMED: usize = 10;

/// One watch over a platform.
pub(super) struct Follow<'a> {
    planned: &'a Planned,
    writer: &'a Writer<'a>,
    /// Kinds that definitions define: all their objects below the instance have to be ready (contracts 13).
    instance_kinds: BTreeSet<GroupKind>,
    /// Stages of the loop that have not ended, in order.
    open: Vec<&'a Stage>,
    started: BTreeSet<StageId>,
    last_heartbeat: Timestamp,
}

impl<'a> Follow<'a> {
    pub(super) fn new(planned: &'a Planned, writer: &'a Writer<'a>) -> Self {
        let of_loop = |stage: &&Stage| stage.changes.iter().any(|change| change.by == By::Loop);
        Self {
            planned,
            writer,
            instance_kinds: planned.built.iter().map(|built| built.graph.instance.gvk.group_kind()).collect(),
            open: planned.plan.stages.iter().filter(of_loop).collect(),
            started: BTreeSet::new(),
            last_heartbeat: writer.ports.log.clock().now(),
        }
    }

    /// Takes sightings until the platform is ready. Reads state first: what the loop recorded so far counts.
    pub(super) async fn until_ready(&mut self, observer: &dyn Observer) -> Result<(), Error> {
        let clock = Arc::clone(self.writer.ports.log.clock());
        loop {
            self.advance_stages();
            let ready = self.is_told_ready();
            // Looked at after the loop has settled, because what it did meanwhile may have changed the verdict; and the loop asked
            // once more after that, because what was on its way from a watch to a queue is there by now.
            let control = &self.writer.ports.control;
            if ready && control.is_settled().await && self.is_ready().await? && control.is_settled().await {
                return Ok(());
            }
            let is_old_news = self.give_up(clock.now()).await?;
            let pause = if ready || is_old_news { SETTLE } else { self.pause(clock.now()) };
            tokio::select! {
                biased;
                sighting = observer.next() => match sighting {
                    Some(Seen::Recorded) => {}
                    Some(Seen::Sighting(sighting)) => self.saw(sighting)?,
                    None => return self.unwatched().await,
                },
                () = clock.sleep(pause) => self.beat(clock.now()),
            }
        }
    }

    /// Ends every stage that is still open.
    pub(super) fn close_stages(&mut self, outcome: Outcome) {
        let instance = self.planned.plan.stage_of(&self.planned.instance);
        let begun = std::mem::take(&mut self.open).into_iter().map(|stage| stage.id);
        let begun = begun.filter(|id| outcome == Outcome::Done || self.started.contains(id));
        for id in begun.chain(instance).collect::<Vec<_>>() {
            if outcome == Outcome::Done {
                self.begin(id);
            }
            steps::finish(self.writer, id, outcome);
        }
    }

    fn saw(&mut self, sighting: Sighting) -> Result<(), Error> {
        let Sighting { subject, health, reason, message, causes, terminal } = sighting;
        let key = subject.key.clone();
        self.writer.ports.log.record(EventKind::HealthChanged { subject, health, reason, message, causes });
        if terminal && health == Health::Failed {
            let why = self.read(|state| state.subjects.get(&key).map(SubjectState::why).unwrap_or_default());
            return Err(Error::Failed(format!("{key} failed: {why}")));
        }
        Ok(())
    }

    fn read<T>(&self, read: impl FnOnce(&RunState) -> T) -> T {
        self.writer.ports.log.read(read)
    }

    /// The instance and every instance below it are ready, and every definition was taken or waits for kinds, by what was told so far.
    fn is_told_ready(&self) -> bool {
        self.read(|state| {
            let is_well = |known: &SubjectState| known.health == Some(Health::Current);
            let root = state.subjects.get(&self.planned.instance).is_some_and(is_well);
            let below = state.subjects.values().filter(|known| self.is_instance(known)).all(is_well);
            let mut definitions = self.planned.built.iter().filter_map(|built| state.subjects.get(&built.key));
            root && below && definitions.all(|known| !matches!(known.health, Some(Health::InProgress | Health::Failed)))
        })
    }

    /// The cluster says the same of all of them as they are now: what was told may be about what they were before this run wrote them.
    async fn is_ready(&self) -> Result<bool, Error> {
        if !self.is_told_ready() {
            return Ok(false);
        }
        for built in &self.planned.built {
            if self.verdict_now(&built.key).await?.is_none() {
                return Ok(false);
            }
        }
        let live = self.writer.read(&self.planned.instance).await?;
        Ok(live.is_some_and(|live| says_ready(&live)) && self.all_below_are_ready().await?)
    }

    /// Every instance below ours says so of its own generation: its parent may have changed it since it was judged.
    async fn all_below_are_ready(&self) -> Result<bool, Error> {
        let below = self.read(|state| {
            let keys = state.subjects.values().filter(|known| self.is_instance(known)).map(|known| known.subject.key.clone());
            keys.collect::<Vec<_>>()
        });
        for key in below {
            if self.writer.read(&key).await?.is_some_and(|live| !says_ready(&live)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An instance below ours; one that is gone does not count.
    fn is_instance(&self, known: &SubjectState) -> bool {
        known.subject.parent.is_some()
            && known.health.is_some_and(|health| health != Health::NotFound)
            && self.instance_kinds.contains(&known.subject.key.gvk.group_kind())
    }

    /// What the loop wrote of a definition as it is, the status of its condition Ready; `None` while that is about an earlier generation.
    async fn verdict_now(&self, key: &ObjectKey) -> Result<Option<String>, Error> {
        let Some(live) = self.writer.read(key).await? else { return Ok(None) };
        let ready = ready_condition(&live).filter(|ready| is_current(ready, &live));
        Ok(ready.and_then(|ready| ready["status"].as_str()).map(str::to_owned))
    }

    /// Ends the run by a deadline that passed, or by something that failed for longer than its grace. Whether a failure is not counted,
    /// because it is a definition's as it was before this run wrote it, and the loop has not looked at it again.
    async fn give_up(&self, now: Timestamp) -> Result<bool, Error> {
        let failed = self.read(|state| {
            let due = |known: &&SubjectState| self.due(known).is_some_and(|due| due <= now);
            let told = |known: &SubjectState| (known.subject.key.clone(), format!("{} failed: {}", known.subject, known.why()));
            state.subjects.values().filter(due).map(told).collect::<Vec<_>>()
        });
        let mut is_old_news = false;
        for (key, why) in failed {
            if self.is_definition(&key) && self.verdict_now(&key).await?.as_deref() != Some("False") {
                is_old_news = true;
            } else {
                return Err(Error::Failed(why));
            }
        }
        if let Some(at) = self.stuck()
            && later(at, QUIET) <= now
        {
            return Err(Error::Failed(self.read(refusals).join("\n")));
        }
        if self.writer.deadline.left(self.writer.ports.log.clock().as_ref()).is_zero() {
            return Err(Error::Deadline(self.unfinished(now)));
        }
        Ok(is_old_news)
    }

    /// Since when nothing has moved and nothing is left that could, but for what the server refuses.
    fn stuck(&self) -> Option<Timestamp> {
        self.read(|state| if is_stuck(state, &self.instance_kinds) { state.changed } else { None })
    }

    fn is_definition(&self, key: &ObjectKey) -> bool {
        self.planned.built.iter().any(|built| built.key == *key)
    }

    /// When a failed object counts as failed for good. A definition that is refused stays so.
    fn due(&self, known: &SubjectState) -> Option<Timestamp> {
        let settings = self.writer.settings;
        if known.health == Some(Health::Failed) && self.is_definition(&known.subject.key) {
            return Some(known.since);
        }
        let kind = known.subject.key.gvk.group_kind().to_string();
        let grace = settings.grace_by_kind.get(&kind).copied().unwrap_or(settings.grace);
        (known.health == Some(Health::Failed)).then(|| later(known.since, grace))
    }

    /// Until the next thing that time alone brings about.
    fn pause(&self, now: Timestamp) -> Duration {
        let heartbeat = later(self.quiet_since(), self.writer.settings.heartbeat);
        let due = self.read(|state| state.subjects.values().filter_map(|known| self.due(known)).min());
        let stuck = self.stuck().map(|at| later(at, QUIET));
        let next = [Some(heartbeat), due, stuck, Some(self.writer.deadline.at)].into_iter().flatten().min().unwrap_or(heartbeat);
        // A clock with coarse steps must not make this spin.
        Duration::try_from(next.duration_since(now)).unwrap_or_default().max(Duration::from_millis(1))
    }

    fn quiet_since(&self) -> Timestamp {
        self.read(|state| state.changed).map_or(self.last_heartbeat, |changed| changed.max(self.last_heartbeat))
    }

    fn beat(&mut self, now: Timestamp) {
        if later(self.quiet_since(), self.writer.settings.heartbeat) <= now {
            self.last_heartbeat = now;
            let heartbeat = self.read(|state| state.heartbeat(now));
            self.writer.ports.log.record(heartbeat);
        }
    }

    /// The observer ended. That is no verdict: what is known decides.
    async fn unwatched(&mut self) -> Result<(), Error> {
        self.advance_stages();
        if self.is_ready().await? {
            return Ok(());
        }
        Err(Error::Loop("it stopped watching before the platform was ready".into()))
    }

    /// Every object that is not ready, with its root cause.
    fn unfinished(&self, now: Timestamp) -> String {
        let waits = self.read(|state| state.waits(now));
        let more = waits.len().saturating_sub(NAMED);
        let mut lines = vec![format!("not ready within {}", self.writer.deadline.total())];
        lines.extend(waits.iter().take(NAMED).map(|wait| {
            let line = format!("  {} {}  {}", plinth_run::health::word(wait.health), wait.subject, wait.message);
            line.trim_end().to_owned()
        }));
        if more > 0 {
            lines.push(format!("  and {more} more"));
        }
        lines.join("\n")
    }

    /// Begins stages whose objects were touched and ends those whose objects are all ready, in order.
    fn advance_stages(&mut self) {
        while let Some(stage) = self.open.first().copied() {
            let (touched, ready) = self.read(|state| progress(stage, state));
            if touched || !self.started.is_empty() {
                self.begin(stage.id);
            }
            if !ready {
                return;
            }
            steps::finish(self.writer, stage.id, Outcome::Done);
            self.open.remove(0);
        }
    }

    fn begin(&mut self, stage: StageId) {
        let own = self.planned.plan.stage_of(&self.planned.instance) == Some(stage);
        if !own && self.started.insert(stage) {
            steps::start(self.planned, self.writer, stage);
        }
    }
}

/// Whether something is refused, and everything else that is not ready waits for that. Instances are as their children are.
fn is_stuck(state: &RunState, instance_kinds: &BTreeSet<GroupKind>) -> bool {
    let waits_for_refused =
        |known: &&SubjectState| is_refused(known) || known.causes.last().is_some_and(|cause| cause.reason == health::REFUSED);
    // What the run wrote itself is judged by nobody.
    let is_own = |known: &SubjectState| known.health.is_none() && known.subject.parent.is_none();
    let is_well = |known: &&SubjectState| known.missing.is_empty() && (known.is_gone() || is_done(known) || is_own(known));
    let mut open = state.subjects.values().filter(|known| !instance_kinds.contains(&known.subject.key.gvk.group_kind()));
    state.subjects.values().any(is_refused) && open.all(|known| is_well(&known) || waits_for_refused(&known))
}

fn is_refused(known: &SubjectState) -> bool {
    known.health == Some(Health::Failed) && known.reason == health::REFUSED
}

fn refusals(state: &RunState) -> Vec<String> {
    let refused = state.subjects.values().filter(|known| is_refused(known)).take(NAMED);
    refused.map(|known| format!("{} failed: {}", known.subject, known.why())).collect()
}

/// Whether any object of a stage is known, and whether all of them are ready.
fn progress(stage: &Stage, state: &RunState) -> (bool, bool) {
    let find = |change: &plinth_run::Change| -> Option<&SubjectState> {
        // Where a name was not known when the plan was made, the place in the graph tells.
        state.subjects.get(&change.subject.key).or_else(|| {
            let same = |known: &&SubjectState| {
                known.subject.node == change.subject.node && known.subject.parent == change.subject.parent
            };
            state.subjects.values().find(same)
        })
    };
    let known: Vec<Option<&SubjectState>> = stage.changes.iter().map(find).collect();
    let touched = known.iter().flatten().any(|known| known.action.is_some() || known.health.is_some());
    (touched, known.iter().all(|known| known.is_some_and(is_done)))
}

/// Ready, or nothing that could get ready. A proof that an object needs no write says nothing of how it is.
fn is_done(known: &SubjectState) -> bool {
    let is_let_be = |reason: &SkipReason| match reason {
        SkipReason::NotIncluded | SkipReason::Gone | SkipReason::Foreign { .. } => true,
        SkipReason::Proven { .. } | SkipReason::Unchanged => false,
    };
    known.health == Some(Health::Current) || known.skipped.as_ref().is_some_and(is_let_be)
}

/// Whether the instance itself says that it is ready, about the generation that it has.
pub(crate) fn says_ready(instance: &Object) -> bool {
    let holds = |condition: &Value| condition["status"] == "True" && is_current(condition, instance);
    !instance.is_terminating() && ready_condition(instance).is_some_and(holds)
}

pub(super) fn ready_condition(object: &Object) -> Option<&Value> {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array)?;
    conditions.iter().find(|condition| condition["type"] == "Ready")
}

/// Whether a condition is about the generation that its object has.
fn is_current(condition: &Value, object: &Object) -> bool {
    condition["observedGeneration"].as_i64().unwrap_or(object.generation()) >= object.generation()
}

fn later(at: Timestamp, duration: Duration) -> Timestamp {
    let step = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    at.checked_add(step).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use plinth_run::{Action, Cause, Change, Event, RunId, Subject, event::VERSION};

    use super::*;
    use crate::testing::key;

    /// Whether a stage of one object is done after these events.
    fn is_over(events: Vec<EventKind>) -> bool {
        let event = |(seq, kind)| Event { v: VERSION, run: RunId("r".into()), seq, at: Timestamp::UNIX_EPOCH, kind };
        let events: Vec<Event> = (1..).zip(events).map(event).collect();
        let change = Change {
            subject: subject(),
            action: Action::Unchanged,
            by: By::Loop,
            digest: String::new(),
            resource_version: None,
            fields: Vec::new(),
            note: None,
        };
        let stage = Stage { id: StageId(1), title: String::new(), changes: vec![change], until: String::new() };
        progress(&stage, &RunState::replay(&events)).1
    }

    fn subject() -> Subject {
        Subject::root(key("v1", "ConfigMap", Some("default"), "a"))
    }

    #[test]
    fn what_is_refused_ends_a_run_once_nothing_else_can_go_on() {
        let of = |name: &str, health, reason: &str, causes: &[&str]| EventKind::HealthChanged {
            subject: Subject::root(key("v1", "ConfigMap", Some("default"), name)),
            health,
            reason: reason.into(),
            message: String::new(),
            causes: causes
                .iter()
                .map(|reason| Cause { subject: None, reason: (*reason).into(), message: String::new() })
                .collect(),
        };
        let refused = || of("a", Health::Failed, health::REFUSED, &[]);
        let is_stuck = |events: Vec<EventKind>| {
            let event = |(seq, kind)| Event { v: VERSION, run: RunId("r".into()), seq, at: Timestamp::UNIX_EPOCH, kind };
            let events: Vec<Event> = (1..).zip(events).map(event).collect();
            super::is_stuck(&RunState::replay(&events), &BTreeSet::new())
        };
        assert!(is_stuck(vec![refused()]));
        assert!(is_stuck(vec![refused(), of("b", Health::Waiting, "Pending", &["Other", health::REFUSED])]));
        assert!(is_stuck(vec![refused(), of("b", Health::Current, "Ready", &[])]));
        assert!(!is_stuck(vec![refused(), of("b", Health::Waiting, "Deferred", &["NotServed"])]));
        assert!(!is_stuck(vec![refused(), of("b", Health::InProgress, "NotReady", &[])]));
        assert!(!is_stuck(vec![of("a", Health::Failed, "Failed", &[])]));
    }

    #[test]
    fn a_stage_is_done_when_its_objects_are_ready_and_not_when_they_need_no_write() {
        let skipped = |reason| EventKind::ChangeSkipped { subject: subject(), reason };
        let proven = || skipped(SkipReason::Proven { digest: "d".into(), generation: 1 });
        let health = |health| EventKind::HealthChanged {
            subject: subject(),
            health,
            reason: String::new(),
            message: String::new(),
            causes: Vec::new(),
        };
        assert!(!is_over(vec![proven()]));
        assert!(!is_over(vec![proven(), health(Health::InProgress)]));
        assert!(is_over(vec![proven(), health(Health::Current)]));
        assert!(is_over(vec![skipped(SkipReason::NotIncluded)]));
    }
}
