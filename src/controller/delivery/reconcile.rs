//! What all kinds have in common: finalizer, suspension, status, interval, removal.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plinth_api::{GroupVersionKind, Object, ObjectKey};
use plinth_cluster::watch::{Change, Look, Owner, WatchSet};
use plinth_engine::{
    health::Health,
    naming::keys,
    ports::{Answer, Query, ReadError, WriteError},
};
use plinth_manager::{
    finalizer,
    reconcile::{Failure, Outcome, Reconciler},
    status::write_if_changed,
};
use plinth_run::{EventKind, Subject, duration};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    config,
    image::Images,
    kind::{self, Kind},
    report::{self, Cure, End, Facts, Failed, Reason},
    sources::Sources,
};
use crate::{recent::Recent, world::World};

/// Role of the owners that delivery objects are.
pub const ROLE: &str = "delivery";

/// Shortest interval that is taken; a shorter one would be a way to keep the loop busy.
pub(super) const SHORTEST: Duration = Duration::from_secs(1);
/// When to try again without an interval.
const AGAIN: Duration = Duration::from_secs(10);
/// When to look at the latest whether somebody repaired something, or the registry is back.
const REPAIRED: Duration = Duration::from_mins(1);
/// Field manager of finalizers; it must own nothing else (`plinth_manager::finalizer`).
const MANAGER_FINALIZER: &str = "plinth.dev/delivery-finalizer";

/// The reconciler of all delivery kinds.
pub struct Delivery {
    pub(super) world: World,
    pub(super) sources: Arc<dyn Sources>,
    pub(super) images: Arc<dyn Images>,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Deployers by the kinds they wait for.
    waiting: BTreeMap<GroupVersionKind, BTreeSet<ObjectKey>>,
    /// What was deployed, to see what needs no write.
    deployed: BTreeMap<ObjectKey, super::deployer::Memory>,
    /// What was told last.
    told: BTreeMap<ObjectKey, EventKind>,
    /// The server's answers to our last writes, until the index has caught up.
    recent: Recent,
}

/// One pass over one object.
pub(super) struct Pass<'a> {
    pub(super) key: &'a ObjectKey,
    pub(super) object: &'a Object,
    /// What a later pass depends on.
    pub(super) watch: WatchSet,
    /// `status.effectiveOCMConfig`; as it was where a pass does not get as far.
    pub(super) config: Vec<Value>,
    /// Fields of the status.
    pub(super) fields: Map<String, Value>,
    /// Deployed objects wait for these kinds.
    pub(super) missing: BTreeSet<GroupVersionKind>,
    /// Reason of Ready where the pass succeeds.
    pub(super) reason: &'static str,
}

impl Delivery {
    /// A reconciler.
    pub fn new(world: World, sources: Arc<dyn Sources>, images: Arc<dyn Images>) -> Self {
        Self { world, sources, images, shared: Mutex::default() }
    }

    /// Whom a change of a delivery object concerns: itself, and, when it goes, what it built on.
    pub fn concerned(change: &Change) -> Vec<ObjectKey> {
        let mut keys = vec![change.key.clone()];
        if change.after.is_none() {
            keys.extend(change.before.as_ref().and_then(|before| kind::parent_of(&change.key, before)));
        }
        keys
    }

    /// Deployers that wait for a kind that came to be served.
    pub fn waiting_for(&self, gvk: &GroupVersionKind) -> Vec<ObjectKey> {
        self.lock().waiting.remove(gvk).into_iter().flatten().collect()
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let Some(kind) = Kind::of(&key.gvk) else { return Ok(Outcome::Done) };
        let Some(object) = self.get(key).await? else {
            self.forget(key);
            return Ok(Outcome::Done);
        };
        if object.is_terminating() {
            return self.remove(kind, key, &object).await;
        }
        if self.world.removing {
            return Ok(Outcome::Wait { reason: "a removal is under way".to_owned() });
        }
        if object.spec().get("suspend").and_then(Value::as_bool) == Some(true) {
            return Ok(Outcome::Wait { reason: "suspended".to_owned() });
        }
        // A Deployer's is part of what makes it the parent of its set.
        if let (Some(ours), true) = (kind.finalizers().first(), kind != Kind::Deployer) {
            let held = finalizer::add(&*self.world.applier, key, &object, ours, MANAGER_FINALIZER).await?;
            self.wrote(key, held);
        }
        let mut pass = Pass {
            key,
            object: &object,
            watch: WatchSet::default(),
            config: config::effective(&object),
            fields: report::kept(&object, kind.fields()),
            missing: BTreeSet::new(),
            reason: report::SUCCEEDED,
        };
        pass.watch.objects.insert(key.clone());
        let end = match interval(&object) {
            Ok(_) => self.look_after(kind, &mut pass).await,
            Err(failed) => Err(failed),
        };
        // A Repository says whether it answers, and a Discovery whether its answer is that of now.
        let still_good = match kind {
            Kind::Repository | Kind::Discovery => None,
            Kind::Component | Kind::Resource | Kind::Deployer => report::still_good(&object, &end),
        };
        let outcome = match &still_good {
            // Nothing waits for the registry: it is not asked more often than it would be.
            Some(_) => Outcome::RequeueAfter(interval(&object).ok().flatten().unwrap_or(REPAIRED)),
            None => outcome(&object, &end),
        };
        self.conclude(pass, &still_good.map_or(end, Ok)).await?;
        Ok(outcome)
    }

    async fn look_after(&self, kind: Kind, pass: &mut Pass<'_>) -> End {
        match kind {
            Kind::Repository => self.repository(pass).await,
            Kind::Component => self.component(pass).await,
            Kind::Resource => self.resource(pass).await,
            Kind::Deployer => self.deployer(pass).await,
            Kind::Discovery => self.discovery(pass).await,
        }
    }

