//! What the cluster keeps of its releases: the lock of the one that is to run and of the one before, each with what was asked for.
//!
//! Both are ConfigMaps beside the journal. The earlier one is written before the new one, and both before anything else of a move, so that
//! the way back is there whenever the move stops.

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, lock::ReleaseLock};
use plinth_engine::ports::{ReadError, Reader};
use serde_json::{Map, Value, json};

use crate::{
    error::Error,
    rights::{LOCK, NAMESPACE, PREVIOUS},
    settings::Settings,
};

/// Most bytes of one release's texts: a ConfigMap takes a MiB.
const MOST: usize = 900 << 10;
/// Key of the lock's text.
const LOCK_TEXT: &str = "lock.json";
/// Key of the text of what was asked for.
const ASKED_TEXT: &str = "platform.json";

/// A release that was brought to the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Release {
    /// Every component version of it.
    pub lock: ReleaseLock,
    /// `spec` of a Platform that asks for it; empty where an earlier plinth wrote none.
    pub asked: Map<String, Value>,
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
    Ok(Releases { current: one(LOCK).await?, previous: one(PREVIOUS).await? })
}

/// The ConfigMaps that a run writes before anything else of a release, in this order: the earlier one where another release is to run now.
pub(crate) fn kept(settings: &Settings, lock: &ReleaseLock, there: &Releases) -> Result<Vec<Object>, Error> {
    let asked = settings.asked.clone().unwrap_or_default();
    let new = Release { lock: lock.clone(), asked };
    let leaves = there.current.as_ref().filter(|current| !is_same(&current.lock, lock));
    let leaves = leaves.map(|current| object(PREVIOUS, current)).transpose()?;
    Ok(leaves.into_iter().chain([object(LOCK, &new)?]).collect())
}

/// Whether two locks are of the same bytes, wherever those were found.
pub fn is_same(a: &ReleaseLock, b: &ReleaseLock) -> bool {
    let of = |lock: &ReleaseLock| {
        let components = lock.components.iter();
        components.map(|c| (c.name.clone(), c.version.clone(), c.digest.clone())).collect::<Vec<_>>()
    };
    a.root == b.root && of(a) == of(b)
}

fn key(name: &str) -> ObjectKey {
    let gvk = GroupVersionKind::new("", "v1", "ConfigMap");
    ObjectKey { cluster: ClusterKey::host(), gvk, namespace: Some(NAMESPACE.to_owned()), name: name.to_owned() }
}

fn parse(object: &Object) -> Option<Release> {
    let text = |name: &str| object.at(&["data", name]).and_then(Value::as_str);
    let lock = serde_json::from_str(text(LOCK_TEXT)?).ok()?;
    let asked = text(ASKED_TEXT).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    Some(Release { lock, asked })
}

fn object(name: &str, release: &Release) -> Result<Object, Error> {
    let text = |value: Result<String, serde_json::Error>| value.expect("it is made of strings, numbers, lists and mappings");
    let (lock, asked) = (text(serde_json::to_string(&release.lock)), text(serde_json::to_string(&release.asked)));
    let size = lock.len() + asked.len();
    if size > MOST {
        return Err(Error::Unusable(format!("the release lock has {size} bytes, and a ConfigMap holds {MOST}")));
    }
    let mut data = json!({LOCK_TEXT: lock});
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
        let first = kept(&settings, &lock("v1"), &Releases::default()).unwrap();
        assert_eq!(names(&first), [LOCK]);
        let there = Releases { current: parse(&first[0]), previous: None };
        assert_eq!(there.current.as_ref().unwrap().asked["source"]["channel"], "a.test/p");
        assert_eq!(names(&kept(&settings, &lock("v1"), &there).unwrap()), [LOCK], "a run that goes on leaves the way back alone");
        let moved = kept(&settings, &lock("v2"), &there).unwrap();
        assert_eq!(names(&moved), [PREVIOUS, LOCK]);
        assert_eq!(parse(&moved[0]), there.current);
    }
}
