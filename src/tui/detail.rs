//! One object from near: what the run knows of it, and what was fetched.

use jiff::Timestamp;
use plinth_api::{Object, ObjectKey};
use plinth_run::{RunState, SubjectState, duration, health, inspect};

use crate::{
    effect::{Ask, What},
    message::{Answer, ClusterEvent, Fetched},
    planes::Planes,
    why,
};

/// What is shown of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    /// What the run knows, and the object described.
    Describe,
    /// The object as YAML.
    Yaml,
    /// What differs from what is wanted.
    Diff,
    /// The server's events about it.
    Events,
    /// The log of its worst pod.
    Logs,
}

impl Tab {
    /// All of them with their titles.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Describe, "describe"),
        (Self::Yaml, "yaml"),
        (Self::Diff, "diff"),
        (Self::Events, "events"),
        (Self::Logs, "logs"),
    ];

    /// What has to be fetched for it.
    fn needs(self) -> What {
        match self {
            Self::Describe | Self::Yaml | Self::Diff => What::Object,
            Self::Events => What::Events,
            Self::Logs => What::Logs,
        }
    }
}

/// An object that is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// The object.
    pub key: ObjectKey,
    /// What of it is shown.
    pub tab: Tab,
    /// First visible line.
    pub top: usize,
    /// What is shown; made by [`Detail::refresh`].
    pub lines: Vec<String>,
    object: Option<Result<Found, String>>,
    events: Option<Result<Vec<ClusterEvent>, String>>,
    logs: Option<Result<(String, Vec<String>), String>>,
}

/// The object as it is and as it is wanted, without secrets.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    live: Option<Object>,
    desired: Option<Object>,
    /// Made while the secrets were still there, so that a secret that differs is named.
    differences: Vec<inspect::Difference>,
}

impl Detail {
    /// Opens an object.
    pub fn open(key: ObjectKey, tab: Tab) -> Self {
        Self { key, tab, top: 0, lines: Vec::new(), object: None, events: None, logs: None }
    }

    /// The question that its tab needs an answer to.
    pub fn ask(&self) -> Ask {
        Ask { key: self.key.clone(), what: self.tab.needs() }
    }

    /// Takes an answer. One about another object comes too late and is dropped.
    pub fn take(&mut self, fetched: Fetched) {
        let Fetched { ask, answer } = fetched;
        if ask.key != self.key {
            return;
        }
        match (ask.what, answer) {
            (_, Ok(Answer::Object { live, desired })) => self.object = Some(Ok(Found::of(live.as_ref(), desired.as_ref()))),
            (_, Ok(Answer::Events(events))) => self.events = Some(Ok(events)),
            (_, Ok(Answer::Logs { of, lines })) => self.logs = Some(Ok((of, lines))),
            (What::Object, Err(why)) => self.object = Some(Err(why)),
            (What::Events, Err(why)) => self.events = Some(Err(why)),
            (What::Logs, Err(why)) => self.logs = Some(Err(why)),
        }
    }

    /// Makes its lines anew; `height` is how many of them can be seen.
    pub fn refresh(&mut self, run: &RunState, planes: &Planes, now: Timestamp, height: usize) {
        self.lines = match self.tab {
            Tab::Describe => self.describe(run, planes, now),
            Tab::Yaml => self.with_object(|found| found.live.as_ref().map(|live| inspect::yaml(live, false))),
            Tab::Diff => self.with_object(Found::diff),
            Tab::Events => self.events(now),
            Tab::Logs => self.logs(),
        };
        // Long lines are broken, so that half a page may be all there is room for.
        self.top = self.top.min(self.lines.len().saturating_sub(height.max(2) / 2));
    }

    fn describe(&self, run: &RunState, planes: &Planes, now: Timestamp) -> Vec<String> {
        let mut lines = run.subjects.get(&self.key).map(|known| of_the_run(known, run, planes, now)).unwrap_or_default();
        lines.push(String::new());
        lines.extend(self.with_object(|found| found.live.as_ref().map(|live| inspect::describe(live, now))));
        lines
    }

