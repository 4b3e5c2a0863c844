//! The shell around compiling: fetches schemas, writes CRD and status, publishes.

mod installed;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plinth_api::{GroupKind, GroupVersionKind, Object, ObjectKey, Permission};
use plinth_cluster::watch::{Look, Owner, WatchKey, WatchSet};
use plinth_engine::{
    graph::{self, Compiled, Definition, Graph, Options},
    health::{Health, Verdict, judge},
    naming::keys,
    permission,
    ports::{Answer, Query, ReadError, WriteError},
    schema::{Lookup, SchemaSource},
};
use plinth_manager::{
    finalizer,
    reconcile::{Failure, Outcome, Reconciler},
    status::write_if_changed,
};
use plinth_run::{EventKind, Subject};
use serde_json::Value;

use super::{
    crd::{self, Serving},
    definition,
    history::Issued,
    revision,
    status::{self, History, Situation},
};
use crate::{
    conditions, figures,
    graphs::Graphs,
    instance::UNPERMITTED,
    recent::{Recent, version},
    world::World,
};

/// Role of the owners that definitions are.
pub const ROLE: &str = "definition";
/// Role under which a definition watches all instances of its kind.
pub const INSTANCES_ROLE: &str = "instances";

/// Field manager of the finalizer of a definition.
const MANAGER_FINALIZER: &str = "plinth.dev/definition";

/// How long revisions wait for their definition to be made anew.
const ORPHANED: Duration = Duration::from_mins(1);
/// When a right to keep revisions is asked for again.
const REFUSED: Duration = Duration::from_mins(5);

/// The reconciler of definitions.
pub struct Definitions {
    pub(super) world: World,
    pub(super) graphs: Arc<Graphs>,
    options: Options,
    shared: Mutex<BTreeMap<ObjectKey, Known>>,
    /// Asks for a pass of every instance in the list.
    enqueue: Arc<dyn Fn(&ObjectKey) + Send + Sync>,
}

/// What is remembered of a definition.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The kinds that it mentions, by group and kind: a change of any version counts.
    uses: BTreeSet<GroupKind>,
    /// Its CRD.
    crd: Option<String>,
    /// The generation that it had after our last write.
    crd_written: Option<i64>,
    /// How often in a row the server refused that.
    refusals: u32,
    /// The health that was told last, of it and of what was made for it.
    told: BTreeMap<ObjectKey, EventKind>,
    /// Kinds that were missing when it was compiled last.
    missing: BTreeSet<GroupVersionKind>,
    /// The revision in use.
    issued: Issued,
    /// Why revisions cannot be kept.
    no_history: Option<String>,
    /// What was last written into that revision's status, and which one that is.
    verified: Option<(i64, String)>,
    /// The server's answers to our last writes of it and of its CRD, until the index has caught up.
    recent: Recent,
    /// It waits for a right.
    lacks_rights: bool,
    /// What was compiled last, and of what: most passes find the same again.
    compiled: Option<(Input, Compiled)>,
}

/// All that compiling depends on.
#[derive(Clone, Debug)]
struct Input {
    definition: Definition,
    kinds: Vec<Lookup>,
}

impl Input {
    /// A schema that is the same allocation is the same schema; most are, and a whole comparison of them is long.
    fn is(&self, definition: &Definition, kinds: &[Lookup]) -> bool {
        let same = |(before, now): (&Lookup, &Lookup)| match (before, now) {
            (Lookup::Served(before), Lookup::Served(now)) if Arc::ptr_eq(before, now) => true,
            _ => before == now,
        };
        self.definition == *definition && self.kinds.len() == kinds.len() && self.kinds.iter().zip(kinds).all(same)
    }
}

impl Definitions {
    /// A reconciler that publishes into `graphs`.
    pub fn new(world: World, graphs: Arc<Graphs>, options: Options, enqueue: Arc<dyn Fn(&ObjectKey) + Send + Sync>) -> Self {
        Self { world, graphs, options, shared: Mutex::default(), enqueue }
    }

