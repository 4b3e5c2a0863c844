//! Platform (`plinth.dev/v1alpha1`): what is wanted of a platform cluster, as one object (contracts 20).
//!
//! ```text
//! spec ─ load ─> release, distribution ─ plan, act (bootstrap) ─> definitions, instance ─ present ─> status
//! ```
//!
//! The way is that of `up`, and ends where the loop's begins: what the definitions and the instance come to is looked after by their own
//! reconcilers. A Platform that cannot be carried out changes nothing but its own status; what runs goes on.

mod load;
pub mod policy;
mod ports;
mod report;
pub mod secrets;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use plinth_api::{Object, ObjectKey, lock::LockedRef, platform::PlatformSpec};
use plinth_bootstrap::{Access, Error, Request, Schemas, keep};
use plinth_cluster::watch::{Look, Owner, WatchSet};
use plinth_engine::{
    health::Health,
    ports::{Answer, ReadError, WriteError},
};
use plinth_manager::reconcile::{Failure, Outcome, Reconciler};
use serde_json::{Value, json};

use crate::{
    artifacts::platform_gvk,
    delivery::{
        image::SharedImages,
        report::{Cure, Failed, Reason},
        sources::Sources,
    },
    instance::{Instances, UNPERMITTED},
    world::World,
};
use load::Loaded;

/// Role of the owners that Platforms are here.
pub const ROLE: &str = "platform";
/// How often the channel is looked at for other versions.
const INTERVAL: Duration = Duration::from_mins(10);
/// When to try again what may heal by itself.
const AGAIN: Duration = Duration::from_secs(15);
/// When to look whether a component is ready that a move waits for.
const MOVING: Duration = Duration::from_secs(2);
/// When to look whether somebody repaired something.
const REPAIRED: Duration = Duration::from_mins(1);

/// What the reconciler of Platforms needs besides the world.
#[derive(Clone)]
pub struct Doors {
    /// Whether the controller may do something.
    pub access: Arc<dyn Access>,
    /// What is served.
    pub schemas: Arc<dyn Schemas>,
}

/// Which Platform is kept, and from where.
#[derive(Clone)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// The release that `up` left in the cluster.
    pub installed: Option<LockedRef>,
    /// Images of the release in use; of another one after a move.
    pub images: Arc<SharedImages>,
}

/// The reconciler of Platforms.
pub struct Platforms {
    world: World,
    doors: Doors,
    sources: Arc<dyn Sources>,
    instances: Arc<Instances>,
    kept: Kept,
    known: Mutex<Option<Known>>,
}

/// What is known of the Platform since the last pass.
#[derive(Clone)]
struct Known {
    generation: i64,
    /// When its channel was looked at.
    at: Timestamp,
    loaded: Arc<Loaded>,
    /// What was carried out of it, and how the objects were after that.
    carried: Option<(Arc<keep::Kept>, Seen)>,
    /// The last run that wrote something.
    last_run: Option<Value>,
    /// Whether what a move leaves to the end is done.
    is_over: bool,
}

/// Objects that the reconciler writes, with what tells a change of them.
type Seen = Vec<(ObjectKey, Option<(String, i64)>)>;

/// What a pass came to.
struct Pass {
    loaded: Arc<Loaded>,
    carried: Arc<keep::Kept>,
    /// Why the channel could not be looked at again; what was found last is still in use.
    away: Option<String>,
}

impl Platforms {
    /// A reconciler.
    pub fn new(world: World, doors: Doors, sources: Arc<dyn Sources>, instances: Arc<Instances>, kept: Kept) -> Self {
        Self { world, doors, sources, instances, kept, known: Mutex::default() }
    }

    /// The Platform that is kept.
    pub fn key(&self, cluster: &plinth_api::ClusterKey) -> ObjectKey {
        ObjectKey { cluster: cluster.clone(), gvk: platform_gvk(), namespace: None, name: self.kept.name.clone() }
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let found = match self.world.reader.get(key).await {
            Err(ReadError::NotServed(_)) => None,
            other => other?,
        };
        let Some(platform) = found.filter(|platform| !platform.is_terminating()) else {
            self.world.index.forget(&owner(key));
            *self.lock() = None;
            return Ok(Outcome::Done);
        };
        if self.world.removing {
            return Ok(Outcome::Wait { reason: "a removal is under way".to_owned() });
        }
        if key.name != self.kept.name {
            let message = format!("the controller of this cluster keeps the platform {}", self.kept.name);
            return self.conclude(key, &platform, Err(Failed::wrong(Reason::NotKept, message))).await;
        }
        let spec: PlatformSpec = match serde_json::from_value(platform.spec().clone()) {
            Ok(spec) => spec,
            Err(error) => {
                let failed = Failed::wrong(Reason::MarshalFailed, format!("spec: {error}"));
                return self.conclude(key, &platform, Err(failed)).await;
            }
        };
        if spec.suspend {
            self.write(key, &platform, report::suspended(&platform, self.world.clock.now())).await?;
            return Ok(Outcome::Wait { reason: "suspended".to_owned() });
        }
        let end = self.keep(key, &platform, &spec).await;
        self.conclude(key, &platform, end).await
    }

