//! A cluster in memory behind all ports of [`World`], with an index that lags behind for as long as a test wants it to.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, Permission};
use plinth_cluster::{
    selector::Selector,
    watch::{Look, Owner, WatchKey, WatchSet},
};
use plinth_engine::{
    ports::{Access, Answer, Applier, Apply, Delete, Query, ReadError, Reader, ServiceAccount, WriteError},
    schema::{self, Lookup, SchemaMap, SchemaSource, builtin},
};
use plinth_run::{
    EventKind,
    memory::{SteppedClock, VecRecorder},
};
use serde_json::{Value, json};

use crate::world::{Accounts, Finalizers, Index, Schemas, World};

#[derive(Clone, Default)]
pub(crate) struct Twin(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    objects: BTreeMap<ObjectKey, Object>,
    /// What the index shows; the objects themselves where it does not lag.
    frozen: Option<BTreeMap<ObjectKey, Object>>,
    version: u64,
    log: Vec<String>,
    refused: BTreeSet<String>,
    /// What the server has against objects, by their names.
    invalid: BTreeMap<String, String>,
    /// Kinds that the loop itself has no rights on.
    forbidden: BTreeSet<String>,
    /// Rights that the loop lacks, as they are printed.
    lacking: BTreeSet<String>,
    /// Verbs that no account may do.
    denied: BTreeSet<String>,
    kinds: SchemaMap,
    sets: BTreeMap<Owner, WatchSet>,
}

/// A world on a twin, with its recorder and clock.
pub(crate) struct Scene {
    pub(crate) twin: Twin,
    pub(crate) world: World,
    pub(crate) recorder: Arc<VecRecorder>,
    pub(crate) clock: SteppedClock,
}

impl Scene {
    pub(crate) fn set() -> Self {
        let (twin, recorder, clock) = (Twin::default(), Arc::new(VecRecorder::default()), SteppedClock::default());
        for crd in plinth_api::crds::platform() {
            twin.serve(&crd);
        }
        let world = World {
            index: Arc::new(twin.clone()),
            applier: Arc::new(twin.clone()),
            accounts: Arc::new(twin.clone()),
            reader: Arc::new(twin.clone()),
            finalizers: Arc::new(twin.clone()),
            schemas: Arc::new(twin.clone()),
            recorder: Arc::clone(&recorder) as _,
            clock: Arc::new(clock.clone()),
            figures: crate::figures::Figures::default(),
            condition_events: false,
            awaited: Arc::default(),
            removing: false,
        };
        Self { twin, world, recorder, clock }
    }

    pub(crate) fn later(&self, seconds: u64) {
        self.clock.step(Duration::from_secs(seconds));
    }

    pub(crate) fn events(&self) -> Vec<EventKind> {
        self.recorder.kinds()
    }
}

impl Twin {
    /// Somebody else writes an object.
    pub(crate) fn put(&self, object: Value) -> ObjectKey {
        let object = Object::from_value(object).unwrap();
        let key = object.key(&ClusterKey::host()).unwrap();
        self.0.lock().unwrap().store(&key, object);
        key
    }

    pub(crate) fn object(&self, key: &ObjectKey) -> Option<Object> {
        self.0.lock().unwrap().objects.get(key).cloned()
    }

    pub(crate) fn remove(&self, key: &ObjectKey) {
        self.0.lock().unwrap().objects.remove(key);
    }

    /// From now on the index shows what there is at this moment.
    pub(crate) fn freeze(&self) {
        let mut inner = self.0.lock().unwrap();
        inner.frozen = Some(inner.objects.clone());
    }

    pub(crate) fn thaw(&self) {
        self.0.lock().unwrap().frozen = None;
    }

    /// Writes of objects with this name are refused from now on, or not any more.
    pub(crate) fn refuse(&self, name: &str, refuse: bool) {
        let refused = &mut self.0.lock().unwrap().refused;
        if refuse {
            refused.insert(name.to_owned());
        } else {
            refused.remove(name);
        }
    }

    /// The server finds objects with this name invalid from now on, in these words, or not any more.
    pub(crate) fn invalidate(&self, name: &str, words: Option<&str>) {
        let invalid = &mut self.0.lock().unwrap().invalid;
        match words {
            Some(words) => drop(invalid.insert(name.to_owned(), words.to_owned())),
            None => drop(invalid.remove(name)),
        }
    }

