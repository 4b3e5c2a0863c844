//! Watching: what a stream begins with, and how it goes on.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, stream};
use plinth_api::Object;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::{
    kinds::{Registry, Served},
    options,
    problem::Problem,
    read::{filter, present},
    state::{Ask, Reply, State, shape},
};
use crate::embedded::{
    Shared,
    filter::Filter,
    store::{Event, EventKind, Resource},
};

/// Time between bookmarks.
const BOOKMARK: Duration = Duration::from_mins(1);
/// A watch without a timeout ends after this, as those of API servers do.
const LONGEST: Duration = Duration::from_mins(45);

/// A watch that was asked for.
pub struct WatchPlan {
    served: Arc<Served>,
    /// Whether clusters may differ in its definition.
    mixed: bool,
    /// Whether it is served because a CRD defines it, and is over when that does so no more.
    defined: bool,
    resource: Resource,
    filter: Filter,
    from: u64,
    first: Vec<Line>,
    bookmarks: bool,
    timeout: Duration,
}

impl State {
    pub(super) fn watch(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        let query = &ask.call.query;
        let filter = filter(ask)?;
        let asked = query.some("resourceVersion").unwrap_or("0");
        let from: u64 = asked.parse().map_err(|_| Problem::unmergeable(options::bad_version(asked)))?;
        let initial = query.is("sendInitialEvents");
        let bookmarks = query.is("allowWatchBookmarks");
        let mut plan = WatchPlan {
            served: Arc::clone(&ask.served),
            mixed: ask.is_mixed(),
            defined: !ask.served.builtin && ask.way.kinds.is_none(),
            resource: ask.resource(),
            filter,
            from: self.store.version(),
            first: Vec::new(),
            bookmarks,
            timeout: query
                .some("timeoutSeconds")
                .and_then(|text| text.parse().ok())
                .map_or(LONGEST, Duration::from_secs)
                .min(LONGEST),
        };
        if from == 0 || initial {
            let page = self.store.page(&plan.resource, &plan.filter, None, usize::MAX);
            let items = page.map(|page| page.items).unwrap_or_default();
            plan.first =
                items.iter().map(|(place, object)| line("ADDED", present(object, &ask.shape(&self.registry, place)))).collect();
        } else {
            plan.from = from;
        }
        if initial && bookmarks {
            let annotations = json!({"k8s.io/initial-events-end": "true"});
            plan.first.push(plan.bookmark(&annotations));
        }
        Ok(Reply::Watch(Box::new(plan)))
    }
}

/// One event of a stream.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The object, which a bookmark has little of; a `Status` where something is wrong.
    pub object: Object,
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

fn line(kind: &'static str, object: Object) -> Line {
    Line { object, kind }
}

impl WatchPlan {
    fn bookmark(&self, annotations: &Value) -> Line {
        let mut object = json!({"kind": self.served.kind, "apiVersion": self.served.api_version(), "metadata": {"resourceVersion": self.from.to_string()}});
        if annotations.is_object() {
            object["metadata"]["annotations"] = annotations.clone();
        }
        line("BOOKMARK", Object::from_value(object).unwrap_or_default())
    }

    /// Whether nobody serves what is watched any more.
    fn is_over(&self, registry: &Registry) -> bool {
        let Served { group, version, plural, .. } = &*self.served;
        self.defined && registry.find(&self.filter.reach, group, version, plural).is_none()
    }

    fn line(&self, event: &Event, registry: &Registry) -> Line {
        let kind = match event.kind {
            EventKind::Added => "ADDED",
            EventKind::Modified => "MODIFIED",
            EventKind::Deleted => "DELETED",
        };
        line(kind, present(&event.object, &shape(registry, &event.place, &self.served, self.mixed)))
    }
}

/// A watch under way.
struct Running {
    shared: Arc<Shared>,
    plan: WatchPlan,
    deadline: Instant,
    bookmark: Instant,
    /// How often watches had been cut when this one began.
    cuts: u64,
    /// How often kinds had been defined when it last looked at its own.
    changes: u64,
    ended: bool,
}

/// The lines of a watch, until its time is over, its versions are forgotten, or the control plane is gone.
pub(crate) fn lines(shared: Arc<Shared>, plan: WatchPlan) -> impl Stream<Item = Vec<Line>> + Send {
    let now = Instant::now();
    let (cuts, changes) = {
        let state = shared.lock();
        (state.faults.cuts, state.registry.changes())
    };
    let running = Running { shared, cuts, changes, deadline: now + plan.timeout, bookmark: now + BOOKMARK, plan, ended: false };
    stream::unfold(running, async |mut running| Some((running.next().await?, running)))
}

/// As text, each on a line of its own.
pub(crate) fn text(lines: &[Line]) -> Bytes {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line).expect("JSON values always serialize");
        text.push(b'\n');
    }
    text.into()
}

impl Running {
    async fn next(&mut self) -> Option<Vec<Line>> {
        if !self.plan.first.is_empty() {
            return Some(std::mem::take(&mut self.plan.first));
        }
        while !self.ended {
            let shared = Arc::clone(&self.shared);
            let wake = self.deadline.min(self.bookmark);
            let news = shared.versions().until(|| {
                let lines = self.news();
                (self.ended || !lines.is_empty()).then_some(lines)
            });
            tokio::select! {
                biased;
                lines = news => return (!lines.is_empty()).then_some(lines),
                () = sleep_until(wake) => {
                    self.ended = Instant::now() >= self.deadline;
                    self.bookmark = Instant::now() + BOOKMARK;
                    if self.plan.bookmarks {
                        return Some(vec![self.plan.bookmark(&Value::Null)]);
                    }
                }
            }
        }
        None
    }

    fn news(&mut self) -> Vec<Line> {
        let state = self.shared.lock();
        if state.faults.cuts != self.cuts {
            self.ended = true;
            return Vec::new();
        }
        match state.store.events(&self.plan.resource, &self.plan.filter, self.plan.from) {
            Ok(events) => {
                self.plan.from = self.plan.from.max(state.store.version());
                let changes = state.registry.changes();
                self.ended |= changes != self.changes && self.plan.is_over(&state.registry);
                self.changes = changes;
                events.iter().map(|event| self.plan.line(event, &state.registry)).collect()
            }
            Err(expired) => {
                self.ended = true;
                let message = format!("too old resource version: {} ({})", expired.asked, expired.oldest);
                vec![line("ERROR", Object::from_value(Problem::expired(message).status()).unwrap_or_default())]
            }
        }
    }
}
