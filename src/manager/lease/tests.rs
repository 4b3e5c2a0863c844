use plinth_api::ClusterKey;
use serde_json::json;

use super::*;

/// Follows tokio's (paused) time from a fixed date, and may be wrong by some seconds.
struct Skewed {
    start: Instant,
    seconds: i64,
}

impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.start.elapsed().as_millis()).unwrap();
        Timestamp::from_millisecond(1_800_000_000_000 + passed + self.seconds * 1000).unwrap()
    }

    fn sleep(&self, duration: Duration) -> Answer<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

fn key() -> ObjectKey {
    let namespace = Some("plinth-system".to_owned());
    ObjectKey { cluster: ClusterKey::host(), gvk: Lease::kind(), namespace, name: "plinth".into() }
}

struct World {
    store: Arc<MemoryStore>,
    start: Instant,
}

impl World {
    fn new() -> Self {
        Self { store: Arc::default(), start: Instant::now() }
    }

    fn holder(&self, identity: &str, skew: i64) -> Arc<Lease> {
        let clock = Arc::new(Skewed { start: self.start, seconds: skew });
        Lease::new(Arc::clone(&self.store) as Arc<dyn LeaseStore>, clock, key(), identity, Timing::default())
    }

    fn seconds(&self) -> u64 {
        self.start.elapsed().as_secs()
    }
}

async fn acquire(lease: &Lease) -> bool {
    lease.acquire(&CancellationToken::new(), |_| {}).await
}

