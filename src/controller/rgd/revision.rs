//! Revisions: the accepted states of a definition, kept as objects (kro.md section 17). Pure.
//!
//! A revision is issued when its graph goes into use, so that there is always one to go back to: after a restart, instances of a
//! definition that was broken meanwhile go on with the newest one.

use std::collections::BTreeSet;

use jiff::Timestamp;
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, rgd};
use plinth_engine::{
    graph::{Compiled, revision_name, spec_hash},
    naming::{keys, label_value},
};
use serde_json::{Value, json};

use super::status::topology;
use crate::conditions::{self, Before, Said};

/// Most revisions that are kept of a definition; kro's `--rgd-max-graph-revisions`.
pub const KEPT: usize = 5;

/// The kind of revisions.
pub fn gvk() -> GroupVersionKind {
    GroupVersionKind::new(rgd::REVISION_GROUP, rgd::VERSION, rgd::REVISION_KIND)
}

/// One revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// Its number, from 1.
    pub number: i64,
    /// Hash of its spec.
    pub hash: String,
    /// The object.
    pub object: Object,
}

/// The revisions of a definition among these objects, oldest first. The name alone decides: a definition that was made anew goes
/// on with the revisions of the one before.
pub fn of<'a>(definition: &str, objects: impl IntoIterator<Item = &'a Object>) -> Vec<Revision> {
    let own = objects.into_iter().filter_map(|object| {
        let snapshot = object.at(&["spec", "snapshot"])?;
        let number = object.at(&["spec", "revision"])?.as_i64()?;
        let is_own = snapshot["name"] == definition && !object.is_terminating();
        is_own.then(|| Revision { number, hash: spec_hash(&snapshot["spec"]), object: object.clone() })
    });
    let mut revisions: Vec<Revision> = own.collect();
    revisions.sort_by_key(|revision| revision.number);
    revisions
}

/// Revisions of ours whose definition does not exist, each with the name of that definition.
pub fn orphans<'a>(revisions: &'a [Object], definitions: &[Object]) -> Vec<(String, &'a Object)> {
    let names: BTreeSet<&str> = definitions.iter().map(Object::name).collect();
    let of = |revision: &Object| revision.at(&["spec", "snapshot", "name"]).and_then(Value::as_str).map(str::to_owned);
    let named = revisions.iter().filter_map(|revision| Some((of(revision)?, revision)));
    let is_ours = |revision: &Object| revision.label(keys::VERSION).is_some_and(|version| version.starts_with("plinth-"));
    named.filter(|(name, revision)| !names.contains(name.as_str()) && is_ours(revision) && !revision.is_terminating()).collect()
}

/// The definition as it was at a revision, with the identity that it has now.
pub fn restored(revision: &Revision, definition: &Object) -> Object {
    let mut object = definition.clone();
    object.0.insert("spec".to_owned(), revision.object.at(&["spec", "snapshot", "spec"]).cloned().unwrap_or_default());
    object
}

/// The revision of this number of a definition.
pub fn issue(definition: &Object, number: i64) -> Object {
    wanted(definition, number, definition.generation(), definition.spec())
}

/// The same revision as a part of this definition; `None` where it is one already.
pub fn adopt(definition: &Object, revision: &Revision) -> Option<Object> {
    let owners = revision.object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
    let is_owner = |owner: &Value| owner["uid"].as_str() == definition.uid();
    if owners.is_some_and(|owners| owners.iter().any(is_owner)) {
        return None;
    }
    let snapshot = &revision.object.spec()["snapshot"];
    Some(wanted(definition, revision.number, snapshot["generation"].as_i64().unwrap_or_default(), &snapshot["spec"]))
}

