//! Doing what a decision says, and putting the answers into the observation.

use futures::{StreamExt, future::join_all, stream};
use plinth_api::{Object, ObjectKey};
use plinth_cluster::watch::WatchSet;
use plinth_engine::{
    graph::Graph,
    instance::{Action, Applied, Decision, Failure, Observation},
    naming::keys,
    ports::{Apply, Delete, Query, ReadError, WriteError},
};
use plinth_run::{Action as Change, EventKind, SkipReason, Subject};
use serde_json::{Value, json};

use super::{
    Instances, Look,
    memory::{self, Known, Memory},
    owner,
};

/// Requests of one pass at the same time.
const AT_ONCE: usize = 8;

/// Whether there is still an instance to decide about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Decide again.
    More,
    /// The instance itself could not be written: later.
    Stop,
    /// The instance is gone.
    Gone,
}

impl Instances {
    /// Does all actions of a decision: reads, then writes, then what concerns the instance itself.
    pub(super) async fn execute(
        &self,
        key: &ObjectKey,
        graph: &Graph,
        decision: &Decision,
        observation: &mut Observation,
        memory: &mut Memory,
    ) -> Progress {
        self.read(key, decision, observation, memory).await;
        if self.patch_instance(decision, observation, memory).await == Progress::Stop {
            return Progress::Stop;
        }
        self.apply(key, decision, observation, memory).await;
        self.delete(key, decision, observation, memory).await;
        for action in &decision.actions {
            match action {
                Action::WriteStatus(status) => return self.write_status(key, status, observation, memory).await,
                Action::RemoveFinalizer(finalizer) => {
                    return self.remove_finalizer(key, graph, finalizer, observation, memory).await;
                }
                _ => {}
            }
        }
        Progress::More
    }

    async fn read(&self, key: &ObjectKey, decision: &Decision, observation: &mut Observation, memory: &mut Memory) {
        let objects: Vec<&ObjectKey> =
            decision.actions.iter().filter_map(|action| if let Action::Read(key) = action { Some(key) } else { None }).collect();
        let lists: Vec<&Query> =
            decision.actions.iter().filter_map(|action| if let Action::List(query) = action { Some(query) } else { None }).collect();
        if objects.is_empty() && lists.is_empty() {
            return;
        }
        // Where the kind is watched already, the index answers and no request is made.
        let with_version = lists.iter().filter(|query| !query.gvk.version.is_empty());
        let set = WatchSet {
            objects: objects.iter().map(|key| (*key).clone()).collect(),
            lists: with_version.map(|query| (*query).clone()).collect(),
        };
        self.world.index.extend(&owner(key), set);
        let asked: Vec<_> = objects.iter().map(|key| (*key, memory.newest(key, self.world.index.look(key)))).collect();
        let answers = join_all(asked.into_iter().map(|(key, known)| async move {
            let answer = match known {
                Known::Is(object) => Ok(object),
                Known::Ask => self.world.reader.get(key).await,
            };
            (key, answer)
        }));
        for (key, answer) in answers.await {
            self.take_object(key, answer, observation, memory);
        }
        let answers = join_all(lists.into_iter().map(|query| async move {
            let answer = match self.world.index.list(query) {
                Some(list) => Ok(list.iter().map(|object| object.as_ref().clone()).collect()),
                None => self.world.reader.list(query).await,
            };
            (query, answer)
        }));
        for (query, answer) in answers.await {
            self.take_list(query, answer, observation, memory);
        }
    }

    fn take_object(
        &self,
        key: &ObjectKey,
        answer: Result<Option<Object>, ReadError>,
        observation: &mut Observation,
        memory: &mut Memory,
    ) {
        match answer {
            Ok(object) => {
                let object = object.map(|object| match memory.marked(object.clone()) {
                    Known::Is(Some(marked)) => marked,
                    Known::Is(None) | Known::Ask => object,
                });
                observation.objects.insert(key.clone(), object);
            }
            Err(error) => {
                let failure = Failure::Read(error);
                memory.failed(key, failure.clone(), self.world.clock.now());
                observation.failures.insert(key.clone(), failure);
            }
        }
    }

    fn take_list(
        &self,
        query: &Query,
        answer: Result<Vec<Object>, ReadError>,
        observation: &mut Observation,
        memory: &mut Memory,
    ) {
        match answer {
            Ok(list) => {
                let marked = list.into_iter().map(|object| match memory.marked(object.clone()) {
                    Known::Is(Some(marked)) => marked,
                    Known::Is(None) | Known::Ask => object,
                });
                observation.lists.insert(query.clone(), marked.collect());
            }
            Err(error) => {
                memory.list_failed(query, error.clone(), self.world.clock.now());
                observation.list_failures.insert(query.clone(), error);
            }
        }
    }

    async fn patch_instance(&self, decision: &Decision, observation: &mut Observation, memory: &mut Memory) -> Progress {
        for action in &decision.actions {
            let Action::PatchInstance(apply) = action else { continue };
            match self.world.applier.apply(apply).await {
                Ok(object) => {
                    memory.wrote(&apply.key, &object);
                    observation.instance = object;
                }
                Err(error) => {
                    self.write_failed(&apply.key, None, error, observation, memory);
                    return Progress::Stop;
                }
            }
        }
        Progress::More
    }

