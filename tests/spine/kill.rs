//! Killed with signal 9 at random moments, and run again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::{Duration, Instant},
};

use kube::{Client, discovery::Discovery};
use plinth_api::ObjectKey;
use plinth_run::{EventKind, SkipReason};
use plinth_support::{AuditEvent, AuditLog, Identity};

use crate::{distribution::Distribution, plinth::events, state, world::World};

/// Digests by object.
type Applied = BTreeMap<ObjectKey, BTreeSet<String>>;

#[tokio::test(flavor = "multi_thread")]
async fn show_01_kill() {
    let kills: u32 = std::env::var("PLINTH_KILLS").map_or(5, |count| count.parse().unwrap());
    let distribution = Distribution::sample();
    let archive = distribution.pack(&distribution.file("channel.tgz")).await;
    let (wanted, took) = undisturbed(&distribution, &archive).await;
    let mut moments = Moments::new();
    let (mut proven, mut skipped) = (0, 0);
    for round in 1..=kills {
        let moment = took.mul_f64(moments.next());
        eprintln!(
            "kill {round} of {kills} after {} ms of {} ms (PLINTH_SEED={})",
            moment.as_millis(),
            took.as_millis(),
            moments.seed
        );
        let again = killed(&distribution, &archive, moment).await;
        state::assert_same(&again.state, &wanted, &format!("killed after {moment:?}"));
        proven += again.proven;
        skipped += again.skipped;
    }
    eprintln!("SHOW 01 kill {kills} kills, {proven} writes proven by the journals, 0 of them repeated, {skipped} skips said why");
}

/// A second `up` on a finished platform is the last moment at which one can be killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_run_writes_nothing() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    world.up(&distribution.source(), &[]).await.with_code(0);
    let audit = world.server.audit().from_now().unwrap();
    world.up(&distribution.source(), &[]).await.with_code(0);
    let repeated = writes(&audit);
    assert!(repeated.is_empty(), "{repeated:?}");
}

async fn undisturbed(distribution: &Distribution, archive: &str) -> (BTreeMap<String, serde_json::Value>, Duration) {
    let world = World::start(distribution).await;
    let started = Instant::now();
    world.up(archive, &[]).await.with_code(0);
    let took = started.elapsed();
    (state::of_plinth(&world.client().await).await, took)
}

struct Again {
    state: BTreeMap<String, serde_json::Value>,
    proven: usize,
    skipped: usize,
}

async fn killed(distribution: &Distribution, archive: &str, moment: Duration) -> Again {
    let world = World::start(distribution).await;
    let mut run = world.start_up(archive, &[]);
    tokio::time::sleep(moment).await;
    let in_time = run.is_running();
    run.kill();
    // What it sent last may still be on its way through the server.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = applied(&events(&fs::read(world.journal()).unwrap_or_default()));
    let audit = world.server.audit().from_now().unwrap();

    let again = world.up(archive, &[]).await.with_code(0);
    let after = again.events();
    let plurals = plurals(&world.client().await).await;
    assert_nothing_proven_is_repeated(&audit, &before, &applied(&after), &plurals);
    let skipped =
        after.iter().filter(|event| matches!(event, EventKind::ChangeSkipped { reason: SkipReason::Proven { .. }, .. }));
    let skipped = skipped.count();
    assert!(before.is_empty() || skipped > 0, "the second run does not say what it skipped");
    eprintln!(
        "  {} objects proven, {skipped} skipped, killed {}",
        before.len(),
        if in_time { "in the middle" } else { "after its end" }
    );
    Again { state: state::of_plinth(&world.client().await).await, proven: before.len(), skipped }
}

fn applied(events: &[EventKind]) -> Applied {
    let mut applied = Applied::new();
    for event in events {
        if let EventKind::ChangeApplied { subject, digest, .. } = event {
            applied.entry(subject.key.clone()).or_default().insert(digest.clone());
        }
    }
    applied
}

/// A proven object may be written again only with another input than the proven ones.
fn assert_nothing_proven_is_repeated(audit: &AuditLog, before: &Applied, after: &Applied, plurals: &BTreeMap<String, String>) {
    for (group, resource, namespace, name) in inputs(audit) {
        let is_it = |key: &&ObjectKey| {
            key.name == name
                && key.gvk.group == group
                && key.namespace.clone().unwrap_or_default() == namespace
                && plurals.get(&key.gvk.group_kind().to_string()) == Some(&resource)
        };
        let Some((key, proven)) = before.iter().find(|(key, _)| is_it(key)) else { continue };
        let new = after.get(key).is_some_and(|digests| digests.iter().any(|digest| !proven.contains(digest)));
        assert!(new, "{key} was written again, though the journal proves its input");
    }
}

/// What controllers mark their own objects by: an instance's finalizer, labels and inventory, the finalizer that delivery objects
/// and definitions get, and that the release was ready. An object has these after the journal has proven its apply; they are another input, which nothing proves.
const BOOKKEEPING: [&str; 5] = [
    "fieldManager=plinth.dev%2Fready",
    "fieldManager=plinth.dev%2Flabeller",
    "fieldManager=plinth.dev%2Fapplyset-parent",
    "fieldManager=plinth.dev%2Fdelivery-finalizer",
    "fieldManager=plinth.dev%2Fdefinition",
];

/// Objects that plinth wrote, without subresources and its own Lease.
fn writes(audit: &AuditLog) -> BTreeSet<(String, String, String, String)> {
    objects(audit.writes_by(Identity::Admin.name()).unwrap())
}

/// The same without bookkeeping.
fn inputs(audit: &AuditLog) -> BTreeSet<(String, String, String, String)> {
    let mut events = audit.writes_by(Identity::Admin.name()).unwrap();
    events.retain(|event| !BOOKKEEPING.iter().any(|manager| event.uri.contains(manager)));
    objects(events)
}

fn objects(events: Vec<AuditEvent>) -> BTreeSet<(String, String, String, String)> {
    events
        .into_iter()
        .filter_map(|event| event.object)
        .filter(|object| object.subresource.is_empty() && object.resource != "leases")
        .map(|object| (object.api_group, object.resource, object.namespace, object.name))
        .collect()
}

/// Plural by `Kind.group`, as the server says.
async fn plurals(client: &Client) -> BTreeMap<String, String> {
    let discovery = Discovery::new(client.clone()).run().await.unwrap();
    let resources = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
    let name = |kind: &str, group: &str| if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    resources.map(|(resource, _)| (name(&resource.kind, &resource.group), resource.plural)).collect()
}

/// Moments in a run, from 0 to 1, the same for the same seed (splitmix64).
pub(crate) struct Moments {
    pub(crate) seed: u64,
    state: u64,
}

impl Moments {
    pub(crate) fn new() -> Self {
        let fresh =
            || u64::from(std::process::id()) << 20 | u64::from(jiff::Timestamp::now().subsec_nanosecond().unsigned_abs() >> 12);
        let seed = std::env::var("PLINTH_SEED").map_or_else(|_| fresh(), |seed| seed.parse().unwrap());
        Self { seed, state: seed }
    }

    pub(crate) fn next(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        f64::from(u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap()) / f64::from(u32::MAX)
    }
}
