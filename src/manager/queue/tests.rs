use proptest::prelude::*;

use super::*;

fn queue() -> Queue<u8> {
    Queue::new(Backoff { first: Duration::from_secs(1), max: Duration::from_secs(8), jitter: 0.0 })
}

/// What is handed out now, in order, without waiting for what is delayed.
async fn drain(queue: &Queue<u8>) -> Vec<u8> {
    let mut taken = Vec::new();
    while let Ok(Some(key)) = tokio::time::timeout(Duration::ZERO, queue.take()).await {
        queue.done(&key);
        taken.push(key);
    }
    taken
}

#[tokio::test(start_paused = true)]
async fn keys_come_once_and_in_order() {
    let queue = queue();
    for key in [3, 1, 3, 2, 1] {
        queue.add(key);
    }
    assert_eq!(queue.len(), 3);
    assert_eq!(drain(&queue).await, [3, 1, 2]);
    assert!(queue.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_key_in_work_is_not_handed_out_twice() {
    let queue = queue();
    queue.add(1);
    assert_eq!(queue.take().await, Some(1));
    queue.add(1);
    queue.add(2);
    assert_eq!(drain(&queue).await, [2]);
    queue.done(&1);
    assert_eq!(drain(&queue).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn of_several_delays_the_earliest_counts() {
    let queue = queue();
    let began = Instant::now();
    queue.add_after(1, Duration::from_secs(5));
    queue.add_after(1, Duration::from_secs(3));
    queue.add_after(1, Duration::from_secs(9));
    queue.add_after(2, Duration::from_secs(4));
    assert_eq!((queue.take().await, began.elapsed().as_secs()), (Some(1), 3));
    assert_eq!((queue.take().await, began.elapsed().as_secs()), (Some(2), 4));
    queue.done(&1);
    queue.done(&2);
    assert!(queue.is_idle(), "later delays of the same key are gone");
}

#[tokio::test(start_paused = true)]
async fn what_is_added_now_needs_no_reminder() {
    let queue = queue();
    queue.add_after(1, Duration::from_secs(5));
    queue.add(1);
    assert_eq!(drain(&queue).await, [1]);
    assert!(queue.is_idle());
}

#[tokio::test(start_paused = true)]
async fn failures_wait_longer_and_longer_until_forgotten() {
    let queue = queue();
    let delays: Vec<u64> = (0..5).map(|_| queue.retry(1).as_secs()).collect();
    assert_eq!(delays, [1, 2, 4, 8, 8]);
    assert_eq!(queue.failures(&1), 5);
    queue.forget(&1);
    assert_eq!(queue.retry(1).as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_hears_of_an_earlier_delay_and_of_the_end() {
    let queue = queue();
    queue.add_after(1, Duration::from_mins(1));
    let began = Instant::now();
    let workers: Vec<_> = (0..2)
        .map(|_| {
            tokio::spawn({
                let queue = queue.clone();
                async move { queue.take().await }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.add_after(2, Duration::from_secs(1));
    tokio::time::sleep(Duration::from_secs(2)).await;
    queue.close();
    let mut taken = Vec::new();
    for worker in workers {
        taken.push(worker.await.unwrap());
    }
    taken.sort_unstable();
    assert_eq!((taken, began.elapsed().as_secs()), (vec![None, Some(2)], 2));
}

#[derive(Clone, Debug)]
enum Move {
    Add(u8),
    AddAfter(u8, u8),
    Take,
    Done,
    Pass(u8),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let step = prop_oneof![
        (0..4_u8).prop_map(Move::Add),
        (0..4_u8, 0..5_u8).prop_map(|(key, delay)| Move::AddAfter(key, delay)),
        Just(Move::Take),
        Just(Move::Done),
        (0..5_u8).prop_map(Move::Pass),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    /// Nothing is lost and nothing is in work twice: every key that was added is handed out after its last addition.
    #[test]
    fn nothing_is_lost_and_nothing_in_work_twice(moves in moves()) {
        let mut lines = Lines::<u8>::new();
        let start = Instant::now();
        let mut now = start;
        let mut working: Vec<u8> = Vec::new();
        let mut owed: BTreeSet<u8> = BTreeSet::new();
        for step in moves {
            match step {
                Move::Add(key) => { lines.add(key); owed.insert(key); }
                Move::AddAfter(key, delay) => { lines.add_at(key, now + Duration::from_secs(delay.into())); owed.insert(key); }
                Move::Take => {
                    lines.promote(now);
                    if let Some(key) = lines.take() {
                        prop_assert!(!working.contains(&key));
                        working.push(key);
                        owed.remove(&key);
                    }
                }
                Move::Done => if let Some(key) = working.pop() { lines.done(&key); },
                Move::Pass(seconds) => now += Duration::from_secs(seconds.into()),
            }
        }
        while let Some(key) = working.pop() { lines.done(&key); }
        lines.promote(now + Duration::from_secs(10));
        while let Some(key) = lines.take() { owed.remove(&key); lines.done(&key); }
        prop_assert!(owed.is_empty(), "never handed out: {owed:?}");
        prop_assert!(lines.due.is_empty() && lines.delayed.is_empty() && lines.tickets.is_empty());
    }
}