    async fn conclude(&self, pass: Pass<'_>, end: &End) -> Result<(), Failure> {
        let Pass { key, object, watch, config, fields, missing, reason } = pass;
        self.world.index.declare(&owner(key), watch);
        {
            let mut shared = self.lock();
            for waiting in shared.waiting.values_mut() {
                waiting.remove(key);
            }
            shared.waiting.retain(|_, waiting| !waiting.is_empty());
            for gvk in missing {
                shared.waiting.entry(gvk).or_default().insert(key.clone());
            }
        }
        let status = report::status(object, end, reason, Facts { config, fields }, self.world.clock.now());
        match write_if_changed(&*self.world.applier, key, object, status, keys::MANAGER).await {
            // It went away in between; the watch tells.
            Err(WriteError::NotFound { .. }) => return Ok(()),
            other => other?.into_iter().for_each(|written| self.wrote(key, written)),
        }
        self.tell(key, end);
        Ok(())
    }

    /// The index lags behind our own writes by one round trip: a pass in between must not write the same again.
    pub(super) fn wrote(&self, key: &ObjectKey, object: Object) {
        self.lock().recent.wrote(key, object);
    }

    /// An object in its newest known state.
    pub(super) async fn get(&self, key: &ObjectKey) -> Result<Option<Object>, ReadError> {
        match self.world.index.look(key) {
            Look::Present(object) => Ok(Some(self.lock().recent.newest(key, &object))),
            // Just created and not seen yet, or gone since: only the server knows.
            Look::Absent if self.lock().recent.forget(key) => self.world.reader.get(key).await,
            Look::Absent => Ok(None),
            Look::Unwatched | Look::Unknown => self.world.reader.get(key).await,
        }
    }

    /// All objects that a query selects.
    pub(super) async fn list(&self, query: &Query) -> Result<Vec<Object>, ReadError> {
        match self.world.index.list(query) {
            Some(list) => Ok(list.iter().map(|object| object.as_ref().clone()).collect()),
            None => self.world.reader.list(query).await,
        }
    }

    fn tell(&self, key: &ObjectKey, end: &End) {
        let (health, reason, message) = match end {
            Ok(message) => (Health::Current, "Succeeded", message.clone()),
            Err(failed) => {
                let health = match failed.cure {
                    _ if !failed.missing.is_empty() => Health::Waiting,
                    Cure::Edit | Cure::Repair => Health::Failed,
                    Cure::Event => Health::Waiting,
                    Cure::Time | Cure::Away => Health::InProgress,
                };
                (health, failed.reason.as_str(), failed.message.clone())
            }
        };
        let (subject, reason) = (Subject::root(key.clone()), reason.to_owned());
        let event = EventKind::HealthChanged { subject, health, reason, message, causes: Vec::new() };
        let is_new = self.lock().told.insert(key.clone(), event.clone()).as_ref() != Some(&event);
        if is_new {
            self.world.recorder.record(event);
        }
    }

    pub(super) fn deployed(&self, key: &ObjectKey) -> super::deployer::Memory {
        self.lock().deployed.get(key).cloned().unwrap_or_default()
    }

    pub(super) fn remember_deployed(&self, key: &ObjectKey, memory: super::deployer::Memory) {
        self.lock().deployed.insert(key.clone(), memory);
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.world.index.forget(&owner(key));
        let mut shared = self.lock();
        shared.deployed.remove(key);
        shared.told.remove(key);
        shared.recent.forget(key);
        for waiting in shared.waiting.values_mut() {
            waiting.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // Each entry is whole in itself, so a panic elsewhere leaves them usable.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reconciler<ObjectKey> for Delivery {
    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Outcome, Failure>> {
        Box::pin(self.pass(key))
    }
}

/// Reads a spec; what the CRD lets through and we cannot read is wrong until it is edited.
pub(super) fn spec<T: DeserializeOwned>(object: &Object) -> Result<T, Failed> {
    serde_json::from_value(object.spec().clone()).map_err(|error| Failed::wrong(Reason::MarshalFailed, format!("spec: {error}")))
}

/// `spec.interval`; none where it is missing or zero.
fn interval(object: &Object) -> Result<Option<Duration>, Failed> {
    let Some(text) = object.spec().get("interval").and_then(Value::as_str) else { return Ok(None) };
    let Some(interval) = duration::parse(text) else {
        let message = format!("spec.interval: {text:?} is not a duration such as 30s, 10m or 1h30m");
        return Err(Failed::wrong(Reason::MarshalFailed, message));
    };
    Ok((!interval.is_zero()).then(|| interval.max(SHORTEST)))
}

fn outcome(object: &Object, end: &End) -> Outcome {
    let interval = interval(object).ok().flatten();
    match end {
        Ok(_) => interval.map_or(Outcome::Done, Outcome::RequeueAfter),
        Err(failed) => match failed.cure {
            Cure::Time | Cure::Away => Outcome::RequeueAfter(interval.unwrap_or(AGAIN).min(AGAIN)),
            Cure::Repair => Outcome::RequeueAfter(interval.unwrap_or(REPAIRED).min(REPAIRED)),
            Cure::Event => interval.map_or_else(|| Outcome::Wait { reason: failed.message.clone() }, Outcome::RequeueAfter),
            Cure::Edit => Outcome::Invalid { reason: failed.message.clone() },
        },
    }
}

pub(super) fn owner(key: &ObjectKey) -> Owner {
    Owner { role: ROLE, key: key.clone() }
}
