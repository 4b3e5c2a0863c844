//! What a cluster has of a platform, as a tree with verdicts: the ground of `status` and `why`.
//!
//! Objects are found by labels, not by a journal, so that it works from any machine.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, rgd};
use plinth_engine::{
    graph::{self, Definition},
    health::{Explanation, Health, Verdict, explain, judge_at, judge_instance},
    naming::{self, keys},
    ports::{Query, ReadError, Reader},
};

/// One object of a platform.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// How it is.
    pub(crate) verdict: Verdict,
    /// The instance it is a child of.
    pub(crate) parent: Option<ObjectKey>,
    /// What it is made of.
    pub(crate) children: Vec<ObjectKey>,
    /// Checks of the channel that were switched off when it was written.
    pub(crate) unverified: Option<String>,
}

/// All objects of a platform, by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree(pub(crate) BTreeMap<ObjectKey, Leaf>);

impl Tree {
    /// Reads definitions with the platform's label, their instances, and everything below them.
    pub(crate) async fn load(platform: &str, reader: &dyn Reader) -> Result<Self, ReadError> {
        let selector = format!("{}={}", keys::PLATFORM, naming::label_value(platform));
        let definitions = list(reader, &GroupVersionKind::new(rgd::KRO_GROUP, rgd::VERSION, rgd::KIND), &selector).await?;
        let mut found = definitions.clone();
        let owned = format!("{}=true", keys::OWNED);
        for gvk in kinds(&definitions) {
            found.extend(list(reader, &gvk, &owned).await?);
        }
        Ok(Self::of(found))
    }

    /// The tree that these objects make.
    pub(crate) fn of(objects: Vec<Object>) -> Self {
        let cluster = ClusterKey::host();
        let keyed: Vec<(ObjectKey, Object)> =
            objects.into_iter().filter_map(|object| Some((object.key(&cluster)?, object))).collect();
        let by_uid: BTreeMap<&str, &ObjectKey> = keyed.iter().filter_map(|(key, object)| Some((object.uid()?, key))).collect();
        let (now, defined) = (Timestamp::now(), defined(keyed.iter().map(|(_, object)| object)));
        let mut leaves = BTreeMap::new();
        for (key, object) in &keyed {
            let parent = object.label(keys::INSTANCE_ID).and_then(|uid| by_uid.get(uid)).map(|parent| (*parent).clone());
            let unverified = object.annotation(keys::UNVERIFIED).map(str::to_owned);
            let verdict = if defined.contains(&key.gvk) { judge_instance(object, now) } else { judge_at(object, now) };
            leaves.insert(key.clone(), Leaf { verdict, parent, children: Vec::new(), unverified });
        }
        let pairs: Vec<(ObjectKey, ObjectKey)> =
            leaves.iter().filter_map(|(key, leaf)| Some((leaf.parent.clone()?, key.clone()))).collect();
        for (parent, child) in pairs {
            if let Some(leaf) = leaves.get_mut(&parent) {
                leaf.children.push(child);
            }
        }
        Self(leaves)
    }

    /// What was not checked of the channel that the platform came from, each once.
    pub(crate) fn unverified(&self) -> BTreeSet<&str> {
        self.0.values().filter_map(|leaf| leaf.unverified.as_deref()).collect()
    }

    /// Objects without a parent, definitions first.
    pub(crate) fn roots(&self) -> impl Iterator<Item = (&ObjectKey, &Leaf)> {
        self.0.iter().filter(|(_, leaf)| leaf.parent.is_none())
    }

    /// Why an object is as it is.
    pub(crate) fn why(&self, key: &ObjectKey) -> Explanation<ObjectKey> {
        let verdict = |key: &ObjectKey| self.0.get(key).map_or_else(Verdict::not_found, |leaf| leaf.verdict.clone());
        let causes = |key: &ObjectKey| self.0.get(key).map(|leaf| leaf.children.clone()).unwrap_or_default();
        explain(key.clone(), verdict, causes)
    }

    /// The health of the whole: the worst of all objects, `NotFound` where there is no platform.
    pub(crate) fn health(&self) -> Health {
        let has = |health| self.0.values().any(|leaf| leaf.verdict.health == health);
        if self.0.is_empty() {
            Health::NotFound
        } else if has(Health::Failed) {
            Health::Failed
        } else if self.0.values().all(|leaf| leaf.verdict.health == Health::Current) {
            Health::Current
        } else {
            Health::InProgress
        }
    }
}

/// The kinds that definitions define: their objects are instances.
fn defined<'a>(objects: impl Iterator<Item = &'a Object>) -> BTreeSet<GroupVersionKind> {
    let definitions = objects.filter_map(|object| Definition::from_object(object).ok());
    definitions.map(|definition| instances_of(&definition)).collect()
}

fn instances_of(definition: &Definition) -> GroupVersionKind {
    let schema = &definition.spec.schema;
    GroupVersionKind::new(schema.group.clone(), schema.api_version.clone(), schema.kind.clone())
}

/// The kinds that definitions define and make.
pub(crate) fn kinds(definitions: &[Object]) -> BTreeSet<GroupVersionKind> {
    let mut kinds = BTreeSet::new();
    for definition in definitions.iter().filter_map(|object| Definition::from_object(object).ok()) {
        kinds.insert(instances_of(&definition));
        kinds.extend(graph::kinds(&definition.spec));
    }
    kinds
}

/// A kind that is not served has no objects.
async fn list(reader: &dyn Reader, gvk: &GroupVersionKind, selector: &str) -> Result<Vec<Object>, ReadError> {
    let query = Query { cluster: ClusterKey::host(), gvk: gvk.clone(), namespace: None, selector: selector.to_owned() };
    match reader.list(&query).await {
        Err(ReadError::NotServed(_)) => Ok(Vec::new()),
        Ok(objects) => Ok(objects.into_iter().map(|object| typed(object, gvk)).collect()),
        Err(error) => Err(error),
    }
}

/// Items of a list come without their type.
fn typed(mut object: Object, gvk: &GroupVersionKind) -> Object {
    object.0.insert("apiVersion".to_owned(), gvk.api_version().into());
    object.0.insert("kind".to_owned(), gvk.kind.clone().into());
    object
}
