//! The status of a ResourceGraphDefinition. Pure.
//!
//! | what is so | state | GraphAccepted | KindReady | ControllerReady |
//! | --- | --- | --- | --- | --- |
//! | every kind is served | Active | True `Valid` | True `Ready` | True `Running` |
//! | some kinds are not served yet (contracts 12) | Inactive | Unknown `Deferred` | True `Ready` | True `Running` |
//! | the definition is refused | Inactive | False `InvalidResourceGraph` | as it was, else Unknown `AwaitingReconciliation` | likewise |
//! | the CRD may not be written | Inactive | True `Valid` | False `Failed` | as it was |
//! | the CRD is not served yet | Inactive | as compiled | Unknown `Pending` | Unknown `Pending` |
//! | the controller lacks a right for CRD or instances | Inactive | as compiled | Unknown `PermissionMissing` | Unknown `PermissionMissing` |
//! | a revision is in use (beside the others) | | | GraphRevisionsResolved True `Resolved` |
//! | it is refused and there is none | | | GraphRevisionsResolved Unknown `AwaitingReconciliation` |
//! | revisions may not be kept (Ready does not count it) | | | GraphRevisionsResolved Unknown `NotPermitted` |
//! | it is being deleted and instances live | Inactive | as it was | as it was | Unknown `WaitingForInstances` |

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plinth_api::{Object, ObjectKey, Permission, permission};
use plinth_engine::{
    Diagnostic,
    graph::{Compiled, Graph, Missing},
};
use serde_json::{Value, json};

use super::crd::Serving;
use crate::conditions::{self, Before, Said};

/// Longest condition message in bytes; the API server takes 32768.
const LONGEST_MESSAGE: usize = 8192;
/// Most instances that a waiting deletion names.
const NAMED: usize = 5;

/// What is known about a definition.
#[derive(Clone, Debug)]
pub enum Situation<'a> {
    /// It is refused. `serving` says whether an earlier graph of it goes on.
    Refused {
        /// The findings.
        diagnostics: &'a [Diagnostic],
        /// The last good graph, still in use.
        last_good: Option<&'a Graph>,
    },
    /// It compiles, but its CRD may not be written.
    Blocked {
        /// What was compiled.
        compiled: &'a Compiled,
        /// Why.
        message: &'a str,
        /// The last good graph, still in use.
        last_good: Option<&'a Graph>,
    },
    /// It compiles, and the controller may not write its CRD, or not watch its instances.
    Unpermitted {
        /// What was compiled.
        compiled: &'a Compiled,
        /// The rights that are missing.
        missing: &'a BTreeSet<Permission>,
    },
    /// It compiles, and its CRD is written.
    Compiled {
        /// What was compiled.
        compiled: &'a Compiled,
        /// How the CRD is.
        serving: &'a Serving,
    },
}

/// What is known of the revisions of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History<'a> {
    /// The revision that instances run by; `None` where the cluster keeps none.
    Kept(Option<i64>),
    /// They may not be kept, and why.
    Refused(&'a str),
}

/// The whole status.
pub fn of(rgd: &Object, situation: &Situation<'_>, history: History<'_>, now: Timestamp) -> Value {
    let mut said = match situation {
        Situation::Refused { diagnostics, last_good } => {
            let message = findings(diagnostics);
            let kind = last_good.map_or_else(|| awaited("KindReady"), kind_of);
            served(*last_good, Said::no("GraphAccepted", "InvalidResourceGraph", message), Some(kind))
        }
        Situation::Blocked { compiled, message, last_good } => {
            let mut said = served(*last_good, accepted(compiled), None);
            said.insert(1, Said::no("KindReady", "Failed", shortened((*message).to_owned())));
            said
        }
        Situation::Unpermitted { compiled, missing } => unpermitted(compiled, missing),
        Situation::Compiled { compiled, serving } => serving_conditions(compiled, serving),
    };
    let graph = match situation {
        Situation::Compiled { compiled, .. } => compiled.graph().map(AsRef::as_ref),
        Situation::Refused { .. } | Situation::Blocked { .. } | Situation::Unpermitted { .. } => None,
    };
    match (history, situation) {
        (History::Kept(Some(number)), _) => {
            said.insert(0, Said::yes("GraphRevisionsResolved", "Resolved", format!("revision {number} compiled and active")));
        }
        (History::Kept(None), Situation::Refused { .. }) => said.insert(0, awaited("GraphRevisionsResolved")),
        _ => {}
    }
    assemble(rgd, &said, graph, history, now)
}

/// The status of a definition whose deletion waits for instances: everything as it was, but that it is not `Active`, and on whom it
/// waits.
pub fn waiting_for_instances(rgd: &Object, instances: &[ObjectKey], now: Timestamp) -> Value {
    let message = format!("waits for {} to be deleted", named(instances));
    let before = Before::of(rgd);
    let mut status = rgd.status().clone();
    if !status.is_object() {
        status = json!({});
    }
    let said = [Said::unknown("ControllerReady", "WaitingForInstances", message)];
    let mut list: Vec<Value> = status["conditions"].as_array().cloned().unwrap_or_default();
    list.retain(|condition| condition["type"] != "ControllerReady" && condition["type"] != "Ready");
    let waiting = before.with_root(&said, rgd.generation(), now);
    list.extend(conditions::to_value(&waiting).as_array().cloned().unwrap_or_default());
    status["conditions"] = Value::Array(list);
    status["state"] = json!("Inactive");
    status
}