    /// Loads, plans and acts, each only where something may have changed.
    async fn keep(&self, key: &ObjectKey, platform: &Object, spec: &PlatformSpec) -> Result<Pass, Failed> {
        let away = self.look(key, platform, spec).await?;
        let Some(Known { loaded, carried, .. }) = self.lock().clone() else { unreachable!("a look leaves something known") };
        if let Some((carried, seen)) = carried
            && self.seen(&carried) == seen
            && !self.has_come(&carried, key)
        {
            self.end(&loaded, &carried).await?;
            return Ok(Pass { loaded, carried, away });
        }
        let began = self.world.clock.now();
        let request = request(&loaded);
        let ports = self.ports();
        // What moves first is of the new release, what moves last still of the old one.
        self.kept.images.also(Arc::clone(&loaded.content.images));
        let ended = keep::keep(&request, &ports).await;
        if let Err(error) = &ended {
            self.remember(|known| known.last_run = Some(report::run(began, self.world.clock.now(), Err(error))));
        }
        let carried = Arc::new(ended.map_err(|error| of_error(&error))?);
        self.kept.images.set(Arc::clone(&loaded.content.images));
        self.watch(key, &carried);
        let seen = self.seen(&carried);
        self.remember(|known| {
            known.is_over = false;
            if carried.writes > 0 {
                known.last_run = Some(report::run(began, self.world.clock.now(), Ok(carried.writes)));
            }
            known.carried = Some((Arc::clone(&carried), seen));
        });
        // Where nothing was written, nothing may change that would ask for another pass.
        if carried.writes == 0 {
            self.end(&loaded, &carried).await?;
        }
        Ok(Pass { loaded, carried, away })
    }

    /// Ends a move, once, when everything of the new release is ready.
    async fn end(&self, loaded: &Loaded, carried: &keep::Kept) -> Result<(), Failed> {
        let is_over = self.lock().as_ref().is_none_or(|known| known.is_over);
        if is_over || self.instances.is_ready(&carried.planned.instance) != Some(true) {
            return Ok(());
        }
        let request = request(loaded);
        keep::end(&request, &carried.planned, &self.ports()).await.map_err(|error| of_error(&error))?;
        self.remember(|known| known.is_over = true);
        Ok(())
    }

    /// Makes sure that a release is known; why the channel could not be asked, where what is known is still good.
    async fn look(&self, key: &ObjectKey, platform: &Object, spec: &PlatformSpec) -> Result<Option<String>, Failed> {
        let now = self.world.clock.now();
        let known = self.lock().clone().filter(|known| known.generation == platform.generation());
        let is_fresh = |known: &Known| now.duration_since(known.at).unsigned_abs() < INTERVAL;
        if known.as_ref().is_some_and(is_fresh) {
            return Ok(None);
        }
        let before = known.as_ref().map(|known| Arc::clone(&known.loaded));
        let installed = report::installed(platform).or_else(|| self.kept.installed.clone());
        let loaded = match self.load(key, platform, spec, installed.as_ref(), before.as_ref()).await {
            Ok(loaded) => loaded,
            // The cluster keeps itself without the outside world.
            Err(failed) if known.is_some() && failed.cure == Cure::Away => return Ok(Some(failed.message)),
            Err(failed) => return Err(failed),
        };
        let is_same = before.is_some_and(|before| Arc::ptr_eq(&before.release, &loaded.release));
        let is_over = is_same && known.as_ref().is_some_and(|known| known.is_over);
        let (carried, last_run) = known.map(|known| (known.carried.filter(|_| is_same), known.last_run)).unwrap_or_default();
        let (generation, loaded) = (platform.generation(), Arc::new(loaded));
        *self.lock() = Some(Known { generation, at: now, loaded, carried, last_run, is_over });
        Ok(None)
    }

    /// Whoever changes what is kept here asks for a pass.
    fn watch(&self, key: &ObjectKey, carried: &keep::Kept) {
        let objects: BTreeSet<ObjectKey> =
            carried.planned.wanted.iter().map(|wanted| wanted.key.clone()).chain([key.clone()]).collect();
        // Namespaces are not watched: the controller may read those alone that it names.
        let objects = objects.into_iter().filter(|key| key.gvk != plinth_bootstrap::wanted::namespace_kind()).collect();
        self.world.index.declare(&owner(key), WatchSet { objects, lists: BTreeSet::new() });
    }

    fn seen(&self, carried: &keep::Kept) -> Seen {
        let seen = |key: &ObjectKey| match self.world.index.look(key) {
            Look::Present(object) => Some((object.uid().unwrap_or_default().to_owned(), object.generation())),
            Look::Absent | Look::Unknown | Look::Unwatched => None,
        };
        carried.planned.wanted.iter().map(|wanted| (wanted.key.clone(), seen(&wanted.key))).collect()
    }

