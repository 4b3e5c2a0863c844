//! A Kubernetes object as JSON, with readers for the fields that every object has.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    fields::Fields,
    key::{ClusterKey, GroupVersionKind, ObjectKey},
};

/// Any Kubernetes object: a JSON object with `apiVersion`, `kind` and `metadata`. Clones share what it holds until one of them
/// is changed.
///
/// Readers answer `None` or an empty value where a field is absent or has another type; nothing is checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Object(pub Fields);

impl Object {
    /// Takes a JSON value as an object; `None` where it is not a JSON object.
    pub fn from_value(value: Value) -> Option<Self> {
        Self::from_shared(Arc::new(value))
    }

    /// The same of a value that others hold too.
    pub fn from_shared(value: Arc<Value>) -> Option<Self> {
        Fields::of(value).map(Self)
    }

    /// The object as a JSON value.
    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.0.into_shared())
    }

    /// The same as a value that others may hold too.
    pub fn into_shared(self) -> Arc<Value> {
        self.0.into_shared()
    }

    /// The object as a JSON value, to look at.
    pub fn as_value(&self) -> &Value {
        self.0.as_value()
    }

    /// Follows a path of field names.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.0.get(*first)?, |value, name| value.get(name))
    }

    fn text(&self, path: &[&str]) -> Option<&str> {
        self.at(path).and_then(Value::as_str)
    }

    /// The type named by `apiVersion` and `kind`.
    pub fn gvk(&self) -> Option<GroupVersionKind> {
        GroupVersionKind::from_api_version(self.text(&["apiVersion"])?, self.text(&["kind"])?)
    }

    /// `metadata.name`, empty where absent.
    pub fn name(&self) -> &str {
        self.text(&["metadata", "name"]).unwrap_or_default()
    }

    /// `metadata.namespace`, `None` where absent or empty.
    pub fn namespace(&self) -> Option<&str> {
        self.text(&["metadata", "namespace"]).filter(|namespace| !namespace.is_empty())
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> Option<&str> {
        self.text(&["metadata", "uid"])
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> Option<&str> {
        self.text(&["metadata", "resourceVersion"])
    }

    /// `metadata.generation`, 0 where absent (kinds without a spec have none).
    pub fn generation(&self) -> i64 {
        self.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default()
    }

    /// Whether a deletion was asked for (`metadata.deletionTimestamp`).
    pub fn is_terminating(&self) -> bool {
        self.at(&["metadata", "deletionTimestamp"]).is_some_and(|at| !at.is_null())
    }

    /// `metadata.finalizers`.
    pub fn finalizers(&self) -> Vec<&str> {
        self.at(&["metadata", "finalizers"])
            .and_then(Value::as_array)
            .map(|list| list.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default()
    }

    /// One label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.text(&["metadata", "labels", key])
    }

    /// One annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.text(&["metadata", "annotations", key])
    }

    /// All labels with string values.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let Some(Value::Object(labels)) = self.at(&["metadata", "labels"]) else { return BTreeMap::new() };
        labels.iter().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
    }

    /// `spec`, `null` where absent.
    pub fn spec(&self) -> &Value {
        self.0.get("spec").unwrap_or(&Value::Null)
    }

    /// `status`, `null` where absent.
    pub fn status(&self) -> &Value {
        self.0.get("status").unwrap_or(&Value::Null)
    }

    /// The object's key on `cluster`; `None` without a type.
    pub fn key(&self, cluster: &ClusterKey) -> Option<ObjectKey> {
        Some(ObjectKey {
            cluster: cluster.clone(),
            gvk: self.gvk()?,
            namespace: self.namespace().map(str::to_owned),
            name: self.name().to_owned(),
        })
    }

    /// `metadata` for writing, made where absent.
    ///
    /// # Panics
    /// Never: what is not an object is replaced by one first.
    pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        let metadata = self.0.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if !metadata.is_object() {
            *metadata = Value::Object(Map::new());
        }
        metadata.as_object_mut().expect("metadata was just made an object")
    }
}
