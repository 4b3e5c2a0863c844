//! Figures under kro's names (kro.md section 20), so that dashboards for kro go on showing something.
//!
//! Figures about what does not exist here (a registry of its own for revisions, a rate limiter, a cache of schemas with a time to
//! live) are left out; docs/differences.md names them.

use std::sync::Arc;

use plinth_api::GroupVersionKind;
use plinth_engine::{
    graph::Graph,
    instance::{Decision, NodeState},
    naming,
};
use plinth_manager::{
    Metrics,
    metrics::{Figure, Kind},
    reconcile::{Ended, Outcome, Report},
};

const fn figure(name: &'static str, kind: Kind, help: &'static str) -> Figure {
    Figure { name, help, kind }
}

/// All of them.
pub const FIGURES: &[Figure] = &[
    figure("rgd_graph_build_total", Kind::Counter, "Definitions compiled"),
    figure("rgd_graph_build_duration_seconds", Kind::Seconds, "Duration of compiling a definition"),
    figure("rgd_graph_build_errors_total", Kind::Counter, "Definitions refused"),
    figure("rgd_state_transitions_total", Kind::Counter, "Changes of a definition's state"),
    figure("rgd_deletions_total", Kind::Counter, "Definitions deleted"),
    figure("rgd_graph_revision_issue_total", Kind::Counter, "Revisions issued"),
    figure("rgd_graph_revision_gc_deleted_total", Kind::Counter, "Old revisions deleted"),
    figure("graph_revision_compile_total", Kind::Counter, "Revisions compiled, by result"),
    figure("graph_revision_registry_entries", Kind::Gauge, "Graphs in use"),
    figure("dynamic_controller_gvr_count", Kind::Gauge, "Kinds whose instances are looked after"),
    figure("dynamic_controller_reconcile_total", Kind::Counter, "Passes over instances"),
    figure("dynamic_controller_reconcile_duration_seconds", Kind::Seconds, "Duration of passes over instances"),
    figure("dynamic_controller_requeue_total", Kind::Counter, "Passes that asked for another one, by type"),
    figure("dynamic_controller_reconcile_panics_total", Kind::Counter, "Passes that panicked"),
    figure("dynamic_controller_queue_length", Kind::Gauge, "Instances that wait for a pass"),
    figure("dynamic_controller_watch_count", Kind::Gauge, "Kinds that are watched"),
    figure("instance_reconcile_total", Kind::Counter, "Passes over instances"),
    figure("instance_reconcile_duration_seconds", Kind::Seconds, "Duration of passes over instances"),
    figure("instance_reconcile_errors_total", Kind::Counter, "Passes that left an instance in ERROR"),
    figure("instance_state_transitions_total", Kind::Counter, "Changes of an instance's state"),
    figure("instance_graph_resolution_success_total", Kind::Counter, "Passes that found a graph in use"),
    figure("instance_graph_resolution_pending_total", Kind::Counter, "Passes that found none"),
    figure("runtime_creation_total", Kind::Counter, "Graphs evaluated for an instance"),
    figure("runtime_node_ignored_total", Kind::Counter, "Nodes left out"),
    figure("runtime_node_not_ready_total", Kind::Counter, "Nodes found not ready"),
];

/// Where figures go, if anywhere.
#[derive(Clone, Default)]
pub struct Figures(Option<Arc<Metrics>>);

impl Figures {
    /// Declares all figures.
    pub fn new(metrics: Option<Arc<Metrics>>) -> Self {
        if let Some(metrics) = &metrics {
            metrics.declare(FIGURES);
        }
        Self(metrics)
    }

