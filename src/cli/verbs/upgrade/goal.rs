//! Which release is to run next, by what the cluster says.

use std::path::Path;

use plinth_api::{
    ClusterKey, Object, ObjectKey,
    lock::ReleaseLock,
    platform::{API_VERSION, PlatformSpec},
};
use plinth_bootstrap::{
    install,
    release::{self, Release, Releases},
};
use plinth_controller::{
    delivery::sources::{Credentials, LiveSources, Sources},
    platform::policy::{self, Policy},
};
use plinth_engine::ports::{ReadError, Reader};
use plinth_releasechannel::difference;
use serde_json::{Map, Value, json};

use crate::{args::AccessArgs, exit::Failure, load, verbs::unreadable, wire::Host};

/// Where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::verbs) enum Aim {
    /// The newest release that the Platform's range allows; with an exact version, of all.
    Newest,
    /// This version.
    Version(String),
    /// The release before the one that is to run now.
    Before,
    /// The one that is to run now.
    Same,
    /// The one that the Platform asks for, whether or not it runs.
    Asked,
}

/// A release to move to.
#[derive(Clone, Debug)]
pub(super) struct Goal {
    /// Name of the platform.
    pub(super) platform: String,
    /// Whether a controller keeps it.
    pub(super) is_kept: bool,
    /// The Platform that is there.
    pub(super) object: Option<Object>,
    /// The release that is to run now.
    pub(super) from: Option<ReleaseLock>,
    /// `spec` of a Platform that asks for the other one.
    pub(super) asked: Map<String, Value>,
    /// The move to it has begun, and did not come to its end.
    pub(super) goes_on: bool,
    /// It is asked for as the way back.
    pub(super) is_back: bool,
    /// The lock that it had, where it ran before.
    had: Option<ReleaseLock>,
}

impl Goal {
    /// The Platform as a document.
    pub(super) fn document(&self) -> Value {
        json!({"apiVersion": API_VERSION, "kind": "Platform", "metadata": {"name": self.platform}, "spec": self.asked})
    }

    /// From where to where, a line for people.
    pub(super) fn told(&self, to: &str) -> String {
        let from = self.from.as_ref().map(|lock| format!("{} {}", lock.root.name, lock.root.version)).unwrap_or_default();
        if self.goes_on {
            return format!("{}: the move to {from} has not come to its end, and goes on", self.platform);
        }
        format!("{}: from {from} to {to}", self.platform)
    }

    /// Refuses a release of before that the channel has otherwise by now.
    pub(super) fn holds(&self, lock: &ReleaseLock) -> Result<(), Failure> {
        let Some(had) = self.had.as_ref().filter(|had| !release::is_same(had, lock)) else { return Ok(()) };
        let differs: Vec<String> = difference(had, lock).iter().map(ToString::to_string).collect();
        let text = format!("{} {} is not what it was:\n  {}", had.root.name, had.root.version, differs.join("\n  "));
        Err(Failure::refused(text).hint("plinth upgrade --to VERSION moves to what the channel has now"))
    }
}

