//! The reconcilers together, on a cluster in memory.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use plinth_api::{ClusterKey, Object, ObjectKey};
use plinth_cluster::watch::{Owner, WatchSet};
use plinth_engine::graph;
use plinth_manager::reconcile::{Outcome, Reconciler};
use plinth_run::{Action, EventKind, Health, RunState, SkipReason, state};
use serde_json::{Value, json};

use crate::{
    graphs::Graphs,
    instance::{self, Instances},
    rgd::Definitions,
    twin::Scene,
};

/// Both reconcilers and a queue of instances.
pub(crate) struct Loop {
    pub(crate) scene: Scene,
    definitions: Definitions,
    instances: Instances,
    queued: Arc<Mutex<Vec<ObjectKey>>>,
}

impl Loop {
    /// The graph that instances of a kind run by.
    pub(crate) fn graph(&self, instance: &ObjectKey) -> Arc<graph::Graph> {
        self.instances.graphs().of_kind(&instance.cluster, &instance.gvk.group_kind()).unwrap().graph
    }

    pub(crate) fn new() -> Self {
        Self::with(Scene::set(), BTreeMap::new())
    }

    pub(crate) fn with(scene: Scene, seed: BTreeMap<ObjectKey, state::Applied>) -> Self {
        let (graphs, queued) = (Arc::new(Graphs::default()), Arc::new(Mutex::new(Vec::new())));
        let queue = Arc::clone(&queued);
        let enqueue: Arc<dyn Fn(&ObjectKey) + Send + Sync> = Arc::new(move |key| queue.lock().unwrap().push(key.clone()));
        let definitions =
            Definitions::new(scene.world.clone(), Arc::clone(&graphs), graph::Options::default(), Arc::clone(&enqueue));
        let instances = Instances::new(scene.world.clone(), graphs, seed, enqueue);
        Self { scene, definitions, instances, queued }
    }

    /// The same cluster, another process.
    pub(crate) fn restarted(self, seed: BTreeMap<ObjectKey, state::Applied>) -> Self {
        let recorder = Arc::default();
        let scene = Scene {
            world: crate::world::World { recorder: Arc::clone(&recorder) as _, ..self.scene.world },
            recorder,
            ..self.scene
        };
        Self::with(scene, seed)
    }

    pub(crate) async fn define(&self, key: &ObjectKey) -> Outcome {
        self.definitions.reconcile(key).await.unwrap()
    }

    pub(crate) async fn pass(&self, key: &ObjectKey) -> Outcome {
        self.instances.reconcile(key).await.unwrap()
    }

    /// The same cluster, a loop that only removes.
    fn removing(mut self) -> Self {
        self.scene.world.removing = true;
        self.restarted(BTreeMap::new())
    }

    /// Somebody asks for the deletion of an object that something holds.
    fn delete(&self, key: &ObjectKey) {
        let mut object = self.object(key);
        object.metadata_mut().insert("deletionTimestamp".into(), json!("2026-01-01T00:00:00Z"));
        if object.finalizers().is_empty() {
            object.metadata_mut().insert("finalizers".into(), json!(["test/hold"]));
        }
        self.scene.twin.put(object.into_value());
    }

    /// A definition in use, and an instance of it.
    pub(crate) async fn app(&self, spec: Value) -> (ObjectKey, ObjectKey) {
        let definition = self.scene.twin.put(rgd(spec));
        self.define(&definition).await;
        // The status says Established only when it is seen.
        self.define(&definition).await;
        let instance = self.scene.twin.put(json!({"apiVersion": "x.test/v1", "kind": "App",
            "metadata": {"name": "one", "namespace": "n"}, "spec": {"text": "hello"}}));
        (definition, instance)
    }

    pub(crate) fn object(&self, key: &ObjectKey) -> Object {
        self.scene.twin.object(key).unwrap_or_else(|| panic!("{key} exists"))
    }
}

pub(crate) fn rgd(resources: Value) -> Value {
    json!({"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": {"name": "app", "uid": "rgd"},
        "spec": {"schema": {"group": "x.test", "apiVersion": "v1", "kind": "App", "spec": {"text": "string"}}, "resources": resources}})
}