    /// Definitions that use a kind or define it: to be looked at again when what is served changes.
    pub fn using(&self, kind: &GroupKind) -> Vec<ObjectKey> {
        let shared = self.lock();
        shared.iter().filter(|(_, known)| known.uses.contains(kind)).map(|(key, _)| key.clone()).collect()
    }

    /// CRDs that were written, each with its generation: what is served is known once the catalog has seen them.
    pub fn written_crds(&self) -> Vec<(String, i64)> {
        self.lock().values().filter_map(|known| Some((known.crd.clone()?, known.crd_written?))).collect()
    }

    /// Every definition that is known.
    pub fn all(&self) -> Vec<ObjectKey> {
        self.lock().keys().cloned().collect()
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Outcome, Trouble> {
        if key.gvk == revision::gvk() {
            return Ok(self.swept(&key.cluster).await);
        }
        let Some(object) = self.object(key).await? else {
            return self.gone(key).await;
        };
        if object.is_terminating() {
            return self.remove(key, &object).await;
        }
        if self.world.removing { self.serve(key, &object).await } else { self.keep(key, &object).await }
    }

    async fn object(&self, key: &ObjectKey) -> Result<Option<Object>, Trouble> {
        match self.world.index.look(key) {
            Look::Present(object) => Ok(Some(self.newest(key, key, &object))),
            Look::Absent => Ok(None),
            Look::Unwatched | Look::Unknown => Ok(self.world.reader.get(key).await?),
        }
    }

    /// The newest that is known of a definition, or of its CRD.
    fn newest(&self, key: &ObjectKey, of: &ObjectKey, seen: &Object) -> Object {
        match self.lock().get_mut(key) {
            Some(known) => known.recent.newest(of, seen),
            None => seen.clone(),
        }
    }

    fn wrote(&self, key: &ObjectKey, what: &ObjectKey, object: Object) {
        self.lock().entry(key.clone()).or_default().recent.wrote(what, object);
    }

    async fn keep(&self, key: &ObjectKey, object: &Object) -> Result<Outcome, Trouble> {
        let definition = match definition::read(object) {
            Ok(definition) => definition,
            Err(diagnostics) => {
                let last_good = self.last_good(key, object).await?;
                let situation = Situation::Refused { diagnostics: &diagnostics, last_good: last_good.as_deref() };
                return self.settle(key, object, &situation).await;
            }
        };
        let held = finalizer::add(&*self.world.applier, key, object, keys::FINALIZER, MANAGER_FINALIZER).await?;
        if version(&held) > version(object) {
            self.wrote(key, key, held);
        }
        let compiled = self.compile(key, &definition).await?;
        let Some(graph) = compiled.graph() else {
            let last_good = self.last_good(key, object).await?;
            let situation = Situation::Refused { diagnostics: compiled.diagnostics(), last_good: last_good.as_deref() };
            return self.settle(key, object, &situation).await;
        };
        let serving = match self.ensure_crd(key, object, &compiled, graph).await {
            Ok(Ok(serving)) => serving,
            Ok(Err(message)) => {
                let last_good = self.last_good(key, object).await?;
                let situation = Situation::Blocked { compiled: &compiled, message: &message, last_good: last_good.as_deref() };
                return self.settle(key, object, &situation).await;
            }
            Err(trouble) => {
                let missing = trouble.lacks().ok_or(trouble)?;
                self.tell_missing(key, &compiled);
                let situation = Situation::Unpermitted { compiled: &compiled, missing: &BTreeSet::from([missing]) };
                return self.settle(key, object, &situation).await;
            }
        };
        if serving == Serving::Established {
            self.publish(key, graph);
            self.issue(key, object, &compiled).await?;
        }
        self.tell_missing(key, &compiled);
        // Without a watch nobody learns of an instance.
        let watch = WatchKey { cluster: key.cluster.clone(), gvk: graph.instance.gvk.clone() };
        let refused = self.world.index.refused(&watch).filter(|_| serving == Serving::Established);
        match refused.as_ref().and_then(permission::of_read) {
            Some(missing) => {
                let situation = Situation::Unpermitted { compiled: &compiled, missing: &BTreeSet::from([missing]) };
                self.settle(key, object, &situation).await
            }
            None => self.settle(key, object, &Situation::Compiled { compiled: &compiled, serving: &serving }).await,
        }
    }

    /// Whether a definition waits for a right.
    pub fn lacks_rights(&self, key: &ObjectKey) -> bool {
        self.lock().get(key).is_some_and(|known| known.lacks_rights)
    }

    /// Publishes the graph that instances are removed by, and writes nothing.
    async fn serve(&self, key: &ObjectKey, object: &Object) -> Result<Outcome, Trouble> {
        if let Ok(definition) = definition::read(object)
            && let Some(graph) = self.compile(key, &definition).await?.graph()
            && let Some(crd) = self.world.reader.get(&crd_key(key, graph.crd.name())).await?
            && crd::serving(&crd) == Serving::Established
        {
            self.publish(key, graph);
        } else {
            self.last_good(key, object).await?;
        }
        Ok(Outcome::Done)
    }

    pub(super) async fn compile(&self, key: &ObjectKey, definition: &Definition) -> Result<Compiled, Trouble> {
        let kinds: Vec<GroupVersionKind> = graph::kinds(&definition.spec).into_iter().collect();
        {
            // Noted before the schemas are read: a change in between is not missed.
            let mut shared = self.lock();
            let known = shared.entry(key.clone()).or_default();
            known.uses = kinds.iter().map(GroupVersionKind::group_kind).collect();
            let own = &definition.spec.schema;
            known.uses.insert(GroupKind { group: own.group.clone(), kind: own.kind.clone() });
        }
        let schemas = self.world.schemas.of(&key.cluster, &kinds).await?;
        let kinds: Vec<Lookup> = kinds.iter().map(|gvk| schemas.kind(gvk)).collect();
        if let Some(compiled) = self.compiled(key, definition, &kinds) {
            return Ok(compiled);
        }
        let compiled = self.compile_anew(key, definition, schemas.as_ref());
        let input = Input { definition: definition.clone(), kinds };
        self.lock().entry(key.clone()).or_default().compiled = Some((input, compiled.clone()));
        Ok(compiled)
    }

    /// What was compiled last, where it was of this.
    fn compiled(&self, key: &ObjectKey, definition: &Definition, kinds: &[Lookup]) -> Option<Compiled> {
        let shared = self.lock();
        let (input, compiled) = shared.get(key)?.compiled.as_ref()?;
        input.is(definition, kinds).then(|| compiled.clone())
    }

    fn compile_anew(&self, key: &ObjectKey, definition: &Definition, schemas: &dyn SchemaSource) -> Compiled {
        let began = self.world.clock.now();
        let compiled = graph::compile(definition, schemas, &self.options);
        let of = [("name", key.name.as_str())];
        self.world.figures.count("rgd_graph_build_total", &of);
        let took = self.world.clock.now().duration_since(began).as_secs_f64();
        self.world.figures.tell("rgd_graph_build_duration_seconds", &of, took);
        if matches!(compiled, Compiled::Invalid(_)) {
            self.world.figures.count("rgd_graph_build_errors_total", &of);
        }
        compiled
    }

    pub(super) fn publish(&self, key: &ObjectKey, graph: &Arc<Graph>) {
        let replaced = self.graphs.publish(key.clone(), Arc::clone(graph));
        if let Some(other) = replaced.filter(|other| other.definition != *key) {
            tracing::warn!(definition = %key, other = %other.definition, "two definitions define the same kind");
        }
        tracing::debug!(definition = %key, "a graph is in use");
        self.count_graphs();
        let owner = Owner { role: INSTANCES_ROLE, key: key.clone() };
        self.world.index.declare(&owner, WatchSet::all_of(key.cluster.clone(), graph.instance.gvk.clone()));
        // The same graph may have other templates: whoever is already there decides again, which costs nothing if all is well.
        for instance in self.world.index.list(&all_instances(key, graph)).into_iter().flatten() {
            if let Some(instance) = instance.key(&key.cluster) {
                (self.enqueue)(&instance);
            }
        }
    }

    fn count_graphs(&self) {
        let count = figures::number(self.graphs.kinds().len());
        self.world.figures.tell("dynamic_controller_gvr_count", &[], count);
        self.world.figures.tell("graph_revision_registry_entries", &[("state", "active")], count);
    }

    fn tell_missing(&self, key: &ObjectKey, compiled: &Compiled) {
        let missing: BTreeSet<GroupVersionKind> = compiled.missing().iter().map(|missing| missing.gvk.clone()).collect();
        let before = std::mem::replace(&mut self.lock().entry(key.clone()).or_default().missing, missing.clone());
        if !missing.is_empty() && missing != before {
            self.world.recorder.record(EventKind::ChangeDeferred {
                subject: Subject::root(key.clone()),
                missing: missing.into_iter().collect(),
                expected_from: None,
            });
        }
    }

    async fn remove(&self, key: &ObjectKey, object: &Object) -> Result<Outcome, Trouble> {
        if !object.finalizers().contains(&keys::FINALIZER) {
            return Ok(Outcome::Done);
        }
        let instances = self.instances(key, object).await?;
        // One that is made again goes without its instances: they stay, and run by the new one.
        if !instances.is_empty() && !self.world.awaited.is(key) {
            // After a restart they run by nothing yet, and would not be removed either.
            if self.graphs.of_definition(key).is_none() {
                self.serve(key, object).await?;
            }
            let status = status::waiting_for_instances(object, &instances, self.world.clock.now());
            self.write_status(key, object, status).await?;
            let message = format!("waits for {} instances to be deleted", instances.len());
            self.tell(key, Health::Terminating, "WaitingForInstances", message.clone());
            return Ok(Outcome::Wait { reason: message });
        }
        self.drop_revisions(key).await?;
        self.set_issued(key, Issued::default());
        self.graphs.withdraw(key);
        self.world.index.forget(&Owner { role: INSTANCES_ROLE, key: key.clone() });
        self.world.finalizers.remove(key, keys::FINALIZER).await?;
        self.world.figures.count("rgd_deletions_total", &[("name", &key.name)]);
        self.forget_figures(key, object);
        self.count_graphs();
        Ok(Outcome::Done)
    }

    /// The series of a definition that is gone, and of its kind.
    fn forget_figures(&self, key: &ObjectKey, object: &Object) {
        let kind = definition::read(object).ok().map(|definition| definition::kind(&definition));
        let is_taken = |kind: &GroupVersionKind| self.graphs.of_kind(&key.cluster, &kind.group_kind()).is_some();
        self.world.figures.forget_definition(&key.name, kind.filter(|kind| !is_taken(kind)).as_ref());
    }

    /// Instances of the kind, whether or not the graph is still known. A definition that another one took the kind from has none.
    async fn instances(&self, key: &ObjectKey, object: &Object) -> Result<Vec<ObjectKey>, Trouble> {
        let Ok(definition) = definition::read(object) else { return Ok(Vec::new()) };
        let gvk = definition::kind(&definition);
        let owner = self.graphs.of_kind(&key.cluster, &gvk.group_kind());
        if owner.is_some_and(|owner| owner.definition != *key) {
            return Ok(Vec::new());
        }
        let query = Query { cluster: key.cluster.clone(), gvk: gvk.clone(), namespace: None, selector: String::new() };
        let owner = Owner { role: INSTANCES_ROLE, key: key.clone() };
        self.world.index.declare(&owner, WatchSet::all_of(key.cluster.clone(), gvk));
        let found = match self.world.index.list(&query) {
            Some(list) => list.iter().filter_map(|instance| instance.key(&key.cluster)).collect(),
            None => match self.world.reader.list(&query).await {
                Ok(list) => list.iter().filter_map(|instance| instance.key(&key.cluster)).collect(),
                // A kind that is not served has no instances.
                Err(ReadError::NotServed(_)) => Vec::new(),
                Err(error) => return Err(error.into()),
            },
        };
        Ok(found)
    }

    async fn settle(&self, key: &ObjectKey, object: &Object, situation: &Situation<'_>) -> Result<Outcome, Trouble> {
        let revision = Some(self.issued(key).number).filter(|number| *number > 0);
        let no_history = self.lock().get(key).and_then(|known| known.no_history.clone());
        let history = no_history.as_deref().map_or(History::Kept(revision), History::Refused);
        let status = status::of(object, situation, history, self.world.clock.now());
        let (from, to) = (object.status()["state"].as_str().unwrap_or_default(), status["state"].as_str().unwrap_or_default());
        if from != to {
            self.world.figures.count("rgd_state_transitions_total", &[("name", &key.name), ("from", from), ("to", to)]);
        }
        let (health, reason, message) = health_of(&status);
        self.write_status(key, object, status).await?;
        self.tell(key, health, &reason, message);
        let lacks_rights = matches!(situation, Situation::Unpermitted { .. });
        self.lock().entry(key.clone()).or_default().lacks_rights = lacks_rights;
        let is_blocked = matches!(situation, Situation::Blocked { .. });
        Ok(match (lacks_rights, self.next_attempt(key).filter(|_| is_blocked), no_history) {
            (true, ..) => Outcome::RequeueAfter(UNPERMITTED.max),
            (false, Some(delay), _) => Outcome::RequeueAfter(delay),
            (false, None, Some(_)) => Outcome::RequeueAfter(REFUSED),
            (false, None, None) => Outcome::Done,
        })
    }

    async fn write_status(&self, key: &ObjectKey, object: &Object, status: Value) -> Result<(), Trouble> {
        match write_if_changed(&*self.world.applier, key, object, status, keys::MANAGER).await {
            // It went away in between.
            Ok(None) | Err(WriteError::NotFound { .. }) => Ok(()),
            Ok(Some(object)) => {
                self.wrote(key, key, object);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn tell(&self, key: &ObjectKey, health: Health, reason: &str, message: String) {
        self.say(key, Subject::root(key.clone()), Verdict::new(health, reason, message));
    }

    /// Tells how an object is that was made for a definition: nobody else looks at its CRD and its revisions.
    pub(super) fn tell_of(&self, key: &ObjectKey, made: &ObjectKey, object: &Object) {
        self.say(key, Subject { parent: Some(key.clone()), ..Subject::root(made.clone()) }, judge(object));
    }

    fn say(&self, key: &ObjectKey, subject: Subject, verdict: Verdict) {
        let Verdict { health, reason, message, .. } = verdict;
        let of = subject.key.clone();
        let event = EventKind::HealthChanged { subject, health, reason, message, causes: Vec::new() };
        let is_new = self.lock().entry(key.clone()).or_default().told.insert(of, event.clone()).as_ref() != Some(&event);
        if is_new {
            self.world.recorder.record(event);
        }
    }

    pub(super) fn uses(&self, key: &ObjectKey) -> BTreeSet<GroupKind> {
        self.lock().get(key).map(|known| known.uses.clone()).unwrap_or_default()
    }

    pub(super) fn also_uses(&self, key: &ObjectKey, kinds: BTreeSet<GroupKind>) {
        self.lock().entry(key.clone()).or_default().uses.extend(kinds);
    }

    pub(super) fn issued(&self, key: &ObjectKey) -> Issued {
        self.lock().get(key).map(|known| known.issued.clone()).unwrap_or_default()
    }

    pub(super) fn set_issued(&self, key: &ObjectKey, issued: Issued) {
        self.lock().entry(key.clone()).or_default().issued = issued;
    }

    /// Why revisions cannot be kept, or that they can; whether a refusal is a new one.
    pub(super) fn set_history(&self, key: &ObjectKey, refused: Option<String>) -> bool {
        let mut shared = self.lock();
        let known = shared.entry(key.clone()).or_default();
        let is_new = refused.is_some() && known.no_history != refused;
        known.no_history = refused;
        is_new
    }

    pub(super) fn is_verified(&self, key: &ObjectKey, number: i64, word: &str) -> bool {
        self.lock()
            .get(key)
            .and_then(|known| known.verified.as_ref())
            .is_some_and(|known| (known.0, known.1.as_str()) == (number, word))
    }

    pub(super) fn set_verified(&self, key: &ObjectKey, number: i64, word: String) {
        self.lock().entry(key.clone()).or_default().verified = Some((number, word));
    }

    /// Somebody took it away behind our back. One that is made anew goes on with its revisions; else they go after a while.
    async fn gone(&self, key: &ObjectKey) -> Result<Outcome, Trouble> {
        if !self.lock().contains_key(key) {
            return Ok(self.swept(&key.cluster).await);
        }
        let had_history = self.issued(key).number > 0;
        let kind = self.graphs.of_definition(key).map(|published| published.graph.instance.gvk.clone());
        self.forget(key);
        self.world.figures.forget_definition(&key.name, kind.as_ref());
        Ok(if had_history { Outcome::RequeueAfter(ORPHANED) } else { Outcome::Done })
    }

    fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
        self.graphs.withdraw(key);
        for role in [ROLE, INSTANCES_ROLE] {
            self.world.index.forget(&Owner { role, key: key.clone() });
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Known>> {
        // Each entry is whole in itself, so a panic elsewhere leaves them usable.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reconciler<ObjectKey> for Definitions {
    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Outcome, Failure>> {
        Box::pin(async move {
            let ended = self.pass(key).await;
            if let Err(trouble) = &ended {
                if let Some(missing) = trouble.lacks() {
                    let message = plinth_api::permission::message(&BTreeSet::from([missing]));
                    self.tell(key, Health::Waiting, plinth_api::permission::MISSING, message);
                    return Ok(Outcome::RequeueAfter(UNPERMITTED.max));
                }
                self.tell(key, Health::InProgress, "Retrying", trouble.to_string());
            }
            Ok(ended?)
        })
    }
}

/// What the API server did not do.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error("reading: {0}")]
    Read(#[from] ReadError),
    #[error("writing: {0}")]
    Write(#[from] WriteError),
}

impl Trouble {
    /// The right that is missing, where that is the trouble.
    fn lacks(&self) -> Option<Permission> {
        match self {
            Self::Read(error) => permission::of_read(error),
            Self::Write(WriteError::Forbidden { missing, .. }) => Some(missing.as_ref().clone()),
            Self::Write(_) => None,
        }
    }
}

pub(super) fn crd_key(definition: &ObjectKey, name: &str) -> ObjectKey {
    ObjectKey {
        cluster: definition.cluster.clone(),
        gvk: GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        namespace: None,
        name: name.to_owned(),
    }
}

fn all_instances(definition: &ObjectKey, graph: &Graph) -> Query {
    Query { cluster: definition.cluster.clone(), gvk: graph.instance.gvk.clone(), namespace: None, selector: String::new() }
}

/// Digest of what is applied, as the journal keeps it.
pub(super) fn digest(object: &Object) -> String {
    use sha2::{Digest, Sha256};
    let text = serde_json::to_vec(&object.0).expect("JSON can be written");
    crate::hex(&Sha256::digest(text))
}

/// Health of a definition from the status that it gets.
fn health_of(status: &Value) -> (Health, String, String) {
    let object = Object([("status".to_owned(), status.clone())].into_iter().collect());
    let Some(ready) = conditions::find(&object, "Ready") else { return (Health::Unknown, String::new(), String::new()) };
    let text = |field: &str| ready.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let health = match (text("status").as_str(), text("reason").as_str()) {
        ("True", _) => Health::Current,
        ("False", _) => Health::Failed,
        (_, "Deferred" | plinth_api::permission::MISSING) => Health::Waiting,
        _ => Health::InProgress,
    };
    (health, text("reason"), text("message"))
}
