//! What happened, newest last: the run's own events and those of the API servers, merged by time. Bounded.

use std::collections::VecDeque;

use jiff::Timestamp;
use plinth_run::{CheckVerdict, Event, EventKind, Health, Outcome, Subject, duration, present::lines};

use crate::{message::ClusterEvent, rows::waits_for, theme::Role};

/// How many entries are kept; the journal has all of them.
pub const MAX_ENTRIES: usize = 2000;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// A number of its own.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// The object, where it is about one.
    pub subject: Option<Subject>,
    /// One word.
    pub word: String,
    /// What it is about where that is no object.
    pub title: String,
    /// Reason and message.
    pub detail: String,
    /// How it is drawn.
    pub role: Role,
}

/// The newest entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    entries: VecDeque<Entry>,
    next: u64,
}

impl Log {
    /// Takes an event of the run; progress and heartbeats are left out.
    pub fn take(&mut self, event: &Event) {
        if let Some(told) = Told::of(&event.kind) {
            self.insert(event.at, told);
        }
    }

    /// Takes an event of an API server; one that is known already is not taken again.
    pub fn take_cluster(&mut self, event: &ClusterEvent) {
        let told = Told {
            subject: Some(Subject::root(event.key.clone())),
            word: if event.warning { "warning" } else { "event" },
            title: String::new(),
            detail: joined(&event.reason, &event.message),
            role: if event.warning { Role::Waiting } else { Role::Plain },
        };
        let is_known = self.entries.iter().any(|entry| {
            entry.at == event.at
                && entry.detail == told.detail
                && entry.subject.as_ref().is_some_and(|subject| subject.key == event.key)
        });
        if !is_known {
            self.insert(event.at, told);
        }
    }

    /// Oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    fn insert(&mut self, at: Timestamp, told: Told) {
        let Told { subject, word, title, detail, role } = told;
        let entry = Entry { seq: self.next, at, subject, word: word.to_owned(), title, detail, role };
        self.next += 1;
        // Almost always the end: a run's events come in order.
        let place = self.entries.iter().rposition(|known| known.at <= at).map_or(0, |before| before + 1);
        self.entries.insert(place, entry);
        if self.entries.len() > MAX_ENTRIES {
            self.entries.pop_front();
        }
    }
}

/// An event in the columns of a row.
struct Told {
    subject: Option<Subject>,
    word: &'static str,
    title: String,
    detail: String,
    role: Role,
}

impl Told {
    fn of(kind: &EventKind) -> Option<Self> {
        let about = |subject: &Subject, word, detail: String, role| {
            Some(Self { subject: Some(subject.clone()), word, title: String::new(), detail, role })
        };
        let plain = |word, title: String, detail: String, role| Some(Self { subject: None, word, title, detail, role });
        match kind {
            EventKind::RunStarted { platform, source, .. } => plain("started", platform.clone(), source.clone(), Role::Heading),
            EventKind::Approved { by } => plain("approved", by.clone(), String::new(), Role::Plain),
            EventKind::StageStarted { stage, title } => plain("begins", format!("stage {stage}"), title.clone(), Role::Heading),
            EventKind::StageFinished { stage, outcome } => {
                plain(outcome.word(), format!("stage {stage}"), String::new(), Role::Heading)
            }
            EventKind::CheckFinished { id, verdict, message, .. } if *verdict != CheckVerdict::Passed => {
                plain("check", id.to_string(), message.clone(), Role::Waiting)
            }
            EventKind::ChangeApplied { subject, action, .. } => about(subject, action.done(), String::new(), Role::Plain),
            EventKind::ChangeSkipped { subject, reason } => about(subject, "skipped", lines::skipped(reason), Role::Dim),
            EventKind::ChangeDeferred { subject, missing, expected_from } if !missing.is_empty() => {
                about(subject, "deferred", waits_for(missing, expected_from.as_deref()), Role::Waiting)
            }
            EventKind::SchemaServed { gvk } => plain("served", gvk.to_string(), String::new(), Role::Ready),
            EventKind::HealthChanged { subject, health, reason, message, .. } => {
                about(subject, plinth_run::health::word(*health), joined(reason, message), role_of(*health))
            }
            EventKind::Retry { what, message, attempt, next_in_ms } => {
                let next = duration::precise(jiff::SignedDuration::from_millis(i64::try_from(*next_in_ms).unwrap_or(i64::MAX)));
                plain("retry", what.clone(), format!("{message} (attempt {attempt}, next in {next})"), Role::Waiting)
            }
            EventKind::Warning { subject, reason, message } => Some(Self {
                subject: subject.clone(),
                word: "warning",
                title: String::new(),
                detail: joined(reason, message),
                role: Role::Waiting,
            }),
            EventKind::RunFinished { outcome, message, .. } => {
                plain(outcome.word(), "run".to_owned(), message.clone(), Role::Heading)
            }
            _ => None,
        }
    }
}

/// How a line about an event is drawn; its end by how it ended.
pub fn role(kind: &EventKind) -> Role {
    match kind {
        EventKind::RunFinished { outcome, .. } | EventKind::StageFinished { outcome, .. } => match outcome {
            Outcome::Done => Role::Ready,
            Outcome::Changes | Outcome::Deadline | Outcome::Interrupted => Role::Waiting,
            Outcome::Failed | Outcome::Refused | Outcome::Usage | Outcome::Internal => Role::Failed,
        },
        EventKind::CheckFinished { verdict, .. } => match verdict {
            CheckVerdict::Passed => Role::Ready,
            CheckVerdict::Warned => Role::Waiting,
            CheckVerdict::Failed => Role::Failed,
        },
        EventKind::Heartbeat { .. } => Role::Dim,
        kind => Told::of(kind).map_or(Role::Plain, |told| told.role),
    }
}

/// How a health is drawn.
pub fn role_of(health: Health) -> Role {
    match health {
        Health::Current => Role::Ready,
        Health::Failed => Role::Failed,
        Health::InProgress | Health::Terminating => Role::Progressing,
        Health::Waiting | Health::NotFound | Health::Unknown => Role::Waiting,
    }
}

/// Reason and message in one.
pub(crate) fn joined(reason: &str, message: &str) -> String {
    [reason, message].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ")
}