pub(crate) fn map(id: &str, name: &str, value: &str) -> Value {
    json!({"id": id, "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value}}})
}

/// `b` reads `a`.
fn two() -> Value {
    json!([map("a", "a", "${schema.spec.text}"), map("b", "b", "${a.data.v}!")])
}

pub(crate) fn child(name: &str) -> ObjectKey {
    ObjectKey {
        cluster: ClusterKey::host(),
        gvk: plinth_api::GroupVersionKind::new("", "v1", "ConfigMap"),
        namespace: Some("n".into()),
        name: name.into(),
    }
}

fn applied(events: &[EventKind]) -> Vec<(String, Action)> {
    let is_revision = |key: &ObjectKey| key.gvk == crate::rgd::revision::gvk();
    let applied = events.iter().filter_map(|event| match event {
        EventKind::ChangeApplied { subject, .. } if is_revision(&subject.key) => None,
        EventKind::ChangeApplied { subject, action, .. } => Some((subject.key.name.clone(), *action)),
        _ => None,
    });
    applied.collect()
}

pub(crate) fn condition(object: &Object, kind: &str) -> (String, String, String) {
    let found = object.status()["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == kind);
    let text = |field: &str| found.map(|found| found[field].as_str().unwrap().to_owned()).unwrap_or_default();
    (text("status"), text("reason"), text("message"))
}

#[tokio::test]
async fn an_instance_is_brought_up_once() {
    let stage = Loop::new();
    let (definition, instance) = stage.app(two()).await;
    assert_eq!(stage.object(&definition).status()["state"], "Active");
    assert_eq!(stage.pass(&instance).await, Outcome::Done);
    assert_eq!(stage.object(&child("b")).at(&["data", "v"]), Some(&json!("hello!")));
    assert_eq!(stage.object(&instance).status()["state"], "ACTIVE");
    assert_eq!(stage.instances.is_ready(&instance), Some(true));
    let events = stage.scene.events();
    assert_eq!(applied(&events)[1..], [("a".into(), Action::Create), ("b".into(), Action::Create)]);
    assert!(events.iter().any(|event| matches!(event,
        EventKind::HealthChanged { subject, health: Health::Current, .. } if subject.key == instance)));

    stage.scene.twin.log();
    assert_eq!(stage.pass(&instance).await, Outcome::Done);
    assert_eq!(stage.scene.twin.log(), Vec::<String>::new(), "a pass with nothing to do makes no request");
    assert_eq!(stage.scene.events().len(), events.len(), "and tells nothing");
}

#[tokio::test]
async fn an_index_that_lags_causes_no_second_write() {
    let stage = Loop::new();
    let (_, instance) = stage.app(two()).await;
    stage.scene.twin.freeze();
    stage.pass(&instance).await;
    stage.scene.twin.writes();
    stage.pass(&instance).await;
    assert_eq!(stage.scene.twin.writes(), Vec::<String>::new());
    stage.scene.twin.thaw();
    stage.pass(&instance).await;
    assert_eq!(stage.scene.twin.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn drift_is_mended_and_a_deleted_child_comes_back() {
    let stage = Loop::new();
    let (_, instance) = stage.app(two()).await;
    stage.pass(&instance).await;
    let mut tampered = stage.object(&child("a"));
    tampered.0.insert("data".into(), json!({"v": "other"}));
    stage.scene.twin.put(tampered.into_value());
    stage.scene.twin.remove(&child("b"));
    stage.pass(&instance).await;
    assert_eq!(stage.object(&child("a")).at(&["data", "v"]), Some(&json!("hello")));
    assert_eq!(stage.object(&child("b")).at(&["data", "v"]), Some(&json!("hello!")));
}

#[tokio::test]
async fn what_a_journal_proves_is_not_written_again() {
    let stage = Loop::new();
    let (definition, instance) = stage.app(two()).await;
    stage.pass(&instance).await;
    let mut state = RunState::default();
    for (index, kind) in stage.scene.events().into_iter().enumerate() {
        let seq = index as u64 + 1;
        let run = plinth_run::RunId("r".into());
        state.fold(&plinth_run::Event { v: 1, run, seq, at: jiff::Timestamp::UNIX_EPOCH, kind });
    }

    let stage = stage.restarted(state.applied.clone());
    stage.define(&definition).await;
    stage.scene.twin.writes();
    stage.pass(&instance).await;
    assert_eq!(stage.scene.twin.writes(), Vec::<String>::new());
    let skipped = stage.scene.events().into_iter().filter_map(|event| match event {
        EventKind::ChangeSkipped { subject, reason: SkipReason::Proven { .. } } => Some(subject.key.name),
        _ => None,
    });
    assert_eq!(skipped.collect::<Vec<_>>(), ["a", "b"]);

    // Somebody changed a child while nobody looked: the proof does not hold for it.
    let mut tampered = stage.object(&child("a"));
    tampered.0.insert("data".into(), json!({"v": "other"}));
    stage.scene.twin.put(tampered.into_value());
    let stage = stage.restarted(state.applied);
    stage.define(&definition).await;
    stage.pass(&instance).await;
    assert_eq!(stage.object(&child("a")).at(&["data", "v"]), Some(&json!("hello")));
    assert_eq!(applied(&stage.scene.events()), [("a".into(), Action::Configure)]);
}

#[tokio::test]
async fn a_refused_write_is_tried_again_later_and_hides_nothing() {
    let stage = Loop::new();
    let (_, instance) = stage.app(json!([map("a", "a", "x"), map("b", "b", "${a.data.v}"), map("c", "c", "x")])).await;
    stage.scene.twin.refuse("a", true);
    let Outcome::RequeueAfter(delay) = stage.pass(&instance).await else { panic!("not tried again") };
    assert!(!delay.is_zero());
    assert!(stage.scene.twin.object(&child("c")).is_some(), "an independent node goes on");
    assert_eq!(stage.object(&instance).status()["state"], "ERROR");
    let Some(EventKind::HealthChanged { health, causes, .. }) = stage
        .scene
        .events()
        .into_iter()
        .rev()
        .find(|event| matches!(event, EventKind::HealthChanged { subject, .. } if subject.key == instance))
    else {
        panic!("not told")
    };
    assert_eq!(health, Health::Failed);
    assert!(causes[0].message.contains("refused by the test"), "{causes:?}");

    stage.scene.twin.writes();
    stage.pass(&instance).await;
    assert_eq!(stage.scene.twin.writes(), Vec::<String>::new(), "not before its time");
    stage.scene.twin.refuse("a", false);
    stage.scene.later(600);
    assert_eq!(stage.pass(&instance).await, Outcome::Done);
    assert_eq!(stage.object(&instance).status()["state"], "ACTIVE");
}

#[tokio::test]
async fn an_instance_goes_after_its_children_and_a_definition_after_its_instances() {
    let stage = Loop::new();
    let (definition, instance) = stage.app(two()).await;
    stage.pass(&instance).await;
    let mark = |key: &ObjectKey| {
        let mut object = stage.object(key);
        object.metadata_mut().insert("deletionTimestamp".into(), json!("2026-01-01T00:00:00Z"));
        stage.scene.twin.put(object.into_value());
    };
    mark(&definition);
    assert!(matches!(stage.define(&definition).await, Outcome::Wait { .. }));
    let (status, reason, message) = condition(&stage.object(&definition), "Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "WaitingForInstances"));
    assert!(message.contains("App.x.test/n/one"), "{message}");

    mark(&instance);
    stage.scene.twin.writes();
    // Each wave is gone at once here; on a server each ends with a notice of its own.
    for _ in 0..3 {
        stage.pass(&instance).await;
    }
    let writes = stage.scene.twin.writes();
    let of = |text: &str| writes.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {writes:#?}"));
    assert!(of("delete ConfigMap/n/b") < of("delete ConfigMap/n/a") && of("delete ConfigMap/n/a") < of("release App"));
    assert!(stage.scene.twin.object(&instance).is_none());
    assert!(stage.scene.events().iter().any(|event| matches!(event,
        EventKind::HealthChanged { subject, health: Health::NotFound, .. } if subject.key == instance)));
    assert_eq!(stage.scene.twin.set_of(&Owner { role: instance::ROLE, key: instance }), WatchSet::default());

    stage.define(&definition).await;
    assert!(stage.scene.twin.object(&definition).is_none());
}

#[tokio::test]
async fn instances_of_a_definition_that_goes_are_looked_after_by_the_next_process_too() {
    for resources in [two(), json!([map("a", "a", "${nobody.x}")])] {
        let stage = Loop::new();
        let (definition, instance) = stage.app(two()).await;
        stage.pass(&instance).await;
        let mut object = stage.object(&definition);
        object.0["spec"]["resources"] = resources;
        stage.scene.twin.put(object.into_value());
        stage.delete(&definition);

        let stage = stage.restarted(BTreeMap::new());
        assert!(matches!(stage.define(&definition).await, Outcome::Wait { .. }));
        assert!(stage.queued.lock().unwrap().contains(&instance), "somebody looks after it");
        stage.scene.twin.remove(&child("a"));
        stage.pass(&instance).await;
        assert!(stage.scene.twin.object(&child("a")).is_some(), "its drift is mended");
        stage.delete(&instance);
        for _ in 0..3 {
            stage.pass(&instance).await;
        }
        assert!(stage.scene.twin.object(&instance).is_none() && stage.scene.twin.object(&child("b")).is_none());
        stage.define(&definition).await;
        assert!(stage.scene.twin.object(&definition).is_none());
    }
}

#[tokio::test]
async fn a_definition_without_spec_says_so_and_can_be_deleted() {
    let stage = Loop::new();
    let mut bare = rgd(Value::Null);
    bare["spec"] = Value::Null;
    let definition = stage.scene.twin.put(bare);
    stage.define(&definition).await;
    let (status, reason, message) = condition(&stage.object(&definition), "GraphAccepted");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "InvalidResourceGraph"));
    assert!(message.contains("spec is missing"), "{message}");
    assert!(stage.object(&definition).finalizers().is_empty(), "nothing holds it");
}

#[tokio::test]
async fn kinds_that_come_late_are_deferred_and_then_compiled() {
    let stage = Loop::new();
    let late = json!({"id": "late", "template": {"apiVersion": "late.test/v1", "kind": "Thing",
        "metadata": {"name": "t"}, "spec": {"v": "${a.data.v}"}}});
    let (definition, instance) = stage.app(json!([map("a", "a", "x"), late])).await;
    let seen = stage.object(&definition);
    assert_eq!(seen.status()["state"], "Inactive");
    let (status, reason, message) = condition(&seen, "GraphAccepted");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "Deferred"));
    assert!(message.contains("Thing.late.test/v1 (node late)"), "{message}");
    assert_eq!(condition(&seen, "KindReady").0, "True");
    stage.pass(&instance).await;
    assert!(stage.scene.twin.object(&child("a")).is_some(), "what compiles runs");
    assert_eq!(stage.instances.is_ready(&instance), Some(false));
    let kind = plinth_api::GroupVersionKind::new("late.test", "v1", "Thing");
    assert_eq!(stage.definitions.using(&kind.group_kind()), std::slice::from_ref(&definition));

    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.late.test"},
        "spec": {"group": "late.test", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"}, "versions": [{"name": "v1",
            "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
                "properties": {"v": {"type": "string"}}}}}}}]}});
    stage.scene.twin.serve(&Object::from_value(crd).unwrap());
    stage.queued.lock().unwrap().clear();
    stage.define(&definition).await;
    assert_eq!(stage.object(&definition).status()["state"], "Active");
    assert_eq!(*stage.queued.lock().unwrap(), std::slice::from_ref(&instance), "its instances go on");
    stage.pass(&instance).await;
    assert_eq!(stage.instances.is_ready(&instance), Some(true));
}

