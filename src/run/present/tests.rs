use jiff::Timestamp;
use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey};

use super::*;
use crate::{
    event::{Cause, CheckVerdict, Event, EventKind, LongWait, SkipReason, Verb},
    health::Health,
    outcome::Outcome,
    plan::{Action, Change, Plan, Stage, Writer},
    state::RunState,
    subject::{RunId, StageId, Subject},
};

fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        cluster: ClusterKey::host(),
        gvk: GroupVersionKind::new("acme.example", "v1", kind),
        namespace: Some("default".into()),
        name: name.into(),
    }
}

fn subject(kind: &str, name: &str) -> Subject {
    Subject::root(key(kind, name))
}

fn health(kind: &str, name: &str, health: Health, reason: &str, message: &str) -> EventKind {
    let subject = subject(kind, name);
    EventKind::HealthChanged { subject, health, reason: reason.into(), message: message.into(), causes: vec![] }
}

fn change(kind: &str, name: &str) -> Change {
    Change {
        subject: subject(kind, name),
        action: Action::Create,
        by: Writer::Run,
        digest: String::new(),
        resource_version: None,
        fields: vec![],
        note: None,
    }
}

fn plan() -> Plan {
    let stage = |id, title: &str, changes| Stage { id: StageId(id), title: title.into(), changes, until: String::new() };
    Plan {
        stages: vec![
            stage(1, "definitions", vec![change("Definition", "a")]),
            stage(2, "instance", vec![change("Instance", "i"), change("Never", "reached")]),
        ],
        ..Plan::default()
    }
}

/// Events, one every ten seconds.
fn events(kinds: Vec<EventKind>) -> Vec<Event> {
    let at = |seq: u64| Timestamp::from_second(i64::try_from(seq - 1).unwrap() * 10).unwrap();
    let event = |(seq, kind)| Event { v: 1, run: RunId("r1".into()), seq, at: at(seq), kind };
    (1..).zip(kinds).map(event).collect()
}

fn story() -> Vec<Event> {
    let gvk = GroupVersionKind::new("late.example", "v1", "Late");
    events(vec![
        EventKind::RunStarted { verb: Verb::Up, platform: "p".into(), source: "x.tgz".into(), cluster: None, resumed: None },
        EventKind::CheckFinished {
            id: "permissions".into(),
            verdict: CheckVerdict::Passed,
            message: "all 3 are there".into(),
            hint: None,
        },
        EventKind::Planned { plan: plan() },
        EventKind::StageStarted { stage: StageId(1), title: "definitions".into() },
        EventKind::ChangeApplied {
            subject: subject("Definition", "a"),
            action: Action::Create,
            digest: "sha256:1".into(),
            generation: 1,
            result: None,
            uid: None,
        },
        EventKind::StageFinished { stage: StageId(1), outcome: Outcome::Done },
        EventKind::ChangeSkipped {
            subject: subject("Instance", "i"),
            reason: SkipReason::Proven { digest: "d".into(), generation: 4 },
        },
        EventKind::ChangeDeferred {
            subject: subject("Child", "c"),
            missing: vec![gvk.clone()],
            expected_from: Some("Deployment/d".into()),
        },
        health("Child", "d", Health::Waiting, "NotReady", "one"),
        health("Child", "d", Health::Waiting, "NotReady", "two"),
        health("Child", "d", Health::Failed, "Broken", "<evil>\u{1b}[31m\n::error::x"),
        health("Instance", "i", Health::Current, "", ""),
        EventKind::SchemaServed { gvk },
        EventKind::Retry { what: "reach".into(), message: "refused".into(), attempt: 1, next_in_ms: 1500 },
        EventKind::Retry { what: "reach".into(), message: "refused".into(), attempt: 3, next_in_ms: 1500 },
        EventKind::Warning { subject: None, reason: "Late".into(), message: "something".into() },
        EventKind::RunFinished { outcome: Outcome::Failed, message: "first\nsecond".into(), hint: Some("do it".into()) },
    ])
}

