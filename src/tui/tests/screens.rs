//! Screens of a recorded run at the sizes people have, scripts of keys, and every size and order of messages without a panic.
#![allow(clippy::unwrap_used, missing_docs)]

use jiff::{SignedDuration, Timestamp};
use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey, lock::LockedRef};
use plinth_run::{
    Action, Cause, Change, CheckId, CheckVerdict, Deferred, Event, EventKind, Health, Outcome, Plan, RunId, Stage, StageId,
    Subject, event::Verb, plan::Writer,
};
use plinth_tui::{
    Effect, Message, Model,
    message::Key,
    model::{Overlay, View},
    theme::Theme,
    update::update,
    view,
};
use proptest::prelude::*;
use ratatui::{Terminal, backend::TestBackend};

fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        cluster: ClusterKey::host(),
        gvk: GroupVersionKind::new("example.dev", "v1", kind),
        namespace: None,
        name: name.to_owned(),
    }
}

fn child(kind: &str, name: &str) -> Subject {
    Subject::child(key(kind, name), name, key("Platform", "sample"))
}

fn change(subject: Subject, action: Action) -> Change {
    Change { subject, action, by: Writer::Run, digest: String::new(), resource_version: None, fields: Vec::new(), note: None }
}

fn plan() -> Plan {
    Plan {
        platform: "sample".to_owned(),
        source: "sample.ctf".to_owned(),
        stages: vec![
            Stage {
                id: StageId(1),
                title: "definitions".to_owned(),
                changes: vec![change(Subject::root(key("Definition", "operator")), Action::Create)],
                until: "every kind is served".to_owned(),
            },
            Stage {
                id: StageId(2),
                title: "instance".to_owned(),
                changes: vec![change(Subject::root(key("Platform", "sample")), Action::Create)],
                until: "Platform sample is ready".to_owned(),
            },
        ],
        deferred: vec![Deferred {
            subject: Subject::root(key("Definition", "provider")),
            node: "provider".to_owned(),
            missing: vec![GroupVersionKind::new("late.dev", "v1", "Provider")],
            expected_from: Some("Deployment operator".to_owned()),
        }],
        ..Plan::default()
    }
}