    /// The loop has no rights on objects of a kind any more, or has them again.
    pub(crate) fn forbid(&self, kind: &str, forbid: bool) {
        let forbidden = &mut self.0.lock().unwrap().forbidden;
        if forbid {
            forbidden.insert(kind.to_owned());
        } else {
            forbidden.remove(kind);
        }
    }

    /// Takes a right of the loop away, as it is printed, or gives it back.
    pub(crate) fn lack(&self, right: &str, lack: bool) {
        let lacking = &mut self.0.lock().unwrap().lacking;
        if lack {
            lacking.insert(right.to_owned());
        } else {
            lacking.remove(right);
        }
    }

    /// No account may do this any more, or all may again.
    pub(crate) fn deny(&self, verb: &str, deny: bool) {
        let denied = &mut self.0.lock().unwrap().denied;
        if deny {
            denied.insert(verb.to_owned());
        } else {
            denied.remove(verb);
        }
    }

    /// Serves the kinds of a CRD.
    pub(crate) fn serve(&self, crd: &Object) {
        self.0.lock().unwrap().kinds.extend(schema::crd::kinds(crd).unwrap());
    }

    /// Serves a kind no more.
    pub(crate) fn unserve(&self, gvk: &GroupVersionKind) {
        self.0.lock().unwrap().kinds.remove(gvk);
    }

    /// Requests since the last call, one line each.
    pub(crate) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().log)
    }

    /// Writes among the requests since the last call.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.log().into_iter().filter(|line| !line.starts_with("get ") && !line.starts_with("list ")).collect()
    }

    /// What an owner declared.
    pub(crate) fn set_of(&self, owner: &Owner) -> WatchSet {
        self.0.lock().unwrap().sets.get(owner).cloned().unwrap_or_default()
    }
}

impl Inner {
    fn is_served(&self, gvk: &GroupVersionKind) -> bool {
        self.kinds.kind(gvk) != Lookup::NotServed || builtin().kind(gvk) != Lookup::NotServed
    }

    fn store(&mut self, key: &ObjectKey, mut object: Object) -> Object {
        self.version += 1;
        let version = self.version;
        let before = self.objects.get(key);
        let changed = before.is_none_or(|before| before.spec() != object.spec());
        let generation = before.map_or(0, Object::generation) + i64::from(changed);
        let has_spec = object.0.contains_key("spec");
        let metadata = object.metadata_mut();
        metadata.entry("uid").or_insert_with(|| json!(format!("uid-{version}")));
        if has_spec {
            metadata.insert("generation".into(), generation.into());
        }
        metadata.insert("resourceVersion".into(), version.to_string().into());
        self.objects.insert(key.clone(), object.clone());
        object
    }

    fn shown(&self) -> &BTreeMap<ObjectKey, Object> {
        self.frozen.as_ref().unwrap_or(&self.objects)
    }

    fn select(from: &BTreeMap<ObjectKey, Object>, query: &Query) -> Vec<Object> {
        let selector = Selector::parse(&query.selector).unwrap();
        let of_kind = |key: &ObjectKey| {
            key.gvk.group_kind() == query.gvk.group_kind() && (query.namespace.is_none() || key.namespace == query.namespace)
        };
        let found = from.iter().filter(|(key, object)| of_kind(key) && selector.matches(object));
        found.map(|(_, object)| object.clone()).collect()
    }

    /// A right on a kind or an object of it, where it is missing.
    fn lacks(&self, verb: &str, gvk: &GroupVersionKind, key: Option<&ObjectKey>) -> Option<Box<Permission>> {
        let missing = Permission {
            group: gvk.group.clone(),
            resource: plinth_engine::naming::resource_name(&gvk.kind),
            verb: verb.to_owned(),
            namespace: key.and_then(|key| key.namespace.clone()),
            name: key.map(|key| key.name.clone()),
        };
        self.lacking.contains(&missing.to_string()).then(|| Box::new(missing))
    }

