use jiff::Timestamp;
use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey};
use proptest::prelude::*;
use std::sync::Arc;

use super::*;
use crate::{
    event::EventKind,
    journal,
    log::Log,
    memory::{SteppedClock, VecJournal, VecSink},
    ports::{Journal, Recorder},
};

fn gvk(kind: &str) -> GroupVersionKind {
    GroupVersionKind::new("acme.example", "v1", kind)
}

fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey { cluster: ClusterKey::host(), gvk: gvk(kind), namespace: Some("ns".into()), name: name.into() }
}

fn started(cluster: Option<&str>) -> EventKind {
    EventKind::RunStarted {
        verb: Verb::Up,
        platform: "p".into(),
        source: "s".into(),
        cluster: cluster.map(|text| ClusterIdentity(text.into())),
        resumed: None,
    }
}

fn applied(name: &str, action: Action, digest: &str) -> EventKind {
    EventKind::ChangeApplied {
        subject: Subject::root(key("Thing", name)),
        action,
        digest: digest.into(),
        generation: 1,
        result: None,
        uid: Some("u".into()),
    }
}

fn health(name: &str, health: Health) -> EventKind {
    let (reason, message) = (String::new(), String::new());
    EventKind::HealthChanged { subject: Subject::root(key("Thing", name)), health, reason, message, causes: vec![] }
}

/// Events of one run, a second apart.
fn run(id: &str, kinds: Vec<EventKind>) -> Vec<Event> {
    let event = |(seq, kind)| Event {
        v: 1,
        run: RunId(id.into()),
        seq,
        at: Timestamp::from_second(i64::try_from(seq).unwrap()).unwrap(),
        kind,
    };
    (1..).zip(kinds).map(event).collect()
}

#[test]
fn proofs_outlive_a_run_and_nothing_else_does() {
    let mut events = run("r1", vec![started(Some("c")), applied("a", Action::Create, "d1"), health("a", Health::Failed)]);
    events.extend(run("r2", vec![started(Some("c"))]));
    let state = RunState::replay(&events);
    assert!(state.proves(&key("Thing", "a"), "d1", 1, Some("u")));
    assert!(state.subjects.is_empty() && state.run == Some(RunId("r2".into())));
    for (digest, generation, uid) in [("d2", 1, Some("u")), ("d1", 2, Some("u")), ("d1", 1, Some("v")), ("d1", 1, None)] {
        assert!(!state.proves(&key("Thing", "a"), digest, generation, uid));
    }
}

#[test]
fn proofs_of_another_cluster_prove_nothing() {
    let mut events = run("r1", vec![started(Some("c")), applied("a", Action::Create, "d1")]);
    events.extend(run("r2", vec![started(None)]));
    assert!(!RunState::replay(&events).applied.is_empty());
    events.extend(run("r3", vec![started(Some("other"))]));
    assert!(RunState::replay(&events).applied.is_empty());
}

#[test]
fn what_is_deleted_or_gone_is_proven_no_more() {
    let gone = [applied("a", Action::Delete, ""), health("a", Health::NotFound)];
    for kind in gone {
        let events = run("r1", vec![applied("a", Action::Create, "d1"), kind]);
        assert!(RunState::replay(&events).applied.is_empty());
    }
}

#[test]
fn summary_counts_objects_not_events() {
    let deferred = |name: &str, missing| EventKind::ChangeDeferred {
        subject: Subject::root(key("Thing", name)),
        missing,
        expected_from: None,
    };
    let state = RunState::replay(&run(
        "r1",
        vec![
            applied("a", Action::Create, "1"),
            applied("a", Action::Configure, "2"),
            applied("b", Action::Configure, "1"),
            health("a", Health::InProgress),
            health("a", Health::Current),
            health("b", Health::Failed),
            deferred("c", vec![gvk("Late"), gvk("Later")]),
            deferred("d", vec![gvk("Late")]),
            EventKind::SchemaServed { gvk: gvk("Late") },
            EventKind::ChangeSkipped { subject: Subject::root(key("Thing", "e")), reason: SkipReason::Unchanged },
        ],
    ));
    let expect =
        Summary { created: 1, configured: 1, skipped: 1, deferred: 1, total: 3, ready: 1, failed: 1, ..Summary::default() };
    assert_eq!(state.summary(), expect);
    assert_eq!(state.waits(Timestamp::from_second(66).unwrap())[0].for_ms, 60_000);
}

