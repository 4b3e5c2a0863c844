//! Figures in Prometheus' text form.

use std::sync::{Mutex, PoisonError};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use crate::reconcile::{Ended, Outcome, Report};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfController {
    controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfResult {
    controller: &'static str,
    result: &'static str,
}

/// The figures of a process.
pub struct Metrics {
    registry: Mutex<Registry>,
    reconciles: Family<OfResult, Counter>,
    seconds: Family<OfController, Histogram>,
    panics: Family<OfController, Counter>,
    waiting: Family<OfController, Gauge>,
    leader: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("plinth");
        let metrics = Self {
            registry: Mutex::default(),
            reconciles: Family::default(),
            // From 1 ms to about half a minute.
            seconds: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 16))),
            panics: Family::default(),
            waiting: Family::default(),
            leader: Gauge::default(),
        };
        registry.register("reconciles", "Passes over one object, by how they ended", metrics.reconciles.clone());
        registry.register("reconcile_seconds", "Duration of passes", metrics.seconds.clone());
        registry.register("reconcile_panics", "Passes that panicked", metrics.panics.clone());
        registry.register("queue_waiting", "Keys that wait for a pass", metrics.waiting.clone());
        registry.register("leader", "1 while this process holds the Lease", metrics.leader.clone());
        *metrics.registry.lock().unwrap_or_else(PoisonError::into_inner) = registry;
        metrics
    }
}

impl Metrics {
    /// Counts one pass.
    pub fn reconciled(&self, controller: &'static str, report: &Report, waiting: usize) {
        let result = word(&report.ended);
        self.reconciles.get_or_create(&OfResult { controller, result }).inc();
        let of = OfController { controller };
        self.seconds.get_or_create(&of).observe(report.took.as_secs_f64());
        self.waiting.get_or_create(&of).set(i64::try_from(waiting).unwrap_or(i64::MAX));
        if matches!(report.ended, Ended::Panicked { .. }) {
            self.panics.get_or_create(&of).inc();
        }
    }

    /// Says whether this process leads.
    pub fn set_leader(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// Lets another room add its own figures.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// All figures, in the OpenMetrics text form.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = encode(&mut text, &registry) {
            // Writing to a string cannot fail; a collector of another room may.
            tracing::warn!(%error, "the figures are incomplete");
        }
        text
    }
}

fn word(ended: &Ended) -> &'static str {
    match ended {
        Ended::Outcome(Outcome::Done) => "done",
        Ended::Outcome(Outcome::RequeueAfter(_)) => "requeue",
        Ended::Outcome(Outcome::Wait { .. }) => "wait",
        Ended::Outcome(Outcome::Invalid { .. }) => "invalid",
        Ended::Failed { .. } => "failed",
        Ended::Panicked { .. } => "panicked",
    }
}
