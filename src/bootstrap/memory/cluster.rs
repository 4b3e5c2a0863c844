//! A cluster in memory: server-side apply without ownership, CRDs that serve their kinds, finalizers, and planned faults.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, Permission};
use plinth_engine::{
    ports::{Answer, Applier, Apply, Delete, Query, ReadError, Reader, WriteError},
    schema::{self, KindInfo, SchemaMap, SchemaSource},
};
use plinth_run::ClusterIdentity;
use serde_json::{Value, json};

use crate::{
    ports::{Access, Listable, Schemas},
    wanted,
};

/// What goes wrong, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The write with this number (from 0) never begins: the process was killed before it.
    KillBefore(usize),
    /// The write with this number is done, and nobody hears of it: the process was killed after it.
    KillAfter(usize),
    /// So many requests in a row find no server.
    Down(usize),
}

/// The cluster.
#[derive(Default)]
pub struct FakeCluster(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    objects: BTreeMap<ObjectKey, Object>,
    builtin: SchemaMap,
    served: SchemaMap,
    /// The CRDs that `served` was read from.
    served_by: Vec<(String, i64)>,
    identity: String,
    denied: BTreeSet<String>,
    writes: Vec<(String, ObjectKey)>,
    fault: Option<Fault>,
    counter: u64,
}

impl FakeCluster {
    /// An empty cluster with this identity that serves CRDs, namespaces and `kinds`.
    pub fn new(identity: &str, kinds: impl IntoIterator<Item = KindInfo>) -> Arc<Self> {
        let mut inner = Inner { identity: identity.into(), builtin: kinds.into_iter().collect(), ..Inner::default() };
        let kind = |gvk, plural: &str| KindInfo { gvk, plural: plural.into(), namespaced: false, schema: anything() };
        inner.builtin.insert(kind(wanted::crd_kind(), "customresourcedefinitions"));
        inner.builtin.insert(kind(wanted::namespace_kind(), "namespaces"));
        Arc::new(Self(Mutex::new(inner)))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All objects.
    pub fn objects(&self) -> BTreeMap<ObjectKey, Object> {
        self.inner().objects.clone()
    }

    /// The writes that the run asked for, as verb and object.
    pub fn writes(&self) -> Vec<(String, ObjectKey)> {
        self.inner().writes.clone()
    }

    /// Forgets the writes.
    pub fn forget_writes(&self) {
        self.inner().writes.clear();
    }

    /// Plans a fault, or none any more.
    pub fn fault(&self, fault: Option<Fault>) {
        self.inner().fault = fault;
    }

    /// Denies a permission, in its printed form.
    pub fn deny(&self, permission: &str) {
        self.inner().denied.insert(permission.into());
    }

    /// Is another cluster from now on.
    pub fn become_other(&self, identity: &str) {
        self.inner().identity = identity.into();
    }

    /// Writes an object as somebody else would: not counted, no fault.
    ///
    /// # Panics
    /// Where the object has no type.
    pub fn put(&self, object: &Object) -> Object {
        let key = object.key(&ClusterKey::host()).expect("a test writes objects with a type");
        self.inner().merge(&key, object)
    }

    /// Replaces an object's status.
    pub fn status(&self, key: &ObjectKey, status: Value) {
        let mut inner = self.inner();
        let Some(object) = inner.objects.get_mut(key) else { return };
        if object.0.insert("status".into(), status.clone()) != Some(status) {
            inner.counter += 1;
        }
    }

    /// Takes an object away, finalizers or not.
    pub fn take(&self, key: &ObjectKey) -> Option<Object> {
        let mut inner = self.inner();
        inner.counter += 1;
        inner.objects.remove(key)
    }

    /// Grows with every change.
    pub fn version(&self) -> u64 {
        self.inner().counter
    }

    /// What the cluster serves now.
    pub fn served(&self) -> SchemaMap {
        self.inner().served().clone()
    }
}

/// A schema that takes everything.
fn anything() -> Arc<schema::Schema> {
    Arc::new(schema::Schema::any())
}

impl Inner {
    /// Read anew only after a CRD came or went.
    fn served(&mut self) -> &SchemaMap {
        let crds = self.objects.iter().filter(|(key, _)| key.gvk == wanted::crd_kind());
        let print: Vec<(String, i64)> = crds.map(|(key, crd)| (key.name.clone(), crd.generation())).collect();
        if self.served.is_empty() || self.served_by != print {
            self.served = self.builtin.clone();
            let crds = self.objects.iter().filter(|(key, _)| key.gvk == wanted::crd_kind());
            self.served.extend(crds.flat_map(|(_, crd)| schema::crd::kinds(crd).unwrap_or_default()));
            self.served_by = print;
        }
        &self.served
    }

    fn serves(&mut self, gvk: &GroupVersionKind) -> bool {
        self.served().kind(gvk) != schema::Lookup::NotServed
    }

    /// Whether this request finds no server.
    fn is_down(&mut self) -> bool {
        match self.fault {
            Some(Fault::Down(left)) if left > 0 => {
                self.fault = Some(Fault::Down(left - 1));
                true
            }
            _ => false,
        }
    }

