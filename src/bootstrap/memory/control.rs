//! A loop that does to a [`FakeCluster`] what the controller does, as simply as can be: compile, write children, judge.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, rgd};
use plinth_engine::{
    graph::{self, Compiled, Definition, Graph},
    naming::keys,
    ports::{Answer, Clock},
};
use plinth_run::{Action, EventKind, Feed, Health, Log, Observer, Recorder, Subject};
use serde_json::json;

use super::cluster::FakeCluster;
use crate::{
    ports::{Loop, Stand},
    settings::Settings,
};

/// Time by tokio, which a test pauses: sleeping then costs nothing.
#[derive(Debug)]
pub struct TokioClock(tokio::time::Instant);

impl Default for TokioClock {
    fn default() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.0.elapsed()).unwrap_or(SignedDuration::MAX);
        Timestamp::UNIX_EPOCH.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    fn sleep(&self, duration: Duration) -> Answer<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// The loop. It turns ten times a second while it runs and anything changes.
pub struct FakeLoop {
    cluster: Arc<FakeCluster>,
    log: Arc<Log>,
    feed: Arc<Feed>,
    /// CRDs that appear once an object of this name exists: what an operator does when it starts.
    brings: BTreeMap<String, Vec<Object>>,
    /// Names of objects that never get ready.
    broken: BTreeSet<String>,
    task: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl FakeLoop {
    /// A loop over this cluster; `feed` has to be a sink of `log`.
    pub fn new(cluster: Arc<FakeCluster>, log: Arc<Log>, feed: Arc<Feed>) -> Self {
        Self { cluster, log, feed, brings: BTreeMap::new(), broken: BTreeSet::new(), task: Mutex::new(None) }
    }

    /// Lets CRDs appear once an object of this name exists.
    #[must_use]
    pub fn bringing(mut self, name: &str, crds: Vec<Object>) -> Self {
        self.brings.insert(name.into(), crds);
        self
    }

    /// Lets an object of this name fail.
    #[must_use]
    pub fn breaking(mut self, name: &str) -> Self {
        self.broken.insert(name.into());
        self
    }

    fn worker(&self) -> Worker {
        Worker {
            cluster: Arc::clone(&self.cluster),
            log: Arc::clone(&self.log),
            brings: self.brings.clone(),
            broken: self.broken.clone(),
            compiled: BTreeMap::new(),
        }
    }
}

impl Loop for FakeLoop {
    fn start(&self) -> Answer<'_, Result<Arc<dyn Observer>, String>> {
        let mut worker = self.worker();
        let task = tokio::spawn(async move {
            let mut seen = None;
            loop {
                tokio::time::sleep(Duration::from_millis(100)).await;
                // A turn that finds the world as the last one left it has nothing to do.
                let version = worker.cluster.version();
                if seen.replace(version) != Some(version) {
                    worker.turn();
                }
            }
        });
        if let Some(old) = self.task.lock().unwrap_or_else(PoisonError::into_inner).replace(task) {
            old.abort();
        }
        let feed = Arc::clone(&self.feed);
        Box::pin(async { Ok(feed as Arc<dyn Observer>) })
    }

    /// By what it told of them last.
    fn stands<'a>(&'a self, kind: &'a GroupVersionKind) -> Answer<'a, Stand> {
        let stand = self.log.read(|state| {
            let of_kind = state.subjects.values().filter(|known| known.subject.key.gvk == *kind);
            let open = of_kind.filter(|known| known.health != Some(Health::Current)).map(|known| known.subject.key.clone());
            let Some(open) = open.min() else { return Stand::Ready };
            let mut below = state.subjects.values().filter(|known| known.subject.parent.as_ref() == Some(&open));
            let has_failed = below.any(|known| known.health == Some(Health::Failed));
            Stand::Moving { why: format!("{open} is not ready"), has_failed }
        });
        Box::pin(async { stand })
    }

    fn stop(&self) -> Answer<'_, ()> {
        if let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
        Box::pin(async {})
    }
}

/// A loop that is dropped (its process was killed) does not go on.
impl Drop for FakeLoop {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

struct Worker {
    cluster: Arc<FakeCluster>,
    log: Arc<Log>,
    brings: BTreeMap<String, Vec<Object>>,
    broken: BTreeSet<String>,
    /// What the definitions became, for as long as they and the served kinds stay the same.
    compiled: BTreeMap<ObjectKey, (i64, Vec<GroupVersionKind>, Compiled)>,
}

impl Worker {
    fn turn(&mut self) {
        let graphs = self.definitions();
        for (key, object) in self.cluster.objects() {
            if let Some(graph) = graphs.get(&key.gvk) {
                self.instance(&key, &object, graph, &graphs);
            }
            for crd in self.brings.get(&key.name).into_iter().flatten() {
                self.bring(crd);
            }
        }
    }

