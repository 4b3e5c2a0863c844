//! Revisions, on a cluster in memory.

use std::sync::Arc;

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey};
use plinth_cluster::watch::Owner;
use plinth_engine::naming::keys;
use plinth_manager::reconcile::Outcome;
use plinth_run::EventKind;
use serde_json::{Value, json};

use super::revision;
use crate::{
    tests::{Loop, child, condition, map},
    twin::Twin,
};

fn revision_of(number: i64) -> ObjectKey {
    revision::key(&ClusterKey::host(), "app", number)
}

fn exists(twin: &Twin) -> Vec<i64> {
    (1..20).filter(|number| twin.object(&revision_of(*number)).is_some()).collect()
}

fn edit(stage: &Loop, definition: &ObjectKey, change: impl Fn(&mut Object)) {
    let mut object = stage.object(definition);
    change(&mut object);
    stage.scene.twin.put(object.into_value());
}

fn one(value: &str) -> Value {
    json!([map("a", "a", value)])
}

#[tokio::test]
async fn each_accepted_spec_is_a_revision_and_the_newest_five_are_kept() {
    let stage = Loop::new();
    let (definition, _) = stage.app(one("1")).await;
    assert_eq!((exists(&stage.scene.twin), &stage.object(&definition).status()["lastIssuedRevision"]), (vec![1], &json!(1)));
    let first = stage.object(&revision_of(1));
    assert_eq!(condition(&first, "GraphVerified").0, "True");
    assert_eq!((first.status()["topologicalOrder"].clone(), condition(&first, "Ready").0.as_str()), (json!(["a"]), "True"));
    for value in 2..=7 {
        edit(&stage, &definition, |object| object.0["spec"]["resources"] = one(&value.to_string()));
        stage.define(&definition).await;
    }
    assert_eq!(exists(&stage.scene.twin), [3, 4, 5, 6, 7]);
    let (status, reason, message) = condition(&stage.object(&definition), "GraphRevisionsResolved");
    assert_eq!((status.as_str(), reason.as_str(), message.as_str()), ("True", "Resolved", "revision 7 compiled and active"));

    stage.scene.twin.log();
    stage.define(&definition).await;
    assert_eq!(stage.scene.twin.log(), Vec::<String>::new(), "a pass with nothing to do makes no request");
}

#[tokio::test]
async fn a_spec_that_does_not_compile_is_no_revision_and_the_last_good_one_goes_on() {
    let stage = Loop::new();
    let (definition, instance) = stage.app(one("good")).await;
    stage.pass(&instance).await;
    edit(&stage, &definition, |object| object.0["spec"]["resources"] = one("${nobody.x}"));
    stage.define(&definition).await;
    assert_eq!(exists(&stage.scene.twin), [1]);

    // Another process knows of the good one by its revision alone.
    let stage = stage.restarted(std::collections::BTreeMap::new());
    stage.define(&definition).await;
    let object = stage.object(&definition);
    assert_eq!((condition(&object, "GraphAccepted").0.as_str(), object.status()["state"].as_str()), ("False", Some("Inactive")));
    assert_eq!(condition(&object, "GraphRevisionsResolved").2, "revision 1 compiled and active");
    stage.scene.twin.remove(&child("a"));
    stage.pass(&instance).await;
    assert_eq!(stage.object(&child("a")).at(&["data", "v"]), Some(&json!("good")));

    edit(&stage, &definition, |object| object.0["spec"]["resources"] = one("better"));
    stage.define(&definition).await;
    assert_eq!((exists(&stage.scene.twin), &stage.object(&definition).status()["lastIssuedRevision"]), (vec![1, 2], &json!(2)));
}

#[tokio::test]
async fn a_restart_issues_nothing_and_a_definition_made_anew_goes_on_counting() {
    let stage = Loop::new();
    let (definition, _) = stage.app(one("1")).await;
    let stage = stage.restarted(std::collections::BTreeMap::new());
    stage.scene.twin.writes();
    stage.define(&definition).await;
    assert_eq!(stage.scene.twin.writes(), Vec::<String>::new());

    // Deleted behind the back of the loop, so that nobody dropped its revisions.
    stage.scene.twin.remove(&definition);
    stage.define(&definition).await;
    let mut anew = crate::tests::rgd(one("2"));
    anew["metadata"]["uid"] = json!("another");
    stage.scene.twin.put(anew);
    stage.define(&definition).await;
    assert_eq!(exists(&stage.scene.twin), [1, 2]);
    for number in [1, 2] {
        let owners = stage.object(&revision_of(number)).at(&["metadata", "ownerReferences"]).cloned().unwrap();
        assert!(owners.as_array().unwrap().iter().any(|owner| owner["uid"] == "another"), "{owners}");
    }
}

