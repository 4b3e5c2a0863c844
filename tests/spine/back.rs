//! The ways out of a move that did not come to its end: on with it, back from it, and past it to a release that is mended.

use plinth_support::StandIn;

use crate::{
    distribution::{Distribution, PLATFORM},
    plinth::{Finished, Run, plinth},
    upgrade::World,
    world::scenario,
};

const CHANNEL: &str = "channel.yaml";
const ROOT: &str = "rgds/open-control-plane-platform.yaml";

/// The sample as this version of the channel. What is `broken` gives one component a Repository that is not there: no other graph can mend it.
fn release(version: &str, broken: bool) -> Distribution {
    let distribution = Distribution::sample();
    let named = |version: &str| format!("open-control-plane-platform\n    version: {version}");
    distribution.edit(CHANNEL, &named("v0.0.4"), &named(version));
    let mark = format!("metadata:\n  name: open-control-plane-platform\n  labels: {{release: {version}}}\n");
    distribution.edit(ROOT, "metadata:\n  name: open-control-plane-platform\n", &mark);
    if broken {
        let kind =
            "kind: ClusterProviderKind\n        metadata:\n          name: default\n        spec:\n          ocmRepoName: ";
        distribution.edit(ROOT, &format!("{kind}${{schema.spec.ocmRepoName}}"), &format!("{kind}nowhere"));
    }
    distribution
}

/// A platform of v0.0.4 that is up; the operator goes on as long as the second value lives.
async fn up() -> (World, StandIn) {
    up_with(release("v0.0.4", false)).await
}

async fn up_with(first: Distribution) -> (World, StandIn) {
    let world = World::start().await;
    let stand_in = StandIn::start(world.server.client(plinth_support::Identity::Cluster).await, scenario(&first));
    push(&world, &first).await;
    let source = format!("{}/channel//{PLATFORM}:v0.0.4", world.registry.host());
    world.run(&["up", &source, "--controller", "none"]).await.with_code(0);
    (world, stand_in)
}

async fn push(world: &World, release: &Distribution) {
    release.unpacked().await.push(&world.registry, "channel").await;
}

async fn locks(world: &World) -> (String, String) {
    (world.lock("plinth-lock").await, world.lock("plinth-lock-previous").await)
}

fn assert_says(finished: &Finished, words: &str) {
    assert!(finished.stderr.contains(words), "no {words} in:\n{}", finished.stderr);
}

/// A release whose top-level definition does not permit breaking changes; with `note`, its kind has a field that it lacks without.
fn strict(version: &str, note: bool) -> Distribution {
    let distribution = release(version, false);
    distribution.edit(ROOT, "  annotations:\n    kro.run/allow-breaking-changes: \"true\"\n", "");
    if note {
        distribution.edit(ROOT, "      ocmRepoName: string\n", "      ocmRepoName: string\n      note: string | default=\"x\"\n");
    }
    distribution
}

/// A breaking change is refused; the flag lets it through, for that move alone. Where nobody can be asked, the plan is shown all the same.
#[tokio::test(flavor = "multi_thread")]
async fn show_05_breaking() {
    let (world, _operator) = up_with(strict("v0.0.4", true)).await;
    push(&world, &strict("v0.0.5", false)).await;
    let refused = world.run(&["upgrade"]).await.with_code(4);
    assert_says(&refused, "note");
    assert_says(&refused, "--allow-breaking-changes");
    assert_eq!(world.lock("plinth-lock").await, "v0.0.4", "nothing was written");

    let mut unasked = world.arguments(&["upgrade", "--allow-breaking-changes"]);
    unasked.retain(|argument| argument != "--apply");
    let shown = plinth(&unasked.iter().map(String::as_str).collect::<Vec<_>>()).await.with_code(64);
    assert!(shown.stdout.contains("open-control-plane-platform"), "no plan: {}", shown.stdout);
    assert_says(&shown, "plinth upgrade --apply carries it out");
    assert_eq!(world.lock("plinth-lock").await, "v0.0.4", "nothing was written");

    world.run(&["upgrade", "--allow-breaking-changes"]).await.with_code(0);
    assert_eq!(world.lock("plinth-lock").await, "v0.0.5");
    assert!(!world.permits("open-control-plane-platform").await, "what was permitted once is permitted for good");
    world.run(&["rollback"]).await.with_code(0);
    assert!(!world.permits("open-control-plane-platform").await, "the way back left its permission");
    eprintln!(
        "SHOW 05 breaking a field that goes is refused (4), let through by the flag for one move, and back; no permission is left"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_its_top_graph_broke_goes_back() {
    let (world, _operator) = up().await;
    push(&world, &release("v0.0.5", true)).await;
    world.run(&["upgrade", "--timeout", "8s"]).await.with_code(3);
    assert_eq!(locks(&world).await, ("v0.0.5".into(), "v0.0.4".into()));
    let back = world.run(&["rollback", "--timeout", "60s"]).await.with_code(0);
    assert_says(&back, "from github.com/openmcp-project/open-control-plane-platform v0.0.5 to v0.0.4");
    assert!(back.stdout.contains("are not waited for"), "{}", back.stdout);
    assert_eq!(world.lock("plinth-lock").await, "v0.0.4");
    let further = world.run(&["rollback"]).await.with_code(4);
    assert_says(&further, "no release");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_its_top_graph_broke_goes_on_and_past() {
    let (world, _operator) = up().await;
    push(&world, &release("v0.0.5", true)).await;
    world.run(&["upgrade", "--timeout", "8s"]).await.with_code(3);
    // Nothing is newer, and still there is something to do.
    let again = world.run(&["upgrade", "--timeout", "6s"]).await.with_code(3);
    assert_says(&again, "has not come to its end");
    push(&world, &release("v0.0.6", false)).await;
    world.run(&["upgrade", "--timeout", "60s"]).await.with_code(0);
    assert_eq!(locks(&world).await, ("v0.0.6".into(), "v0.0.4".into()), "what was never ready is no way back");
    let nothing = world.run(&["upgrade"]).await.with_code(0);
    assert_says(&nothing, "there is nothing to move to");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_that_was_killed_goes_on_back() {
    let (world, _operator) = up().await;
    push(&world, &release("v0.0.5", false)).await;
    world.run(&["upgrade"]).await.with_code(0);
    let arguments = world.arguments(&["rollback"]);
    let mut run = Run::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    while world.lock("plinth-lock").await != "v0.0.4" {
        assert!(run.is_running(), "it ended before it began: {}", run.stderr());
    }
    assert!(run.is_running(), "it ended before it could be killed");
    run.kill();
    let again = world.run(&["rollback"]).await.with_code(0);
    assert_says(&again, "has not come to its end");
    assert_eq!(locks(&world).await, ("v0.0.4".into(), "v0.0.5".into()));
}