/// Finds it; `None` where there is nothing newer, and nothing to go on with.
pub(super) async fn find(host: &Host, platform: &str, aim: Aim, access: &AccessArgs) -> Result<Option<Goal>, Failure> {
    let unread = |error: ReadError| unreadable(&error, &host.1);
    let object = kept(host, platform).await.map_err(unread)?;
    let Releases { current, previous } = release::read(host.0.as_ref()).await.map_err(unread)?;
    let open = current.clone().filter(|current| !matches!(aim, Aim::Same | Aim::Asked) && is_open(current, object.as_ref()));
    let (mut asked, had) = if aim == Aim::Before {
        // A way back that was begun leads on back.
        let back = open.clone().filter(|open| open.begun.is_back).or(previous).ok_or_else(|| no_way_back(platform))?;
        (back.asked, Some(back.lock))
    } else {
        let of_object = object.as_ref().and_then(|object| object.spec().as_object().cloned());
        (of_object.or_else(|| current.as_ref().map(|release| release.asked.clone())).unwrap_or_default(), None)
    };
    if asked.is_empty() {
        let text = format!("the cluster does not say where {platform} came from");
        return Err(Failure::refused(text).hint("plinth up SOURCE goes on with it, and leaves that there"));
    }
    let from = current.map(|release| release.lock);
    let version = match (&aim, &had) {
        (Aim::Version(version), _) => version.clone(),
        (Aim::Same, _) => from.as_ref().map(|lock| lock.root.version.clone()).unwrap_or_default(),
        (_, Some(had)) => had.root.version.clone(),
        (Aim::Asked, None) => match wanted(&asked, from.as_ref()) {
            Some(version) => version,
            None => newest(&asked, None, access).await?.unwrap_or_default(),
        },
        (_, None) => {
            match newest(&asked, from.as_ref(), access).await?.or_else(|| Some(open.as_ref()?.lock.root.version.clone())) {
                Some(version) => version,
                None => return Ok(None),
            }
        }
    };
    let goes_on = open.is_some_and(|open| open.lock.root.version == version);
    asked.entry("source").or_insert_with(|| json!({}))["version"] = version.into();
    let (is_kept, is_back) = (object.is_some(), aim == Aim::Before);
    Ok(Some(Goal { platform: platform.to_owned(), is_kept, object, from, asked, goes_on, is_back, had }))
}

/// The version that a Platform asks for, or leaves as it is.
fn wanted(asked: &Map<String, Value>, from: Option<&ReleaseLock>) -> Option<String> {
    let written = asked.get("source").and_then(|source| source["version"].as_str());
    let exact = written.filter(|version| plinth_releasechannel::versions::is_exact(version));
    exact.map(str::to_owned).or_else(|| Some(from?.root.version.clone()))
}

fn no_way_back(platform: &str) -> Failure {
    let text = format!("the cluster knows of no release of {platform} before the one that it has");
    Failure::refused(text).hint("plinth upgrade --to VERSION moves to any release of the channel")
}

/// Whether the move to a release has not come to its end. A controller says that it has before it keeps it.
fn is_open(release: &Release, platform: Option<&Object>) -> bool {
    let is_there = |platform: &Object| {
        let conditions = platform.status()["conditions"].as_array().cloned().unwrap_or_default();
        let is_ready = conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        is_ready && platform.status()["release"]["version"] == release.lock.root.version.as_str()
    };
    !release.was_ready && !platform.is_some_and(is_there)
}

async fn kept(host: &Host, platform: &str) -> Result<Option<Object>, ReadError> {
    let gvk = install::platform_kind();
    let key = ObjectKey { cluster: ClusterKey::host(), gvk, namespace: None, name: platform.to_owned() };
    match host.0.get(&key).await {
        Err(ReadError::NotServed(_)) => Ok(None),
        other => other,
    }
}

/// The highest version that may follow, as the controller offers it.
async fn newest(asked: &Map<String, Value>, from: Option<&ReleaseLock>, access: &AccessArgs) -> Result<Option<String>, Failure> {
    let wrong = |error: serde_json::Error| Failure::refused(format!("what the cluster says was asked for: {error}"));
    let spec: PlatformSpec = serde_json::from_value(Value::Object(asked.clone())).map_err(wrong)?;
    let sources = LiveSources::new(load::access(access));
    let found = sources.versions(&spec, Path::new("/"), &Credentials::default()).await;
    let found = found.map_err(|failed| Failure::refused(failed.message))?;
    let Some((component, there)) = found else {
        let text = format!("{} names no component of which there could be another version", spec.source.channel);
        return Err(Failure::refused(text).hint("plinth up SOURCE brings another release up"));
    };
    let installed = from.filter(|lock| lock.root.name == component).map(|lock| lock.root.version.as_str());
    let wanted = spec.source.version.as_deref();
    // An exact version is what was asked for last, and no bound.
    let is_exact = wanted.is_some_and(plinth_releasechannel::versions::is_exact);
    let choice = policy::choose(wanted.filter(|_| !is_exact), installed, &there, Policy::Manual, false);
    Ok(match installed {
        Some(_) => choice.next,
        None => choice.version,
    })
}
