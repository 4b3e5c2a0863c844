//! How the instances of a kind stand when their definition has changed: by the graph that is in use now, and by children that have seen
//! what was applied to them. A status that is still about what was before does not count.

use std::sync::Arc;

use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey};
use plinth_bootstrap::{Stand, plan::is_workload};
use plinth_cluster::watch::Look;
use plinth_engine::{
    graph::Graph,
    health::{Health, judge},
    instance::{Decision, InstanceState, NodeState},
};

use super::Instances;

/// What the last decision on an instance was made from.
#[derive(Clone)]
pub(super) struct Judged {
    graph: Arc<Graph>,
    generation: i64,
    children: Vec<ObjectKey>,
    has_failed: bool,
}

impl Judged {
    pub(super) fn of(graph: &Arc<Graph>, generation: i64, decision: &Decision) -> Self {
        let children = decision.nodes.iter().flat_map(|verdict| verdict.objects.iter().cloned()).collect();
        let has_failed =
            decision.state == InstanceState::Error || decision.nodes.iter().any(|verdict| verdict.state == NodeState::Failed);
        Self { graph: Arc::clone(graph), generation, children, has_failed }
    }
}

impl Instances {
    /// How all instances of a kind stand; one that is not ready speaks for all.
    pub fn stands(&self, cluster: &ClusterKey, kind: &GroupVersionKind) -> Stand {
        let Some(published) = self.graphs.of_kind(cluster, &kind.group_kind()) else {
            return moving(format!("no graph of {kind} is in use yet"), false);
        };
        let is_of_kind = |key: &ObjectKey| key.cluster == *cluster && key.gvk.group_kind() == kind.group_kind();
        for key in self.all().into_iter().filter(is_of_kind) {
            if let Some(stand) = self.obstacle(&key, &published.graph) {
                return stand;
            }
        }
        Stand::Ready
    }

    fn obstacle(&self, key: &ObjectKey, graph: &Arc<Graph>) -> Option<Stand> {
        let judged = self.lock().judged.get(key).cloned();
        let judged = judged.filter(|judged| Arc::ptr_eq(&judged.graph, graph));
        let seen = match self.world.index.look(key) {
            Look::Present(live) => Some(live.generation()),
            Look::Absent => return None,
            Look::Unknown | Look::Unwatched => None,
        };
        let Some(judged) = judged.filter(|judged| Some(judged.generation) == seen) else {
            return Some(moving(format!("{key} has not been looked at since"), false));
        };
        if self.is_ready(key) != Some(true) {
            let why: Vec<String> =
                self.causes(key).into_iter().map(|cause| cause.message).filter(|text| !text.is_empty()).collect();
            let why =
                if why.is_empty() { format!("{key} is not ready") } else { format!("{key} is not ready: {}", why.join(": ")) };
            return Some(moving(why, judged.has_failed));
        }
        judged.children.iter().find_map(|child| self.behind(child))
    }

    /// A child whose status is about an earlier generation, or a program that is still rolling out: the ones before it may answer for it.
    fn behind(&self, child: &ObjectKey) -> Option<Stand> {
        let Look::Present(object) = self.world.index.look(child) else { return None };
        let verdict = judge(&object);
        if verdict.observed_generation.is_some_and(|observed| observed < object.generation()) {
            return Some(moving(format!("{child} has not been looked at since it changed"), false));
        }
        if is_workload(&child.gvk) && verdict.health != Health::Current {
            return Some(moving(format!("{child}: {}", verdict.message), verdict.health == Health::Failed));
        }
        None
    }
}

fn moving(why: String, has_failed: bool) -> Stand {
    Stand::Moving { why, has_failed }
}