    fn with_object(&self, show: impl FnOnce(&Found) -> Option<Vec<String>>) -> Vec<String> {
        match &self.object {
            None => waiting(),
            Some(Err(why)) => vec![why.clone()],
            Some(Ok(Found { live: None, .. })) => vec!["it does not exist".to_owned()],
            Some(Ok(found)) => {
                show(found).unwrap_or_else(|| vec!["what is wanted is not known here: another writer makes it".to_owned()])
            }
        }
    }

    fn events(&self, now: Timestamp) -> Vec<String> {
        match &self.events {
            None => waiting(),
            Some(Err(why)) => vec![why.clone()],
            Some(Ok(events)) if events.is_empty() => vec!["no events; a server keeps them for an hour".to_owned()],
            Some(Ok(events)) => {
                let mut events: Vec<&ClusterEvent> = events.iter().collect();
                events.sort_by_key(|event| event.at);
                events.into_iter().map(|event| line_of(event, now)).collect()
            }
        }
    }

    fn logs(&self) -> Vec<String> {
        match &self.logs {
            None => waiting(),
            Some(Err(why)) => vec![why.clone()],
            Some(Ok((of, lines))) => {
                std::iter::once(format!("last {} lines of {of}", lines.len())).chain(lines.clone()).collect()
            }
        }
    }
}

impl Found {
    fn of(live: Option<&Object>, desired: Option<&Object>) -> Self {
        let differences = match (live, desired) {
            (Some(live), Some(desired)) => inspect::differences(live, desired),
            _ => Vec::new(),
        };
        Self { live: live.map(inspect::masked), desired: desired.map(inspect::masked), differences }
    }

    /// `None` where it is not known how it is wanted.
    fn diff(&self) -> Option<Vec<String>> {
        self.desired.as_ref()?;
        let leaves = self.live.as_ref().is_some_and(Object::is_terminating);
        let leaves = leaves.then(|| "it is being deleted".to_owned());
        if self.differences.is_empty() {
            return Some(leaves.into_iter().chain(["as it is wanted".to_owned()]).collect());
        }
        let lines = self.differences.iter().flat_map(|found| {
            let live = found.live.as_ref().map_or_else(|| "  - (nothing)".to_owned(), |live| format!("  - {live}"));
            [found.path.clone(), live, format!("  + {}", found.desired)]
        });
        Some(leaves.into_iter().chain(["- is there, + is wanted".to_owned()]).chain(lines).collect())
    }
}

fn waiting() -> Vec<String> {
    vec!["asking the server …".to_owned()]
}

fn line_of(event: &ClusterEvent, now: Timestamp) -> String {
    let word = if event.warning { "warning" } else { "event" };
    format!("{word:<8} {:>7}  {}: {}", duration::short(now.duration_since(event.at)), event.reason, event.message)
}

/// What the run's events say about an object.
fn of_the_run(known: &SubjectState, run: &RunState, planes: &Planes, now: Timestamp) -> Vec<String> {
    let subject = &known.subject;
    let mut lines = vec![format!("subject     {subject}"), format!("plane       {}", subject.place())];
    if let (Some(node), Some(parent)) = (&subject.node, &subject.parent) {
        lines.push(format!("made by     node {node} of {parent}"));
    }
    if let Some(state) = known.health {
        let since = duration::short(now.duration_since(known.since));
        lines.push(format!("state       {} for {since}  {}", health::word(state), known.reason));
    }
    if let Some(action) = known.action {
        lines.push(format!("this run    {}", action.done()));
    }
    if let Some(reason) = &known.skipped {
        lines.push(format!("skipped     {}", plinth_run::present::lines::skipped(reason)));
    }
    if let Some(applied) = run.applied.get(&subject.key) {
        lines.push(format!("proven      {} at generation {}", applied.digest, applied.generation));
    }
    lines.extend(why::chain(known, run, planes).into_iter().map(|line| format!("why         {line}")));
    lines
}
