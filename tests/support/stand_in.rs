//! Plays the programs that do not run on a bare API server, by the rules of a [`Scenario`].

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Namespace},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::{GroupVersionKind, TypeMeta},
    discovery::{self, ApiCapabilities, Scope},
};
use serde_json::{Map, Value, json};
use tokio::{task::JoinHandle, time::Instant};

use plinth_api::{
    Object, Scenario,
    scenario::{Rule, Trigger},
};

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
    let mut stage = Stage::new(client);
    loop {
        stage.round(&scenario).await;
        stage.let_namespaces_go().await;
        tokio::time::sleep(ROUND).await;
    }
}

/// Follows the scenario for ever in a cluster that has its own controllers: what those do is left to them.
pub async fn play_operator(client: Client, mut scenario: Scenario) {
    for rule in &mut scenario.rules {
        rule.available = false;
        rule.register.clear();
    }
    let mut stage = Stage::new(client);
    loop {
        stage.round(&scenario).await;
        tokio::time::sleep(ROUND).await;
    }
}

/// Applies everything that the scenario registers, once and at once, as an operator's init container does.
pub async fn register(client: Client, scenario: &Scenario) -> kube::Result<()> {
    let mut stage = Stage::new(client);
    for rule in scenario.rules.iter().filter(|rule| !rule.register.is_empty()) {
        stage.carry_out(&Rule { when: None, ..rule.clone() }, None).await?;
    }
    Ok(())
}

/// What there is of each kind, by group and version and kind.
type Lists = BTreeMap<(String, String), Vec<DynamicObject>>;

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
    object: Option<DynamicObject>,
}

impl Stage {
    fn new(client: Client) -> Self {
        Self { client, kinds: BTreeMap::new(), seen: BTreeSet::new(), due: Vec::new() }
    }

    async fn round(&mut self, scenario: &Scenario) {
        // One list for all rules of a kind: two rules about an object must see it in the same round, or they change places.
        let mut lists = Lists::new();
        for (index, rule) in scenario.rules.iter().enumerate() {
            self.look(index, rule, &mut lists).await;
        }
        self.act(&scenario.rules).await;
    }

    async fn look(&mut self, index: usize, rule: &Rule, lists: &mut Lists) {
        let Some(when) = &rule.when else { return self.begin(index, rule) };
        let kind = (when.api_version.clone(), when.kind.clone());
        if !lists.contains_key(&kind) {
            let found = self.list(when).await;
            lists.insert(kind.clone(), found);
        }
        for object in lists[&kind].iter().filter(|object| matches(when, object)) {
            let key = (index, object.uid().unwrap_or_default(), object.metadata.generation.unwrap_or_default());
            if self.seen.insert(key) {
                self.due.push(Due { at: Instant::now() + rule.after, rule: index, object: Some(object.clone()) });
            }
        }
    }

    async fn list(&mut self, when: &Trigger) -> Vec<DynamicObject> {
        let Some((resource, _)) = self.kind(&when.api_version, &when.kind).await else { return Vec::new() };
        let found = Api::<DynamicObject>::all_with(self.client.clone(), &resource).list(&ListParams::default()).await;
        found.into_iter().flatten().collect()
    }

    /// What the namespace controller does: empties a namespace that is being deleted of what plinth keeps there, and lets it go.
    async fn let_namespaces_go(&mut self) {
        let namespaces = Api::<Namespace>::all(self.client.clone()).list(&ListParams::default()).await;
        let leaving = |namespace: &Namespace| namespace.metadata.deletion_timestamp.is_some();
        for mut namespace in namespaces.into_iter().flatten().filter(leaving) {
            let name = namespace.name_any();
            let leases = Api::<Lease>::namespaced(self.client.clone(), &name);
            let maps = Api::<ConfigMap>::namespaced(self.client.clone(), &name);
            let all = (DeleteParams::default(), ListParams::default());
            let _again = leases.delete_collection(&all.0, &all.1).await;
            let _again = maps.delete_collection(&all.0, &all.1).await;
            namespace.spec = None;
            let request = http::Request::put(format!("/api/v1/namespaces/{name}/finalize"))
                .header("content-type", "application/json")
                .body(serde_json::to_vec(&namespace).unwrap_or_default());
            if let Ok(request) = request {
                let _again = self.client.request_text(request).await;
            }
        }
    }

    /// A rule about no object acts once.
    fn begin(&mut self, index: usize, rule: &Rule) {
        if self.seen.insert((index, String::new(), 0)) {
            self.due.push(Due { at: Instant::now() + rule.after, rule: index, object: None });
        }
    }

    async fn act(&mut self, rules: &[Rule]) {
        let now = Instant::now();
        let (mut ready, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.due).into_iter().partition(|due| due.at <= now);
        ready.sort_by_key(|due| due.at);
        self.due = later;
        let mut held = BTreeSet::new();
        for due in ready {
            let uid = due.object.as_ref().and_then(ResourceExt::uid);
            let waits = held.contains(&uid)
                || self.carry_out(&rules[due.rule], due.object.as_ref()).await.is_err_and(|error| !is_not_found(&error));
            if waits {
                // The server is away, or its cache of kinds is behind: again in the next round, and what comes after it too.
                held.insert(uid);
                self.due.push(due);
            }
        }
    }

    async fn carry_out(&mut self, rule: &Rule, object: Option<&DynamicObject>) -> kube::Result<()> {
        if let Some((when, object)) = rule.when.as_ref().zip(object) {
            self.report(rule, when, object).await?;
        }
        for object in &rule.register {
            let gvk = object.gvk().ok_or_else(unknown_kind)?;
            let api = self.api(&gvk.api_version(), &gvk.kind, object.namespace()).await?;
            api.patch(object.name(), &PatchParams::apply(MANAGER).force(), &Patch::Apply(object)).await?;
        }
        Ok(())
    }

    async fn report(&mut self, rule: &Rule, when: &Trigger, object: &DynamicObject) -> kube::Result<()> {
        let mut status = rule.status.clone();
        if rule.available {
            status.extend(available(object));
        }
        if status.is_empty() {
            return Ok(());
        }
        status.insert("observedGeneration".to_owned(), json!(object.metadata.generation));
        let api = self.api(&when.api_version, &when.kind, object.namespace().as_deref()).await?;
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await.map(drop)
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

/// Items of a list lack their type where the server leaves it out; the list has it.
fn matches(when: &Trigger, object: &DynamicObject) -> bool {
    let mut object = object.clone();
    if object.types.is_none() {
        object.types = Some(TypeMeta { api_version: when.api_version.clone(), kind: when.kind.clone() });
    }
    let value = serde_json::to_value(&object).ok().and_then(Object::from_value);
    value.is_some_and(|object| when.matches(&object))
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn unknown_kind() -> kube::Error {
    kube::Error::Discovery(kube::error::DiscoveryError::MissingKind("not served yet".to_owned()))
}

#[cfg(test)]
mod tests;
