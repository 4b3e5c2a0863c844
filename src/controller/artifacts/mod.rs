//! Artifacts (`plinth.dev/v1alpha1`, seed 004's Approach B): a Platform that sets `spec.artifacts` has each OCI artifact of its channel as
//! an object, for consumers that read those instead of OCM (contracts 19).
//!
//! ```text
//! Platform.spec.source ─ inspect ─> channel ─ project ─> Artifacts ─ apply, prune ─> cluster
//! ```
//!
//! The channel is the only truth: an Artifact that somebody edits is written back, one that the channel no longer has goes, and one that
//! somebody else made is left alone. Nothing is pruned after a channel that could not be read.

pub mod project;
pub mod selectors;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;

use plinth_api::{
    GroupVersionKind, Object, ObjectKey,
    artifact::{KIND, PullSecretRef},
    crds,
    platform::{GROUP, PlatformSpec, VERSION},
};
use plinth_cluster::watch::{Owner, WatchSet};
use plinth_engine::{
    naming::{keys, platform_selector},
    ports::{Answer, Apply, Delete, Query, WriteError},
    schema::Lookup,
};
use plinth_manager::reconcile::{Failure, Outcome, Reconciler};
use serde_json::{Value, json};

use crate::{
    conditions::{self, Before, Said},
    delivery::{
        image::Images,
        report::{Cure, Failed, Reason},
        sources::Sources,
    },
    platform::secrets,
    world::World,
};
use project::Projection;

/// Role of the owners that Platforms are here.
pub const ROLE: &str = "artifacts";
/// Field manager of Artifacts and of the condition.
const MANAGER: &str = "plinth.dev/artifacts";
/// The condition of a Platform.
const CONDITION: &str = "ArtifactsReady";
/// How often the channel is looked at.
const INTERVAL: Duration = Duration::from_mins(10);
/// When to try again what failed.
const AGAIN: Duration = Duration::from_secs(30);
/// When to look whether the CRD is served.
const SOON: Duration = Duration::from_secs(1);

/// Platform of plinth.dev.
pub fn platform_gvk() -> GroupVersionKind {
    GroupVersionKind::new(GROUP, VERSION, "Platform")
}

fn artifact_gvk() -> GroupVersionKind {
    GroupVersionKind::new(GROUP, VERSION, KIND)
}

/// The reconciler of Platforms, as far as their Artifacts go.
pub struct Artifacts {
    world: World,
    sources: Arc<dyn Sources>,
    images: Arc<dyn Images>,
    known: Mutex<BTreeMap<ObjectKey, Known>>,
}

/// What the channel of a Platform was at the last look. Edits of Artifacts are repaired by it, without a request to the registry.
#[derive(Clone)]
struct Known {
    generation: i64,
    at: Timestamp,
    root: String,
    projection: Arc<Projection>,
}

/// What a pass found out, for the condition.
type End = Result<String, Failed>;

impl Artifacts {
    /// A reconciler.
    pub fn new(world: World, sources: Arc<dyn Sources>, images: Arc<dyn Images>) -> Self {
        Self { world, sources, images, known: Mutex::default() }
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let owner = Owner { role: ROLE, key: key.clone() };
        let found = self.world.reader.get(key).await?;
        if self.world.removing {
            return Ok(Outcome::Wait { reason: "a removal is under way".to_owned() });
        }
        let Some(platform) = found.filter(|platform| !platform.is_terminating()) else {
            self.world.index.forget(&owner);
            self.lock().remove(key);
            self.prune(key, &BTreeSet::new()).await?;
            return Ok(Outcome::Done);
        };
        let members = Query { selector: selector(&platform), ..all(key) };
        let watched = WatchSet { objects: BTreeSet::from([key.clone()]), lists: BTreeSet::from([members]) };
        self.world.index.declare(&owner, watched);
        let spec: PlatformSpec = match serde_json::from_value(platform.spec().clone()) {
            Ok(spec) => spec,
            Err(error) => {
                let failed = Failed::wrong(Reason::MarshalFailed, format!("spec: {error}"));
                return self.conclude(key, &platform, Err(failed)).await;
            }
        };
        match (spec.suspend, spec.artifacts) {
            (true, _) => Ok(Outcome::Wait { reason: "suspended".to_owned() }),
            (false, false) => {
                self.prune(key, &BTreeSet::new()).await?;
                self.say(key, &platform, None).await?;
                Ok(Outcome::Done)
            }
            (false, true) if !self.is_served(key).await? => Ok(Outcome::RequeueAfter(SOON)),
            (false, true) => {
                let end = self.refresh(key, &platform, spec).await;
                self.conclude(key, &platform, end).await
            }
        }
    }