    /// Whether kinds are served by now that the plan waited for: it has other stages then.
    fn has_come(&self, carried: &keep::Kept, key: &ObjectKey) -> bool {
        let facts = report::Facts { world: &self.world, instances: &self.instances, cluster: &key.cluster };
        let mut deferred = carried.planned.plan.deferred.iter();
        deferred.any(|deferred| facts.health(&deferred.subject.key).0 == Health::Current)
    }

    async fn conclude(&self, key: &ObjectKey, platform: &Object, end: Result<Pass, Failed>) -> Result<Outcome, Failure> {
        let now = self.world.clock.now();
        let last_run = self.lock().as_ref().and_then(|known| known.last_run.clone());
        let outcome = match &end {
            Ok(_) => Outcome::RequeueAfter(INTERVAL),
            Err(failed) if !failed.missing.is_empty() => Outcome::RequeueAfter(UNPERMITTED.max),
            Err(failed) if failed.reason == Reason::NotMoved => Outcome::RequeueAfter(MOVING),
            Err(failed) => match failed.cure {
                Cure::Edit => Outcome::Invalid { reason: failed.message.clone() },
                Cure::Repair => Outcome::RequeueAfter(REPAIRED),
                Cure::Time | Cure::Away | Cure::Event => Outcome::RequeueAfter(AGAIN),
            },
        };
        let status = match &end {
            Ok(pass) => {
                let facts = report::Facts { world: &self.world, instances: &self.instances, cluster: &key.cluster };
                facts.status(platform, pass, last_run, now)
            }
            Err(failed) => report::failed(platform, failed, last_run, now),
        };
        // A loop that has just begun has not looked at the instance yet: what the one before it said holds until then.
        let is_known = |pass: &Pass| {
            let is_new = report::installed(platform).as_ref() != Some(&pass.loaded.release)
                || platform.status()["observedGeneration"] != platform.generation();
            is_new || self.instances.is_ready(&pass.carried.planned.instance).is_some()
        };
        if end.as_ref().is_ok_and(|pass| !is_known(pass)) {
            return Ok(outcome);
        }
        self.write(key, platform, status).await?;
        Ok(outcome)
    }

    /// Writes the fields that are ours where they differ; the others of a Platform's status are somebody else's.
    async fn write(&self, key: &ObjectKey, platform: &Object, status: Value) -> Result<(), Failure> {
        if report::is_so(platform, &status) {
            return Ok(());
        }
        let object = json!({"apiVersion": key.gvk.api_version(), "kind": key.gvk.kind,
            "metadata": {"name": key.name, "uid": platform.uid()}, "status": status});
        let object = Object::from_value(object).expect("a mapping was just written");
        let apply = plinth_engine::ports::Apply {
            key: key.clone(),
            object,
            manager: report::MANAGER.to_owned(),
            force: true,
            subresource: Some("status"),
        };
        match self.world.applier.apply(&apply).await {
            // It went away in between.
            Err(WriteError::NotFound { .. }) => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    fn remember(&self, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.lock().as_mut() {
            change(known);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Known>> {
        // A cache: whatever a panic left in it is usable.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reconciler<ObjectKey> for Platforms {
    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Outcome, Failure>> {
        Box::pin(self.pass(key))
    }
}

fn request(loaded: &Loaded) -> Request<'_> {
    let Loaded { content, distribution, settings, .. } = loaded;
    Request { content, distribution, settings, saved: None, resumed: None }
}

/// What an error of planning or acting means for the Platform.
fn of_error(error: &Error) -> Failed {
    let text = || hint(error).map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}"));
    match error {
        Error::Permissions(missing) => Failed::unpermitted(missing.iter().cloned().collect()),
        Error::Read(ReadError::Forbidden { missing, .. }) | Error::Write(WriteError::Forbidden { missing, .. }) => {
            Failed::unpermitted(BTreeSet::from([missing.as_ref().clone()]))
        }
        Error::Stopped { .. } => Failed::retry(Reason::NotMoved, error.to_string()),
        Error::Values { .. } => Failed::repair(Reason::ValuesInvalid, error.to_string()),
        _ if error.outcome() == plinth_run::Outcome::Refused => Failed::repair(Reason::PlanRefused, text()),
        _ => Failed::retry(Reason::ApplyFailed, text()),
    }
}

/// The next step for who reads a Platform: the controller has no flags, and comes back by itself.
fn hint(error: &Error) -> Option<String> {
    let hint = match error {
        Error::Choice { .. } | Error::UnknownDistribution { .. } => "choose with spec.distribution",
        Error::Beside { .. } => "scale it to zero; plinth up --take-over then goes on with what it made, under its names",
        Error::Foreign { can_be_taken: true, .. } | Error::Held { .. } => "plinth up --take-over takes it; else remove it there",
        Error::Elsewhere { .. } => "spec.namespace says where a platform lives, and cannot be changed while it does",
        Error::OtherCluster { .. }
        | Error::Locked { .. }
        | Error::Stale(_)
        | Error::Unreachable { .. }
        | Error::Deadline(_)
        | Error::LostTurn(_) => return None,
        error => return error.hint(),
    };
    Some(hint.to_owned())
}

fn owner(key: &ObjectKey) -> Owner {
    Owner { role: ROLE, key: key.clone() }
}