/// What an instance does not ask for any more is no reason to call a platform less than ready.
#[test]
fn what_is_gone_is_not_counted() {
    let child = |name: &str| Subject::child(key("Thing", name), "node", key("App", "app"));
    let gone = EventKind::HealthChanged {
        subject: child("a"),
        health: Health::NotFound,
        reason: String::new(),
        message: String::new(),
        causes: vec![],
    };
    let missing = EventKind::HealthChanged {
        subject: child("d"),
        health: Health::NotFound,
        reason: crate::health::MISSING.to_owned(),
        message: String::new(),
        causes: vec![],
    };
    let events = vec![
        health("a", Health::Failed),
        gone,
        health("b", Health::Failed),
        applied("b", Action::Delete, ""),
        health("c", Health::Current),
        health("root", Health::NotFound),
        missing,
    ];
    let state = RunState::replay(&run("r1", events));
    assert_eq!(state.summary(), Summary { total: 3, ready: 1, deleted: 1, ..Summary::default() });
    let waits = state.waits(Timestamp::from_second(60).unwrap());
    assert_eq!(waits.iter().map(|wait| wait.subject.key.name.as_str()).collect::<Vec<_>>(), ["root", "d"]);
}

#[test]
fn warnings_are_bounded_and_counted() {
    let warning = |n: usize| EventKind::Warning { subject: None, reason: "R".into(), message: n.to_string() };
    let state = RunState::replay(&run("r1", (0..MAX_WARNINGS + 5).map(warning).collect()));
    assert_eq!((state.warnings.len(), state.warning_count), (MAX_WARNINGS, MAX_WARNINGS + 5));
    assert_eq!(state.warnings[0].message, "5");
}

#[test]
fn a_journal_that_fails_is_remembered_and_the_run_goes_on_in_memory() {
    let journal = Arc::new(VecJournal::default());
    let log = Log::open(RunId("r1".into()), journal.clone(), Arc::new(SteppedClock::default()), vec![]).unwrap();
    log.record(started(None));
    assert_eq!(log.failure(), None);
    journal.break_down();
    log.record(health("a", Health::Current));
    assert!(log.failure().is_some());
    assert_eq!((journal.events().len(), log.state().subjects.len()), (1, 1));
}

#[test]
fn echoes_are_not_events() {
    let journal = Arc::new(VecJournal::default());
    let log = Log::open(RunId("r1".into()), journal.clone(), Arc::new(SteppedClock::default()), vec![]).unwrap();
    for _ in 0..3 {
        log.record(health("a", Health::Waiting));
        log.record(EventKind::SchemaServed { gvk: gvk("Late") });
    }
    log.record(health("a", Health::Current));
    assert_eq!(journal.events().len(), 3);
}

fn kinds() -> impl Strategy<Value = EventKind> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let kind = || prop::sample::select(vec!["Late", "Later"]);
    let action = prop::sample::select(vec![Action::Create, Action::Configure, Action::Delete]);
    prop_oneof![
        prop::option::of(prop::sample::select(vec!["c1", "c2"])).prop_map(started),
        (name(), action, "[0-9]").prop_map(|(name, action, digest)| applied(name, action, &digest)),
        (name(), prop::sample::select(crate::health::ALL.to_vec())).prop_map(|(name, verdict)| health(name, verdict)),
        (name(), prop::collection::vec(kind(), 0..3)).prop_map(|(name, kinds)| EventKind::ChangeDeferred {
            subject: Subject::root(key("Thing", name)),
            missing: kinds.into_iter().map(gvk).collect(),
            expected_from: None,
        }),
        kind().prop_map(|kind| EventKind::SchemaServed { gvk: gvk(kind) }),
        (1..4u32).prop_map(|id| EventKind::StageStarted { stage: StageId(id), title: "t".into() }),
        (1..4u32).prop_map(|id| EventKind::StageFinished { stage: StageId(id), outcome: Outcome::Done }),
        (name(), 1..9u32).prop_map(|(what, attempt)| EventKind::Retry {
            what: what.into(),
            message: "m".into(),
            attempt,
            next_in_ms: 5
        }),
        Just(EventKind::Heartbeat { stage: None, ready: 1, total: 2, longest: vec![] }),
        Just(EventKind::Warning { subject: None, reason: "R".into(), message: "m".into() }),
        Just(EventKind::RunFinished { outcome: Outcome::Done, message: String::new(), hint: None }),
    ]
}

#[test]
fn what_changed_since_is_told_with_the_runs_last_numbers() {
    let mut events = run("r1", vec![started(None), health("a", Health::Waiting), health("b", Health::Current)]);
    let known = RunState::replay(&events);
    assert_eq!(known.told_since(&known), []);
    events = run("r1", [events.iter().map(|event| event.kind.clone()).collect(), vec![health("a", Health::Failed); 4]].concat());
    let state = RunState::replay(&events);
    let told = state.told_since(&known);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].seq, &told[0].kind), (7, &health("a", Health::Failed)));
    let other = RunState { run: Some(RunId("r0".into())), ..known };
    assert_eq!(state.told_since(&other).len(), 3, "another run's state is nothing to begin with");
    assert_eq!(RunState::default().told_since(&other), []);
}