    fn merge(&mut self, key: &ObjectKey, applied: &Object) -> Object {
        self.counter += 1;
        let counter = self.counter;
        let is_new = !self.objects.contains_key(key);
        let object = self.objects.entry(key.clone()).or_default();
        let spec = object.spec().clone();
        let mut value = std::mem::take(object).into_value();
        over(&mut value, applied.as_value());
        *object = Object::from_value(value).expect("an object merged with an object is one");
        let generation = object.generation() + i64::from(is_new || spec != *object.spec());
        let metadata = object.metadata_mut();
        metadata.entry("uid").or_insert_with(|| format!("uid-{counter}").into());
        metadata.insert("generation".into(), generation.into());
        metadata.insert("resourceVersion".into(), counter.to_string().into());
        if key.gvk == wanted::crd_kind() {
            let established = json!({"conditions": [{"type": "Established", "status": "True"}]});
            object.0.insert("status".into(), established);
        }
        object.clone()
    }
}

fn over(base: &mut Value, applied: &Value) {
    match (base, applied) {
        (Value::Object(base), Value::Object(applied)) => {
            for (name, value) in applied {
                over(base.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (base, applied) => *base = applied.clone(),
    }
}

impl FakeCluster {
    /// Counts the write and says whether the process is killed around it.
    fn count(&self, verb: &str, key: &ObjectKey) -> (bool, bool) {
        let mut inner = self.inner();
        let number = inner.writes.len();
        if inner.fault == Some(Fault::KillBefore(number)) {
            return (true, false);
        }
        inner.writes.push((verb.to_owned(), key.clone()));
        (false, inner.fault == Some(Fault::KillAfter(number)))
    }
}

impl Applier for FakeCluster {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(async move {
            if self.inner().is_down() {
                return Err(WriteError::Unavailable { key: request.key.clone(), message: "connection refused".into() });
            }
            if !self.inner().serves(&request.key.gvk) {
                return Err(WriteError::NotServed(request.key.gvk.clone()));
            }
            let (before, after) = self.count("apply", &request.key);
            if before {
                return std::future::pending().await;
            }
            let answer = self.inner().merge(&request.key, &request.object);
            if after {
                return std::future::pending().await;
            }
            Ok(answer)
        })
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        Box::pin(async move {
            if self.inner().is_down() {
                return Err(WriteError::Unavailable { key: request.key.clone(), message: "connection refused".into() });
            }
            let (before, after) = self.count("delete", &request.key);
            if before {
                return std::future::pending().await;
            }
            {
                let mut inner = self.inner();
                inner.counter += 1;
                match inner.objects.get_mut(&request.key) {
                    Some(object) if !object.finalizers().is_empty() => {
                        object.metadata_mut().insert("deletionTimestamp".into(), "2026-01-01T00:00:00Z".into());
                    }
                    _ => {
                        inner.objects.remove(&request.key);
                    }
                }
            }
            if after {
                return std::future::pending().await;
            }
            Ok(())
        })
    }
}

impl Reader for FakeCluster {
    fn get<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Option<Object>, ReadError>> {
        Box::pin(async move {
            let mut inner = self.inner();
            if inner.is_down() {
                return Err(ReadError::Unavailable("connection refused".into()));
            }
            if !inner.serves(&key.gvk) {
                return Err(ReadError::NotServed(key.gvk.clone()));
            }
            Ok(inner.objects.get(key).cloned())
        })
    }

    fn list<'a>(&'a self, query: &'a Query) -> Answer<'a, Result<Vec<Object>, ReadError>> {
        Box::pin(async move {
            let mut inner = self.inner();
            if !inner.serves(&query.gvk) {
                return Err(ReadError::NotServed(query.gvk.clone()));
            }
            let has = |object: &Object, part: &str| match part.split_once('=') {
                Some((label, value)) => object.label(label) == Some(value),
                None => object.label(part).is_some(),
            };
            let parts: Vec<&str> = query.selector.split(',').filter(|part| !part.is_empty()).collect();
            let selected = |object: &Object| parts.iter().all(|part| has(object, part));
            let permission = format!("list {}", query.gvk.group_kind());
            if inner.denied.contains(&permission) {
                let (group, resource) = (query.gvk.group.clone(), query.gvk.kind.clone());
                let missing = Permission { group, resource, verb: "list".into(), ..Permission::default() };
                return Err(ReadError::Forbidden { missing: Box::new(missing), message: "denied".into() });
            }
            let is_there = |key: &ObjectKey| query.namespace.is_none() || key.namespace == query.namespace;
            let of_kind = inner.objects.iter().filter(|(key, _)| key.gvk == query.gvk && is_there(key));
            Ok(of_kind.map(|(_, object)| object).filter(|object| selected(object)).cloned().collect())
        })
    }
}

impl Access for FakeCluster {
    fn identity(&self) -> Answer<'_, Result<ClusterIdentity, ReadError>> {
        Box::pin(async {
            let mut inner = self.inner();
            if inner.is_down() {
                return Err(ReadError::Unavailable("connection refused".into()));
            }
            Ok(ClusterIdentity(inner.identity.clone()))
        })
    }

    fn can_i<'a>(&'a self, permission: &'a Permission) -> Answer<'a, Result<bool, ReadError>> {
        Box::pin(async {
            let denied = &self.inner().denied;
            let lacks_any = *permission == Permission::everything() && !denied.is_empty();
            Ok(!lacks_any && !denied.contains(&permission.to_string()))
        })
    }
}

impl Schemas for FakeCluster {
    fn ensure<'a>(&'a self, _kinds: &'a [GroupVersionKind]) -> Answer<'a, Result<Arc<dyn SchemaSource>, ReadError>> {
        Box::pin(async { Ok(Arc::new(self.served()) as Arc<dyn SchemaSource>) })
    }

    fn listable(&self) -> Answer<'_, Result<Vec<Listable>, ReadError>> {
        let listable = |kind: &Arc<KindInfo>| Listable { gvk: kind.gvk.clone(), namespaced: kind.namespaced };
        let kinds = self.served().iter().map(listable).collect();
        Box::pin(async { Ok(kinds) })
    }
}