fn wanted(definition: &Object, number: i64, generation: i64, spec: &Value) -> Object {
    let (name, uid) = (definition.name(), definition.uid().unwrap_or_default());
    let owner = json!({"apiVersion": format!("{}/{}", rgd::KRO_GROUP, rgd::VERSION), "kind": rgd::KIND, "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true});
    let mut object = json!({
        "apiVersion": gvk().api_version(),
        "kind": rgd::REVISION_KIND,
        "metadata": {
            "name": revision_name(name, number),
            "labels": {
                keys::OWNED: "true",
                keys::VERSION: keys::VERSION_VALUE,
                keys::RGD_ID: uid,
                keys::RGD_NAME: label_value(name),
                keys::REVISION_HASH: spec_hash(spec),
            },
            "ownerReferences": [owner],
        },
        "spec": {"revision": number, "snapshot": {"name": name, "generation": generation, "spec": spec}},
    });
    if let Some(platform) = definition.label(keys::PLATFORM) {
        object["metadata"]["labels"][keys::PLATFORM] = platform.into();
    }
    Object::from_value(object).expect("it is written as an object just above")
}

/// Where a revision is.
pub fn key(cluster: &ClusterKey, definition: &str, number: i64) -> ObjectKey {
    ObjectKey { cluster: cluster.clone(), gvk: gvk(), namespace: None, name: revision_name(definition, number) }
}

/// The status of the newest revision.
pub fn status(revision: &Object, compiled: &Compiled, now: Timestamp) -> Value {
    let said = match compiled {
        Compiled::Active(_) => Said::yes("GraphVerified", "Verified", "graph revision compiled and verified"),
        Compiled::Deferred { .. } => Said::unknown("GraphVerified", "Deferred", "some kinds are not served yet"),
        Compiled::Invalid(_) => Said::no("GraphVerified", "InvalidGraph", "the revision does not compile any more"),
    };
    let conditions = Before::of(revision).with_root(&[said], revision.generation(), now);
    let mut status = json!({"conditions": conditions::to_value(&conditions)});
    if let Some(graph) = compiled.graph() {
        topology(graph, &mut status);
    }
    status
}

/// The revisions that are too many once there are `more` of them; the one in use is never among them.
pub fn surplus(revisions: &[Revision], more: usize, in_use: i64) -> impl Iterator<Item = &Revision> {
    let too_many = (revisions.len() + more).saturating_sub(KEPT).min(revisions.len());
    revisions[..too_many].iter().filter(move |revision| revision.number != in_use)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(uid: &str, spec: Value) -> Object {
        Object::from_value(json!({"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition",
            "metadata": {"name": "app", "uid": uid, "generation": 7}, "spec": spec}))
        .unwrap()
    }

    #[test]
    fn a_revision_has_kros_form() {
        let spec = json!({"schema": {"apiVersion": "v1", "kind": "App"}, "resources": []});
        let issued = issue(&definition("u1", spec.clone()), 3);
        assert_eq!(issued.key(&ClusterKey::host()), Some(key(&ClusterKey::host(), "app", 3)));
        assert_eq!((issued.name(), issued.label("kro.run/owned")), ("app-r00003", Some("true")));
        assert_eq!(issued.label("kro.run/graph-revision-hash"), Some(spec_hash(&spec).as_str()));
        assert_eq!(issued.spec(), &json!({"revision": 3, "snapshot": {"name": "app", "generation": 7, "spec": spec}}));
        assert_eq!(issued.at(&["metadata", "ownerReferences"]).unwrap()[0]["uid"], "u1");
    }

    #[test]
    fn a_definition_made_anew_takes_the_revisions_over() {
        let old = issue(&definition("u1", json!({"schema": {"kind": "A"}})), 2);
        let (found, new) = (of("app", [&old]), definition("u2", json!({"schema": {"kind": "B"}})));
        assert_eq!(adopt(&definition("u1", json!({})), &found[0]), None);
        let adopted = adopt(&new, &found[0]).unwrap();
        assert_eq!((adopted.spec(), adopted.label("kro.run/resource-graph-definition-id")), (old.spec(), Some("u2")));
        assert_eq!(restored(&found[0], &new).spec(), &json!({"schema": {"kind": "A"}}));
        assert!(of("other", [&old]).is_empty());
    }

    #[test]
    fn the_oldest_go_and_the_one_in_use_stays() {
        let all: Vec<Object> = (1..=8).rev().map(|number| issue(&definition("u", json!({})), number)).collect();
        let found = of("app", &all);
        let numbers = |in_use| surplus(&found, 0, in_use).map(|revision| revision.number).collect::<Vec<_>>();
        assert_eq!((numbers(8), numbers(2)), (vec![1, 2, 3], vec![1, 3]));
        assert_eq!(surplus(&found[..5], 1, 9).count(), 1);
    }
}