    fn bring(&self, crd: &Object) {
        let key = crd.key(&ClusterKey::host()).expect("a CRD has a type");
        if self.cluster.objects().contains_key(&key) {
            return;
        }
        self.cluster.put(crd);
        for kind in plinth_engine::schema::crd::kinds(crd).unwrap_or_default() {
            self.log.record(EventKind::SchemaServed { gvk: kind.gvk });
        }
    }

    fn definitions(&mut self) -> BTreeMap<GroupVersionKind, Arc<Graph>> {
        let mut graphs = BTreeMap::new();
        for (key, object) in self.cluster.objects().iter().filter(|(key, _)| key.gvk.kind == rgd::KIND) {
            if object.is_terminating() {
                self.cluster.take(key);
                continue;
            }
            let Some(graph) = self.definition(key, object) else { continue };
            graphs.insert(graph.instance.gvk.clone(), graph);
        }
        graphs
    }

    fn compile(&mut self, key: &ObjectKey, object: &Object) -> Option<Compiled> {
        let served = self.cluster.served();
        let kinds: Vec<GroupVersionKind> = served.iter().map(|kind| kind.gvk.clone()).collect();
        if let Some((generation, known, compiled)) = self.compiled.get(key)
            && (*generation, known) == (object.generation(), &kinds)
        {
            return Some(compiled.clone());
        }
        let definition = Definition::from_object(object).ok()?;
        let compiled = graph::compile(&definition, &served, &graph::Options::default());
        self.compiled.insert(key.clone(), (object.generation(), kinds, compiled.clone()));
        Some(compiled)
    }

    fn definition(&mut self, key: &ObjectKey, object: &Object) -> Option<Arc<Graph>> {
        self.hold(key);
        let compiled = self.compile(key, object)?;
        let status = match &compiled {
            Compiled::Invalid(_) => "False",
            Compiled::Deferred { .. } => "Unknown",
            Compiled::Active(_) => "True",
        };
        self.ready(key, object, status, "Active");
        match &compiled {
            Compiled::Invalid(findings) => {
                let message = findings.first().map(ToString::to_string).unwrap_or_default();
                self.judge(Subject::root(key.clone()), Health::Failed, "Invalid", &message);
            }
            Compiled::Deferred { missing, .. } => {
                let missing = missing.iter().map(|missing| missing.gvk.clone()).collect();
                let subject = Subject::root(key.clone());
                self.log.record(EventKind::ChangeDeferred { subject: subject.clone(), missing, expected_from: None });
                self.judge(subject, Health::Waiting, "Deferred", "");
            }
            Compiled::Active(_) => self.judge(Subject::root(key.clone()), Health::Current, "Active", ""),
        }
        let graph = compiled.graph()?;
        let crd = graph.crd.key(&ClusterKey::host())?;
        if !self.cluster.objects().contains_key(&crd) {
            self.cluster.put(&graph.crd);
        }
        Some(Arc::clone(graph))
    }

    /// Writes the condition by which the loop says what it made of an object.
    fn ready(&self, key: &ObjectKey, object: &Object, status: &str, state: &str) {
        let condition = json!({"type": "Ready", "status": status, "observedGeneration": object.generation()});
        self.cluster.status(key, json!({"conditions": [condition], "state": state}));
    }

    /// Puts the finalizer on.
    fn hold(&self, key: &ObjectKey) {
        let held = self.cluster.objects().get(key).is_none_or(|object| !object.finalizers().is_empty());
        if !held {
            let metadata = json!({"name": key.name, "finalizers": [keys::FINALIZER]});
            let mut object = Object::default();
            object.0.insert("metadata".into(), metadata);
            object.0.insert("apiVersion".into(), key.gvk.api_version().into());
            object.0.insert("kind".into(), key.gvk.kind.clone().into());
            if let Some(namespace) = &key.namespace {
                object.metadata_mut().insert("namespace".into(), namespace.clone().into());
            }
            self.cluster.put(&object);
        }
    }

    fn instance(&self, key: &ObjectKey, object: &Object, graph: &Graph, graphs: &BTreeMap<GroupVersionKind, Arc<Graph>>) {
        let children = children(key, object, graph);
        if object.is_terminating() {
            return self.remove(key, &children);
        }
        self.hold(key);
        let mut ready = graph.missing.is_empty();
        for (node, child, wanted) in &children {
            ready &= self.child(key, node, child, wanted, graphs);
        }
        let subject = self.subject(key);
        if ready {
            self.ready(key, object, "True", "ACTIVE");
            self.judge(subject, Health::Current, "Ready", "");
        } else {
            self.judge(subject, Health::Waiting, "ChildrenNotReady", "");
        }
    }

