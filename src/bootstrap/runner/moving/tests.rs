use plinth_api::ObjectKey;
use plinth_run::{EventKind, Outcome, SkipReason};
use serde_json::json;

use crate::{
    release,
    testing::{Bench, INSTANCE, LATE, PLATFORM, WORKER, component, content, key, rgd},
};

fn definition(name: &str) -> ObjectKey {
    key("kro.run/v1alpha1", "ResourceGraphDefinition", None, name)
}

/// A bench whose platform is up, and the next release: every definition has another template.
async fn moved_on() -> Bench {
    let mut bench = Bench::new();
    bench.settings.asked = json!({"source": {"channel": "acme.example/platform"}}).as_object().cloned();
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    let next = |text: &str| {
        text.replace("  resources:\n", "  resources:\n    - {id: note2, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${schema.metadata.name}-next\"}}}\n")
    };
    bench.content = content(vec![rgd("platform", &next(PLATFORM)), rgd("late", &next(LATE)), rgd("worker", &next(WORKER))]);
    bench.content.instances = vec![(component("platform"), INSTANCE.into())];
    bench.content.lock.root.version = "v2.0.0".into();
    bench.cluster.forget_writes();
    bench
}

fn definitions_written(bench: &Bench) -> Vec<String> {
    let writes = bench.cluster.writes().into_iter().map(|(_, key)| key);
    writes.filter(|key| key.gvk.kind == "ResourceGraphDefinition").map(|key| key.name).collect()
}

#[tokio::test(start_paused = true)]
async fn definitions_move_in_the_order_of_the_graphs() {
    let bench = moved_on().await;
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    assert_eq!(definitions_written(&bench), ["worker", "late", "platform"], "and not in that of the channel");
    let releases = release::read(bench.cluster.as_ref()).await.unwrap();
    let version = |release: Option<release::Release>| release.unwrap().lock.root.version;
    assert_eq!((version(releases.previous), version(releases.current)), ("v1.0.0".into(), "v2.0.0".into()));
}

#[tokio::test(start_paused = true)]
async fn a_component_that_does_not_turn_ready_stops_the_rest() {
    let mut bench = moved_on().await;
    bench.broken = Some("worker-next");
    assert_eq!(bench.up().await, Outcome::Failed);
    let message = bench.message();
    for words in ["acme.example/worker v1.0.0 did not turn ready", "as it was (late, platform)", "worker is not ready"] {
        assert!(message.contains(words), "no {words} in {message}");
    }
    assert_eq!(definitions_written(&bench), ["worker"]);
    // Mended, the same command goes on where it stopped.
    bench.broken = None;
    bench.cluster.forget_writes();
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    assert_eq!(definitions_written(&bench), ["late", "platform"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_release_does_not_have_any_more_goes_last_and_only_where_nothing_of_it_is_left() {
    let mut bench = Bench::new();
    bench.up().await;
    let without = PLATFORM.split("    - id: late\n").next().unwrap();
    bench.content = content(vec![rgd("platform", without), rgd("worker", WORKER)]);
    bench.content.instances = vec![(component("platform"), INSTANCE.into())];
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    let stays = |kind: &EventKind| matches!(kind, EventKind::Warning { reason, .. } if reason == "NotRemoved");
    assert_eq!(bench.count(stays), 1, "an instance of it is still there");
    assert!(bench.cluster.objects().contains_key(&definition("late")));
    bench.cluster.take(&key("acme.example/v1alpha1", "Late", Some("default"), "late"));
    bench.cluster.forget_writes();
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    assert_eq!(bench.cluster.writes().last().map(|(_, key)| key.clone()), Some(definition("late")));
    let proven = |kind: &EventKind| matches!(kind, EventKind::ChangeSkipped { reason: SkipReason::Proven { .. }, .. });
    assert!(bench.count(proven) > 3);
}