    async fn apply(&self, parent: &ObjectKey, decision: &Decision, observation: &mut Observation, memory: &mut Memory) {
        let wanted: Vec<(&String, &Apply, &String)> = decision
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::Apply { node, apply, input } => Some((node, apply, input)),
                _ => None,
            })
            .collect();
        let answers: Vec<_> = stream::iter(wanted)
            .map(|(node, apply, input)| async move { (node, apply, input, self.world.applier.apply(apply).await) })
            .buffered(AT_ONCE)
            .collect()
            .await;
        for (node, apply, input, answer) in answers {
            match answer {
                Ok(object) => self.applied(parent, node, apply, input, object, observation, memory),
                Err(error) => self.write_failed(&apply.key, Some(input.clone()), error, observation, memory),
            }
        }
    }

    fn applied(
        &self,
        parent: &ObjectKey,
        node: &str,
        apply: &Apply,
        input: &str,
        object: Object,
        observation: &mut Observation,
        memory: &mut Memory,
    ) {
        let key = &apply.key;
        let before = observation.objects.get(key).and_then(Option::as_ref);
        let action = match before {
            None => Change::Create,
            Some(before) if before.uid() == object.uid() && memory::version(before) == memory::version(&object) => Change::Unchanged,
            Some(_) => Change::Configure,
        };
        let applied = Applied::remember(node, apply, input, &object);
        self.world.recorder.record(EventKind::ChangeApplied {
            subject: Subject::child(key.clone(), node, parent.clone()),
            action,
            digest: input.to_owned(),
            generation: object.generation(),
            result: Some(applied.result.clone()),
            uid: object.uid().map(str::to_owned),
        });
        memory.wrote(key, &object);
        memory.proven.remove(key);
        observation.failures.remove(key);
        observation.applied.insert(key.clone(), applied);
        observation.objects.insert(key.clone(), Some(object));
    }

    /// In order, one after the other: the engine deletes the deepest dependents first.
    async fn delete(&self, parent: &ObjectKey, decision: &Decision, observation: &mut Observation, memory: &mut Memory) {
        for action in &decision.actions {
            let Action::Delete { node, delete } = action else { continue };
            match self.world.applier.delete(delete).await {
                Ok(()) => self.deleted(parent, node.as_deref(), delete, observation, memory),
                Err(error) => self.write_failed(&delete.key, None, error, observation, memory),
            }
        }
    }

    fn deleted(
        &self,
        parent: &ObjectKey,
        node: Option<&str>,
        delete: &Delete,
        observation: &mut Observation,
        memory: &mut Memory,
    ) {
        let (key, uid) = (&delete.key, delete.uid.as_deref());
        let subject = match node {
            Some(node) => Subject::child(key.clone(), node, parent.clone()),
            None => Subject { parent: Some(parent.clone()), ..Subject::root(key.clone()) },
        };
        self.world.recorder.record(EventKind::ChangeApplied {
            subject,
            action: Change::Delete,
            digest: String::new(),
            generation: 0,
            result: None,
            uid: uid.map(str::to_owned),
        });
        memory.deleted(key, uid);
        observation.applied.remove(key);
        // Whether it is gone or waits for a finalizer, the watch tells; until then it is on its way out.
        let of_uid = |object: &Object| uid.is_none() || object.uid() == uid;
        let listed = observation.lists.values_mut().flatten().filter(|object| object.key(&key.cluster).as_ref() == Some(key));
        listed.filter(|object| of_uid(object)).for_each(memory::mark_terminating);
        if let Some(Some(object)) = observation.objects.get_mut(key)
            && of_uid(object)
        {
            memory::mark_terminating(object);
        }
    }

    async fn write_status(
        &self,
        key: &ObjectKey,
        status: &Value,
        observation: &mut Observation,
        memory: &mut Memory,
    ) -> Progress {
        let object = json!({
            "apiVersion": key.gvk.api_version(), "kind": key.gvk.kind,
            "metadata": {"name": key.name, "namespace": key.namespace}, "status": status,
        });
        let mut object = Object::from_value(object).expect("a mapping was just written");
        if key.namespace.is_none() {
            object.metadata_mut().remove("namespace");
        }
        let apply =
            Apply { key: key.clone(), object, manager: keys::MANAGER.to_owned(), force: true, subresource: Some("status") };
        match self.world.applier.apply(&apply).await {
            Ok(object) => {
                memory.wrote(key, &object);
                observation.instance = object;
                Progress::More
            }
            Err(error) => {
                self.write_failed(key, None, error, observation, memory);
                Progress::Stop
            }
        }
    }

    async fn remove_finalizer(
        &self,
        key: &ObjectKey,
        graph: &Graph,
        finalizer: &str,
        observation: &mut Observation,
        memory: &mut Memory,
    ) -> Progress {
        match self.world.finalizers.remove(key, finalizer).await {
            Ok(()) => {
                tracing::info!(instance = %key, definition = graph.name, "the instance's children are gone, and so is its finalizer");
                Progress::Gone
            }
            Err(error) => {
                self.write_failed(key, None, error, observation, memory);
                Progress::Stop
            }
        }
    }

    fn write_failed(
        &self,
        key: &ObjectKey,
        input: Option<String>,
        error: WriteError,
        observation: &mut Observation,
        memory: &mut Memory,
    ) {
        tracing::debug!(object = %key, %error, "a write failed and will be tried again");
        let failure = Failure::Write { input, error };
        memory.failed(key, failure.clone(), self.world.clock.now());
        observation.failures.insert(key.clone(), failure);
    }

    /// Tells of the children that a journal proved to be as wanted, once.
    pub(super) fn tell_proven(&self, parent: &ObjectKey, memory: &mut Memory) {
        for (key, proof) in std::mem::take(&mut memory.proven) {
            self.world.recorder.record(EventKind::ChangeSkipped {
                subject: Subject::child(key, proof.node, parent.clone()),
                reason: SkipReason::Proven { digest: proof.digest, generation: proof.generation },
            });
        }
    }
}
