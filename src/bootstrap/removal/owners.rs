//! Whether what an object belongs to is still there.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, rgd};
use plinth_engine::{
    naming::keys,
    ports::{Query, ReadError, Reader},
};
use serde_json::Value;

use super::survey;
use crate::error::Error;

/// Looks owners up, each kind once.
pub(super) struct Owners<'a> {
    reader: &'a dyn Reader,
    /// UIDs of all objects of a kind; `None` where the kind may not be listed.
    uids: BTreeMap<GroupVersionKind, Option<BTreeSet<String>>>,
}

impl<'a> Owners<'a> {
    pub(super) fn new(reader: &'a dyn Reader) -> Self {
        Self { reader, uids: BTreeMap::new() }
    }

    /// What an object belongs to and that is there, in words; `None` where nobody is left who would remove it. An owner that may not
    /// be looked at counts as there.
    pub(super) async fn living(&mut self, object: &Object) -> Result<Option<String>, Error> {
        if let (Some(uid), Some(instances)) = (object.label(keys::INSTANCE_ID), instances_of(object)) {
            let name = object.label(keys::INSTANCE_NAME).unwrap_or_default();
            return Ok(self.has(&instances, uid).await?.then(|| format!("{instances}/{name}")));
        }
        for (owner, uid) in references(object) {
            let live = match self.reader.get(&owner).await {
                Ok(live) => live.is_some_and(|live| live.uid() == Some(uid)),
                Err(ReadError::NotServed(_)) => false,
                Err(ReadError::Forbidden { .. }) => true,
                Err(error) => return Err(error.into()),
            };
            if live {
                return Ok(Some(owner.to_string()));
            }
        }
        let Some(uid) = object.label(keys::RGD_ID) else { return Ok(None) };
        let name = object.label(keys::RGD_NAME).unwrap_or_default();
        for group in [rgd::KRO_GROUP, rgd::KROP_GROUP] {
            let definitions = GroupVersionKind::new(group, rgd::VERSION, rgd::KIND);
            if self.has(&definitions, uid).await? {
                return Ok(Some(format!("{definitions}/{name}")));
            }
        }
        Ok(None)
    }

    /// By its UID: a label holds a long name only in part.
    async fn has(&mut self, gvk: &GroupVersionKind, uid: &str) -> Result<bool, Error> {
        if !self.uids.contains_key(gvk) {
            let query = Query { cluster: ClusterKey::host(), gvk: gvk.clone(), namespace: None, selector: String::new() };
            let uids = match survey::ask(self.reader, &query).await {
                Ok(found) => Some(found.iter().filter_map(|found| found.object.uid().map(str::to_owned)).collect()),
                Err(ReadError::Forbidden { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            self.uids.insert(gvk.clone(), uids);
        }
        Ok(self.uids[gvk].as_ref().is_none_or(|uids| uids.contains(uid)))
    }
}

/// The kind of the instance that labels name.
fn instances_of(object: &Object) -> Option<GroupVersionKind> {
    let label = |name: &str| object.label(name);
    Some(GroupVersionKind::new(label(keys::INSTANCE_GROUP)?, label(keys::INSTANCE_VERSION)?, label(keys::INSTANCE_KIND)?))
}

/// Owners by `ownerReferences`; one without namespace of its own is looked for in none.
pub(super) fn references(object: &Object) -> Vec<(ObjectKey, &str)> {
    let entries = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).into_iter().flatten();
    let owner = |entry: &'_ Value| {
        let gvk = GroupVersionKind::from_api_version(entry["apiVersion"].as_str()?, entry["kind"].as_str()?)?;
        let (namespace, name) = (object.namespace().map(str::to_owned), entry["name"].as_str()?.to_owned());
        Some(ObjectKey { cluster: ClusterKey::host(), gvk, namespace, name })
    };
    entries.filter_map(|entry| Some((owner(entry)?, entry["uid"].as_str()?))).collect()
}