#[tokio::test]
async fn a_refused_breaking_change_changes_nothing() {
    let stage = Loop::new();
    let (definition, instance) = stage.app(two()).await;
    stage.pass(&instance).await;
    let change = |annotations: Value| {
        let mut changed = stage.object(&definition);
        changed.metadata_mut().insert("annotations".into(), annotations);
        changed.0["spec"]["schema"]["spec"] = json!({"other": "string | default=x"});
        changed.0["spec"]["resources"] = json!([map("a", "a", "${schema.spec.other}")]);
        stage.scene.twin.put(changed.into_value());
    };
    change(json!({}));
    stage.scene.twin.writes();
    stage.define(&definition).await;
    let (status, reason, message) = condition(&stage.object(&definition), "KindReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Failed"));
    assert!(message.contains("breaking changes detected"), "{message}");
    stage.pass(&instance).await;
    let writes = stage.scene.twin.writes();
    assert!(writes.iter().all(|line| line.contains("ResourceGraphDefinition")), "only its own status: {writes:#?}");

    change(json!({"kro.run/allow-breaking-changes": "true"}));
    stage.define(&definition).await;
    // The default that a server would fill in.
    let mut defaulted = stage.object(&instance);
    defaulted.0["spec"] = json!({"other": "x"});
    stage.scene.twin.put(defaulted.into_value());
    assert!(
        stage.scene.events().iter().any(|event| matches!(event, EventKind::Warning { reason, .. } if reason == "BreakingChange"))
    );
    stage.pass(&instance).await;
    assert!(stage.scene.twin.object(&child("b")).is_none(), "what is no longer wanted is pruned");
}