#[test]
fn lines_say_each_change_once() {
    let mut presenter = lines::Presenter::default();
    let said: Vec<String> = story().iter().filter_map(|event| presenter.line(event)).collect();
    let expect = [
        "started  up p  x.tgz  (0s)",
        "passed  check permissions  all 3 are there  (10s)",
        "planned  2 stages  3 create  (20s)",
        "begins  stage 1/2  definitions  (30s)",
        "created  host  Definition.acme.example/default/a  (40s)",
        "done  stage 1/2  (50s)",
        "skipped  host  Instance.acme.example/default/i  the journal proves it: same input, still generation 4  (1m00s)",
        "deferred  host  Child.acme.example/default/c  waits for Late.late.example/v1; expected from Deployment/d  (1m10s)",
        "waiting  host  Child.acme.example/default/d  NotReady: one  (1m20s)",
        "failed  host  Child.acme.example/default/d  Broken: <evil> [31m ::error::x  (1m40s)",
        "ready  host  Instance.acme.example/default/i  (1m50s)",
        "served  Late.late.example/v1  (2m00s)",
        "retry  reach  refused  attempt 1, next in 1.5s  (2m10s)",
        "retry  reach  refused  attempt 3, next in 1.5s  (2m20s)",
        "warning  Late: something  (2m30s)",
        "failed  first\n  second\n  hint: do it\n  1 created, 0 configured, 1 skipped, 0 deleted, 0 deferred; 1 of 2 ready, \
         1 failed; 1 warning  (2m40s)",
    ];
    assert_eq!(said, expect);
}

#[test]
fn quiet_says_only_what_needs_eyes() {
    let mut presenter = lines::Presenter::new(lines::Verbosity::Quiet);
    let said: Vec<String> = story().iter().filter_map(|event| presenter.line(event)).collect();
    let words: Vec<&str> = said.iter().map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(words, ["failed", "warning", "failed"]);
}

#[test]
fn a_heartbeat_names_who_waits_longest() {
    let wait =
        LongWait { subject: subject("Child", "c"), health: Health::Waiting, message: "image pull".into(), for_ms: 190_000 };
    let mut story = events(vec![
        EventKind::Planned { plan: plan() },
        EventKind::Heartbeat { stage: Some(StageId(2)), ready: 4, total: 9, longest: vec![wait] },
    ]);
    let mut presenter = lines::Presenter::default();
    let last = story.pop().unwrap();
    for event in &story {
        presenter.line(event);
    }
    assert_eq!(
        presenter.line(&last).unwrap(),
        "still waiting  stage 2/2  4 of 9 ready  longest: host Child.acme.example/default/c image pull 3m10s  (10s)"
    );
}

#[test]
fn a_chain_ends_at_its_root_cause() {
    let cause =
        |kind: &str, message: &str| Cause { subject: Some(subject(kind, "x")), reason: "R".into(), message: message.into() };
    let kind = EventKind::HealthChanged {
        subject: subject("Instance", "i"),
        health: Health::Waiting,
        reason: "ChildNotReady".into(),
        message: "1 of 2 ready".into(),
        causes: vec![cause("Middle", "no"), cause("Root", "mirror answers 404")],
    };
    let line = lines::Presenter::default().line(&events(vec![kind])[0]).unwrap();
    assert_eq!(
        line,
        "waiting  host  Instance.acme.example/default/i  ChildNotReady: 1 of 2 ready; because Root.acme.example/default/x R: \
         mirror answers 404  (0s)"
    );
}

/// An instance hands on the words of the child that holds it up.
#[test]
fn the_same_words_are_not_said_twice() {
    let message = "readyWhen \"x.status.ready\" is not true";
    let cause = Cause { subject: Some(subject("Root", "x")), reason: "NotReady".into(), message: message.into() };
    let kind = EventKind::HealthChanged {
        subject: subject("Instance", "i"),
        health: Health::InProgress,
        reason: "InProgress".into(),
        message: message.into(),
        causes: vec![cause],
    };
    let line = lines::Presenter::new(lines::Verbosity::Verbose).line(&events(vec![kind])[0]).unwrap();
    assert_eq!(line.matches(message).count(), 1, "{line}");
    assert!(line.contains("InProgress; because Root.acme.example/default/x NotReady: readyWhen"), "{line}");
}

#[test]
fn all_presenters_agree_on_counts_and_outcome() {
    let events = story();
    let state = RunState::replay(&events);
    let totals = lines::totals(&state.summary());
    let mut github = github::Presenter::default();
    let github: Vec<String> = events.iter().filter_map(|event| github.line(event)).collect();
    assert!(github.last().unwrap().contains(&totals));
    assert!(github::summary(&state).contains(&totals));
    let junit = junit::report(&state);
    assert!(junit.contains(&format!("<system-out>{totals}</system-out>")));
    assert!(junit.contains("failed (exit 1): first"), "{junit}");
    let back: Vec<Event> = events
        .iter()
        .map(|event| crate::journal::decode_line(json::line(event).unwrap().trim_end().as_bytes(), 1).unwrap())
        .collect();
    assert_eq!(lines::totals(&RunState::replay(&back).summary()), totals);
}

