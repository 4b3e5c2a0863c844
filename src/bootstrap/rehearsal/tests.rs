use std::time::Duration;

use plinth_api::lock::{LockedComponent, LockedResource, ReleaseLock};
use serde_json::json;

use super::*;
use crate::{
    memory::FakeCluster,
    ports::Always,
    testing::{Bench, LATE},
};

/// A plane that is still once its objects have not changed for five seconds.
struct Quiet {
    cluster: Arc<FakeCluster>,
    absent: &'static str,
}

impl Venue for Quiet {
    fn still(&self) -> Answer<'_, ()> {
        Box::pin(async {
            let mut before = None;
            while before.replace(self.cluster.version()) != Some(self.cluster.version()) || self.cluster.version() == 0 {
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
        })
    }

    fn has_image(&self, reference: &str) -> bool {
        reference != self.absent
    }

    fn mishaps(&self, is_over: bool) -> Vec<String> {
        if is_over { vec!["spec.rules[0]: never matched".to_owned()] } else { Vec::new() }
    }
}

async fn rehearsed(bench: &Bench, absent: &'static str) -> Verdict {
    let distribution = bench.distribution();
    let request =
        Request { content: &bench.content, distribution: &distribution, settings: &bench.settings, saved: None, resumed: None };
    let venue = Quiet { cluster: bench.cluster.clone(), absent };
    rehearse(&request, &bench.ports(), &Always("rehearsal".into()), &venue).await
}

#[tokio::test(start_paused = true)]
async fn what_comes_up_misses_nothing() {
    let bench = Bench::new();
    let verdict = rehearsed(&bench, "").await;
    assert!(verdict.is_complete(), "{verdict:#?}");
    assert_eq!((verdict.ready, verdict.message.as_str()), (verdict.total, ""));
    let nothing = json!({"images": [], "kinds": [], "permissions": [], "deferred": [], "lacking": [], "unready": []});
    let json = serde_json::to_value(&verdict).unwrap();
    for (field, value) in nothing.as_object().unwrap() {
        assert_eq!(&json[field], value, "{field}");
    }
    assert_eq!(verdict.warnings, ["scenario: spec.rules[0]: never matched"]);
    assert_eq!(bench.state().verb, Some(Verb::Rehearse));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_nobody_brings_is_named_with_its_node() {
    let mut bench = Bench::new();
    bench.brings.clear();
    let verdict = rehearsed(&bench, "").await;
    assert_eq!(verdict.outcome, Outcome::Deadline, "{verdict:#?}");
    assert!(verdict.message.starts_with("nothing will happen any more"), "also where only the verdict is read");
    let [kind] = verdict.kinds.as_slice() else { panic!("{verdict:#?}") };
    assert_eq!(
        (kind.kind.to_string().as_str(), kind.expected_from.as_deref()),
        ("Thing.late.example/v1", Some("Deployment.apps/default/operator"))
    );
    let [open] = verdict.deferred.as_slice() else { panic!("{verdict:#?}") };
    assert_eq!((open.node.as_str(), open.missing.len()), ("thing", 1));
    assert_eq!(bench.state().finished.unwrap().outcome, Outcome::Deadline);
    assert!(bench.clock_passed() < Duration::from_mins(1), "nobody waits for the deadline");
}

#[tokio::test(start_paused = true)]
async fn missing_permissions_and_images_are_found_in_one_go() {
    let mut bench = Bench::new();
    bench.cluster.deny("patch deployments.apps in namespace default");
    bench.content.rgds[2].text = LATE.replace("spec: {}", "spec: {image: r.example/thing:1, machine: {image: ubuntu}}");
    let verdict = rehearsed(&bench, "r.example/thing:1").await;
    assert_eq!(verdict.outcome, Outcome::Refused, "{verdict:#?}");
    assert!(
        !verdict.permissions.is_empty() && verdict.permissions.iter().all(|missing| missing.contains("deployments.apps")),
        "{:?}",
        verdict.permissions
    );
    let [image] = verdict.images.as_slice() else { panic!("{verdict:#?}") };
    assert_eq!(
        (image.image.as_str(), image.needed_by.as_slice()),
        ("r.example/thing:1", &["Thing.late.example/default/thing".to_owned()][..])
    );
    assert_eq!(verdict.ready, verdict.total, "the run went on to its end");
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_told_as_up_tells_it() {
    let mut bench = Bench::new();
    bench.broken = Some("thing");
    bench.settings.grace = Duration::from_hours(1);
    let verdict = rehearsed(&bench, "").await;
    assert_eq!(verdict.outcome, Outcome::Failed, "{verdict:#?}");
    assert!(
        verdict.unready.iter().any(|trouble| trouble.subject.contains("Thing") && trouble.health == plinth_run::Health::Failed),
        "{verdict:#?}"
    );
}

#[test]
fn a_lock_knows_its_images_by_tag_and_digest() {
    let resource = |access: Value, digest: Option<&str>| LockedResource {
        access,
        digest: digest.map(str::to_owned),
        ..LockedResource::default()
    };
    let resources = vec![
        resource(json!({"type": "ociArtifact", "imageReference": "r.example/a:1"}), Some("sha256:0")),
        resource(json!({"type": "ociArtifact", "imageReference": "r.example/b@sha256:1"}), Some("sha256:1")),
        resource(json!({"type": "localBlob"}), Some("sha256:2")),
    ];
    let components = vec![LockedComponent { resources, ..LockedComponent::default() }];
    let content = Content { lock: ReleaseLock { components, ..ReleaseLock::default() }, ..Content::default() };
    let found: Vec<String> = images(&content).into_iter().collect();
    assert_eq!(found, ["r.example/a:1", "r.example/a:1@sha256:0", "r.example/b@sha256:1"]);
}
