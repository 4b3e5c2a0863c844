//! A run of a platform on two planes, and models that have seen part of it.

use jiff::{SignedDuration, Timestamp};
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, lock::LockedRef};
use plinth_run::{
    Action, Cause, Change, CheckId, CheckVerdict, Deferred, Event, EventKind, Health, History, Outcome, Plan, RunId, Stage,
    StageId, Subject, event::Verb, plan::Writer,
};
use plinth_tui::{Message, Model, theme::Theme, update::update, view};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};

/// Events up to the question.
pub(crate) const REVIEW: usize = 5;
/// Events up to where the run is in the middle.
pub(crate) const RUNNING: usize = 22;

pub(crate) fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        cluster: ClusterKey::host(),
        gvk: GroupVersionKind::new("example.dev", "v1", kind),
        namespace: None,
        name: name.to_owned(),
    }
}

pub(crate) fn child(kind: &str, name: &str) -> Subject {
    Subject::child(key(kind, name), name, key("Platform", "sample"))
}

fn change(subject: Subject, action: Action) -> Change {
    Change { subject, action, by: Writer::Run, digest: String::new(), resource_version: None, fields: Vec::new(), note: None }
}

fn stage(id: u32, title: &str, subject: Subject, until: &str) -> Stage {
    Stage { id: StageId(id), title: title.to_owned(), changes: vec![change(subject, Action::Create)], until: until.to_owned() }
}

fn late() -> Vec<GroupVersionKind> {
    vec![GroupVersionKind::new("late.dev", "v1", "Provider")]
}

fn pod() -> ObjectKey {
    let gvk = GroupVersionKind::new("", "v1", "Pod");
    ObjectKey { cluster: ClusterKey::host(), gvk, namespace: Some("default".to_owned()), name: "operator-0".to_owned() }
}

fn plan() -> Plan {
    Plan {
        platform: "sample".to_owned(),
        source: "sample.ctf".to_owned(),
        stages: vec![
            stage(1, "definitions", Subject::root(key("Definition", "operator")), "every kind is served"),
            stage(2, "instance", Subject::root(key("Platform", "sample")), "Platform sample is ready"),
        ],
        deferred: vec![Deferred {
            subject: Subject::root(key("Definition", "provider")),
            node: "provider".to_owned(),
            missing: late(),
            expected_from: Some("Deployment operator".to_owned()),
        }],
        ..Plan::default()
    }
}

fn applied(subject: Subject) -> EventKind {
    let digest = "sha256:00".to_owned();
    EventKind::ChangeApplied { subject, action: Action::Create, digest, generation: 1, uid: None, result: None }
}

fn health(subject: Subject, health: Health, reason: &str, message: &str, causes: Vec<Cause>) -> EventKind {
    EventKind::HealthChanged { subject, health, reason: reason.to_owned(), message: message.to_owned(), causes }
}

fn check(id: &str, verdict: CheckVerdict, message: &str, hint: Option<&str>) -> EventKind {
    EventKind::CheckFinished { id: CheckId::from(id), verdict, message: message.to_owned(), hint: hint.map(str::to_owned) }
}

fn before_the_first_write() -> Vec<EventKind> {
    vec![
        EventKind::RunStarted {
            verb: Verb::Up,
            platform: "sample".to_owned(),
            source: "sample.ctf".to_owned(),
            cluster: None,
            resumed: None,
        },
        EventKind::Resolved { root: LockedRef::default(), components: vec![LockedRef::default()] },
        check("permissions", CheckVerdict::Passed, "all there", None),
        check("mirror", CheckVerdict::Warned, "2 images come from a public host", Some("set --mirror")),
        EventKind::Planned { plan: plan() },
    ]
}