/// `b` reads what somebody else made, and `a` is its own.
fn with_account() -> Value {
    let mut definition = rgd(json!([map("a", "a", "${schema.spec.text}"), map("b", "b", "${far.data.v}!"),
        {"id": "far", "externalRef": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "far", "namespace": "other"}}}]));
    definition["metadata"]["annotations"] = json!({"plinth.dev/service-account": "app"});
    definition
}

async fn app_with_account() -> (Loop, ObjectKey) {
    let stage = Loop::new();
    stage.scene.twin.put(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "far", "namespace": "other"},
        "data": {"v": "theirs"}}));
    let definition = stage.scene.twin.put(with_account());
    stage.define(&definition).await;
    stage.define(&definition).await;
    let instance = stage.scene.twin.put(json!({"apiVersion": "x.test/v1", "kind": "App",
        "metadata": {"name": "one", "namespace": "n"}, "spec": {"text": "hello"}}));
    stage.scene.twin.log();
    (stage, instance)
}

#[tokio::test]
async fn children_are_written_by_the_account_and_the_instance_by_the_loop() {
    let (stage, instance) = app_with_account().await;
    stage.pass(&instance).await;
    assert_eq!(stage.object(&instance).status()["state"], "ACTIVE");
    let asked: Vec<String> = stage.scene.twin.log().into_iter().filter(|line| line.contains("system:serviceaccount")).collect();
    let account = "system:serviceaccount:n:app";
    assert_eq!(
        asked,
        [
            format!("review get ConfigMap/v1 by {account}"),
            format!("{account} asks to patch ConfigMap/n/a"),
            format!("{account} asks to patch ConfigMap/n/b"),
        ]
    );
    stage.pass(&instance).await;
    assert_eq!(stage.scene.twin.log(), Vec::<String>::new(), "a right that was there is not asked for in every pass");

    stage.delete(&instance);
    while stage.scene.twin.object(&instance).is_some() {
        stage.pass(&instance).await;
    }
    let asked = stage.scene.twin.log().into_iter().filter(|line| line.contains("asks to delete")).count();
    assert_eq!(asked, 2);
}

