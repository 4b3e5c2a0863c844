use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use plinth_api::{Object, ObjectKey, Permission};
use plinth_engine::{
    naming::keys,
    ports::{Answer, Query, ReadError, Reader},
};
use plinth_run::{CheckVerdict, ClusterIdentity, EventKind, Outcome, SkipReason};
use serde_json::json;

use super::down;
use crate::{
    memory::Fault,
    ports::{Access, Always, Ports},
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
    let survey = super::survey::look("default", &ports, &ports).await.unwrap();
    assert_eq!(survey.selector, format!("{}=default", keys::PLATFORM));
    let repository = key("delivery.ocm.software/v1alpha1", "Repository", Some("default"), "repo");
    let gone = Gone { cluster: bench.cluster.clone(), key: repository };
    assert_eq!(super::down(&bench.settings, None, &ports, &gone).await, Outcome::Done, "{}", bench.message());
    assert_eq!(bench.count(|kind| matches!(kind, EventKind::ChangeSkipped { reason: SkipReason::Gone, .. })), 1);
}

/// A child as the loop labels it, of an instance with this UID.
fn child(kind: (&str, &str), name: &str, uid: &str) -> plinth_api::Object {
    object(json!({"apiVersion": kind.0, "kind": kind.1, "metadata": {"name": name, "namespace": "default", "labels": {
        (keys::PLATFORM): "default", (keys::INSTANCE_ID): uid, (keys::INSTANCE_GROUP): "acme.example",
        (keys::INSTANCE_VERSION): "v1alpha1", (keys::INSTANCE_KIND): "Worker", (keys::INSTANCE_NAME): "worker",
    }}}))
}

/// Nobody removes the children of an instance that was torn away by hand: a proof that does not look at them is none.
#[tokio::test(start_paused = true)]
async fn children_of_an_instance_that_is_gone_go_too() {
    for definitions_are_there in [true, false] {
        let bench = up().await;
        bench.cluster.take(&key("acme.example/v1alpha1", "Worker", Some("default"), "worker"));
        for (kind, name) in [(("v1", "ConfigMap"), "worker-config"), (("late.example/v1", "Thing"), "lost")] {
            bench.cluster.put(&child(kind, name, "uid-of-nobody"));
        }
        if !definitions_are_there {
            assert_eq!(bench.down().await, Outcome::Done, "{}", bench.message());
            bench.cluster.put(&child(("v1", "ConfigMap"), "worker-config", "uid-of-nobody"));
        }
        assert_eq!(bench.down().await, Outcome::Done, "{}", bench.message());
        let late = key("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "things.late.example");
        assert_eq!(bench.cluster.objects().keys().collect::<Vec<_>>(), [&late]);
    }
}

#[tokio::test(start_paused = true)]
async fn children_of_an_instance_that_stays_stay_with_it() {
    let bench = up().await;
    let theirs = bench.cluster.put(&object(json!({
        "apiVersion": "acme.example/v1alpha1", "kind": "Worker", "metadata": {"name": "theirs", "namespace": "team"}, "spec": {},
    })));
    bench.cluster.put(&child(("v1", "ConfigMap"), "of-theirs", theirs.uid().unwrap()));
    assert_eq!(bench.down().await, Outcome::Done, "{}", bench.message());
    assert!(bench.cluster.objects().contains_key(&key("v1", "ConfigMap", Some("default"), "of-theirs")));
    let said = bench.state().warnings.iter().any(|warned| warned.message.contains("it belongs to Worker.acme.example"));
    assert!(said, "{:?}", bench.state().warnings);
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_looked_at_is_said_with_the_proof() {
    let bench = up().await;
    bench.cluster.deny("list Thing.late.example");
    assert_eq!(bench.down().await, Outcome::Done, "{}", bench.message());
    let state = bench.state();
    let said = "Thing.late.example could not be looked at: list Thing.late.example is not permitted";
    assert!(state.checks.last().unwrap().message.contains(said), "{:?}", state.checks.last());
    assert!(state.warnings.iter().any(|warned| warned.message.contains(said)), "{:?}", state.warnings);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_holds_something_of_others_stays() {
    let config =
        |name: &str| object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "other2"}}));
    for (held, denied, why) in [
        (Some("mine"), None, Some("holds ConfigMap/mine of others")),
        (None, Some("list Thing.late.example"), Some("so it may hold objects of others")),
        (None, None, None),
    ] {
        let mut bench = Bench::new();
        bench.settings.namespace = Some("other2".into());
        assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
        bench.cluster.put(&config("kube-root-ca.crt"));
        held.map(|name| bench.cluster.put(&config(name)));
        denied.into_iter().for_each(|permission| bench.cluster.deny(permission));
        assert_eq!(bench.down().await, Outcome::Done, "{}", bench.message());
        let namespace = key("v1", "Namespace", None, "other2");
        assert_eq!(bench.cluster.objects().contains_key(&namespace), why.is_some());
        let Some(why) = why else { continue };
        let state = bench.state();
        let note = state.plan.unwrap().changes().find(|change| change.subject.key == namespace).unwrap().note.clone();
        assert!(note.unwrap().contains(why));
        assert!(state.warnings.iter().any(|warned| warned.message.contains(why)), "{:?}", state.warnings);
    }
}

/// A server that goes away for a minute when it is asked for late things, of which only discovery knows.
struct Away {
    ports: Ports,
    since: Mutex<Option<Timestamp>>,
}

impl Away {
    fn is_away(&self, begins: bool) -> Result<(), ReadError> {
        let now = self.ports.log.clock().now();
        let mut since = self.since.lock().unwrap();
        if begins {
            since.get_or_insert(now);
        }
        match *since {
            Some(since) if now.duration_since(since) < SignedDuration::from_mins(1) => {
                Err(ReadError::Unavailable("connection refused".into()))
            }
            _ => Ok(()),
        }
    }
}

impl Reader for Away {
    fn get<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Option<Object>, ReadError>> {
        Box::pin(async {
            self.is_away(false)?;
            self.ports.reader.get(key).await
        })
    }

    fn list<'a>(&'a self, query: &'a Query) -> Answer<'a, Result<Vec<Object>, ReadError>> {
        Box::pin(async {
            self.is_away(query.gvk.kind == "Thing")?;
            self.ports.reader.list(query).await
        })
    }
}

impl Access for Away {
    fn identity(&self) -> Answer<'_, Result<ClusterIdentity, ReadError>> {
        Box::pin(async {
            self.is_away(false)?;
            self.ports.access.identity().await
        })
    }

    fn can_i<'a>(&'a self, permission: &'a Permission) -> Answer<'a, Result<bool, ReadError>> {
        self.ports.access.can_i(permission)
    }
}

/// That a kind could not be looked at is no reason to keep a namespace while nothing can be looked at.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_costs_time_and_no_namespace() {
    let mut bench = Bench::new();
    bench.settings.namespace = Some("other2".into());
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    let ports = bench.ports();
    let away = Arc::new(Away { ports: ports.clone(), since: Mutex::default() });
    let ports = Ports { reader: Arc::clone(&away) as _, access: Arc::clone(&away) as _, ..ports };
    assert_eq!(down(&bench.settings, None, &ports, &Always("test".into())).await, Outcome::Done, "{}", bench.message());
    assert!(away.since.lock().unwrap().is_some(), "it was away");
    assert!(!bench.cluster.objects().contains_key(&key("v1", "Namespace", None, "other2")), "{:?}", bench.state().warnings);
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
