//! Figures in Prometheus' text form.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

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

/// A figure of another room, under the name that people know it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Name, for a counter with its `_total`.
    pub name: &'static str,
    /// What it says.
    pub help: &'static str,
    /// How it is kept.
    pub kind: Kind,
}

/// How a figure is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How long something takes, in seconds.
    Seconds,
}

type Labels = Vec<(&'static str, String)>;

enum Kept {
    Counter(Family<Labels, Counter>),
    Gauge(Family<Labels, Gauge>),
    Seconds(Family<Labels, Histogram>),
}

impl Kept {
    fn remove(&self, labels: &Labels) {
        match self {
            Self::Counter(family) => family.remove(labels),
            Self::Gauge(family) => family.remove(labels),
            Self::Seconds(family) => family.remove(labels),
        };
    }
}

fn owned(labels: &[(&'static str, &str)]) -> Labels {
    labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

/// From 1 ms to about half a minute.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 16))
}

/// The figures of a process.
pub struct Metrics {
    registry: Mutex<Registry>,
    /// Each with the labels that were told: a family does not name its own.
    figures: Mutex<BTreeMap<&'static str, (Kept, BTreeSet<Labels>)>>,
    reconciles: Family<OfResult, Counter>,
    seconds: Family<OfController, Histogram>,
    panics: Family<OfController, Counter>,
    waiting: Family<OfController, Gauge>,
    leader: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut root = Registry::default();
        let registry = root.sub_registry_with_prefix("plinth");
        let metrics = Self {
            registry: Mutex::default(),
            figures: Mutex::default(),
            reconciles: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            panics: Family::default(),
            waiting: Family::default(),
            leader: Gauge::default(),
        };
        registry.register("reconciles", "Passes over one object, by how they ended", metrics.reconciles.clone());
        registry.register("reconcile_seconds", "Duration of passes", metrics.seconds.clone());
        registry.register("reconcile_panics", "Passes that panicked", metrics.panics.clone());
        registry.register("queue_waiting", "Keys that wait for a pass", metrics.waiting.clone());
        registry.register("leader", "1 while this process holds the Lease", metrics.leader.clone());
        *metrics.registry.lock().unwrap_or_else(PoisonError::into_inner) = root;
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

    /// Lets another room keep figures of its own, without the process' prefix. Once for each.
    pub fn declare(&self, figures: &[Figure]) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        for figure in figures {
            // The text form puts `_total` behind a counter's name itself.
            let name = figure.name.strip_suffix("_total").filter(|_| figure.kind == Kind::Counter).unwrap_or(figure.name);
            let family = match figure.kind {
                Kind::Counter => {
                    let family = Family::default();
                    registry.register(name, figure.help, family.clone());
                    Kept::Counter(family)
                }
                Kind::Gauge => {
                    let family = Family::default();
                    registry.register(name, figure.help, family.clone());
                    Kept::Gauge(family)
                }
                Kind::Seconds => {
                    let family = Family::<Labels, Histogram>::new_with_constructor(seconds);
                    registry.register(name, figure.help, family.clone());
                    Kept::Seconds(family)
                }
            };
            kept.insert(figure.name, (family, BTreeSet::new()));
        }
    }

    /// Counts by, sets to or observes this value; a figure that was not declared is left out. Counts and gauges are whole.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts and gauges are small and whole")]
    pub fn tell(&self, name: &str, labels: &[(&'static str, &str)], value: f64) {
        let labels = owned(labels);
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((kept, told)) = figures.get_mut(name) else {
            return tracing::debug!(name, "a figure that nobody declared");
        };
        match kept {
            Kept::Counter(family) => {
                family.get_or_create(&labels).inc_by(value as u64);
            }
            Kept::Gauge(family) => {
                family.get_or_create(&labels).set(value as i64);
            }
            Kept::Seconds(family) => family.get_or_create(&labels).observe(value),
        }
        if !told.contains(&labels) {
            told.insert(labels);
        }
    }

    /// Takes those series away whose subject is gone, by figure and labels.
    pub fn forget_where(&self, is_gone: impl Fn(&str, &[(&str, &str)]) -> bool) {
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, (kept, told)) in figures.iter_mut() {
            told.retain(|labels| {
                let of: Vec<(&str, &str)> = labels.iter().map(|(label, value)| (*label, value.as_str())).collect();
                let goes = is_gone(name, &of);
                if goes {
                    kept.remove(labels);
                }
                !goes
            });
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_others_keep_their_names() {
        let metrics = Metrics::default();
        let figure = |name, kind| Figure { name, help: "A figure", kind };
        metrics.declare(&[
            figure("rgd_graph_build_total", Kind::Counter),
            figure("dynamic_controller_gvr_count", Kind::Gauge),
            figure("instance_reconcile_duration_seconds", Kind::Seconds),
        ]);
        metrics.tell("rgd_graph_build_total", &[("name", "app")], 1.0);
        metrics.tell("rgd_graph_build_total", &[("name", "app")], 2.0);
        metrics.tell("dynamic_controller_gvr_count", &[], 4.0);
        metrics.tell("instance_reconcile_duration_seconds", &[("gvr", "x")], 0.5);
        metrics.tell("nobody", &[], 1.0);
        let text = metrics.text();
        for line in [
            "rgd_graph_build_total{name=\"app\"} 3",
            "dynamic_controller_gvr_count 4",
            "instance_reconcile_duration_seconds_count{gvr=\"x\"} 1",
            "plinth_leader 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        metrics.forget_where(|_, labels| labels.contains(&("name", "app")));
        assert!(!metrics.text().contains("app"));
    }
}