    fn apply(&mut self, request: &Apply) -> Result<Object, WriteError> {
        let key = &request.key;
        self.log.push(format!("apply {key} by {}", request.manager));
        if !self.is_served(&key.gvk) {
            return Err(WriteError::NotServed(key.gvk.clone()));
        }
        if self.forbidden.contains(&key.gvk.kind) {
            let resource = format!("{}s", key.gvk.kind.to_lowercase());
            let message = format!("User \"loop\" cannot patch resource {resource:?}");
            let (verb, namespace) = ("patch".to_owned(), key.namespace.clone());
            let missing = Box::new(Permission { resource, verb, namespace, ..Permission::default() });
            return Err(WriteError::Forbidden { missing, message });
        }
        let verb = if self.objects.contains_key(key) { "patch" } else { "create" };
        if let Some(missing) = self.lacks(verb, &key.gvk, Some(key)).filter(|_| request.subresource.is_none()) {
            return Err(WriteError::Forbidden { missing, message: "denied by the test".into() });
        }
        if let Some(message) = self.invalid.get(&key.name) {
            return Err(WriteError::Invalid { key: key.clone(), message: message.clone() });
        }
        if self.refused.contains(&key.name) {
            return Err(WriteError::Unavailable { key: key.clone(), message: "refused by the test".into() });
        }
        let live = self.objects.get(key).cloned();
        let (live, wanted) = match (live, request.subresource) {
            (Some(mut live), Some(subresource)) => {
                live.0.insert(subresource.to_owned(), request.object.0[subresource].clone());
                return Ok(self.store(key, live));
            }
            (None, Some(_)) => return Err(WriteError::NotFound { key: key.clone(), message: "no such object".into() }),
            (live, None) => (live.unwrap_or_default(), request.object.clone()),
        };
        let mut merged = live.clone().into_value();
        merge(&mut merged, &wanted.into_value());
        let mut merged = Object::from_value(merged).unwrap();
        let managers = merged.metadata_mut().entry("managedFields").or_insert_with(|| json!([]));
        let entry = json!({"manager": request.manager, "operation": "Apply"});
        let managers = managers.as_array_mut().unwrap();
        if !managers.contains(&entry) {
            managers.push(entry);
        }
        if key.gvk.kind == "CustomResourceDefinition" {
            self.kinds.extend(schema::crd::kinds(&merged).unwrap());
            merged.0.insert("status".into(), json!({"conditions": [{"type": "Established", "status": "True"}]}));
        }
        // As on a real server, an apply that changes nothing leaves the version as it is.
        if merged == live { Ok(live) } else { Ok(self.store(key, merged)) }
    }

    fn delete(&mut self, key: &ObjectKey) {
        let Some(object) = self.objects.get_mut(key) else { return };
        if object.finalizers().is_empty() {
            self.objects.remove(key);
        } else {
            object.metadata_mut().insert("deletionTimestamp".into(), "2026-01-01T00:00:00Z".into());
        }
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

impl Index for Twin {
    fn look(&self, key: &ObjectKey) -> Look {
        let inner = self.0.lock().unwrap();
        inner.shown().get(key).map_or(Look::Absent, |object| Look::Present(Arc::new(object.clone())))
    }

    fn list(&self, query: &Query) -> Option<Vec<Arc<Object>>> {
        let inner = self.0.lock().unwrap();
        Some(Inner::select(inner.shown(), query).into_iter().map(Arc::new).collect())
    }

    fn refused(&self, watch: &WatchKey) -> Option<ReadError> {
        let missing = self.0.lock().unwrap().lacks("list", &watch.gvk, None)?;
        Some(ReadError::Forbidden { missing, message: "denied by the test".into() })
    }

    fn declare(&self, owner: &Owner, set: WatchSet) {
        self.0.lock().unwrap().sets.insert(owner.clone(), set);
    }

    fn extend(&self, owner: &Owner, set: WatchSet) {
        let mut inner = self.0.lock().unwrap();
        let before = inner.sets.remove(owner).unwrap_or_default();
        inner.sets.insert(owner.clone(), before.union(set));
    }

    fn forget(&self, owner: &Owner) {
        self.0.lock().unwrap().sets.remove(owner);
    }
}

impl Applier for Twin {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(async { self.0.lock().unwrap().apply(request) })
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        Box::pin(async {
            let mut inner = self.0.lock().unwrap();
            inner.log.push(format!("delete {}", request.key));
            inner.delete(&request.key);
            Ok(())
        })
    }
}

/// Accounts may do everything that [`Twin::deny`] does not take away.
impl Accounts for Twin {
    fn writes(&self, account: &ServiceAccount, _: &ClusterKey) -> Arc<dyn Applier> {
        Arc::new(TwinAccount { twin: self.clone(), account: account.clone() })
    }