    /// Artifacts are opt-in, so their kind comes with the first Platform that wants them.
    async fn is_served(&self, key: &ObjectKey) -> Result<bool, Failure> {
        let schemas = self.world.schemas.of(&key.cluster, &[artifact_gvk()]).await?;
        if matches!(schemas.kind(&artifact_gvk()), Lookup::Served(_)) {
            return Ok(true);
        }
        let object = crds::ARTIFACT.object();
        let crd = object.key(&key.cluster).expect("a CRD has a kind and a name");
        let apply = Apply { key: crd, object, manager: keys::MANAGER.to_owned(), force: false, subresource: None };
        self.world.applier.apply(&apply).await?;
        Ok(false)
    }

    async fn refresh(&self, key: &ObjectKey, platform: &Object, spec: PlatformSpec) -> End {
        let now = self.world.clock.now();
        let known = self.lock().get(key).cloned();
        let is_fresh =
            |known: &Known| known.generation == platform.generation() && now.duration_since(known.at).unsigned_abs() < INTERVAL;
        let Known { root, projection, .. } = match known.filter(is_fresh) {
            Some(known) => known,
            None => self.look(key, platform, spec, now).await?,
        };
        let foreign = self.write(key, &projection).await?;
        let mut kept: BTreeSet<String> = projection.artifacts.keys().cloned().collect();
        kept.extend(projection.collisions.keys().cloned());
        self.prune(key, &kept).await.map_err(|error| unwritten(&error))?;
        verdict(&root, &projection, &foreign)
    }

