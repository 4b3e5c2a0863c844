//! What the cluster keeps of its releases: the lock of the one that is to run and of the one before, each with what was asked for.
//!
//! Both are ConfigMaps beside the journal. The earlier one is written before the new one, and both before anything else of a move, so that
//! the way back is there whenever the move stops.

use std::collections::BTreeSet;

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, lock::ReleaseLock};
use plinth_engine::ports::{Apply, ReadError, Reader};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    digest,
    error::Error,
    rights::{LOCK, NAMESPACE, PREVIOUS},
    settings::Settings,
    write::Writer,
};

/// Most bytes of one release's texts: a ConfigMap takes a MiB.
const MOST: usize = 900 << 10;
/// Key of the lock's text.
const LOCK_TEXT: &str = "lock.json";
/// Key of the text of what was asked for.
const ASKED_TEXT: &str = "platform.json";
/// Key of the text of how the move to it began; an earlier plinth wrote none.
const MOVE_TEXT: &str = "move.json";
/// Key of the digest of the release that was ready.
const READY_TEXT: &str = "ready";
/// Field manager of that digest: nobody who writes the release takes it away.
const MANAGER_READY: &str = "plinth.dev/ready";

/// A release that was brought to the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Release {
    /// Every component version of it.
    pub lock: ReleaseLock,
    /// `spec` of a Platform that asks for it; empty where an earlier plinth wrote none.
    pub asked: Map<String, Value>,
    /// How the move to it began.
    pub begun: Begun,
    /// Whether all of it was ready once. Until then the move to it has not come to its end.
    pub was_ready: bool,
}

/// How a move to a release began: what whoever goes on with it cannot see any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Begun {
    /// Definitions whose instances were not ready before it, and that what is written after them may mend: the move does not wait there.
    pub not_awaited: BTreeSet<String>,
    /// Whether it was asked for as the way back.
    pub is_back: bool,
}

/// The releases that a cluster knows of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Releases {
    /// The one that is to run.
    pub current: Option<Release>,
    /// The one before.
    pub previous: Option<Release>,
}

/// Reads both. What cannot be understood counts as not there.
pub async fn read(reader: &dyn Reader) -> Result<Releases, ReadError> {
    let one = async |name: &str| match reader.get(&key(name)).await {
        Err(ReadError::NotServed(_)) => Ok(None),
        other => Ok(other?.as_ref().and_then(parse)),
    };
    let (current, previous) = (one(LOCK).await?, one(PREVIOUS).await?);
    // Back at the release of before, there is none before it.
    let is_other = |previous: &Release| current.as_ref().is_none_or(|current| !is_same(&current.lock, &previous.lock));
    Ok(Releases { previous: previous.filter(is_other), current })
}

/// Whether bringing this release is another move than the one that the cluster knows of.
pub(crate) fn begins(settings: &Settings, lock: &ReleaseLock, there: &Releases) -> bool {
    let is_it = |current: &Release| is_same(&current.lock, lock) && settings.asked.as_ref() == Some(&current.asked);
    !there.current.as_ref().is_some_and(is_it)
}

/// The ConfigMaps that a run writes before anything else of a release, in this order: the earlier one where another release is to run now.
/// One that was never ready is no way back: the one before it stays that.
pub(crate) fn kept(settings: &Settings, lock: &ReleaseLock, there: &Releases, begun: Begun) -> Result<Vec<Object>, Error> {
    let asked = settings.asked.clone().unwrap_or_default();
    let new = Release { lock: lock.clone(), asked, begun, was_ready: false };
    let leaves = there.current.as_ref().filter(|current| current.was_ready && !is_same(&current.lock, lock));
    let leaves = leaves.map(|current| object(PREVIOUS, current)).transpose()?;
    Ok(leaves.into_iter().chain([object(LOCK, &new)?]).collect())
}

/// Says in the cluster that the release that is to run was ready; once.
pub(crate) async fn came_to_its_end(writer: &Writer<'_>) -> Result<(), Error> {
    let Some(lock) = writer.read(&key(LOCK)).await? else { return Ok(()) };
    let Some(release) = parse(&lock).filter(|release| !release.was_ready) else { return Ok(()) };
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": LOCK, "namespace": NAMESPACE, "uid": lock.uid()},
        "data": {READY_TEXT: told(&release.lock)}});
    let object = Object::from_value(object).expect("a JSON object was just written");
    let apply = Apply { key: key(LOCK), object, manager: MANAGER_READY.to_owned(), force: true, subresource: None };
    writer.send(&apply).await.map(drop)
}