#[tokio::test(start_paused = true)]
async fn one_holds_it_and_the_other_waits_until_it_is_given_back() {
    let world = World::new();
    let (laptop, pod) = (world.holder("laptop", 0), world.holder("pod", 0));
    assert_eq!(laptop.attempt(false).await.unwrap(), Attempt::Held);
    let answer = pod.attempt(false).await.unwrap();
    assert!(matches!(answer, Attempt::HeldBy { holder, .. } if holder == "laptop"));
    assert!(laptop.is_held() && !pod.is_held());
    laptop.release().await.unwrap();
    assert!(!laptop.is_held());
    assert_eq!(pod.attempt(false).await.unwrap(), Attempt::Held);
    let record = LeaseRecord::read(&world.store.read(&key()).await.unwrap().unwrap());
    assert_eq!((record.holder.as_str(), record.transitions), ("pod", 1));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_kept_is_never_taken() {
    let world = World::new();
    let (laptop, pod) = (world.holder("laptop", 0), world.holder("pod", 0));
    let stop = CancellationToken::new();
    laptop.attempt(false).await.unwrap();
    let kept = tokio::spawn({
        let (laptop, stop) = (Arc::clone(&laptop), stop.clone());
        async move { laptop.keep(&stop).await }
    });
    assert!(tokio::time::timeout(Duration::from_mins(2), acquire(&pod)).await.is_err());
    assert!(laptop.is_held());
    stop.cancel();
    assert_eq!(kept.await.unwrap(), Kept::Ended);
}

#[tokio::test(start_paused = true)]
async fn a_dead_holder_is_followed_after_its_time() {
    let world = World::new();
    world.holder("dead", 0).attempt(false).await.unwrap();
    assert!(acquire(&world.holder("heir", 0)).await);
    assert!((15..=20).contains(&world.seconds()), "{}", world.seconds());
}

#[tokio::test(start_paused = true)]
async fn an_old_lease_is_watched_for_a_moment_only() {
    let world = World::new();
    world.holder("dead", 0).attempt(false).await.unwrap();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(acquire(&world.holder("heir", 0)).await);
    assert!((603..=605).contains(&world.seconds()), "{}", world.seconds());
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_do_not_cost_the_holder_its_lease() {
    for skew in [-3600, 3600] {
        let world = World::new();
        let holder = world.holder("holder", skew);
        holder.attempt(false).await.unwrap();
        let keeping = tokio::spawn({
            let holder = Arc::clone(&holder);
            async move { holder.keep(&CancellationToken::new()).await }
        });
        let thief = world.holder("thief", 0);
        assert!(tokio::time::timeout(Duration::from_mins(1), acquire(&thief)).await.is_err(), "skew {skew}");
        keeping.abort();
        assert!(acquire(&thief).await, "a dead one is followed all the same");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_identity_comes_back_at_once_and_a_broken_lock_too() {
    let world = World::new();
    world.holder("run-7", 0).attempt(false).await.unwrap();
    assert_eq!(world.holder("run-7", 0).attempt(false).await.unwrap(), Attempt::Held);
    assert_eq!(world.holder("run-8", 0).attempt(true).await.unwrap(), Attempt::Held);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_lives_is_named_at_once_and_one_that_is_dead_is_followed() {
    let world = World::new();
    let (first, second) = (world.holder("first", 0), world.holder("second", 0));
    first.attempt(false).await.unwrap();
    let since = LeaseRecord::read(&world.store.read(&key()).await.unwrap().unwrap()).acquired;
    let keeping = tokio::spawn({
        let first = Arc::clone(&first);
        async move { first.keep(&CancellationToken::new()).await }
    });
    let mut waits = 0;
    let answer = second.take(false, |_| waits += 1).await.unwrap();
    assert!(matches!(answer, Attempt::HeldBy { holder, since: at, .. } if holder == "first" && at == since && since.is_some()));
    assert!(world.seconds() <= 4 && waits == 1, "{} {waits}", world.seconds());
    assert!(first.is_held() && !second.is_held());

    keeping.abort();
    let died = world.seconds();
    assert_eq!(second.take(false, |_| {}).await.unwrap(), Attempt::Held);
    assert!((13..=20).contains(&(world.seconds() - died)), "{}", world.seconds() - died);
}

#[tokio::test(start_paused = true)]
async fn an_heir_and_a_broken_lock_take_it_at_once_and_the_old_holder_drops_its_writes() {
    let world = World::new();
    let dead = world.holder("run-1", 0);
    dead.attempt(false).await.unwrap();
    let clock = Arc::new(Skewed { start: world.start, seconds: 0 });
    let heir = Holder { heir_of: Some("run-1".into()), ..Holder::from("run-2") };
    let heir = Lease::new(Arc::clone(&world.store) as Arc<dyn LeaseStore>, clock, key(), heir, Timing::default());
    assert_eq!(heir.take(false, |_| {}).await.unwrap(), Attempt::Held);
    let breaker = world.holder("run-3", 0);
    assert_eq!(breaker.take(true, |_| {}).await.unwrap(), Attempt::Held);
    // Whoever lost it learns of it at its next renewal, before which it drops nothing: breaking is for the dead.
    assert!(heir.keep(&CancellationToken::new()).await == Kept::Lost && !heir.is_held());
    assert_eq!(world.seconds(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_controller_gives_way_to_a_run_and_comes_back_after_it() {
    let world = World::new();
    let controller = |identity: &str| {
        let clock = Arc::new(Skewed { start: world.start, seconds: 0 });
        let holder = Holder { yields: true, ..Holder::from(identity) };
        Lease::new(Arc::clone(&world.store) as Arc<dyn LeaseStore>, clock, key(), holder, Timing::default())
    };
    let (leader, standby, run) = (controller("pod-1"), controller("pod-2"), world.holder("run", 0));
    assert!(acquire(&leader).await);
    let keeping = tokio::spawn({
        let leader = Arc::clone(&leader);
        async move {
            let kept = leader.keep(&CancellationToken::new()).await;
            // What is in work ends while the Lease is still held.
            assert!(leader.is_held());
            leader.release().await.unwrap();
            kept
        }
    });
    let waiting = tokio::spawn({
        let standby = Arc::clone(&standby);
        async move { acquire(&standby).await }
    });
    assert_eq!(run.take(false, |_| {}).await.unwrap(), Attempt::Held);
    assert_eq!(keeping.await.unwrap(), Kept::Asked);
    assert!(world.seconds() <= 6 && !standby.is_held(), "{}", world.seconds());
    run.release().await.unwrap();
    assert!(waiting.await.unwrap(), "nobody asks any more");
    assert!(world.seconds() <= 9, "{}", world.seconds());

    // One that asks and dies costs a holder's time, and no more.
    standby.release().await.unwrap();
    let asked = LeaseRecord { asked_by: "dead".into(), ..LeaseRecord::default() };
    let old = world.store.read(&key()).await.unwrap();
    standby.store(old, &asked).await.unwrap();
    let from = world.seconds();
    assert!(acquire(&leader).await);
    assert!((15..=18).contains(&(world.seconds() - from)), "{}", world.seconds() - from);
}

#[tokio::test(start_paused = true)]
async fn of_two_that_try_at_once_one_wins() {
    let world = World::new();
    let (a, b) = (world.holder("a", 0), world.holder("b", 0));
    // Both read before either writes.
    let before = world.store.read(&key()).await.unwrap();
    assert!(before.is_none());
    let record = LeaseRecord::default().taken_by(&"a".into(), Duration::from_secs(15), a.clock.now());
    world.store.create(&key(), &record.object(&key(), None)).await.unwrap();
    let late = b.store(None, &LeaseRecord::default().taken_by(&"b".into(), Duration::from_secs(15), b.clock.now())).await;
    assert!(matches!(late, Err(WriteError::Conflict { .. })));
    assert_eq!(a.attempt(false).await.unwrap(), Attempt::Held);
    assert!(matches!(b.attempt(false).await.unwrap(), Attempt::HeldBy { .. }));
}

/// Counts what comes through.
struct Counting(Mutex<usize>);

impl Applier for Counting {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        *self.0.lock().unwrap() += 1;
        Box::pin(async move { Ok(request.object.clone()) })
    }

    fn delete<'a>(&'a self, _: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        *self.0.lock().unwrap() += 1;
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(start_paused = true)]
async fn writes_are_dropped_once_the_lease_cannot_be_renewed() {
    let world = World::new();
    let lease = world.holder("a", 0);
    let gated = Gated { inner: Counting(Mutex::default()), lease: Arc::clone(&lease) };
    let object = Object::from_value(json!({})).unwrap();
    let write = Apply { key: key(), object, manager: "m".into(), force: false, subresource: None };
    assert!(matches!(gated.apply(&write).await, Err(WriteError::NotLeader { .. })), "not before it is taken");
    lease.attempt(false).await.unwrap();
    assert!(gated.apply(&write).await.is_ok());
    world.store.set_away(true);
    assert_eq!(lease.keep(&CancellationToken::new()).await, Kept::Lost);
    assert!((10..=12).contains(&world.seconds()), "{}", world.seconds());
    assert!(matches!(gated.apply(&write).await, Err(WriteError::NotLeader { .. })));
    let delete = Delete { key: key(), uid: None };
    assert!(matches!(gated.delete(&delete).await, Err(WriteError::NotLeader { .. })));
    assert_eq!(*gated.inner.0.lock().unwrap(), 1);
}

/// The writing stops as long as the server is away, and goes on after it: nobody else had the Lease.
#[tokio::test(start_paused = true)]
async fn a_server_that_comes_back_gives_the_lease_back_unless_another_one_took_it() {
    for taken in [false, true] {
        let world = World::new();
        let (lease, other) = (world.holder("a", 0), world.holder("b", 0));
        lease.attempt(false).await.unwrap();
        world.store.set_away(true);
        let told = Arc::new(Mutex::new(Vec::new()));
        let stop = CancellationToken::new();
        let keeping = tokio::spawn({
            let (lease, told, stop) = (Arc::clone(&lease), Arc::clone(&told), stop.clone());
            async move { lease.keep_patiently(&stop, |attempt, why| told.lock().unwrap().push(format!("{attempt} {why}"))).await }
        });
        tokio::time::sleep(Duration::from_secs(13)).await;
        assert!(!lease.is_held(), "nothing is written meanwhile");
        assert!(told.lock().unwrap()[5].starts_with("6 away"), "{told:?}");
        world.store.set_away(false);
        if taken {
            assert_eq!(other.attempt(true).await.unwrap(), Attempt::Held);
            other.release().await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(lease.is_held(), !taken);
        stop.cancel();
        assert_eq!(keeping.await.unwrap(), if taken { Kept::Lost } else { Kept::Ended });
    }
}

#[test]
fn a_record_is_written_as_kubernetes_reads_it() {
    let now: Timestamp = "2026-01-02T03:04:05.006Z".parse().unwrap();
    let record = LeaseRecord::default().taken_by(&"a".into(), Duration::from_secs(15), now);
    let object = record.object(&key(), None);
    assert_eq!(
        object.at(&["spec"]),
        Some(&json!({
            "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2026-01-02T03:04:05.006000Z", "renewTime": "2026-01-02T03:04:05.006000Z",
        }))
    );
    assert_eq!(LeaseRecord::read(&object), record);
    assert_eq!(LeaseRecord::read(&Object::default()), LeaseRecord::default());
}