    async fn look(&self, key: &ObjectKey, platform: &Object, spec: PlatformSpec, now: Timestamp) -> Result<Known, Failed> {
        let (spec, credentials) = secrets::read(&self.world, &key.cluster, spec).await?;
        let channel = self.sources.channel(&spec, Path::new("/"), &credentials).await?;
        let pull: Vec<PullSecretRef> = secrets::pull_secret(&spec).into_iter().collect();
        let artifacts = plinth_releasechannel::artifacts(&channel);
        let projection = Arc::new(project::project(&channel, &artifacts, &*self.images, &pull, platform));
        let known = Known { generation: platform.generation(), at: now, root: channel.root.to_string(), projection };
        self.lock().insert(key.clone(), known.clone());
        Ok(known)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Known>> {
        // A cache: whatever a panic left in it is usable.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is not as wanted; answers with the Artifacts of these names that somebody else made.
    async fn write(&self, key: &ObjectKey, projection: &Projection) -> Result<Vec<String>, Failed> {
        let there = self.world.reader.list(&all(key)).await.map_err(|error| unwritten(&error))?;
        let there: BTreeMap<&str, &Object> = there.iter().map(|object| (object.name(), object)).collect();
        let mut foreign = Vec::new();
        for (name, wanted) in &projection.artifacts {
            match there.get(name.as_str()) {
                Some(live) if live.label(keys::PLATFORM) != wanted.label(keys::PLATFORM) => foreign.push(name.clone()),
                Some(live) if is_as_wanted(live, wanted) => {}
                _ => self.apply(key, wanted).await.map_err(|error| unwritten(&error))?,
            }
        }
        Ok(foreign)
    }

    async fn apply(&self, key: &ObjectKey, wanted: &Object) -> Result<(), WriteError> {
        let artifact = ObjectKey { gvk: artifact_gvk(), name: wanted.name().to_owned(), ..key.clone() };
        let apply = Apply { key: artifact, object: wanted.clone(), manager: MANAGER.to_owned(), force: true, subresource: None };
        self.world.applier.apply(&apply).await.map(drop)
    }

    /// Deletes the Platform's Artifacts but these.
    async fn prune(&self, platform: &ObjectKey, kept: &BTreeSet<String>) -> Result<(), Failure> {
        let query = Query { selector: selector_of(&platform.name), ..all(platform) };
        let there = match self.world.reader.list(&query).await {
            Err(plinth_engine::ports::ReadError::NotServed(_)) => return Ok(()),
            other => other?,
        };
        let gone = there.iter().filter(|object| !kept.contains(object.name()) && !object.is_terminating());
        for object in gone {
            let key = ObjectKey { gvk: artifact_gvk(), name: object.name().to_owned(), ..platform.clone() };
            self.world.applier.delete(&Delete { key, uid: object.uid().map(str::to_owned) }).await?;
        }
        Ok(())
    }

    async fn conclude(&self, key: &ObjectKey, platform: &Object, end: End) -> Result<Outcome, Failure> {
        let said = match &end {
            Ok(message) => Said::yes(CONDITION, "Succeeded", message.clone()),
            Err(failed) => Said::no(CONDITION, failed.reason.as_str(), failed.message.clone()),
        };
        self.say(key, platform, Some(said)).await?;
        Ok(match end {
            Ok(_) => Outcome::RequeueAfter(INTERVAL),
            Err(Failed { cure: Cure::Edit, message, .. }) => Outcome::Invalid { reason: message },
            Err(_) => Outcome::RequeueAfter(AGAIN),
        })
    }

    /// Writes our condition, or takes it away; the others of a Platform are somebody else's.
    async fn say(&self, key: &ObjectKey, platform: &Object, said: Option<Said>) -> Result<(), Failure> {
        let now = self.world.clock.now();
        let wanted = said.map(|said| Before::of(platform).stamp(&said, platform.generation(), now));
        let wanted = wanted.map(|condition| conditions::to_value(&[condition])[0].clone());
        let there = conditions::find(platform, CONDITION).cloned().map(Value::Object);
        if wanted == there {
            return Ok(());
        }
        let list: Vec<Value> = wanted.into_iter().collect();
        let object = json!({"apiVersion": key.gvk.api_version(), "kind": key.gvk.kind,
            "metadata": {"name": key.name, "uid": platform.uid()}, "status": {"conditions": list}});
        let object = Object::from_value(object).expect("a mapping was just written");
        let apply = Apply { key: key.clone(), object, manager: MANAGER.to_owned(), force: true, subresource: Some("status") };
        match self.world.applier.apply(&apply).await {
            // It went away in between.
            Err(WriteError::NotFound { .. }) => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }
}

impl Reconciler<ObjectKey> for Artifacts {
    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Outcome, Failure>> {
        Box::pin(self.pass(key))
    }
}

/// What the condition says after everything was written.
fn verdict(root: &str, projection: &Projection, foreign: &[String]) -> End {
    let count = projection.artifacts.len() - foreign.len();
    if !projection.collisions.is_empty() {
        let all: Vec<String> = projection.collisions.iter().map(|(name, all)| format!("{name}: {}", all.join(", "))).collect();
        let message = format!("{count} of {root}; several resources would be one Artifact: {}", all.join("; "));
        return Err(Failed::repair(Reason::NameCollision, message));
    }
    if !foreign.is_empty() {
        let message = format!("{count} of {root}; somebody else made {}, which are left alone", foreign.join(", "));
        return Err(Failed::repair(Reason::ApplyFailed, message));
    }
    let elsewhere = match projection.elsewhere.len() {
        0 => String::new(),
        some => format!("; {some} images or charts are in no OCI registry: {}", projection.elsewhere.join(", ")),
    };
    Ok(format!("{count} of {root}{elsewhere}"))
}

fn unwritten(error: &dyn std::fmt::Display) -> Failed {
    Failed::retry(Reason::ApplyFailed, error.to_string())
}

/// Its whole spec and all its labels.
fn is_as_wanted(live: &Object, wanted: &Object) -> bool {
    live.spec() == wanted.spec() && wanted.labels().iter().all(|(name, value)| live.label(name) == Some(value))
}

fn selector(platform: &Object) -> String {
    selector_of(platform.name())
}

fn selector_of(platform: &str) -> String {
    format!("{}={},{}", keys::MANAGED_BY, keys::MANAGED_BY_PLINTH, platform_selector(platform))
}

fn all(platform: &ObjectKey) -> Query {
    Query { cluster: platform.cluster.clone(), gvk: artifact_gvk(), namespace: None, selector: String::new() }
}