fn while_it_runs() -> Vec<EventKind> {
    let config = |n: usize| child("Config", &format!("c{n}"));
    let claim =
        ObjectKey { cluster: ClusterKey("consumer".to_owned()), namespace: Some("team-a".to_owned()), ..key("Claim", "db") };
    let consumer = Subject::child(claim, "claim", key("Platform", "sample"));
    let mut kinds = vec![
        EventKind::Approved { by: "question".to_owned() },
        EventKind::StageStarted { stage: StageId(1), title: "definitions".to_owned() },
        applied(Subject::root(key("Definition", "operator"))),
        health(Subject::root(key("Definition", "operator")), Health::Current, "Active", "", Vec::new()),
        EventKind::StageFinished { stage: StageId(1), outcome: Outcome::Done },
        EventKind::StageStarted { stage: StageId(2), title: "instance".to_owned() },
        applied(Subject::root(key("Platform", "sample"))),
        applied(child("Operator", "operator")),
        EventKind::ChangeDeferred {
            subject: child("Provider", "provider"),
            missing: late(),
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
                Cause {
                    subject: Some(Subject::root(pod())),
                    reason: "ImagePullBackOff".to_owned(),
                    message: "image pull\nfails".to_owned(),
                },
            ],
        ),
        health(child("Operator", "operator"), Health::Failed, "ImagePull", "mirror answers 404", Vec::new()),
        health(consumer, Health::Waiting, "NotReady", "2 children are not ready", Vec::new()),
    ];
    kinds.extend((1..=5).map(|n| health(config(n), Health::Current, "Exists", "", Vec::new())));
    kinds
}

fn end() -> Vec<EventKind> {
    vec![
        EventKind::StageFinished { stage: StageId(2), outcome: Outcome::Failed },
        EventKind::RunFinished {
            outcome: Outcome::Failed,
            message: "Operator operator failed".to_owned(),
            hint: Some("check the mirror".to_owned()),
        },
    ]
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

pub(crate) fn run_events() -> Vec<Event> {
    let event = |(index, kind)| {
        let seq = u64::try_from(index).unwrap() + 1;
        Event { v: 1, run: RunId("r1".to_owned()), seq, at: at(i64::try_from(seq).unwrap()), kind }
    };
    [before_the_first_write(), while_it_runs(), end()].concat().into_iter().enumerate().map(event).collect()
}

pub(crate) fn events() -> Vec<Message> {
    run_events().into_iter().map(|event| Message::Run(Box::new(event))).collect()
}

/// A run that took stage 1 through in four seconds.
pub(crate) fn history() -> History {
    let stage = StageId(1);
    let event = |seq, kind| Event { v: 1, run: RunId("r0".to_owned()), seq, at: at(i64::try_from(seq).unwrap() * 4), kind };
    History::learn(&[
        event(1, EventKind::StageStarted { stage, title: "definitions".to_owned() }),
        event(2, EventKind::StageFinished { stage, outcome: Outcome::Done }),
    ])
}

pub(crate) fn object() -> Object {
    let value = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "operator", "managedFields": [{"manager": "plinth.dev/run"}]},
        "data": {"password": "aHVudGVyMg=="},
    });
    Object::from_value(value).unwrap()
}

pub(crate) fn model_in(theme: Theme, width: u16, height: u16, events_seen: usize) -> Model {
    let mut model = Model::new(theme, at(0));
    update(&mut model, Message::Resize { width, height });
    update(&mut model, Message::History(Box::new(history())));
    for event in events().into_iter().take(events_seen) {
        update(&mut model, event);
    }
    update(&mut model, Message::Tick(at(90)));
    model
}

pub(crate) fn model(width: u16, height: u16, events_seen: usize) -> Model {
    model_in(Theme::Mono, width, height, events_seen)
}

pub(crate) fn buffer(model: &Model) -> Buffer {
    let (width, height) = model.ui.size;
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(model, frame)).unwrap();
    terminal.backend().buffer().clone()
}

pub(crate) fn screen(model: &Model) -> String {
    let buffer = buffer(model);
    let lines = buffer.content.chunks(usize::from(buffer.area.width));
    lines.map(|line| line.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned() + "\n").collect()
}