#[tokio::test]
async fn what_the_account_may_not_do_is_not_done_and_is_tried_again() {
    let (stage, instance) = app_with_account().await;
    for verb in ["patch", "get"] {
        stage.scene.twin.deny(verb, true);
    }
    assert!(matches!(stage.pass(&instance).await, Outcome::RequeueAfter(_)));
    let message = condition(&stage.object(&instance), "ResourcesReady").2;
    assert!(message.contains("system:serviceaccount:n:app may not patch configmaps in namespace n"), "{message}");
    assert!(message.contains("system:serviceaccount:n:app may not get ConfigMap \"far\" in namespace other"), "{message}");
    assert!(stage.scene.twin.object(&child("a")).is_none() && stage.scene.twin.object(&child("b")).is_none());

    for verb in ["patch", "get"] {
        stage.scene.twin.deny(verb, false);
    }
    stage.scene.later(10);
    stage.pass(&instance).await;
    assert_eq!(stage.object(&instance).status()["state"], "ACTIVE");
    assert_eq!(stage.object(&child("b")).at(&["data", "v"]), Some(&json!("theirs!")));
}

#[tokio::test]
async fn a_right_that_is_taken_away_is_missed_after_a_while() {
    let (stage, instance) = app_with_account().await;
    stage.pass(&instance).await;
    stage.scene.twin.deny("get", true);
    stage.scene.later(3600);
    stage.pass(&instance).await;
    assert_eq!(stage.object(&instance).status()["state"], "ERROR");
}