#[test]
fn text_from_outside_stays_text() {
    let events = story();
    let junit = junit::report(&RunState::replay(&events));
    assert!(junit.contains("&lt;evil&gt;?[31m&#10;::error::x") && !junit.contains('\u{1b}'), "{junit}");
    let mut presenter = github::Presenter::default();
    let lines: Vec<String> = events.iter().filter_map(|event| presenter.line(event)).collect();
    let commands: Vec<&str> = lines.iter().flat_map(|line| line.lines()).filter(|line| line.contains("::")).collect();
    assert_eq!(
        commands,
        [
            "::group::begins  stage 1/2  definitions  (30s)",
            "::endgroup::",
            "::error title=Child.acme.example/default/d failed::Broken: <evil>[31m%0A::error::x",
            "::warning title=Late::something",
            "::error title=failed (exit 1)::first%0Asecond",
        ]
    );
}

#[test]
fn junit_counts_add_up() {
    let junit = junit::report(&RunState::replay(&story()));
    // 1 check, 3 planned objects, 2 others, the outcome; the failed child and the outcome are red.
    assert!(junit.contains("tests=\"7\" failures=\"2\" skipped=\"2\""), "{junit}");
    assert_eq!(junit.matches("<testcase").count(), 7);
    assert_eq!(junit.matches("<failure").count(), 2);
    assert!(junit.contains("<skipped message=\"not reached\"/>"));
}

/// Standard error says the rest: nothing is said twice to whoever reads both.
#[test]
fn a_brief_end_has_the_first_line_of_several() {
    let finished = |message: &str| EventKind::RunFinished {
        outcome: Outcome::Refused,
        message: message.into(),
        hint: Some("ask for them".into()),
    };
    let several = events(vec![finished("the identity lacks 2 permissions:\n  get a\n  get b")]);
    let brief = lines::Presenter::default().brief().line(&several[0]).unwrap();
    assert!(brief.starts_with("refused  the identity lacks 2 permissions  0 created"), "{brief}");
    assert!(!brief.contains('\n') && !brief.contains("ask for them"), "{brief}");
    let whole = lines::Presenter::default().line(&several[0]).unwrap();
    assert!(whole.contains("\n  get a\n  get b\n  hint: ask for them"), "{whole}");
    let one = lines::Presenter::default().brief().line(&events(vec![finished("no")])[0]).unwrap();
    assert!(one.contains("hint: ask for them"), "{one}");

    let (id, verdict, message) = ("plan".into(), CheckVerdict::Failed, "no such field".to_owned());
    let failed = EventKind::CheckFinished { id, verdict, message, hint: None };
    let mut presenter = lines::Presenter::default().brief();
    let said: Vec<String> =
        events(vec![failed, finished("no such field")]).iter().filter_map(|event| presenter.line(event)).collect();
    assert!(said[0].contains("no such field") && said[1].starts_with("refused  0 created"), "{said:?}");
}

/// GitHub knows no group within a group.
#[test]
fn groups_do_not_nest() {
    let begins = |stage| EventKind::StageStarted { stage: StageId(stage), title: "t".into() };
    let ends = |stage| EventKind::StageFinished { stage: StageId(stage), outcome: Outcome::Done };
    let finished = EventKind::RunFinished { outcome: Outcome::Done, message: String::new(), hint: None };
    let mut presenter = github::Presenter::default();
    let told = events(vec![begins(1), begins(2), ends(1), ends(2), begins(3), finished]);
    let lines: Vec<String> = told.iter().filter_map(|event| presenter.line(event)).collect();
    let mut open = 0;
    for line in lines.iter().flat_map(|line| line.lines()) {
        open += i32::from(line.starts_with("::group::")) - i32::from(line == "::endgroup::");
        assert!((0..=1).contains(&open), "{lines:#?}");
        assert!(open == 0 || !line.starts_with("done  0 created"), "the end is in no group: {lines:#?}");
    }
    assert_eq!(open, 0, "{lines:#?}");
}