#[tokio::test]
async fn revisions_go_with_their_definition() {
    let stage = Loop::new();
    let (definition, instance) = stage.app(one("1")).await;
    stage.scene.twin.remove(&instance);
    edit(&stage, &definition, |object| {
        object.metadata_mut().insert("deletionTimestamp".into(), json!("2026-01-01T00:00:00Z"));
    });
    stage.define(&definition).await;
    assert!(stage.scene.twin.object(&definition).is_none());
    assert_eq!(exists(&stage.scene.twin), [] as [i64; 0]);
}

/// A cluster without the kind, or a right that is missing, takes the history and nothing else.
#[tokio::test]
async fn without_revisions_everything_else_works() {
    let stage = Loop::new();
    stage.scene.twin.unserve(&revision::gvk());
    let (definition, instance) = stage.app(one("1")).await;
    stage.pass(&instance).await;
    assert_eq!(stage.object(&definition).status()["state"], "Active");
    assert_eq!(stage.object(&definition).status().get("lastIssuedRevision"), None);
    assert_eq!(stage.object(&instance).status()["state"], "ACTIVE");
}

#[tokio::test]
async fn a_right_that_revisions_take_is_named_and_everything_else_works() {
    let stage = Loop::new();
    stage.scene.twin.forbid("GraphRevision", true);
    let (definition, instance) = stage.app(one("1")).await;
    stage.pass(&instance).await;
    let object = stage.object(&definition);
    let (status, reason, message) = condition(&object, "GraphRevisionsResolved");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "NotPermitted"));
    assert!(
        message.contains("patch graphrevisions is not permitted") && message.contains("resources: [graphrevisions]"),
        "{message}"
    );
    assert_eq!((condition(&object, "Ready").0.as_str(), object.status()["state"].as_str()), ("True", Some("Active")));
    assert_eq!(stage.object(&instance).status()["state"], "ACTIVE");
    let warnings = |stage: &Loop| {
        let is_one = |event: &EventKind| matches!(event, EventKind::Warning { reason, .. } if reason == "RevisionNotPermitted");
        stage.scene.events().iter().filter(|event| is_one(event)).count()
    };
    assert_eq!(warnings(&stage), 1, "once, whatever the passes");

    stage.scene.twin.forbid("GraphRevision", false);
    assert!(matches!(stage.define(&definition).await, Outcome::Done));
    assert_eq!(condition(&stage.object(&definition), "GraphRevisionsResolved").0, "True");
    assert_eq!((exists(&stage.scene.twin), warnings(&stage)), (vec![1], 1));
}

#[tokio::test]
async fn revisions_of_a_definition_that_is_gone_go_after_a_while_or_with_the_next_process() {
    for restarts in [false, true] {
        let stage = Loop::new();
        let (definition, _) = stage.app(one("1")).await;
        // Another controller's are its own.
        let mut foreign = stage.object(&revision_of(1)).into_value();
        foreign["metadata"]["name"] = json!("other-r00001");
        foreign["metadata"]["labels"]["kro.run/kro-version"] = json!("v0.9.4");
        foreign["spec"]["snapshot"]["name"] = json!("other");
        let foreign = stage.scene.twin.put(foreign);
        stage.scene.twin.remove(&definition);
        let stage = if restarts { stage.restarted(std::collections::BTreeMap::new()) } else { stage };
        if restarts {
            stage.define(&super::leftovers(&ClusterKey::host())).await;
        } else {
            assert!(matches!(stage.define(&definition).await, Outcome::RequeueAfter(_)));
            assert_eq!(exists(&stage.scene.twin), [1], "it may be made anew");
            assert!(matches!(stage.define(&definition).await, Outcome::Done));
        }
        assert_eq!(exists(&stage.scene.twin), [] as [i64; 0]);
        assert!(stage.scene.twin.object(&foreign).is_some());
    }
}

#[tokio::test]
async fn a_definition_is_compiled_again_only_where_it_or_its_kinds_changed() {
    let stage = Loop::new();
    let (definition, instance) = stage.app(one("1")).await;
    let first = stage.graph(&instance);
    stage.define(&definition).await;
    assert!(Arc::ptr_eq(&first, &stage.graph(&instance)));
    edit(&stage, &definition, |object| object.0["spec"]["resources"] = one("2"));
    stage.define(&definition).await;
    assert!(!Arc::ptr_eq(&first, &stage.graph(&instance)));
}

