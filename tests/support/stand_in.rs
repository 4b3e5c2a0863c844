//! Plays the programs that do not run on a bare API server, by the rules of a [`Scenario`].

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::{self, ApiCapabilities, Scope},
};
use serde_json::{Map, Value, json};
use tokio::{task::JoinHandle, time::Instant};

use crate::scenario::{Rule, Scenario, Trigger, TriggerState};

/// How often it looks. Short, so that the times in a scenario are the ones that count.
const ROUND: Duration = Duration::from_millis(100);
/// Field manager of its writes.
const MANAGER: &str = "stand-in";

/// A stand-in at work; stops when dropped.
#[derive(Debug)]
pub struct StandIn(JoinHandle<()>);

impl StandIn {
    /// Starts it as a task of the current runtime.
    pub fn start(client: Client, scenario: Scenario) -> Self {
        Self(tokio::spawn(play(client, scenario)))
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Follows the scenario for ever. A server that is away is asked again in the next round.
pub async fn play(client: Client, scenario: Scenario) {
    let mut stage = Stage { client, kinds: BTreeMap::new(), seen: BTreeSet::new(), due: Vec::new() };
    loop {
        for (index, rule) in scenario.rules.iter().enumerate() {
            stage.look(index, rule).await;
        }
        stage.act(&scenario.rules).await;
        tokio::time::sleep(ROUND).await;
    }
}

struct Stage {
    client: Client,
    kinds: BTreeMap<(String, String), (ApiResource, ApiCapabilities)>,
    /// Rule, object's UID and generation: what was noticed already.
    seen: BTreeSet<(usize, String, i64)>,
    due: Vec<Due>,
}

struct Due {
    at: Instant,
    rule: usize,
    object: DynamicObject,
}

impl Stage {
    async fn look(&mut self, index: usize, rule: &Rule) {
        let Some((resource, _)) = self.kind(&rule.when.api_version, &rule.when.kind).await else { return };
        let found = Api::<DynamicObject>::all_with(self.client.clone(), &resource).list(&ListParams::default()).await;
        let matching = found.into_iter().flatten().filter(|object| matches(&rule.when, object));
        for object in matching {
            let key = (index, object.uid().unwrap_or_default(), object.metadata.generation.unwrap_or_default());
            if self.seen.insert(key) {
                self.due.push(Due { at: Instant::now() + rule.after, rule: index, object });
            }
        }
    }

    async fn act(&mut self, rules: &[Rule]) {
        let now = Instant::now();
        let (ready, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.due).into_iter().partition(|due| due.at <= now);
        self.due = later;
        for due in ready {
            if self.carry_out(&rules[due.rule], &due.object).await.is_err_and(|error| !is_not_found(&error)) {
                // The server is away, or its cache of kinds is behind: again in the next round.
                self.due.push(due);
            }
        }
    }

    async fn carry_out(&mut self, rule: &Rule, object: &DynamicObject) -> kube::Result<()> {
        let mut status = rule.status.clone();
        if rule.available {
            status.extend(available(object));
        }
        if !status.is_empty() {
            status.insert("observedGeneration".to_owned(), json!(object.metadata.generation));
            let api = self.api(&rule.when.api_version, &rule.when.kind, object.namespace().as_deref()).await?;
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await?;
        }
        for object in &rule.register {
            let gvk = object.gvk().ok_or_else(unknown_kind)?;
            let api = self.api(&gvk.api_version(), &gvk.kind, object.namespace()).await?;
            api.patch(object.name(), &PatchParams::apply(MANAGER).force(), &Patch::Apply(object)).await?;
        }
        Ok(())
    }

    async fn api(&mut self, api_version: &str, kind: &str, namespace: Option<&str>) -> kube::Result<Api<DynamicObject>> {
        let (resource, capabilities) = self.kind(api_version, kind).await.ok_or_else(unknown_kind)?;
        let client = self.client.clone();
        Ok(match (capabilities.scope, namespace) {
            (Scope::Namespaced, namespace) => Api::namespaced_with(client, namespace.unwrap_or("default"), &resource),
            (Scope::Cluster, _) => Api::all_with(client, &resource),
        })
    }

    /// The served resource of a kind; `None` while it is not served. Only answers are remembered.
    async fn kind(&mut self, api_version: &str, kind: &str) -> Option<(ApiResource, ApiCapabilities)> {
        let key = (api_version.to_owned(), kind.to_owned());
        if let Some(known) = self.kinds.get(&key) {
            return Some(known.clone());
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let found = discovery::pinned_kind(&self.client, &GroupVersionKind::gvk(group, version, kind)).await.ok()?;
        self.kinds.insert(key, found.clone());
        Some(found)
    }
}

/// What the Deployment controller would write once every Pod is ready.
fn available(object: &DynamicObject) -> Map<String, Value> {
    let replicas = object.data.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let now = k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |kind: &str, reason: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": "stand-in",
               "lastTransitionTime": now, "lastUpdateTime": now})
    };
    let status = json!({
        "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
        "conditions": [condition("Available", "MinimumReplicasAvailable"), condition("Progressing", "NewReplicaSetAvailable")],
    });
    let Value::Object(status) = status else { unreachable!("written as an object") };
    status
}

fn matches(when: &Trigger, object: &DynamicObject) -> bool {
    when.name.as_ref().is_none_or(|name| *name == object.name_any())
        && match when.state {
            TriggerState::Exists => true,
            TriggerState::Available => is_available(object),
        }
}

fn is_available(object: &DynamicObject) -> bool {
    let observed = object.data.pointer("/status/observedGeneration").and_then(Value::as_i64);
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let holds = |condition: &Value| condition["type"] == "Available" && condition["status"] == "True";
    observed == object.metadata.generation && conditions.is_some_and(|list| list.iter().any(holds))
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn unknown_kind() -> kube::Error {
    kube::Error::Discovery(kube::error::DiscoveryError::MissingKind("not served yet".to_owned()))
}

#[cfg(test)]
mod tests;