fn kinds() -> Vec<EventKind> {
    let applied = |subject: Subject| EventKind::ChangeApplied {
        subject,
        action: Action::Create,
        digest: "sha256:00".to_owned(),
        generation: 1,
        uid: None,
        result: None,
    };
    let health = |subject: Subject, health, reason: &str, message: &str, causes| EventKind::HealthChanged {
        subject,
        health,
        reason: reason.to_owned(),
        message: message.to_owned(),
        causes,
    };
    vec![
        EventKind::RunStarted {
            verb: Verb::Up,
            platform: "sample".to_owned(),
            source: "sample.ctf".to_owned(),
            cluster: None,
            resumed: None,
        },
        EventKind::Resolved { root: LockedRef::default(), components: vec![LockedRef::default()] },
        EventKind::CheckFinished {
            id: CheckId::from("permissions"),
            verdict: CheckVerdict::Passed,
            message: "all there".to_owned(),
            hint: None,
        },
        EventKind::Planned { plan: plan() },
        EventKind::Approved { by: "question".to_owned() },
        EventKind::StageStarted { stage: StageId(1), title: "definitions".to_owned() },
        applied(Subject::root(key("Platform", "sample"))),
        applied(child("Operator", "operator")),
        EventKind::ChangeDeferred {
            subject: child("Provider", "provider"),
            missing: vec![GroupVersionKind::new("late.dev", "v1", "Provider")],
            expected_from: Some("Deployment operator".to_owned()),
        },
        health(
            Subject::root(key("Platform", "sample")),
            Health::Waiting,
            "NotReady",
            "2 children are not ready",
            vec![
                Cause {
                    subject: Some(child("Operator", "operator")),
                    reason: "Unavailable".to_owned(),
                    message: "0 of 1 replicas".to_owned(),
                },
                Cause { subject: None, reason: String::new(), message: "image pull\nfails".to_owned() },
            ],
        ),
        health(child("Operator", "operator"), Health::Failed, "ImagePull", "mirror answers 404", Vec::new()),
        EventKind::StageFinished { stage: StageId(1), outcome: Outcome::Done },
        EventKind::RunFinished {
            outcome: Outcome::Failed,
            message: "Operator operator failed".to_owned(),
            hint: Some("check the mirror".to_owned()),
        },
    ]
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

fn events() -> Vec<Message> {
    let event = |(index, kind)| {
        let seq = u64::try_from(index).unwrap() + 1;
        Message::Run(Box::new(Event { v: 1, run: RunId("r1".to_owned()), seq, at: at(i64::try_from(seq).unwrap()), kind }))
    };
    kinds().into_iter().enumerate().map(event).collect()
}

fn model(width: u16, height: u16, events_seen: usize) -> Model {
    let mut model = Model::new(Theme::Mono, at(0));
    update(&mut model, Message::Resize { width, height });
    for event in events().into_iter().take(events_seen) {
        update(&mut model, event);
    }
    update(&mut model, Message::Tick(at(90)));
    model
}

fn screen(model: &Model) -> String {
    let (width, height) = model.ui.size;
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(model, frame)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn screens_at_four_sizes() {
    for (width, height) in [(200, 60), (120, 40), (80, 24), (40, 12)] {
        insta::assert_snapshot!(format!("question_{width}x{height}"), screen(&model(width, height, 4)));
        insta::assert_snapshot!(format!("tree_{width}x{height}"), screen(&model(width, height, 11)));
        let mut plan = model(width, height, 13);
        update(&mut plan, Message::Key(Key::Char('1')));
        insta::assert_snapshot!(format!("plan_{width}x{height}"), screen(&plan));
    }
    insta::assert_snapshot!("states_30x8", screen(&model(30, 8, 11)));
    assert!(screen(&model(12, 2, 11)).contains("running"));
}

/// Every state is told apart by its word: the mono theme has no colour at all.
#[test]
fn words_tell_states_apart() {
    let text = screen(&model(120, 40, 11));
    for word in ["waiting", "failed", "deferred"] {
        assert!(text.contains(word), "{word} is not on the screen:\n{text}");
    }
}

#[test]
fn the_question_is_asked_once_and_escape_never_agrees() {
    let mut model = model(80, 24, 4);
    assert_eq!(model.ui.overlay, Some(Overlay::Question));
    assert_eq!(update(&mut model, Message::Key(Key::Esc)), []);
    assert_eq!(update(&mut model, Message::Key(Key::Char('y'))), [], "y means nothing while no question is open");
    update(&mut model, Message::Key(Key::Enter));
    assert_eq!(update(&mut model, Message::Key(Key::Char('y'))), [Effect::Approve]);
    assert_eq!(model.ui.overlay, None);
}

#[test]
fn quitting_a_run_that_goes_on_asks_first() {
    let mut model = model(80, 24, 11);
    assert_eq!(update(&mut model, Message::Key(Key::Char('q'))), []);
    assert_eq!(model.ui.overlay, Some(Overlay::Quit));
    assert_eq!(update(&mut model, Message::Key(Key::Char('n'))), []);
    update(&mut model, Message::Key(Key::Ctrl('c')));
    assert_eq!(update(&mut model, Message::Key(Key::Char('y'))), [Effect::Interrupt, Effect::Quit]);
}

#[test]
fn folding_hides_children_and_keeps_the_selection() {
    let mut model = model(80, 24, 11);
    assert_eq!((model.ui.view, model.rows.len()), (View::Tree, 3));
    update(&mut model, Message::Key(Key::Char('h')));
    assert_eq!((model.rows.len(), model.ui.cursor), (1, 0));
    update(&mut model, Message::Key(Key::Char('l')));
    assert_eq!(model.rows.len(), 3);
}

fn any_key() -> impl Strategy<Value = Key> {
    prop_oneof![
        proptest::char::range(' ', '~').prop_map(Key::Char),
        proptest::sample::select(vec![
            Key::Up,
            Key::Down,
            Key::Left,
            Key::Right,
            Key::Enter,
            Key::Esc,
            Key::Tab,
            Key::BackTab,
            Key::PageUp,
            Key::PageDown,
            Key::Home,
            Key::End,
        ]),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    prop_oneof![
        any_key().prop_map(Message::Key),
        proptest::sample::select(events()),
        (1u16..250, 1u16..80).prop_map(|(width, height)| Message::Resize { width, height }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_size_and_no_message_panics(messages in proptest::collection::vec(any_message(), 0..40)) {
        let mut model = Model::new(Theme::Dark, at(0));
        for message in messages {
            update(&mut model, message);
            prop_assert!(model.ui.cursor < model.rows.len().max(1));
            screen(&model);
        }
    }
}
