//! Workers that take keys from a queue and reconcile them.

use std::{any::Any, fmt::Debug, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use plinth_cluster::chain;
use plinth_engine::ports::Answer;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{metrics::Metrics, queue::Queue};

/// How a pass over one object ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as wanted.
    Done,
    /// Look again after this time, whatever happens.
    RequeueAfter(Duration),
    /// Something else must happen first, and a watch will tell.
    Wait {
        /// What is waited for, for people.
        reason: String,
    },
    /// The object itself is wrong; only a change of it helps.
    Invalid {
        /// What is wrong, for people.
        reason: String,
    },
}

/// Why a pass failed; it is tried again with growing delays.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Brings one object to what is wanted. Called with one key at a time for each key, and with several keys at once.
pub trait Reconciler<K>: Send + Sync {
    /// One pass.
    fn reconcile<'a>(&'a self, key: &'a K) -> Answer<'a, Result<Outcome, Failure>>;
}

/// How a pass ended, for metrics and events.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The end.
    pub ended: Ended,
    /// How long the pass took.
    pub took: Duration,
}

/// The end of a pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// It returned.
    Outcome(Outcome),
    /// It failed.
    Failed {
        /// The error with its causes.
        message: String,
        /// Failures in a row.
        attempt: u32,
        /// Delay until the next pass.
        next: Duration,
    },
    /// It panicked: a defect of ours, which takes down this pass only.
    Panicked {
        /// The panic's text.
        message: String,
        /// Failures in a row.
        attempt: u32,
        /// Delay until the next pass.
        next: Duration,
    },
}

/// Told after each pass.
pub type OnReport<K> = Arc<dyn Fn(&K, &Report) + Send + Sync>;

/// How a controller runs.
pub struct Settings<K> {
    /// Name in metrics and logs.
    pub name: &'static str,
    /// Passes at a time.
    pub workers: usize,
    /// How long passes in work may take after shutdown begins, before they are dropped.
    pub drain: Duration,
    /// Where figures go.
    pub metrics: Option<Arc<Metrics>>,
    /// Told after each pass.
    pub on_report: Option<OnReport<K>>,
}

impl<K> Settings<K> {
    /// Four workers, 20 s to drain.
    pub fn new(name: &'static str) -> Self {
        Self { name, workers: 4, drain: Duration::from_secs(20), metrics: None, on_report: None }
    }
}

/// What is left when a controller has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Whether passes were dropped because the drain time was over.
    pub cut_off: bool,
    /// Keys that were still waiting.
    pub waiting: usize,
}

/// Runs until `shutdown`, then lets passes in work end. Owns its workers: dropping the future drops them.
pub async fn run_controller<K>(
    queue: Queue<K>,
    reconciler: Arc<dyn Reconciler<K>>,
    settings: Settings<K>,
    shutdown: CancellationToken,
) -> Summary
where
    K: Ord + Clone + Debug + Send + Sync + 'static,
{
    let drain = settings.drain;
    let settings = Arc::new(settings);
    let mut workers = JoinSet::new();
    for _ in 0..settings.workers.max(1) {
        workers.spawn(work(queue.clone(), Arc::clone(&reconciler), Arc::clone(&settings)));
    }
    shutdown.cancelled().await;
    queue.close();
    let drained = timeout(drain, async { while workers.join_next().await.is_some() {} }).await;
    let summary = Summary { cut_off: drained.is_err(), waiting: queue.len() };
    workers.shutdown().await;
    tracing::debug!(controller = settings.name, ?summary, "the controller ended");
    summary
}

async fn work<K>(queue: Queue<K>, reconciler: Arc<dyn Reconciler<K>>, settings: Arc<Settings<K>>)
where
    K: Ord + Clone + Debug + Send + Sync + 'static,
{
    while let Some(key) = queue.take().await {
        let began = Instant::now();
        // A panic may leave the reconciler's own state half changed; the next pass reads everything anew.
        let pass = AssertUnwindSafe(async { reconciler.reconcile(&key).await }).catch_unwind().await;
        let report = Report { ended: settle(&queue, &key, pass), took: began.elapsed() };
        queue.done(&key);
        tell(&settings, &queue, &key, &report);
    }
}

fn settle<K>(queue: &Queue<K>, key: &K, pass: Result<Result<Outcome, Failure>, Box<dyn Any + Send>>) -> Ended
where
    K: Ord + Clone + Debug,
{
    let outcome = match pass {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(failure)) => {
            let next = queue.retry(key.clone());
            return Ended::Failed { message: chain(&*failure), attempt: queue.failures(key), next };
        }
        Err(panic) => {
            let next = queue.retry(key.clone());
            return Ended::Panicked { message: text_of(&*panic), attempt: queue.failures(key), next };
        }
    };
    queue.forget(key);
    if let Outcome::RequeueAfter(delay) = outcome {
        queue.add_after(key.clone(), delay);
    }
    Ended::Outcome(outcome)
}

fn tell<K: Ord + Clone + Debug>(settings: &Settings<K>, queue: &Queue<K>, key: &K, report: &Report) {
    match &report.ended {
        Ended::Outcome(outcome) => tracing::debug!(controller = settings.name, ?key, ?outcome, "a pass ended"),
        Ended::Failed { message, attempt, next } => {
            tracing::warn!(controller = settings.name, ?key, error = message, attempt, ?next, "a pass failed");
        }
        Ended::Panicked { message, attempt, next } => {
            tracing::error!(controller = settings.name, ?key, panic = message, attempt, ?next, "a pass panicked");
        }
    }
    if let Some(metrics) = &settings.metrics {
        metrics.reconciled(settings.name, report, queue.len());
    }
    if let Some(on_report) = &settings.on_report {
        on_report(key, report);
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a value that is no text").to_owned()
}

#[cfg(test)]
mod tests;
