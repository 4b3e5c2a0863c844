use plinth_engine::naming::keys;
use plinth_run::{CheckVerdict, EventKind, Outcome, SkipReason};
use serde_json::json;

use crate::{
    memory::Fault,
    testing::{Bench, key, object},
};

async fn up() -> Bench {
    let bench = Bench::new();
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    bench.cluster.forget_writes();
    bench
}

/// Kinds of deleted objects, in order, repeats left out.
fn order(bench: &Bench) -> Vec<String> {
    let mut kinds: Vec<String> =
        bench.cluster.writes().iter().filter(|(verb, _)| verb == "delete").map(|(_, key)| key.gvk.kind.clone()).collect();
    kinds.dedup();
    kinds
}

#[tokio::test(start_paused = true)]
async fn down_takes_instances_before_definitions_and_leaves_nothing() {
    let bench = up().await;
    let late = key("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "things.late.example");
    assert_eq!(bench.down().await, Outcome::Done, "{}", bench.message());
    assert_eq!(order(&bench), ["Platform", "ResourceGraphDefinition", "Repository", "CustomResourceDefinition", "Namespace"]);
    // What the operator brought is the operator's.
    assert_eq!(bench.cluster.objects().keys().collect::<Vec<_>>(), [&late]);
    let rgds: Vec<String> = bench
        .cluster
        .writes()
        .iter()
        .filter(|(_, k)| k.gvk.kind == "ResourceGraphDefinition")
        .map(|(_, k)| k.name.clone())
        .collect();
    assert_eq!(rgds[0], "platform");
    let state = bench.state();
    assert_eq!(state.checks.last().unwrap().verdict, CheckVerdict::Passed);
    assert!(state.applied.keys().all(|key| !bench.cluster.writes().iter().any(|(_, deleted)| deleted == key)));
}

#[tokio::test(start_paused = true)]
async fn down_on_an_empty_cluster_has_nothing_to_do() {
    let bench = Bench::new();
    assert_eq!(bench.down().await, Outcome::Done, "{}", bench.message());
    assert_eq!(bench.cluster.writes(), []);
    assert!(bench.state().plan.unwrap().stages.is_empty());
}

#[tokio::test(start_paused = true)]
async fn another_platform_is_left_alone() {
    let mut bench = up().await;
    let before = bench.cluster.objects();
    bench.settings.platform = "other".into();
    assert_eq!(bench.down().await, Outcome::Done);
    assert_eq!(bench.cluster.writes(), []);
    assert_eq!(bench.cluster.objects(), before);
}

#[tokio::test(start_paused = true)]
async fn what_others_made_of_our_kinds_stays_and_so_do_the_kinds() {
    let bench = up().await;
    let theirs = key("acme.example/v1alpha1", "Worker", Some("team"), "theirs");
    bench.cluster.put(&object(json!({
        "apiVersion": "acme.example/v1alpha1", "kind": "Worker", "metadata": {"name": "theirs", "namespace": "team"}, "spec": {},
    })));
    assert_eq!(bench.down().await, Outcome::Done, "{}", bench.message());
    assert!(bench.cluster.objects().contains_key(&theirs));
    for (api, kind, name) in [
        ("kro.run/v1alpha1", "ResourceGraphDefinition", "worker"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "workers.acme.example"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "resourcegraphdefinitions.kro.run"),
    ] {
        assert!(bench.cluster.objects().contains_key(&key(api, kind, None, name)), "{name}");
    }
    let state = bench.state();
    assert!(
        state.warnings.iter().any(|warned| warned.message.contains("Worker.acme.example/team/theirs")),
        "{:?}",
        state.warnings
    );
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_deletion_and_run_again_ends_the_same() {
    let whole = up().await;
    assert_eq!(whole.down().await, Outcome::Done);
    let left: Vec<_> = whole.cluster.objects().into_keys().collect();
    for number in 0..whole.cluster.writes().len() {
        for fault in [Fault::KillBefore(number), Fault::KillAfter(number)] {
            let bench = up().await;
            bench.cluster.fault(Some(fault));
            assert!(bench.killed(bench.down()).await, "{fault:?}");
            assert_eq!(bench.down().await, Outcome::Done, "{fault:?}: {}", bench.message());
            assert_eq!(bench.cluster.objects().into_keys().collect::<Vec<_>>(), left, "{fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_nobody_takes_off_is_named() {
    let bench = up().await;
    let repository = key("delivery.ocm.software/v1alpha1", "Repository", Some("default"), "repo");
    let mut held = bench.cluster.objects()[&repository].clone();
    held.metadata_mut().insert("finalizers".into(), json!(["acme.example/hold"]));
    bench.cluster.put(&held);
    assert_eq!(bench.down().await, Outcome::Deadline);
    let message = bench.message();
    assert!(message.contains("Repository.delivery.ocm.software/default/repo is still there"), "{message}");
    assert!(message.contains("waits for the finalizer acme.example/hold"), "{message}");
    assert!(bench.count(|kind| matches!(kind, EventKind::Heartbeat { .. })) >= 9);
    bench.cluster.take(&repository);
    assert_eq!(bench.down().await, Outcome::Done, "{}", bench.message());
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_delete_nothing_is_deleted() {
    let bench = up().await;
    bench.cluster.deny("delete platforms.acme.example in namespace default");
    assert_eq!(bench.down().await, Outcome::Refused);
    assert_eq!(bench.cluster.writes(), []);
    assert!(bench.message().contains("delete platforms.acme.example in namespace default"), "{}", bench.message());
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_already_is_skipped_aloud() {
    let bench = up().await;
    let ports = bench.ports();
    let survey = super::survey::look("default", ports.reader.as_ref()).await.unwrap();
    assert_eq!(survey.selector, format!("{}=default", keys::PLATFORM));
    let repository = key("delivery.ocm.software/v1alpha1", "Repository", Some("default"), "repo");
    let gone = Gone { cluster: bench.cluster.clone(), key: repository };
    assert_eq!(super::down(&bench.settings, None, &ports, &gone).await, Outcome::Done, "{}", bench.message());
    assert_eq!(bench.count(|kind| matches!(kind, EventKind::ChangeSkipped { reason: SkipReason::Gone, .. })), 1);
}

/// An approver in whose time somebody deletes an object.
struct Gone {
    cluster: std::sync::Arc<crate::memory::FakeCluster>,
    key: plinth_api::ObjectKey,
}

impl crate::ports::Approver for Gone {
    fn approve<'a>(&'a self, _plan: &'a plinth_run::Plan) -> plinth_engine::ports::Answer<'a, crate::ports::Approval> {
        self.cluster.take(&self.key);
        Box::pin(async { crate::ports::Approval::Granted("test".into()) })
    }
}