/// Whether two locks are of the same bytes, wherever those were found.
pub fn is_same(a: &ReleaseLock, b: &ReleaseLock) -> bool {
    bytes(a) == bytes(b)
}

fn bytes(lock: &ReleaseLock) -> Value {
    let components: Vec<Value> = lock.components.iter().map(|c| json!([c.name, c.version, c.digest])).collect();
    json!([lock.root.name, lock.root.version, components])
}

/// A release in a few characters.
fn told(lock: &ReleaseLock) -> String {
    digest::of(&bytes(lock))
}

fn key(name: &str) -> ObjectKey {
    let gvk = GroupVersionKind::new("", "v1", "ConfigMap");
    ObjectKey { cluster: ClusterKey::host(), gvk, namespace: Some(NAMESPACE.to_owned()), name: name.to_owned() }
}

fn parse(object: &Object) -> Option<Release> {
    let text = |name: &str| object.at(&["data", name]).and_then(Value::as_str);
    let lock: ReleaseLock = serde_json::from_str(text(LOCK_TEXT)?).ok()?;
    let asked = text(ASKED_TEXT).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let begun = text(MOVE_TEXT).map(|text| serde_json::from_str(text).unwrap_or_default());
    // An earlier plinth said nothing of it; what it left counts as it did there.
    let was_ready = begun.is_none() || text(READY_TEXT) == Some(told(&lock).as_str());
    Some(Release { lock, asked, begun: begun.unwrap_or_default(), was_ready })
}

fn object(name: &str, release: &Release) -> Result<Object, Error> {
    let text = |value: Result<String, serde_json::Error>| value.expect("it is made of strings, numbers, lists and mappings");
    let (lock, asked) = (text(serde_json::to_string(&release.lock)), text(serde_json::to_string(&release.asked)));
    let size = lock.len() + asked.len();
    if size > MOST {
        return Err(Error::Unusable(format!("the release lock has {size} bytes, and a ConfigMap holds {MOST}")));
    }
    let mut data = json!({LOCK_TEXT: lock, MOVE_TEXT: text(serde_json::to_string(&release.begun))});
    // The one before is written as a whole; of the other one its own manager says so.
    if release.was_ready {
        data[READY_TEXT] = told(&release.lock).into();
    }
    if !release.asked.is_empty() {
        data[ASKED_TEXT] = asked.into();
    }
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}, "data": data});
    Ok(Object::from_value(object).expect("a JSON object was just written"))
}

#[cfg(test)]
mod tests {
    use plinth_api::lock::LockedRef;

    use super::*;

    fn lock(version: &str) -> ReleaseLock {
        ReleaseLock { root: LockedRef { name: "a.test/p".into(), version: version.into() }, ..ReleaseLock::default() }
    }

    fn names(objects: &[Object]) -> Vec<&str> {
        objects.iter().map(Object::name).collect()
    }

    #[test]
    fn the_earlier_release_is_kept_before_the_new_one_and_only_where_they_differ() {
        let asked = json!({"source": {"channel": "a.test/p"}}).as_object().cloned();
        let settings = Settings { asked, ..Settings::default() };
        let kept = |version: &str, there: &Releases| super::kept(&settings, &lock(version), there, Begun::default()).unwrap();
        let first = kept("v1", &Releases::default());
        assert_eq!(names(&first), [LOCK]);
        let mut there = Releases { current: parse(&first[0]), previous: None };
        assert_eq!(there.current.as_ref().unwrap().asked["source"]["channel"], "a.test/p");
        assert_eq!(names(&kept("v1", &there)), [LOCK], "a run that goes on leaves the way back alone");
        assert_eq!(names(&kept("v2", &there)), [LOCK], "what was never ready is no way back");
        there.current.as_mut().unwrap().was_ready = true;
        let moved = kept("v2", &there);
        assert_eq!(names(&moved), [PREVIOUS, LOCK]);
        assert_eq!(parse(&moved[0]), there.current);
        assert!(!parse(&moved[1]).unwrap().was_ready);
    }

    #[test]
    fn a_release_that_an_earlier_plinth_left_was_ready() {
        let left = json!({"data": {LOCK_TEXT: serde_json::to_string(&lock("v1")).unwrap()}});
        assert!(parse(&Object::from_value(left).unwrap()).unwrap().was_ready);
    }
}
