//! The controller's run, by its journal in the cluster and by its Lease. Both are watched, each by its name; nothing is polled.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use plinth_api::{Object, ObjectKey};
use plinth_bootstrap::rights;
use plinth_cluster::watch::{One, Sight};
use plinth_controller::journal::{self, News, Recorded};
use plinth_engine::ports::ReadError;
use plinth_manager::lease::LeaseRecord;
use plinth_run::{Outcome, RunState, duration};
use tokio::time::Instant;

use super::{Heard, INSTEAD};
use crate::{
    exit::Failure,
    verbs::cannot_read,
    wire::{self, Host},
};

/// A followed run.
pub(super) struct InCluster {
    journal: One,
    lease: One,
    called: String,
    /// What was heard so far.
    known: RunState,
    leader: Leader,
    /// What is said before anything else.
    waiting: VecDeque<Heard>,
    /// What cannot be read was said once.
    has_said: bool,
}

/// Who writes, as the Lease says.
#[derive(Debug, Default)]
struct Leader {
    record: LeaseRecord,
    /// When it must have been renewed again, by our clock alone; `None` where that is not known, or was said.
    due: Option<Instant>,
}

impl InCluster {
    /// Finds the run that a controller leads. Where there is none, `nowhere` says that none goes on here either.
    pub(super) async fn find(asked: Option<&str>, host: &Host, nowhere: Failure) -> Result<Self, Failure> {
        let follow = |key: ObjectKey| One::follow(Arc::clone(&host.0), key);
        let (mut journal, lease) = (follow(journal::key()), follow(wire::lease_key()));
        let recorded = match journal.next().await {
            Sight::Failing(error) => return Err(unreadable(&error, &host.1)),
            Sight::Present(object) => Recorded::read(&object).ok_or_else(|| elsewhere(&nowhere, &broken(&host.1)))?,
            Sight::Absent | Sight::Unknown => {
                return Err(elsewhere(&nowhere, &format!("no controller has a journal on {}", host.1)));
            }
        };
        if let Some(asked) = asked.filter(|asked| *asked != recorded.state.platform) {
            let other = format!("the controller on {} keeps the platform {}, not {asked}", host.1, recorded.state.platform);
            return Err(elsewhere(&nowhere, &other));
        }
        let mut run = Self {
            journal,
            lease,
            called: host.1.clone(),
            known: RunState::default(),
            leader: Leader::default(),
            waiting: VecDeque::new(),
            has_said: false,
        };
        match run.lease.next().await {
            Sight::Failing(error) => {
                run.note(format!("whether the controller is alive is not known: {error}"));
            }
            Sight::Present(object) => run.led(&LeaseRecord::read(&object), &nowhere)?,
            Sight::Absent | Sight::Unknown => return Err(elsewhere(&nowhere, &format!("nobody leads on {}", run.called))),
        }
        if recorded.state.finished.is_some() {
            // Its leader has begun another one, and says so in a moment.
            run.known = recorded.state;
        } else {
            run.hear(&recorded);
        }
        Ok(run)
    }

