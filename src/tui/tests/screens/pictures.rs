//! Pictures for the documentation, drawn from a recorded run, so that they never go stale.

use std::{fs, path::Path};

use jiff::Timestamp;
use plinth_run::{Event, EventKind, Health, History, journal};
use plinth_tui::{Message, Model, message::Key, picture::svg, theme::Theme, update::update};

use crate::{page::held, sample::buffer};

const JOURNAL: &str = "docs/pictures/sample.jsonl";

pub(crate) fn recorded() -> Vec<Event> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(JOURNAL);
    let replay = journal::decode(&fs::read(path).unwrap()).unwrap();
    assert_eq!(replay.cut, None);
    replay.events
}

/// The terminal after these events, and these keys.
fn picture(events: &[Event], keys: &str) -> String {
    let now = events.last().map_or(Timestamp::UNIX_EPOCH, |event| event.at);
    let mut model = Model::new(Theme::Dark, now);
    "kind-platform".clone_into(&mut model.ui.place);
    update(&mut model, Message::Resize { width: 118, height: 28 });
    update(&mut model, Message::History(Box::new(History::learn(events))));
    for event in events {
        update(&mut model, Message::Run(Box::new(event.clone())));
    }
    update(&mut model, Message::Tick(now));
    for letter in keys.chars() {
        update(&mut model, Message::Key(Key::Char(letter)));
    }
    svg(&buffer(&model))
}

fn position(events: &[Event], wanted: impl Fn(&EventKind) -> bool) -> usize {
    events.iter().position(|event| wanted(&event.kind)).unwrap() + 1
}

#[test]
fn pictures_are_those_of_the_recorded_run() {
    let events = recorded();
    let planned = position(&events, |kind| matches!(kind, EventKind::Planned { .. }));
    // The operator starts, and what it will bring is waited for: what plinth is made for.
    let starts = |kind: &EventKind| matches!(kind, EventKind::HealthChanged { subject, health: Health::InProgress, .. } if subject.key.gvk.kind == "Deployment");
    let middle = position(&events, starts) + 2;
    held("docs/pictures/question.svg", &picture(&events[..planned], ""));
    held("docs/pictures/tree.svg", &picture(&events[..middle], "jjjj"));
    held("docs/pictures/events.svg", &picture(&events[..middle], "4"));
    held("docs/pictures/timeline.svg", &picture(&events, "3"));
    held("docs/pictures/done.svg", &picture(&events, "j"));
}