fn named(instances: &[ObjectKey]) -> String {
    let mut names: Vec<String> = instances.iter().take(NAMED).map(ToString::to_string).collect();
    if instances.len() > NAMED {
        names.push(format!("{} more", instances.len() - NAMED));
    }
    names.join(", ")
}

fn served(last_good: Option<&Graph>, accepted: Said, kind_ready: Option<Said>) -> Vec<Said> {
    let running = match last_good {
        Some(_) => Said::yes("ControllerReady", "Running", "controller is running with the last good graph"),
        None => awaited("ControllerReady"),
    };
    std::iter::once(accepted).chain(kind_ready).chain([running]).collect()
}

/// What cannot be told yet, in kro's words.
fn awaited(kind: &'static str) -> Said {
    Said::unknown(kind, "AwaitingReconciliation", format!("condition {kind:?} is awaiting reconciliation"))
}

fn serving_conditions(compiled: &Compiled, serving: &Serving) -> Vec<Said> {
    let kind = match (serving, compiled.graph()) {
        (Serving::Established, Some(graph)) => kind_of(graph),
        (Serving::Refused(message), _) => Said::no("KindReady", "Failed", message.clone()),
        _ => Said::unknown("KindReady", "Pending", "the API server does not serve the kind yet"),
    };
    let running = match serving {
        Serving::Established => Said::yes("ControllerReady", "Running", "controller is running"),
        _ => Said::unknown("ControllerReady", "Pending", "waits for the kind to be served"),
    };
    vec![accepted(compiled), kind, running]
}

/// Waiting is not failing: the kind, and who looks after it, are not known to be bad.
fn unpermitted(compiled: &Compiled, missing: &BTreeSet<Permission>) -> Vec<Said> {
    let message = shortened(permission::message(missing));
    let waits = |kind| Said::unknown(kind, permission::MISSING, message.clone());
    let condition = Said::yes(permission::MISSING, "Forbidden", message.clone());
    vec![accepted(compiled), waits("KindReady"), waits("ControllerReady"), condition]
}

fn kind_of(graph: &Graph) -> Said {
    Said::yes("KindReady", "Ready", format!("kind {} has been accepted and ready", graph.instance.gvk.kind))
}

fn accepted(compiled: &Compiled) -> Said {
    match compiled {
        Compiled::Active(_) => Said::yes("GraphAccepted", "Valid", "resource graph and schema are valid"),
        Compiled::Deferred { missing, .. } => Said::unknown("GraphAccepted", "Deferred", deferred(missing)),
        Compiled::Invalid(diagnostics) => Said::no("GraphAccepted", "InvalidResourceGraph", findings(diagnostics)),
    }
}

/// `waits for ClusterProvider.openmcp.cloud/v1alpha1 (node provider)`, each kind once with all its nodes.
fn deferred(missing: &[Missing]) -> String {
    let mut kinds: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for Missing { node, gvk } in missing {
        kinds.entry(gvk.to_string()).or_default().push(node);
    }
    let kinds: Vec<String> = kinds.iter().map(|(gvk, nodes)| format!("{gvk} (node {})", nodes.join(", "))).collect();
    shortened(format!("waits for kinds that are not served yet: {}", kinds.join("; ")))
}

fn findings(diagnostics: &[Diagnostic]) -> String {
    let all: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    shortened(all.join("; "))
}

fn shortened(mut text: String) -> String {
    if text.len() > LONGEST_MESSAGE {
        let end = (0..=LONGEST_MESSAGE).rev().find(|&end| text.is_char_boundary(end)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}

fn assemble(rgd: &Object, said: &[Said], graph: Option<&Graph>, history: History<'_>, now: Timestamp) -> Value {
    let before = Before::of(rgd);
    let mut conditions = before.with_root(said, rgd.generation(), now);
    if let History::Refused(why) = history {
        let said = Said::unknown("GraphRevisionsResolved", "NotPermitted", shortened(why.to_owned()));
        conditions.insert(0, before.stamp(&said, rgd.generation(), now));
    }
    let holds = |kind: &str| conditions.iter().any(|one| one.kind == kind && one.status == plinth_api::ConditionStatus::True);
    let active = ["GraphAccepted", "KindReady", "ControllerReady"].into_iter().all(holds);
    let mut status = json!({
        "state": if active { "Active" } else { "Inactive" },
        "conditions": conditions::to_value(&conditions),
    });
    if let Some(graph) = graph {
        topology(graph, &mut status);
    }
    let issued = if let History::Kept(number) = history { number } else { None };
    let last = rgd.status()["lastIssuedRevision"].as_i64().max(issued);
    if let Some(last) = last {
        status["lastIssuedRevision"] = last.into();
    }
    status
}

/// Order and edges of a graph as a status shows them: only nodes that depend on others are listed.
pub(super) fn topology(graph: &Graph, status: &mut Value) {
    status["topologicalOrder"] = json!(graph.order());
    let dependent = graph.nodes.iter().filter(|node| !node.dependencies.is_empty());
    let resources = dependent.map(|node| {
        let dependencies: Vec<Value> = node.dependencies.iter().map(|id| json!({"id": id})).collect();
        json!({"id": node.id, "dependencies": dependencies})
    });
    let resources: Vec<Value> = resources.collect();
    if !resources.is_empty() {
        status["resources"] = Value::Array(resources);
    }
}

#[cfg(test)]
mod tests;