    /// Waits until something is heard.
    pub(super) async fn next(&mut self) -> Result<Heard, Failure> {
        loop {
            if let Some(heard) = self.waiting.pop_front() {
                return Ok(heard);
            }
            let overdue = self.leader.due.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                sight = self.journal.next() => self.read(sight)?,
                sight = self.lease.next() => self.renewed(&sight),
                () = tokio::time::sleep_until(overdue), if self.leader.due.is_some() => self.silent(),
            }
        }
    }

    fn read(&mut self, sight: Sight) -> Result<(), Failure> {
        match sight {
            Sight::Present(object) => self.changed(&object),
            Sight::Absent => {
                let gone = format!("the controller's journal on {} was deleted, and the platform probably with it", self.called);
                return Err(Failure::new(Outcome::Interrupted, gone).hint("plinth status says what is there"));
            }
            Sight::Failing(error) if !self.has_said => {
                self.has_said = true;
                self.note(format!("{} is not heard and will be asked again: {error}", self.called));
            }
            Sight::Failing(_) | Sight::Unknown => {}
        }
        Ok(())
    }

    fn changed(&mut self, object: &Object) {
        if std::mem::take(&mut self.has_said) {
            self.note(format!("{} is heard again", self.called));
        }
        match Recorded::read(object) {
            Some(recorded) => self.hear(&recorded),
            None => self.note(broken(&self.called)),
        }
    }

    fn hear(&mut self, recorded: &Recorded) {
        let News { events, lost } = recorded.since(&self.known);
        if lost > 0 {
            let noun = if lost == 1 { "event" } else { "events" };
            self.note(format!("{lost} {noun} not kept in the cluster; what they led to is told instead"));
        }
        if !events.is_empty() {
            self.waiting.push_back(Heard::Events(events));
        }
        self.known = recorded.state.clone();
    }

    /// Who leads when the run is found: only a controller's run is in the cluster.
    fn led(&mut self, record: &LeaseRecord, nowhere: &Failure) -> Result<(), Failure> {
        if record.holder.is_empty() {
            return Err(elsewhere(nowhere, &format!("the last controller on {} has ended, and none leads", self.called)));
        }
        if !record.yields {
            let other = format!("{} writes to {} now, and its journal is on its own machine", record.holder, self.called);
            return Err(elsewhere(nowhere, &other).hint("plinth attach follows it there"));
        }
        let age = record.renewed.map_or(SignedDuration::ZERO, |at| Timestamp::now().duration_since(at).max(SignedDuration::ZERO));
        let late = if age > signed(record.duration) { ", and may be dead" } else { "" };
        self.note(format!("controller {} leads; it renewed its Lease {} ago{late}", record.holder, duration::short(age)));
        self.leader.take(record.clone());
        Ok(())
    }

    fn renewed(&mut self, sight: &Sight) {
        let record = match sight {
            Sight::Present(object) => LeaseRecord::read(object),
            Sight::Absent => LeaseRecord::default(),
            // Of a server that is away nobody knows who leads.
            Sight::Failing(_) | Sight::Unknown => return self.leader.due = None,
        };
        let (before, was_said) = (self.leader.record.holder.clone(), self.leader.due.is_none());
        if record == self.leader.record {
            return;
        }
        match record.holder.as_str() {
            "" if before.is_empty() => {}
            "" => self.note(format!("{before} gave its Lease back; nobody leads")),
            holder if holder != before => self.note(format!("{holder} leads now")),
            holder if was_said => self.note(format!("{holder} renews its Lease again")),
            _ => {}
        }
        self.leader.take(record);
    }

    /// Neither renewed nor given back in time.
    fn silent(&mut self) {
        self.leader.due = None;
        let LeaseRecord { holder, duration, .. } = &self.leader.record;
        let since = duration::short(signed(*duration));
        self.note(format!(
            "{holder} has not renewed its Lease for {since} and may be dead; where another controller runs, it goes on \
             (kubectl -n {} get deployment {})",
            rights::NAMESPACE,
            rights::NAME
        ));
    }

    fn note(&mut self, text: String) {
        self.waiting.push_back(Heard::Note(text));
    }
}

impl Leader {
    fn take(&mut self, record: LeaseRecord) {
        self.due = (!record.holder.is_empty()).then(|| Instant::now() + record.duration);
        self.record = record;
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// No run goes on, neither here nor there.
fn elsewhere(nowhere: &Failure, there: &str) -> Failure {
    Failure::refused(format!("{}; {there}", nowhere.message)).hint(nowhere.hint.as_deref().unwrap_or(INSTEAD))
}

fn broken(called: &str) -> String {
    format!("the controller's journal on {called} cannot be read; another version of plinth may have written it")
}

/// The journal cannot be read at all.
fn unreadable(error: &ReadError, called: &str) -> Failure {
    let hint = match error {
        ReadError::Forbidden { .. } => format!(
            "plinth attach takes list and watch of configmaps/{} and leases/{} in {}",
            rights::JOURNAL,
            rights::NAME,
            rights::NAMESPACE
        ),
        ReadError::Unavailable(_) | ReadError::Unauthenticated(_) | ReadError::NotServed(_) => {
            "--kubeconfig and --context choose a cluster; plinth replay FILE shows a run without one".to_owned()
        }
    };
    cannot_read("the controller's journal", error, called).hint(hint)
}