    /// With the labels that the real loop puts on all that it applies.
    fn labelled(&self, wanted: &Object, parent: &ObjectKey) -> Object {
        let mut child = wanted.clone();
        let parent = self.cluster.objects().get(parent).and_then(|parent| parent.uid().map(str::to_owned));
        let labels = child.metadata_mut().entry("labels").or_insert_with(|| json!({}));
        labels[keys::PLATFORM] = Settings::default().platform.into();
        labels[keys::INSTANCE_ID] = parent.into();
        child
    }

    /// Writes one child where it is missing; the answer is whether it is ready.
    fn child(
        &self,
        parent: &ObjectKey,
        node: &str,
        key: &ObjectKey,
        wanted: &Object,
        graphs: &BTreeMap<GroupVersionKind, Arc<Graph>>,
    ) -> bool {
        use plinth_engine::schema::{Lookup, SchemaSource};
        let subject = Subject::child(key.clone(), node, parent.clone());
        if self.cluster.served().kind(&key.gvk) == Lookup::NotServed {
            return false;
        }
        let Some(live) = self.cluster.objects().get(key).cloned() else {
            let live = self.cluster.put(&self.labelled(wanted, parent));
            self.log.record(EventKind::ChangeApplied {
                subject,
                action: Action::Create,
                digest: crate::digest::of(wanted.as_value()),
                generation: live.generation(),
                result: None,
                uid: live.uid().map(str::to_owned),
            });
            return false;
        };
        if graphs.contains_key(&key.gvk) {
            return live.at(&["status", "state"]).is_some_and(|state| state == "ACTIVE");
        }
        let broken = self.broken.contains(&key.name);
        let (health, reason) = if broken { (Health::Failed, "Broken") } else { (Health::Current, "") };
        self.judge(subject, health, reason, "");
        !broken
    }

    fn remove(&self, key: &ObjectKey, children: &[(String, ObjectKey, Object)]) {
        let there: Vec<&ObjectKey> =
            children.iter().map(|(_, child, _)| child).filter(|c| self.cluster.objects().contains_key(c)).collect();
        if there.is_empty() {
            self.cluster.take(key);
        }
        for child in there {
            let held = self.cluster.objects().get(child).is_some_and(|object| !object.finalizers().is_empty());
            if held {
                let mut object = self.cluster.take(child).expect("it was there under one turn of the loop");
                object.metadata_mut().insert("deletionTimestamp".into(), "2026-01-01T00:00:00Z".into());
                self.cluster.put(&object);
            } else {
                self.cluster.take(child);
            }
        }
    }

    /// The instance with its place in the graph, where somebody recorded that.
    fn subject(&self, key: &ObjectKey) -> Subject {
        self.log
            .read(|state| state.subjects.get(key).map(|known| known.subject.clone()))
            .unwrap_or_else(|| Subject::root(key.clone()))
    }

    fn judge(&self, subject: Subject, health: Health, reason: &str, message: &str) {
        let (reason, message) = (reason.to_owned(), message.to_owned());
        self.log.record(EventKind::HealthChanged { subject, health, reason, message, causes: Vec::new() });
    }
}

/// The objects that an instance is to have, by node.
fn children(parent: &ObjectKey, instance: &Object, graph: &Graph) -> Vec<(String, ObjectKey, Object)> {
    let rendered = graph::render(graph, instance).into_iter();
    let owned = rendered.filter(|rendered| graph.node(&rendered.node).is_some_and(|node| node.kind.is_owned()));
    owned
        .filter_map(|rendered| {
            let mut object = rendered.object;
            let node = graph.node(&rendered.node)?;
            if node.namespaced != Some(false) && object.namespace().is_none() {
                let namespace = parent.namespace.clone().unwrap_or_else(|| "default".into());
                object.metadata_mut().insert("namespace".into(), namespace.into());
            }
            label(&mut object, parent, instance);
            Some((rendered.node, object.key(&ClusterKey::host())?, object))
        })
        .collect()
}

/// Says on a child whose it is: its instance's, and that one's platform's.
fn label(object: &mut Object, parent: &ObjectKey, instance: &Object) {
    let labels = [
        (keys::PLATFORM, instance.label(keys::PLATFORM)),
        (keys::INSTANCE_ID, instance.uid()),
        (keys::INSTANCE_GROUP, Some(parent.gvk.group.as_str())),
        (keys::INSTANCE_VERSION, Some(parent.gvk.version.as_str())),
        (keys::INSTANCE_KIND, Some(parent.gvk.kind.as_str())),
        (keys::INSTANCE_NAME, Some(parent.name.as_str())),
    ];
    let mut all = object.labels();
    all.extend(labels.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))));
    object.metadata_mut().insert("labels".into(), json!(all));
}