    fn may_read<'a>(&'a self, access: &'a Access) -> Answer<'a, Result<bool, ReadError>> {
        Box::pin(async move {
            let mut inner = self.0.lock().unwrap();
            inner.log.push(format!("review {} {} by {}", access.verb(), access.gvk, access.account));
            Ok(!inner.denied.contains(access.verb()))
        })
    }
}

/// A twin in an account's name.
struct TwinAccount {
    twin: Twin,
    account: ServiceAccount,
}

impl TwinAccount {
    fn may(&self, verb: &str, key: &ObjectKey) -> Result<(), WriteError> {
        let mut inner = self.twin.0.lock().unwrap();
        inner.log.push(format!("{} asks to {verb} {key}", self.account));
        if !inner.denied.contains(verb) {
            return Ok(());
        }
        let resource = format!("{}s", key.gvk.kind.to_lowercase());
        let message = format!("User {:?} cannot {verb} resource {resource:?}", self.account.to_string());
        let (verb, namespace) = (verb.to_owned(), key.namespace.clone());
        Err(WriteError::Forbidden {
            missing: Box::new(Permission { resource, verb, namespace, ..Permission::default() }),
            message,
        })
    }
}

impl Applier for TwinAccount {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(async move {
            self.may("patch", &request.key)?;
            self.twin.apply(request).await
        })
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        Box::pin(async move {
            self.may("delete", &request.key)?;
            self.twin.delete(request).await
        })
    }
}

impl Reader for Twin {
    fn get<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Option<Object>, ReadError>> {
        Box::pin(async move {
            let mut inner = self.0.lock().unwrap();
            inner.log.push(format!("get {key}"));
            Ok(inner.objects.get(key).cloned())
        })
    }

    fn list<'a>(&'a self, query: &'a Query) -> Answer<'a, Result<Vec<Object>, ReadError>> {
        Box::pin(async move {
            let mut inner = self.0.lock().unwrap();
            inner.log.push(format!("list {}", query.gvk));
            Ok(Inner::select(&inner.objects, query))
        })
    }
}

impl Finalizers for Twin {
    fn remove<'a>(&'a self, key: &'a ObjectKey, finalizer: &'a str) -> Answer<'a, Result<(), WriteError>> {
        Box::pin(async move {
            let mut inner = self.0.lock().unwrap();
            inner.log.push(format!("release {key}"));
            let Some(object) = inner.objects.get_mut(key) else { return Ok(()) };
            let left: Vec<String> =
                object.finalizers().into_iter().filter(|entry| *entry != finalizer).map(str::to_owned).collect();
            let gone = left.is_empty() && object.is_terminating();
            object.metadata_mut().insert("finalizers".into(), json!(left));
            if gone {
                inner.objects.remove(key);
            }
            Ok(())
        })
    }
}

struct Both(SchemaMap);

impl SchemaSource for Both {
    fn kind(&self, gvk: &GroupVersionKind) -> Lookup {
        match self.0.kind(gvk) {
            Lookup::NotServed => builtin().kind(gvk),
            served @ Lookup::Served(_) => served,
        }
    }
}

impl Schemas for Twin {
    fn of<'a>(&'a self, _: &'a ClusterKey, _: &'a [GroupVersionKind]) -> Answer<'a, Result<Arc<dyn SchemaSource>, ReadError>> {
        Box::pin(async { Ok(Arc::new(Both(self.0.lock().unwrap().kinds.clone())) as Arc<dyn SchemaSource>) })
    }
}

impl plinth_bootstrap::Access for Twin {
    fn identity(&self) -> Answer<'_, Result<plinth_run::ClusterIdentity, ReadError>> {
        Box::pin(async { Ok(plinth_run::ClusterIdentity("twin".into())) })
    }

    fn can_i<'a>(&'a self, permission: &'a Permission) -> Answer<'a, Result<bool, ReadError>> {
        Box::pin(async {
            let lacking = &self.0.lock().unwrap().lacking;
            let lacks_any = *permission == Permission::everything() && !lacking.is_empty();
            Ok(!lacks_any && !lacking.contains(&permission.to_string()))
        })
    }
}

impl plinth_bootstrap::Schemas for Twin {
    fn ensure<'a>(&'a self, kinds: &'a [GroupVersionKind]) -> Answer<'a, Result<Arc<dyn SchemaSource>, ReadError>> {
        Box::pin(async move { Schemas::of(self, &ClusterKey::host(), kinds).await })
    }

    fn listable(&self) -> Answer<'_, Result<Vec<plinth_bootstrap::Listable>, ReadError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
