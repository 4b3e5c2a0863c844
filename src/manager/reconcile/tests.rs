use std::sync::Mutex;

use super::*;

type Script = fn(u8, u32) -> Result<Outcome, Failure>;

/// Does what the script says for a key and its pass, and keeps the passes.
struct Scripted {
    script: Script,
    passes: Mutex<Vec<u8>>,
}

impl Reconciler<u8> for Scripted {
    fn reconcile<'a>(&'a self, key: &'a u8) -> Answer<'a, Result<Outcome, Failure>> {
        let pass = {
            let mut passes = self.passes.lock().unwrap();
            passes.push(*key);
            passes.iter().fold(0, |count, other| count + u32::from(other == key))
        };
        Box::pin(async move { (self.script)(*key, pass) })
    }
}

/// Runs for a (paused) while, and answers with what was reported.
async fn run(script: Script, keys: &[u8], seconds: u64) -> Vec<(u8, Ended)> {
    let queue = Queue::default();
    for key in keys {
        queue.add(*key);
    }
    let reports: Arc<Mutex<Vec<(u8, Ended)>>> = Arc::default();
    let log = Arc::clone(&reports);
    let metrics = Arc::new(Metrics::default());
    let settings = Settings {
        on_report: Some(Arc::new(move |key: &u8, report: &Report| log.lock().unwrap().push((*key, report.ended.clone())))),
        metrics: Some(Arc::clone(&metrics)),
        workers: 2,
        ..Settings::new("test")
    };
    let shutdown = CancellationToken::new();
    let reconciler = Arc::new(Scripted { script, passes: Mutex::default() });
    let controller = tokio::spawn(run_controller(queue, reconciler, settings, shutdown.clone()));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    shutdown.cancel();
    controller.await.unwrap();
    let reports = reports.lock().unwrap().clone();
    let counted = metrics
        .text()
        .lines()
        .filter(|line| line.starts_with("plinth_reconciles_total"))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap())
        .sum::<usize>();
    assert_eq!(counted, reports.len());
    reports
}

#[tokio::test(start_paused = true)]
async fn outcomes_decide_what_comes_next() {
    let script: Script = |key, pass| match (key, pass) {
        (1, _) => Ok(Outcome::Done),
        (2, 1) => Ok(Outcome::RequeueAfter(Duration::from_secs(5))),
        (2, _) => Ok(Outcome::Wait { reason: "b".into() }),
        _ => Ok(Outcome::Invalid { reason: "c".into() }),
    };
    let ended: Vec<(u8, Ended)> = run(script, &[1, 2, 3], 100).await;
    let keys: Vec<u8> = ended.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, [1, 2, 3, 2], "nothing but the requeue comes back");
}

#[tokio::test(start_paused = true)]
async fn failures_come_back_with_growing_delays_and_their_causes() {
    let script: Script = |_, pass| {
        if pass == 4 { Ok(Outcome::Done) } else { Err("the disk is full".into()) }
    };
    let ended = run(script, &[1], 100).await;
    let attempts: Vec<(u32, u128)> = ended
        .iter()
        .filter_map(|(_, ended)| match ended {
            Ended::Failed { attempt, next, message } if message == "the disk is full" => Some((*attempt, next.as_millis() / 100)),
            _ => None,
        })
        .collect();
    assert_eq!(attempts.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(attempts.windows(2).all(|pair| pair[0].1 < pair[1].1), "{attempts:?}");
    assert_eq!(ended.last().unwrap().1, Ended::Outcome(Outcome::Done));
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_one_pass_and_no_worker() {
    let script: Script = |key, pass| {
        assert!(key != 1 || pass > 3, "key {key} is cursed");
        Ok(Outcome::Done)
    };
    let ended = run(script, &[1, 2], 100).await;
    let panics =
        ended.iter().filter(|(_, ended)| matches!(ended, Ended::Panicked { message, .. } if message == "key 1 is cursed"));
    assert_eq!(panics.count(), 3);
    assert_eq!(ended.iter().filter(|(_, ended)| *ended == Ended::Outcome(Outcome::Done)).count(), 2);
}

struct Slow(Duration);

impl Reconciler<u8> for Slow {
    fn reconcile<'a>(&'a self, _: &'a u8) -> Answer<'a, Result<Outcome, Failure>> {
        Box::pin(async {
            tokio::time::sleep(self.0).await;
            Ok(Outcome::Done)
        })
    }
}

async fn shut_down_during(pass: Duration) -> (Summary, u64) {
    let queue = Queue::default();
    for key in [1, 2] {
        queue.add(key);
    }
    let settings = Settings { workers: 1, drain: Duration::from_secs(10), ..Settings::new("slow") };
    let shutdown = CancellationToken::new();
    let controller = tokio::spawn(run_controller(queue, Arc::new(Slow(pass)), settings, shutdown.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    shutdown.cancel();
    (controller.await.unwrap(), began.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn passes_in_work_may_end_and_waiting_ones_do_not_begin() {
    assert_eq!(shut_down_during(Duration::from_secs(5)).await, (Summary { cut_off: false, waiting: 1 }, 4));
    assert_eq!(shut_down_during(Duration::from_secs(50)).await, (Summary { cut_off: true, waiting: 1 }, 10));
}