#[tokio::test]
async fn conditions_are_events_only_where_that_is_asked_for() {
    for asked in [false, true] {
        let mut scene = Scene::set();
        scene.world.condition_events = asked;
        let stage = Loop::with(scene, BTreeMap::new());
        let (_, instance) = stage.app(two()).await;
        stage.pass(&instance).await;
        let events = stage.scene.twin.writes().into_iter().filter(|line| line.contains("Event/n/one.")).count();
        assert_eq!(events > 0, asked);
    }
}

#[tokio::test]
async fn a_child_that_somebody_deletes_is_awaited_until_it_is_made_again() {
    let stage = Loop::new();
    let (_, instance) = stage.app(two()).await;
    stage.pass(&instance).await;
    let awaited = std::sync::Arc::clone(&stage.scene.world.awaited);
    stage.delete(&child("a"));
    stage.pass(&instance).await;
    assert!(awaited.is(&child("a")) && !awaited.is(&child("b")));
    stage.scene.twin.remove(&child("a"));
    stage.pass(&instance).await;
    assert!(!awaited.is(&child("a")) && !stage.object(&child("a")).is_terminating());

    stage.delete(&child("a"));
    stage.delete(&instance);
    stage.pass(&instance).await;
    assert!(!awaited.is(&child("a")), "an instance that goes makes nothing again");
}

#[tokio::test]
async fn a_definition_that_is_made_again_lets_go_and_its_instances_stay() {
    let stage = Loop::new();
    let (definition, instance) = stage.app(two()).await;
    stage.pass(&instance).await;
    let wanted = stage.object(&definition);
    stage.delete(&definition);
    assert!(matches!(stage.define(&definition).await, Outcome::Wait { .. }));
    stage.scene.world.awaited.declare(&definition, std::collections::BTreeSet::from([definition.clone()]));
    stage.scene.twin.writes();
    stage.define(&definition).await;
    assert!(stage.scene.twin.object(&definition).is_none());
    // Its revisions belong to the object that goes; everything else stays.
    let writes = stage.scene.twin.writes();
    assert!(writes.iter().all(|line| !line.starts_with("delete") || line.contains("GraphRevision")), "{writes:#?}");

    stage.scene.twin.put(wanted.into_value());
    stage.define(&definition).await;
    stage.pass(&instance).await;
    assert_eq!(stage.object(&instance).status()["state"], "ACTIVE");
}

#[tokio::test]
async fn on_the_way_out_nothing_is_made_and_deletions_are_carried_out() {
    let stage = Loop::new();
    let (definition, instance) = stage.app(two()).await;
    stage.pass(&instance).await;
    stage.scene.twin.remove(&child("a"));
    let stage = stage.removing();
    stage.scene.twin.writes();
    stage.define(&definition).await;
    assert!(matches!(stage.pass(&instance).await, Outcome::Wait { .. }));
    assert_eq!(stage.scene.twin.writes(), Vec::<String>::new());
    assert_eq!(stage.scene.events().len(), 0, "what stays as it is is not told");

    stage.delete(&instance);
    for _ in 0..3 {
        stage.pass(&instance).await;
    }
    let writes = stage.scene.twin.writes();
    assert!(writes.iter().all(|line| !line.starts_with("apply ConfigMap")), "{writes:#?}");
    assert!(stage.scene.twin.object(&instance).is_none() && stage.scene.twin.object(&child("b")).is_none(), "{writes:#?}");
}