proptest! {
    /// Whoever comes in the middle of a run sees what those see who saw all of it.
    #[test]
    fn what_is_told_of_a_state_folds_to_it(kinds in prop::collection::vec(kinds(), 0..30)) {
        let kinds: Vec<EventKind> = std::iter::once(started(Some("c"))).chain(kinds).collect();
        let state = RunState::replay(&run("r1", kinds));
        let told = state.told_since(&RunState::default());
        let again = RunState::replay(&told);
        prop_assert!(told.windows(2).all(|pair| pair[0].seq < pair[1].seq) && told[0].seq > 0);
        prop_assert_eq!(again.seq, state.seq);
        prop_assert_eq!((&again.subjects, &again.stages, &again.served), (&state.subjects, &state.stages, &state.served));
        prop_assert_eq!((again.summary(), again.started, again.verb), (state.summary(), state.started, state.verb));
        prop_assert_eq!((&again.finished, again.cluster), (&state.finished, state.cluster));
        prop_assert!(again.retries.keys().eq(state.retries.keys()));
    }

    /// The promise of the design: the journal's fold is the live state, through its text, in every prefix, with repeats.
    #[test]
    fn folding_the_journal_gives_the_live_state(
        runs in prop::collection::vec(prop::collection::vec(kinds(), 0..20), 1..4),
        repeat in 0..5usize,
    ) {
        let journal = Arc::new(VecJournal::default());
        for (number, kinds) in runs.into_iter().enumerate() {
            let clock = SteppedClock::default();
            let sink = Arc::new(VecSink::default());
            let id = RunId(format!("r{number}"));
            let log = Log::open(id, journal.clone(), Arc::new(clock.clone()), vec![sink.clone()]).unwrap();
            let before = journal.events().len();
            for kind in kinds {
                clock.step(std::time::Duration::from_secs(1));
                log.record(kind);
                let text: String = journal.events().iter().map(|event| journal::encode(event).unwrap()).collect();
                let replayed = RunState::replay(&journal::decode(text.as_bytes()).unwrap().events);
                prop_assert_eq!(&replayed, &log.state());
            }
            prop_assert_eq!(&journal.load().unwrap().events[before..], &sink.events()[..]);
        }
        let events = journal.events();
        let once = RunState::replay(&events);
        let mut twice = RunState::default();
        for event in &events {
            (0..=repeat).for_each(|_| twice.fold(event));
        }
        prop_assert_eq!(&twice, &once);
        let snapshot = serde_json::to_string(&once).unwrap();
        prop_assert_eq!(&serde_json::from_str::<RunState>(&snapshot).unwrap(), &once);
    }
}

/// Whoever is told of an object by several instances shows it below the same one in every run.
#[test]
fn the_parent_of_an_object_is_the_first_of_several_whatever_came_first() {
    let of = |parent: &str| {
        let subject = Subject::child(key("Repository", "r"), "repository", key("App", parent));
        EventKind::HealthChanged {
            subject,
            health: Health::Current,
            reason: String::new(),
            message: String::new(),
            causes: vec![],
        }
    };
    for parents in [["a", "b"], ["b", "a"]] {
        let state = RunState::replay(&run("r1", parents.iter().map(|parent| of(parent)).collect()));
        let known = &state.subjects[&key("Repository", "r")].subject;
        assert_eq!(known.parent, Some(key("App", "a")), "{parents:?}");
        assert!(state.is_echo(&of("b")), "what another instance says of it is no news");
    }
}

#[test]
fn what_is_not_ready_adds_up() {
    let healths = [Health::Current, Health::Failed, Health::Waiting, Health::InProgress, Health::Terminating, Health::Unknown];
    let mut kinds: Vec<EventKind> = healths.iter().enumerate().map(|(n, of)| health(&format!("o{n}"), *of)).collect();
    let subject = Subject::root(key("Thing", "late"));
    kinds.push(EventKind::ChangeDeferred { subject, missing: vec![gvk("Late")], expected_from: None });
    let summary = RunState::replay(&run("r1", kinds)).summary();
    assert_eq!((summary.total, summary.ready, summary.failed, summary.open()), (7, 1, 1, 5));
}

/// Who begins to look at something that is there already tells when it began.
#[test]
fn what_is_told_late_turns_no_time_back() {
    let mut events = run("r1", vec![started(None), health("a", Health::Current)]);
    events[1].at = Timestamp::UNIX_EPOCH;
    let state = RunState::replay(&events);
    assert_eq!(state.now, Some(events[0].at));
    assert_eq!(state.subjects[&key("Thing", "a")].since, Timestamp::UNIX_EPOCH);
}