/// A rule that does not compile, a column of a type that is none: only the server knows.
#[tokio::test]
async fn a_crd_that_the_server_refuses_is_told_in_the_status_and_tried_again() {
    let stage = Loop::new();
    let (definition, instance) = stage.app(one("good")).await;
    stage.pass(&instance).await;
    let words = "CustomResourceDefinition \"apps.x.test\" is invalid: undeclared reference to 'nope'";
    stage.scene.twin.invalidate("apps.x.test", Some(words));
    edit(&stage, &definition, |object| {
        object.0["spec"]["schema"]["spec"]["more"] = json!("string");
        object.0["spec"]["resources"] = one("other");
    });
    let Outcome::RequeueAfter(first) = stage.define(&definition).await else { panic!("not tried again") };
    let object = stage.object(&definition);
    let (status, reason, message) = condition(&object, "KindReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Failed"));
    assert!(message.contains("failed to update CRD apps.x.test") && message.contains("'nope'"), "{message}");
    assert_eq!((object.status()["state"].as_str(), condition(&object, "Ready").0.as_str()), (Some("Inactive"), "False"));
    let observed: Vec<i64> =
        object.status()["conditions"].as_array().unwrap().iter().filter_map(|one| one["observedGeneration"].as_i64()).collect();
    assert!(observed.contains(&object.generation()), "{observed:?}");
    assert_eq!(exists(&stage.scene.twin), [1], "nothing runs by it");

    stage.scene.twin.writes();
    let Outcome::RequeueAfter(second) = stage.define(&definition).await else { panic!("not tried again") };
    assert!(second > first, "{first:?} {second:?}");
    assert_eq!(stage.scene.twin.writes().len(), 1, "the CRD, and no status that is the same");
    stage.scene.twin.invalidate("apps.x.test", None);
    assert_eq!(stage.define(&definition).await, Outcome::Done);
    stage.define(&definition).await;
    assert_eq!(stage.object(&definition).status()["state"], "Active");
}

#[tokio::test]
async fn a_new_definition_whose_crd_is_refused_has_a_status() {
    let stage = Loop::new();
    stage.scene.twin.invalidate("apps.x.test", Some("spec.group: Invalid value"));
    let definition = stage.scene.twin.put(crate::tests::rgd(one("1")));
    assert!(matches!(stage.define(&definition).await, Outcome::RequeueAfter(_)));
    let object = stage.object(&definition);
    assert_eq!((object.status()["state"].as_str(), condition(&object, "KindReady").0.as_str()), (Some("Inactive"), "False"));
    assert_eq!(condition(&object, "Ready").2, "failed to create CRD apps.x.test: spec.group: Invalid value");
}

/// Its author changed nothing: that a status has no types for a while is no breaking change.
#[tokio::test]
async fn a_kind_that_goes_is_waited_for_and_the_crd_stays_as_it_is() {
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "foos.late.test"},
        "spec": {"group": "late.test", "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"}, "versions": [{"name": "v1",
            "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}}}}}}]}});
    let crd = Object::from_value(crd).unwrap();
    let stage = Loop::new();
    stage.scene.twin.serve(&crd);
    let mut rgd = crate::tests::rgd(
        json!([{"id": "foo", "template": {"apiVersion": "late.test/v1", "kind": "Foo", "metadata": {"name": "f"}}}]),
    );
    rgd["spec"]["schema"]["status"] = json!({"r": "${foo.status.ready}"});
    let definition = stage.scene.twin.put(rgd);
    stage.define(&definition).await;
    stage.define(&definition).await;
    assert_eq!(stage.object(&definition).status()["state"], "Active");
    let installed = super::reconcile::crd_key(&definition, "apps.x.test");
    let before = stage.object(&installed);

    stage.scene.twin.unserve(&plinth_api::GroupVersionKind::new("late.test", "v1", "Foo"));
    stage.define(&definition).await;
    let (status, reason, message) = condition(&stage.object(&definition), "GraphAccepted");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "Deferred"), "{message}");
    assert_eq!(condition(&stage.object(&definition), "KindReady").0, "True");
    assert_eq!(stage.object(&installed), before);

    stage.scene.twin.serve(&crd);
    stage.define(&definition).await;
    assert_eq!(stage.object(&definition).status()["state"], "Active");
    assert_eq!(stage.object(&installed), before);
}

/// kro leaves the second one refused for ever, and the kind without a controller.
#[tokio::test]
async fn a_definition_takes_over_the_kind_of_one_that_is_gone() {
    let stage = Loop::new();
    let (first, _) = stage.app(one("first")).await;
    let mut other = crate::tests::rgd(one("second"));
    other["metadata"] = json!({"name": "other", "uid": "other"});
    let second = stage.scene.twin.put(other);
    stage.define(&second).await;
    let (status, _, message) = condition(&stage.object(&second), "KindReady");
    assert_eq!(
        (status.as_str(), message.as_str()),
        ("False", "failed to update CRD apps.x.test: CRD is owned by another ResourceGraphDefinition app")
    );
    let awaited = stage.scene.twin.set_of(&Owner { role: super::reconcile::ROLE, key: second.clone() });
    assert!(awaited.objects.contains(&first), "its end is seen: {awaited:?}");

    stage.scene.twin.remove(&first);
    stage.define(&first).await;
    stage.define(&second).await;
    stage.define(&second).await;
    assert_eq!(stage.object(&second).status()["state"], "Active");
    let crd = ObjectKey {
        gvk: GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        name: "apps.x.test".into(),
        ..second.clone()
    };
    assert_eq!(stage.object(&crd).label(keys::RGD_NAME), Some("other"));
}
