//! Doing what a decision says, and putting the answers into the observation.

use std::sync::Arc;

use futures::{StreamExt, future::join_all, stream};
use plinth_api::{Object, ObjectKey};
use plinth_cluster::watch::{WatchKey, WatchSet};
use plinth_engine::{
    graph::Graph,
    instance::{Action, Applied, Decision, Failure, Observation},
    naming::keys,
    ports::{Applier, Apply, Delete, Query, ReadError, WriteError},
};
use plinth_manager::status::write_if_changed;
use plinth_run::{Action as Change, EventKind, SkipReason, Subject};
use serde_json::Value;

use super::{
    events,
    memory::{self, Known, Memory},
    owner,
};
use crate::{recent::version, world::World};

/// Requests of one pass at the same time.
const AT_ONCE: usize = 8;

/// Whether there is still something to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Decide again.
    More,
    /// The instance itself could not be written: later.
    Stop,
    /// The instance is gone.
    Gone,
}

/// One instance in the middle of a pass.
pub(super) struct Round<'a> {
    pub(super) world: &'a World,
    pub(super) key: &'a ObjectKey,
    pub(super) graph: &'a Graph,
    pub(super) observation: &'a mut Observation,
    pub(super) memory: &'a mut Memory,
}

impl Round<'_> {
    /// Does all actions of a decision: reads, then writes, then what concerns the instance itself.
    pub(super) async fn execute(&mut self, decision: &Decision) -> Progress {
        self.read(decision).await;
        self.review(decision).await;
        if self.patch_instance(decision).await == Progress::Stop {
            return Progress::Stop;
        }
        self.apply(decision).await;
        self.delete(decision).await;
        for action in &decision.actions {
            match action {
                Action::WriteStatus(status) => return self.write_status(status).await,
                Action::RemoveFinalizer(finalizer) => return self.remove_finalizer(finalizer).await,
                _ => {}
            }
        }
        Progress::More
    }

    async fn read(&mut self, decision: &Decision) {
        let mut objects = Vec::new();
        let mut lists = Vec::new();
        for action in &decision.actions {
            match action {
                Action::Read(key) => objects.push(key),
                Action::List(query) => lists.push(query),
                _ => {}
            }
        }
        if objects.is_empty() && lists.is_empty() {
            return;
        }
        self.watch(&objects, &lists);
        self.read_objects(objects).await;
        self.read_lists(lists).await;
    }

    async fn review(&mut self, decision: &Decision) {
        let accounts = &self.world.accounts;
        let asked = decision.actions.iter().filter_map(|action| match action {
            Action::Review(access) => Some(async move { (access, accounts.may_read(access).await) }),
            _ => None,
        });
        for (access, answer) in join_all(asked).await {
            self.memory.reviewed(access, answer.clone(), self.world.clock.now());
            self.observation.reviews.insert(access.clone(), answer);
        }
    }

    /// Where a kind is watched already, the index answers and no request is made.
    fn watch(&self, objects: &[&ObjectKey], lists: &[&Query]) {
        let with_version = lists.iter().filter(|query| !query.gvk.version.is_empty());
        let set = WatchSet {
            objects: objects.iter().map(|key| (*key).clone()).collect(),
            lists: with_version.map(|query| (*query).clone()).collect(),
        };
        self.world.index.extend(&owner(self.key), set);
    }

    async fn read_objects(&mut self, objects: Vec<&ObjectKey>) {
        let (world, memory) = (self.world, &mut *self.memory);
        let mut known = Vec::new();
        for key in objects {
            match world.index.refused(&WatchKey::of(key)) {
                // The watch tells when it is permitted: nothing is tried again for it.
                Some(error) => drop(self.observation.failures.insert(key.clone(), Failure::Read(error))),
                None => known.push((key, memory.newest(key, world.index.look(key)))),
            }
        }
        let answers = join_all(known.into_iter().map(|(key, known)| async move {
            let is_asked = known == Known::Ask;
            let answer = match known {
                Known::Is(object) => Ok(object),
                Known::Ask => world.reader.get(key).await,
            };
            (key, is_asked, answer)
        }));
        for (key, is_asked, answer) in answers.await {
            if let (true, Ok(answer)) = (is_asked, &answer) {
                self.memory.asked(key, answer.as_ref());
            }
            self.take_object(key, answer);
        }
    }

    async fn read_lists(&mut self, lists: Vec<&Query>) {
        let world = self.world;
        let mut known = Vec::new();
        for query in lists {
            match world.index.refused(&WatchKey::of_query(query)) {
                Some(error) => drop(self.observation.list_failures.insert(query.clone(), error)),
                None => known.push(query),
            }
        }
        let answers = join_all(known.into_iter().map(|query| async move {
            let answer = match world.index.list(query) {
                Some(list) => Ok(list.iter().map(|object| object.as_ref().clone()).collect()),
                None => world.reader.list(query).await,
            };
            (query, answer)
        }));
        for (query, answer) in answers.await {
            self.take_list(query, answer);
        }
    }

    fn take_object(&mut self, key: &ObjectKey, answer: Result<Option<Object>, ReadError>) {
        match answer {
            Ok(object) => {
                let object = object.map(|object| self.memory.marked(object));
                self.observation.objects.insert(key.clone(), object);
            }
            Err(error) => {
                let failure = Failure::Read(error);
                self.memory.failed(key, failure.clone(), self.world.clock.now());
                self.observation.failures.insert(key.clone(), failure);
            }
        }
    }

    fn take_list(&mut self, query: &Query, answer: Result<Vec<Object>, ReadError>) {
        match answer {
            Ok(list) => {
                let marked = list.into_iter().map(|object| self.memory.marked(object)).collect();
                self.observation.lists.insert(query.clone(), marked);
            }
            Err(error) => {
                self.memory.list_failed(query, error.clone(), self.world.clock.now());
                self.observation.list_failures.insert(query.clone(), error);
            }
        }
    }

    async fn patch_instance(&mut self, decision: &Decision) -> Progress {
        for action in &decision.actions {
            let Action::PatchInstance(apply) = action else { continue };
            match self.world.applier.apply(apply).await {
                Ok(object) => self.wrote_instance(object),
                Err(error) => {
                    self.write_failed(&apply.key, None, error);
                    return Progress::Stop;
                }
            }
        }
        Progress::More
    }

    fn wrote_instance(&mut self, object: Object) {
        self.memory.wrote(self.key, &object);
        self.observation.instance = object;
    }

    /// Who writes children: the account of the instance where there is one. What concerns the instance itself the controller writes.
    fn writes(&self) -> Arc<dyn Applier> {
        match &self.graph.account {
            Some(account) => self.world.accounts.writes(&account.of(&self.observation.instance), &self.key.cluster),
            None => Arc::clone(&self.world.applier),
        }
    }

    async fn apply(&mut self, decision: &Decision) {
        let writes = self.writes();
        let wanted = decision.actions.iter().filter_map(|action| match action {
            Action::Apply { apply, .. } => Some((action, writes.apply(apply))),
            _ => None,
        });
        // Two steps, so that the requests are made here and only awaited in the stream.
        let (actions, requests): (Vec<_>, Vec<_>) = wanted.unzip();
        let answers: Vec<_> = stream::iter(requests).buffered(AT_ONCE).collect().await;
        for (action, answer) in actions.into_iter().zip(answers) {
            let Action::Apply { apply, input, .. } = action else { continue };
            match answer {
                Ok(object) => self.applied(action, object),
                Err(error) => self.write_failed(&apply.key, Some(input.clone()), error),
            }
        }
    }

    fn applied(&mut self, action: &Action, object: Object) {
        let Action::Apply { node, apply, input } = action else { return };
        let Some(applied) = Applied::remember(self.graph, action, &object) else { return };
        let key = &apply.key;
        let change = match self.observation.objects.get(key).and_then(Option::as_ref) {
            None => Change::Create,
            Some(before) if before.uid() == object.uid() && version(before) == version(&object) => Change::Unchanged,
            Some(_) => Change::Configure,
        };
        self.world.recorder.record(EventKind::ChangeApplied {
            subject: Subject::child(key.clone(), node.as_str(), self.key.clone()),
            action: change,
            digest: input.clone(),
            generation: object.generation(),
            result: Some(applied.result.clone()),
            uid: object.uid().map(str::to_owned),
        });
        self.memory.wrote(key, &object);
        self.memory.proven.remove(key);
        self.observation.failures.remove(key);
        self.observation.applied.insert(key.clone(), applied);
        self.observation.objects.insert(key.clone(), Some(object));
    }

    /// In order, one after the other: the engine deletes the deepest dependents first.
    async fn delete(&mut self, decision: &Decision) {
        let writes = self.writes();
        for action in &decision.actions {
            let Action::Delete { node, delete } = action else { continue };
            match writes.delete(delete).await {
                Ok(()) => self.deleted(node.as_deref(), delete),
                Err(error) => self.write_failed(&delete.key, None, error),
            }
        }
    }

    fn deleted(&mut self, node: Option<&str>, delete: &Delete) {
        let (key, uid) = (&delete.key, delete.uid.as_deref());
        self.world.recorder.record(EventKind::ChangeApplied {
            subject: Subject { node: node.map(str::to_owned), parent: Some(self.key.clone()), ..Subject::root(key.clone()) },
            action: Change::Delete,
            digest: String::new(),
            generation: 0,
            result: None,
            uid: uid.map(str::to_owned),
        });
        self.memory.deleted(key, uid);
        self.observation.applied.remove(key);
        // Whether it is gone or waits for a finalizer, the watch tells; until then it is on its way out.
        let is_it = |object: &Object| object.key(&key.cluster).as_ref() == Some(key) && (uid.is_none() || object.uid() == uid);
        let listed = self.observation.lists.values_mut().flatten();
        let single = self.observation.objects.get_mut(key).and_then(Option::as_mut);
        listed.chain(single).filter(|object| is_it(object)).for_each(memory::mark_terminating);
    }

    async fn write_status(&mut self, status: &Value) -> Progress {
        let written =
            write_if_changed(&*self.world.applier, self.key, &self.observation.instance, status.clone(), keys::MANAGER).await;
        match written {
            Ok(object) => {
                if let Some(object) = object {
                    self.tell_conditions(status).await;
                    self.wrote_instance(object);
                }
                Progress::More
            }
            Err(error) => {
                self.write_failed(self.key, None, error);
                Progress::Stop
            }
        }
    }

    /// Events are for people: one that cannot be written is no reason to try again.
    async fn tell_conditions(&self, status: &Value) {
        if !self.world.condition_events {
            return;
        }
        let kind = &self.graph.instance;
        let told = events::of(&self.observation.instance, &kind.plural, self.key, status, self.world.clock.now());
        for (key, object) in told {
            let apply = Apply { key, object, manager: events::MANAGER.to_owned(), force: true, subresource: None };
            if let Err(error) = self.world.applier.apply(&apply).await {
                tracing::debug!(instance = %self.key, %error, "an event was not written");
            }
        }
    }

    async fn remove_finalizer(&mut self, finalizer: &str) -> Progress {
        match self.world.finalizers.remove(self.key, finalizer).await {
            Ok(()) => {
                tracing::info!(instance = %self.key, "the instance's children are gone, and so is its finalizer");
                Progress::Gone
            }
            Err(error) => {
                self.write_failed(self.key, None, error);
                Progress::Stop
            }
        }
    }

    fn write_failed(&mut self, key: &ObjectKey, input: Option<String>, error: WriteError) {
        tracing::debug!(object = %key, %error, "a write failed and will be tried again");
        let failure = Failure::Write { input, error };
        self.memory.failed(key, failure.clone(), self.world.clock.now());
        self.observation.failures.insert(key.clone(), failure);
    }

    /// Tells of the children that a journal proved to be as wanted, once.
    pub(super) fn tell_proven(&mut self) {
        for (key, proof) in std::mem::take(&mut self.memory.proven) {
            self.world.recorder.record(EventKind::ChangeSkipped {
                subject: Subject::child(key, proof.node, self.key.clone()),
                reason: SkipReason::Proven { digest: proof.digest, generation: proof.generation },
            });
        }
    }
}
