use std::{collections::BTreeMap, time::Duration};

use plinth_api::{Object, ObjectKey};
use plinth_engine::ports::Answer;
use plinth_run::{Action, EventKind, Health, Outcome, SkipReason, StageId};

use crate::{
    memory::Fault,
    ports::{Approval, Approver},
    testing::{Bench, key},
};

/// Objects without what differs from run to run.
fn settled(bench: &Bench) -> BTreeMap<ObjectKey, Object> {
    let strip = |(key, mut object): (ObjectKey, Object)| {
        for volatile in ["uid", "resourceVersion", "generation"] {
            object.metadata_mut().remove(volatile);
        }
        if let Some(labels) = object.metadata_mut().get_mut("labels").and_then(serde_json::Value::as_object_mut) {
            for id in [plinth_engine::naming::keys::RGD_ID, plinth_engine::naming::keys::INSTANCE_ID] {
                labels.remove(id);
            }
        }
        (key, object)
    };
    bench.cluster.objects().into_iter().map(strip).collect()
}

fn assert_same(bench: &Bench, expect: &BTreeMap<ObjectKey, Object>, context: &str) {
    let found = settled(bench);
    let keys = |objects: &BTreeMap<ObjectKey, Object>| objects.keys().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(keys(&found), keys(expect), "{context}");
    for (key, object) in expect {
        assert_eq!(found.get(key), Some(object), "{context}: {key}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_apply_brings_all_of_it_up() {
    let bench = Bench::new();
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    let state = bench.state();
    assert_eq!(state.exit_code(), Some(0));
    let summary = state.summary();
    // 7 CRDs, the Lease's namespace, Repository, 3 definitions, 1 instance by the run; 2 instances, 2 ConfigMaps, a Deployment and a Thing by the loop.
    assert_eq!((summary.created, summary.deferred, summary.failed), (19, 0, 0));
    let late = key("kro.run/v1alpha1", "ResourceGraphDefinition", None, "late");
    let waited = |kind: &EventKind| matches!(kind, EventKind::ChangeDeferred { subject, missing, .. } if subject.key == late && missing.len() == 1);
    assert!(bench.count(waited) >= 1);
    assert_eq!(state.subjects[&late].health, Some(Health::Current));
    assert!(bench.cluster.objects().contains_key(&key("late.example/v1", "Thing", Some("default"), "thing")));
    let stages: Vec<StageId> = state.stages.keys().copied().collect();
    assert_eq!(stages, (1..=7).map(StageId).collect::<Vec<_>>());
    assert!(state.stages.values().all(|stage| stage.outcome == Some(Outcome::Done)));
}

#[tokio::test(start_paused = true)]
async fn the_order_of_writes_is_the_plans() {
    let bench = Bench::new();
    bench.up().await;
    let plan = bench.state().plan.unwrap();
    let planned: Vec<&ObjectKey> = plan.stages[..3].iter().flat_map(|s| &s.changes).map(|change| &change.subject.key).collect();
    let writes = bench.cluster.writes();
    assert_eq!(writes.iter().map(|(_, key)| key).collect::<Vec<_>>(), planned);
}

#[tokio::test(start_paused = true)]
async fn a_second_run_writes_nothing_and_says_why() {
    let bench = Bench::new();
    bench.up().await;
    bench.cluster.forget_writes();
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    assert_eq!(bench.cluster.writes(), []);
    let proven = |kind: &EventKind| matches!(kind, EventKind::ChangeSkipped { reason: SkipReason::Proven { .. }, .. });
    assert_eq!(bench.count(proven), 13);
}

#[tokio::test(start_paused = true)]
async fn without_a_journal_the_cluster_itself_proves() {
    let mut bench = Bench::new();
    bench.up().await;
    bench.cluster.forget_writes();
    bench.journal = std::sync::Arc::default();
    assert_eq!(bench.up().await, Outcome::Done);
    assert_eq!(bench.cluster.writes(), []);
    let unchanged = |kind: &EventKind| matches!(kind, EventKind::ChangeSkipped { reason: SkipReason::Unchanged, .. });
    assert_eq!(bench.count(unchanged), 13);
}

#[tokio::test(start_paused = true)]
async fn what_was_changed_behind_our_back_is_written_again() {
    let bench = Bench::new();
    bench.up().await;
    bench.cluster.forget_writes();
    let rgd = key("kro.run/v1alpha1", "ResourceGraphDefinition", None, "worker");
    let mut object = bench.cluster.objects()[&rgd].clone();
    object.0["spec"]["schema"]["spec"]["size"] = "integer | default=9".into();
    bench.cluster.put(&object);
    assert_eq!(bench.up().await, Outcome::Done);
    assert_eq!(bench.cluster.writes(), [("apply".to_owned(), rgd.clone())]);
    assert_eq!(bench.state().subjects[&rgd].action, Some(Action::Configure));
}

/// Deleted by hand while no loop ran: what was asked for is carried out, and then it is made again.
#[tokio::test(start_paused = true)]
async fn what_somebody_deleted_is_made_again_once_it_is_gone() {
    for (api, kind, namespace, name) in [
        ("kro.run/v1alpha1", "ResourceGraphDefinition", None, "worker"),
        ("acme.example/v1alpha1", "Platform", Some("default"), "default"),
    ] {
        let bench = Bench::new();
        assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
        let wanted = key(api, kind, namespace, name);
        let mut deleted = bench.cluster.objects()[&wanted].clone();
        assert!(!deleted.finalizers().is_empty());
        let uid = deleted.uid().map(str::to_owned);
        deleted.metadata_mut().insert("deletionTimestamp".into(), "2026-01-01T00:00:00Z".into());
        bench.cluster.put(&deleted);
        let plan = bench.plan().await.1.unwrap().plan;
        let change = plan.changes().find(|change| change.subject.key == wanted).unwrap();
        assert_eq!(change.action, Action::Create);
        assert!(change.note.as_ref().unwrap().contains("being deleted"), "{change:?}");
        assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
        let live = &bench.cluster.objects()[&wanted];
        assert!(!live.is_terminating() && live.uid().map(str::to_owned) != uid, "{live:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_write_and_run_again_ends_the_same_with_nothing_twice() {
    let whole = Bench::new();
    assert_eq!(whole.up().await, Outcome::Done);
    let (expect, total) = (settled(&whole), whole.cluster.writes().len());
    for number in 0..total {
        for fault in [Fault::KillBefore(number), Fault::KillAfter(number)] {
            let bench = Bench::new();
            bench.cluster.fault(Some(fault));
            assert!(bench.killed(bench.up()).await, "{fault:?} did not kill");
            let proven: Vec<ObjectKey> = bench.state().applied.keys().cloned().collect();
            assert_eq!(proven.iter().filter(|key| whole.cluster.writes().iter().any(|(_, w)| w == *key)).count(), number);
            bench.cluster.forget_writes();
            assert_eq!(bench.up().await, Outcome::Done, "{fault:?}: {}", bench.message());
            assert_same(&bench, &expect, &format!("{fault:?}"));
            let twice: Vec<_> = bench.cluster.writes().into_iter().filter(|(_, key)| proven.contains(key)).collect();
            assert_eq!(twice, [], "{fault:?}");
            // What was written and not recorded is found by looking.
            let written = usize::from(matches!(fault, Fault::KillAfter(_)));
            assert_eq!(bench.cluster.writes().len(), total - number - written, "{fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_journal_cut_anywhere_still_resumes() {
    let whole = Bench::new();
    assert_eq!(whole.up().await, Outcome::Done);
    let (expect, events) = (settled(&whole), whole.journal.events());
    // Every third is enough: two events in a row rarely differ in what they prove.
    for length in (0..events.len()).step_by(3) {
        let mut bench = Bench::new();
        bench.cluster = whole.cluster.clone();
        bench.cluster.forget_writes();
        bench.journal = std::sync::Arc::new(plinth_run::memory::VecJournal::with(events[..length].to_vec()));
        assert_eq!(bench.up().await, Outcome::Done, "{length}: {}", bench.message());
        assert_eq!(bench.cluster.writes(), [], "{length}");
        assert_same(&bench, &expect, &length.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_and_stays_failed_ends_the_run_before_its_deadline_and_deletes_nothing() {
    let mut bench = Bench::new();
    bench.broken = Some("operator");
    bench.brings.clear();
    assert_eq!(bench.up().await, Outcome::Failed);
    assert!(bench.message().contains("Deployment.apps/default/operator failed: Broken"), "{}", bench.message());
    assert!(bench.state().elapsed().as_secs() < 40, "{}", bench.state().elapsed());
    assert!(bench.cluster.objects().contains_key(&key("apps/v1", "Deployment", Some("default"), "operator")));
    assert!(bench.cluster.writes().iter().all(|(verb, _)| verb == "apply"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_shorter_than_its_grace_heals() {
    let mut bench = Bench::new();
    bench.broken = Some("operator");
    bench.settings.grace = Duration::from_hours(2);
    assert_eq!(bench.up().await, Outcome::Deadline);
    bench.broken = None;
    assert_eq!(bench.up().await, Outcome::Done);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_names_everything_that_is_not_ready_and_can_be_resumed() {
    let mut bench = Bench::new();
    let brings = std::mem::take(&mut bench.brings);
    assert_eq!(bench.up().await, Outcome::Deadline);
    let message = bench.message();
    assert!(message.starts_with("not ready within 10m00s"), "{message}");
    for name in ["waiting Platform.acme.example/default/default", "waiting ResourceGraphDefinition.kro.run/late"] {
        assert!(message.contains(name), "{name} is not in {message}");
    }
    assert_eq!(bench.state().elapsed().as_secs(), 600);
    bench.brings = brings;
    bench.cluster.forget_writes();
    assert_eq!(bench.up().await, Outcome::Done);
    assert_eq!(bench.cluster.writes(), []);
}

#[tokio::test(start_paused = true)]
async fn silence_is_broken_once_a_minute() {
    let mut bench = Bench::new();
    bench.brings.clear();
    bench.up().await;
    let beats: Vec<_> = bench.events().into_iter().filter(|event| matches!(event.kind, EventKind::Heartbeat { .. })).collect();
    assert_eq!(beats.len(), 9);
    let gaps = beats.windows(2).map(|pair| pair[1].at.duration_since(pair[0].at).as_secs());
    assert!(gaps.clone().all(|gap| gap == 60), "{:?}", gaps.collect::<Vec<_>>());
    let EventKind::Heartbeat { longest, stage, .. } = &beats[0].kind else { unreachable!() };
    assert!(!longest.is_empty() && stage.is_some());
}

struct No;

impl Approver for No {
    fn approve<'a>(&'a self, _plan: &'a plinth_run::Plan) -> Answer<'a, Approval> {
        Box::pin(async { Approval::Declined })
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_declined_writes_nothing() {
    let bench = Bench::new();
    assert_eq!(bench.up_with(&No, None).await, Outcome::Refused);
    assert!(bench.cluster.writes().is_empty() && bench.cluster.objects().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_saved_plan_is_carried_out_exactly_or_not_at_all() {
    let mut bench = Bench::new();
    let saved = bench.plan().await.1.unwrap().plan;
    let yes = crate::ports::Always("plan file".into());
    bench.settings.values = serde_json::json!({"size": 3}).as_object().unwrap().clone();
    assert_eq!(bench.up_with(&yes, Some(&saved)).await, Outcome::Refused);
    assert!(bench.message().contains("the plan is stale"), "{}", bench.message());
    assert!(bench.cluster.writes().is_empty());
    bench.settings.values.clear();
    let mut cut = saved.clone();
    cut.stages.pop();
    assert_eq!(bench.up_with(&yes, Some(&cut)).await, Outcome::Refused);
    assert!(bench.message().contains("its objects are not those"), "{}", bench.message());
    assert!(bench.cluster.writes().is_empty());
    assert_eq!(bench.up_with(&yes, Some(&saved)).await, Outcome::Done);
    // As after a run that was killed: what the journal knows to be written is no change by others.
    let written = bench.cluster.writes().len();
    assert_eq!(bench.up_with(&yes, Some(&saved)).await, Outcome::Done, "{}", bench.message());
    assert_eq!(bench.cluster.writes().len(), written);
    bench.journal = std::sync::Arc::default();
    assert_eq!(bench.up_with(&yes, Some(&saved)).await, Outcome::Refused);
    assert!(bench.message().contains("has changed since"), "{}", bench.message());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_recorded_is_not_done() {
    let bench = Bench::new();
    bench.journal.break_down();
    assert_eq!(bench.up().await, Outcome::Failed);
    assert!(bench.cluster.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_event_holds_a_value_of_an_object() {
    let mut bench = Bench::new();
    bench.settings.values = serde_json::json!({"ocmRepoName": "hunter2"}).as_object().unwrap().clone();
    bench.settings.repository = Some(serde_json::json!({"type": "OCIRegistry", "baseUrl": "s3cr3t.example"}));
    assert_eq!(bench.up().await, Outcome::Done);
    let text: String = bench.journal.events().iter().map(|event| plinth_run::journal::encode(event).unwrap()).collect();
    assert!(!text.contains("s3cr3t"));
}

/// In the plan, in the run, at its end and on the cluster; the next run that checks takes it away again.
#[tokio::test(start_paused = true)]
async fn what_was_switched_off_is_said_everywhere() {
    let words = "signatures were not looked at";
    let mut bench = Bench::new();
    bench.settings.unverified = vec![words.into()];
    let (_, planned) = bench.plan().await;
    assert_eq!(planned.unwrap().plan.unverified, [words]);
    assert_eq!(bench.up().await, Outcome::Done);
    assert_eq!(bench.message(), words);
    let is_warning = |kind: &EventKind| matches!(kind, EventKind::Warning { reason, message, .. } if reason == "Unverified" && message == words);
    assert_eq!(bench.count(is_warning), 1);
    let platform = key("kro.run/v1alpha1", "ResourceGraphDefinition", None, "platform");
    let annotation = bench.cluster.objects()[&platform].annotation(plinth_engine::naming::keys::UNVERIFIED).map(str::to_owned);
    assert_eq!(annotation.as_deref(), Some(words));

    // The next run that checks takes the words away, though it wants nothing else; a real server then drops them.
    bench.settings.unverified.clear();
    let (_, planned) = bench.plan().await;
    let plan = planned.unwrap().plan;
    let change = plan.changes().find(|change| change.subject.key == platform).unwrap();
    assert_eq!(change.action, Action::Configure);
    assert!(change.fields.iter().any(|field| field.contains("unverified")), "{:?}", change.fields);
}
