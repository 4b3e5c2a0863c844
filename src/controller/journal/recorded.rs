//! What the cluster's journal says to whoever follows the run from outside.

use plinth_api::Object;
use plinth_run::{Event, RunState, journal::decode};
use serde_json::Value;

use super::{EVENTS, state_of};

/// The journal as it is at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The state, with the newest events in it.
    pub state: RunState,
    events: Vec<Event>,
}

/// What happened between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct News {
    /// What to tell: the events themselves, or, where not all of them were kept, what they led to.
    pub events: Vec<Event>,
    /// How many events were not kept.
    pub lost: u64,
}

impl Recorded {
    /// Reads the ConfigMap; `None` where it says nothing that can be read.
    #[must_use]
    pub fn read(object: &Object) -> Option<Self> {
        let mut state = state_of(object)?;
        let text = object.at(&["data", EVENTS]).and_then(Value::as_str).unwrap_or_default();
        // What cannot be read was not kept.
        let mut events = decode(text.as_bytes()).map(|replay| replay.events).unwrap_or_default();
        // They may be newer than the state by a moment.
        events.iter().for_each(|event| state.fold(event));
        events.retain(|event| Some(&event.run) == state.run.as_ref());
        Some(Self { state, events })
    }

    /// What happened since `known`; since the run began where `known` is of another run.
    #[must_use]
    pub fn since(&self, known: &RunState) -> News {
        let is_same = known.run == self.state.run;
        let seen = if is_same { known.seq } else { 0 };
        if self.state.seq <= seen {
            return News::default();
        }
        let new: Vec<Event> = self.events.iter().filter(|event| event.seq > seen).cloned().collect();
        let first = new.first().map_or(self.state.seq + 1, |event| event.seq);
        match first - seen - 1 {
            0 => News { events: new, lost: 0 },
            lost => News { events: self.state.told_since(known), lost },
        }
    }
}

#[cfg(test)]
mod tests {
    use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey};
    use plinth_run::{EventKind, Health, RunId, Subject, Verb, journal::encode};

    use super::*;
    use crate::journal::{key, object};

    fn events(run: &str, count: u64) -> Vec<Event> {
        let event = |seq| Event { v: 1, run: RunId(run.into()), seq, at: jiff::Timestamp::UNIX_EPOCH, kind: kind(seq) };
        (1..=count).map(event).collect()
    }

    fn kind(seq: u64) -> EventKind {
        let (platform, source) = ("p".to_owned(), "s".to_owned());
        if seq == 1 {
            return EventKind::RunStarted { verb: Verb::Controller, platform, source, cluster: None, resumed: None };
        }
        let gvk = GroupVersionKind::new("", "v1", "ConfigMap");
        let key = ObjectKey { cluster: ClusterKey::host(), gvk, namespace: None, name: "a".to_owned() };
        let (subject, health) = (Subject::root(key), if seq.is_multiple_of(2) { Health::Waiting } else { Health::Current });
        EventKind::HealthChanged { subject, health, reason: String::new(), message: String::new(), causes: Vec::new() }
    }

    /// The journal of these events, of which the newest `kept` were kept.
    fn recorded(all: &[Event], kept: usize) -> Recorded {
        let state = RunState::replay(all);
        let text: String = all[all.len() - kept..].iter().map(|event| encode(event).unwrap()).collect();
        Recorded::read(&object(&key(), &state, &text).unwrap()).unwrap()
    }

    fn news(known: &[Event], all: &[Event], kept: usize) -> (usize, u64) {
        let known = RunState::replay(known);
        let news = recorded(all, kept).since(&known);
        let mut told = known;
        news.events.iter().for_each(|event| told.fold(event));
        assert_eq!(told.summary(), RunState::replay(all).summary());
        (news.events.len(), news.lost)
    }

    #[test]
    fn events_that_were_kept_are_told_and_for_the_others_the_state_is() {
        let all = events("r", 9);
        assert_eq!(news(&[], &all, 9), (9, 0), "the whole run");
        assert_eq!(news(&[], &all, 4), (2, 5), "the run, and the object as it is");
        assert_eq!(news(&all[..5], &all, 4), (4, 0));
        assert_eq!(news(&all[..4], &all, 4), (1, 1), "the object as it is");
        assert_eq!(news(&all[..5], &all, 0), (0, 4), "an object that went and came back is as it was");
        assert_eq!(news(&all, &all, 4), (0, 0), "nothing is told twice");
        assert_eq!(news(&events("r0", 9), &all[..3], 3), (3, 0), "another run begins anew");
    }

    #[test]
    fn events_may_be_newer_than_the_state_and_may_be_broken() {
        let all = events("r", 4);
        let text = |events: &[Event]| -> String { events.iter().map(|event| encode(event).unwrap()).collect() };
        let read = |text: &str| Recorded::read(&object(&key(), &RunState::replay(&all[..3]), text).unwrap()).unwrap();
        assert_eq!(read(&text(&all)).state, RunState::replay(&all));
        assert_eq!(read("nonsense\n").since(&RunState::default()).lost, 3);
        assert_eq!(Recorded::read(&Object::default()), None);
    }
}