    /// Counts, sets or observes.
    pub(crate) fn tell(&self, name: &str, labels: &[(&'static str, &str)], value: f64) {
        if let Some(metrics) = &self.0 {
            metrics.tell(name, labels, value);
        }
    }

    /// Counts one.
    pub(crate) fn count(&self, name: &str, labels: &[(&'static str, &str)]) {
        self.tell(name, labels, 1.0);
    }

    /// The series of a definition that is gone, and those of the kind that it defined. How many were deleted stays.
    pub(crate) fn forget_definition(&self, name: &str, kind: Option<&GroupVersionKind>) {
        let Some(metrics) = &self.0 else { return };
        metrics.forget_where(|figure, labels| figure != "rgd_deletions_total" && labels.contains(&("name", name)));
        let Some(kind) = kind else { return };
        let of_kind = gvr(kind, &naming::plural(&kind.kind.to_lowercase()));
        metrics.forget_where(|_, labels| labels.contains(&("gvr", &of_kind)));
    }

    /// What a pass over an instance found.
    pub(crate) fn decided(&self, graph: &Graph, decision: &Decision, before: Option<&str>) {
        let gvr = gvr(&graph.instance.gvk, &graph.instance.plural);
        let of = [("gvr", gvr.as_str())];
        self.count("runtime_creation_total", &[]);
        self.count("instance_graph_resolution_success_total", &of);
        let nodes = |wanted: &dyn Fn(NodeState) -> bool| number(decision.nodes.iter().filter(|node| wanted(node.state)).count());
        let ignored = nodes(&|state| state == NodeState::Skipped);
        let not_ready = nodes(&|state| !matches!(state, NodeState::Skipped | NodeState::Ready));
        self.tell("runtime_node_ignored_total", &[], ignored);
        self.tell("runtime_node_not_ready_total", &[], not_ready);
        let state = decision.state.as_str();
        if state == "ERROR" {
            self.count("instance_reconcile_errors_total", &of);
        }
        let before = before.unwrap_or_default();
        if before != state {
            self.count("instance_state_transitions_total", &[("gvr", &gvr), ("from_state", before), ("to_state", state)]);
        }
    }

    /// How a pass over an instance ended.
    pub(crate) fn passed(&self, gvr: &str, report: &Report, waiting: usize) {
        let of = [("gvr", gvr)];
        for name in ["dynamic_controller_reconcile_total", "instance_reconcile_total"] {
            self.count(name, &of);
        }
        for name in ["dynamic_controller_reconcile_duration_seconds", "instance_reconcile_duration_seconds"] {
            self.tell(name, &of, report.took.as_secs_f64());
        }
        self.tell("dynamic_controller_queue_length", &[], number(waiting));
        let requeued = match &report.ended {
            Ended::Outcome(Outcome::RequeueAfter(_)) => Some("requeue_after"),
            Ended::Failed { .. } => Some("rate_limited"),
            Ended::Panicked { .. } => {
                self.count("dynamic_controller_reconcile_panics_total", &of);
                Some("rate_limited")
            }
            Ended::Outcome(_) => None,
        };
        if let Some(kind) = requeued {
            self.count("dynamic_controller_requeue_total", &[("gvr", gvr), ("type", kind)]);
        }
    }
}

/// A count as figures take it.
pub(crate) fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

/// A kind as kro labels it: `kro.run/v1alpha1, Resource=apps`.
pub(crate) fn gvr(gvk: &GroupVersionKind, plural: &str) -> String {
    format!("{}/{}, Resource={plural}", gvk.group, gvk.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_told_under_its_name() {
        let metrics = Arc::new(Metrics::default());
        let figures = Figures::new(Some(Arc::clone(&metrics)));
        for figure in FIGURES {
            figures.count(figure.name, &[("name", "app")]);
        }
        let text = metrics.text();
        for figure in FIGURES {
            assert!(text.contains(figure.name), "{} is not told", figure.name);
        }
        let kind = GroupVersionKind::new("x.test", "v1", "App");
        figures.count(
            "instance_state_transitions_total",
            &[("gvr", &gvr(&kind, "apps")), ("from_state", ""), ("to_state", "ACTIVE")],
        );
        figures.count("instance_reconcile_total", &[("gvr", "x.test/v1, Resource=others")]);
        figures.forget_definition("app", Some(&kind));
        let text = metrics.text();
        let left: Vec<&str> = text.lines().filter(|line| line.contains("\"app\"") || line.contains("Resource=apps")).collect();
        assert_eq!(left, ["rgd_deletions_total{name=\"app\"} 1"]);
        assert!(text.contains("x.test/v1, Resource=others"), "what is of other kinds stays");
        Figures::default().count("rgd_graph_build_total", &[]);
    }
}
