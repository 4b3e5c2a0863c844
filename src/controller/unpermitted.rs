//! A controller that may not do what a graph asks for: it says what is missing, waits, and goes on when it is there.

use plinth_manager::reconcile::Outcome;
use plinth_run::{EventKind, Health};
use serde_json::json;

use crate::{
    conditions::holds,
    tests::{Loop, child, condition, map, rgd},
};

const MISSING: &str = plinth_api::permission::MISSING;

/// What was told last of an object.
fn told(stage: &Loop, key: &plinth_api::ObjectKey) -> Option<(Health, String)> {
    stage.scene.events().into_iter().rev().find_map(|event| match event {
        EventKind::HealthChanged { subject, health, reason, .. } if subject.key == *key => Some((health, reason)),
        _ => None,
    })
}

#[tokio::test]
async fn an_instance_names_the_right_and_goes_on_with_it() {
    let stage = Loop::new();
    let (_, instance) = stage.app(json!([map("a", "a", "${schema.spec.text}"), map("b", "b", "x")])).await;
    let right = "create configmaps a in namespace n";
    stage.scene.twin.lack(right, true);
    let Outcome::RequeueAfter(first) = stage.pass(&instance).await else { panic!("nothing else tells that it is there") };
    let object = stage.object(&instance);
    let (status, reason, message) = condition(&object, MISSING);
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Forbidden"), "{object:?}");
    assert!(message.contains(&format!("the controller may not {right}: plinth grant")), "{message}");
    assert_eq!(object.status()["state"], "IN_PROGRESS", "waiting is not failing");
    assert_eq!(condition(&object, "Ready").0, "False");
    assert_eq!(told(&stage, &child("a")), Some((Health::Waiting, MISSING.into())));
    assert_eq!(told(&stage, &instance), Some((Health::Waiting, MISSING.into())));
    assert!(stage.scene.twin.object(&child("b")).is_some(), "what does not need it goes on");

    // Half an hour costs few requests.
    stage.scene.twin.writes();
    for _ in 0..90 {
        stage.scene.later(20);
        stage.pass(&instance).await;
    }
    let tries = stage.scene.twin.writes();
    assert!(first.as_secs() >= 2 && tries.len() <= 90 && tries.len() > 30, "{first:?} {}", tries.len());

    stage.scene.twin.lack(right, false);
    stage.scene.later(26);
    stage.pass(&instance).await;
    let object = stage.object(&instance);
    assert_eq!(object.status()["state"], "ACTIVE");
    assert!(crate::conditions::find(&object, MISSING).is_none() && holds(&object, "Ready"));
}

#[tokio::test]
async fn an_instance_whose_childs_kind_cannot_be_watched_waits_for_the_watch() {
    let stage = Loop::new();
    let (_, instance) = stage.app(json!([map("a", "a", "x")])).await;
    stage.scene.twin.lack("list configmaps", true);
    assert_eq!(stage.pass(&instance).await, Outcome::Done, "the watch tells when it is there");
    assert!(condition(&stage.object(&instance), MISSING).2.contains("may not list configmaps: "));
    stage.scene.twin.lack("list configmaps", false);
    stage.pass(&instance).await;
    assert_eq!(stage.object(&instance).status()["state"], "ACTIVE");
}

#[tokio::test]
async fn a_definition_names_the_right_that_its_kind_takes() {
    let stage = Loop::new();
    let right = "create customresourcedefinitions.apiextensions.k8s.io apps.x.test";
    stage.scene.twin.lack(right, true);
    let definition = stage.scene.twin.put(rgd(json!([map("a", "a", "x")])));
    assert!(matches!(stage.define(&definition).await, Outcome::RequeueAfter(_)));
    let object = stage.object(&definition);
    assert!(condition(&object, MISSING).2.contains(&format!("may not {right}: ")), "{object:?}");
    let (status, reason, _) = condition(&object, "Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", MISSING));
    assert_eq!(told(&stage, &definition), Some((Health::Waiting, MISSING.into())));

    stage.scene.twin.lack(right, false);
    stage.scene.twin.lack("list apps.x.test", true);
    stage.define(&definition).await;
    stage.define(&definition).await;
    assert!(condition(&stage.object(&definition), MISSING).2.contains("may not list apps.x.test: "));
    stage.scene.twin.lack("list apps.x.test", false);
    assert_eq!(stage.define(&definition).await, Outcome::Done);
    let object = stage.object(&definition);
    assert!(crate::conditions::find(&object, MISSING).is_none());
    assert_eq!(object.status()["state"], "Active");
}
