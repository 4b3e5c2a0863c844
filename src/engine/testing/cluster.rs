//! A cluster in memory that does what decisions ask for: enough of server-side apply to drive an instance to its end.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use plinth_api::{ClusterKey, Object, ObjectKey, Permission};
use serde_json::{Value, json};

use crate::{
    graph::Graph,
    instance::{Action, Applied, Decision, Failure, Observation, decide},
    ports::{Query, WriteError},
};

/// A cluster with one instance.
pub(crate) struct Cluster {
    pub(crate) graph: Arc<Graph>,
    pub(crate) seen: Observation,
    pub(crate) objects: BTreeMap<ObjectKey, Object>,
    pub(crate) key: ObjectKey,
    /// Everything that was written, one line a write.
    pub(crate) log: Vec<String>,
    /// What other controllers do to an object when it is written.
    pub(crate) controller: Box<dyn Fn(&mut Object)>,
    /// What was last asked for, by object.
    pub(crate) asked: BTreeMap<ObjectKey, Object>,
    /// Whether a write of this object is refused.
    pub(crate) refuses: Box<dyn Fn(&ObjectKey) -> bool>,
    /// Kinds that the instance's account has no rights on.
    pub(crate) denies: BTreeSet<&'static str>,
    counter: u64,
}

impl Cluster {
    pub(crate) fn new(graph: Arc<Graph>, spec: Value) -> Self {
        let gvk = graph.instance.gvk.clone();
        let instance = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "spec": spec,
            "metadata": {"name": "one", "namespace": "ns", "uid": "instance-uid", "generation": 1}});
        Self::of(graph, Object::from_value(instance).unwrap())
    }

    /// A cluster with this instance.
    pub(crate) fn of(graph: Arc<Graph>, instance: Object) -> Self {
        let key = instance.key(&ClusterKey::host()).unwrap();
        let seen = Observation { instance: instance.clone(), ..Observation::default() };
        let objects = BTreeMap::from([(key.clone(), instance)]);
        Self {
            graph,
            seen,
            objects,
            key,
            log: Vec::new(),
            controller: Box::new(|_| {}),
            asked: BTreeMap::new(),
            refuses: Box::new(|_| false),
            denies: BTreeSet::new(),
            counter: 0,
        }
    }

    /// Puts an object there that somebody else made.
    pub(crate) fn put(&mut self, object: Value) -> ObjectKey {
        let mut object = Object::from_value(object).unwrap();
        let key = object.key(&ClusterKey::host()).unwrap();
        self.identify(&mut object);
        self.objects.insert(key.clone(), object);
        key
    }

    /// Decides and does until nothing is left to do; panics where that does not end.
    pub(crate) fn settle(&mut self) -> Decision {
        for _ in 0..200 {
            self.refresh();
            let decision = decide(&self.graph, &self.seen);
            if decision.actions.is_empty() || !self.objects.contains_key(&self.key) {
                return decision;
            }
            decision.actions.iter().for_each(|action| self.act(action));
        }
        panic!("no end after 200 rounds: {:#?}", self.log);
    }

    /// Brings what was asked for up to date, as watches do.
    pub(crate) fn refresh(&mut self) {
        for (key, seen) in &mut self.seen.objects {
            *seen = self.objects.get(key).cloned();
        }
        let queries: Vec<Query> = self.seen.lists.keys().cloned().collect();
        for query in queries {
            let found = self.list(&query);
            self.seen.lists.insert(query, found);
        }
        if let Some(instance) = self.objects.get(&self.key) {
            self.seen.instance = instance.clone();
        }
    }

    fn list(&self, query: &Query) -> Vec<Object> {
        let matches = |object: &Object| {
            query.selector.split(',').filter(|part| !part.is_empty()).all(|part| {
                let (key, value) = part.split_once('=').unwrap();
                object.label(key) == Some(value)
            })
        };
        let kind = query.gvk.group_kind();
        let found = self.objects.iter().filter(|(key, object)| {
            key.gvk.group_kind() == kind && (query.namespace.is_none() || query.namespace == key.namespace) && matches(object)
        });
        found.map(|(_, object)| object.clone()).collect()
    }

    pub(crate) fn act(&mut self, action: &Action) {
        match action {
            Action::Read(key) => {
                self.seen.objects.insert(key.clone(), self.objects.get(key).cloned());
            }
            Action::List(query) => {
                self.seen.lists.insert(query.clone(), self.list(query));
            }
            Action::Review(access) => {
                let may = !self.denies.contains(access.gvk.kind.as_str());
                self.seen.reviews.insert(access.clone(), Ok(may));
            }
            Action::PatchInstance(apply) => {
                self.log.push(format!("patch {}", apply.manager));
                self.apply(&apply.key, &apply.object, &apply.manager);
            }
            Action::Apply { apply, input, .. } if self.denies.contains(apply.key.gvk.kind.as_str()) => {
                self.log.push(format!("deny {}", apply.key));
                let error = forbidden(&apply.key, "create");
                self.seen.failures.insert(apply.key.clone(), Failure::Write { input: Some(input.clone()), error });
            }
            Action::Delete { delete, .. } if self.denies.contains(delete.key.gvk.kind.as_str()) => {
                let error = forbidden(&delete.key, "delete");
                self.seen.failures.insert(delete.key.clone(), Failure::Write { input: None, error });
            }
            Action::Apply { apply, input, .. } if (self.refuses)(&apply.key) => {
                self.log.push(format!("refuse {}", apply.key));
                let error = WriteError::Invalid { key: apply.key.clone(), message: "refused".to_owned() };
                self.seen.failures.insert(apply.key.clone(), Failure::Write { input: Some(input.clone()), error });
            }
            Action::Apply { apply, .. } => {
                self.log.push(format!("apply {}", apply.key));
                let answer = self.apply(&apply.key, &apply.object, &apply.manager);
                self.seen.objects.insert(apply.key.clone(), Some(answer.clone()));
                self.seen.applied.insert(apply.key.clone(), Applied::remember(&self.graph, action, &answer).unwrap());
            }
            Action::Delete { delete, .. } => {
                assert_eq!(self.objects[&delete.key].uid(), delete.uid.as_deref(), "deleted by UID");
                self.log.push(format!("delete {}", delete.key));
                self.delete(&delete.key.clone());
            }
            Action::WriteStatus(status) => {
                self.log.push("status".to_owned());
                assert!(
                    !self.graph.conditions.is_empty() || tells_one_story(status),
                    "ACTIVE while Ready is not True: {status:#}"
                );
                self.objects.get_mut(&self.key).unwrap().0.insert("status".to_owned(), status.clone());
            }
            Action::RemoveFinalizer(finalizer) => {
                self.log.push(format!("release {finalizer}"));
                self.objects.remove(&self.key);
            }
        }
    }

    /// Asks for an object's deletion.
    pub(crate) fn delete(&mut self, key: &ObjectKey) {
        let object = self.objects.get_mut(key).unwrap();
        if object.finalizers().is_empty() {
            self.objects.remove(key);
        } else {
            object.metadata_mut().insert("deletionTimestamp".to_owned(), json!("2026-01-01T00:00:00Z"));
        }
    }

    fn identify(&mut self, object: &mut Object) {
        self.counter += 1;
        let counter = self.counter;
        let metadata = object.metadata_mut();
        metadata.entry("uid").or_insert_with(|| json!(format!("uid-{counter}")));
        metadata.entry("generation").or_insert(json!(1));
        metadata.insert("resourceVersion".to_owned(), json!(counter.to_string()));
    }

    fn apply(&mut self, key: &ObjectKey, object: &Object, manager: &str) -> Object {
        self.asked.insert(key.clone(), object.clone());
        let mut live = self.objects.get(key).cloned().unwrap_or_default();
        let mut value = live.clone().into_value();
        merge(&mut value, &object.clone().into_value());
        live = Object::from_value(value).unwrap();
        let managers = live.metadata_mut().entry("managedFields").or_insert_with(|| json!([]));
        if !managers.as_array().unwrap().iter().any(|entry| entry["manager"] == manager) {
            managers.as_array_mut().unwrap().push(json!({"manager": manager, "operation": "Apply"}));
        }
        self.identify(&mut live);
        (self.controller)(&mut live);
        self.objects.insert(key.clone(), live.clone());
        live
    }

    /// Number of writes so far that are no status.
    pub(crate) fn writes(&self) -> usize {
        self.log.iter().filter(|line| *line != "status").count()
    }
}

/// ACTIVE is never shown while Ready is not True.
fn tells_one_story(status: &Value) -> bool {
    let ready = status["conditions"].as_array().into_iter().flatten().find(|condition| condition["type"] == "Ready");
    status["state"] != "ACTIVE" || ready.is_some_and(|ready| ready["status"] == "True")
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// In the words of an API server.
fn forbidden(key: &ObjectKey, verb: &str) -> WriteError {
    let (resource, namespace) = (format!("{}s", key.gvk.kind.to_lowercase()), key.namespace.clone());
    let message =
        format!("{resource} {:?} is forbidden: User \"u\" cannot {verb} resource {resource:?} in API group \"\"", key.name);
    let missing = Permission { resource, verb: verb.to_owned(), namespace, ..Permission::default() };
    WriteError::Forbidden { missing: Box::new(missing), message }
}
