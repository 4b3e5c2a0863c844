//! Making, watching and removing objects of any kind, as the user `cluster`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    runtime::watcher,
};
use plinth_api::Object;
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinHandle};

use crate::Result;

/// Longer than anything here takes.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// A kind by its group, version, name and plural.
pub fn kind(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// ResourceGraphDefinitions of kro.
pub fn definitions() -> ApiResource {
    kind("kro.run", "v1alpha1", "ResourceGraphDefinition", "resourcegraphdefinitions")
}

/// CustomResourceDefinitions.
pub fn crds() -> ApiResource {
    kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

/// Objects of a kind, in a namespace or of the cluster.
pub fn api(client: &Client, kind: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, kind),
        None => Api::all_with(client.clone(), kind),
    }
}

/// The object as kube's client wants it.
pub fn dynamic(object: &Object) -> Result<DynamicObject> {
    Ok(serde_json::from_value(object.clone().into_value())?)
}

/// Creates an object.
pub async fn create(api: &Api<DynamicObject>, object: &Object) -> Result<DynamicObject> {
    Ok(api.create(&PostParams::default(), &dynamic(object)?).await?)
}

/// Installs CRDs and waits until they are established.
pub async fn install(client: &Client, all: &[Object]) -> Result<()> {
    let crds = api(client, &crds(), None);
    for crd in all {
        crds.patch(crd.name(), &PatchParams::apply("peer").force(), &Patch::Apply(dynamic(crd)?)).await?;
    }
    for crd in all {
        until(&crds, crd.name(), |crd| crd.is_some_and(|crd| holds(crd, "Established"))).await?;
    }
    Ok(())
}

/// Waits for a state by asking; for what is not measured.
pub async fn until(
    api: &Api<DynamicObject>,
    name: &str,
    is_so: impl Fn(Option<&DynamicObject>) -> bool,
) -> Result<Option<DynamicObject>> {
    let began = Instant::now();
    loop {
        let object = api.get_opt(name).await?;
        if is_so(object.as_ref()) {
            return Ok(object);
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("{name} is not as it should be after {PATIENCE:?}: {object:?}").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Asks for an object's deletion, and takes its finalizers off where it is still there after `limit`. Whether it went by itself.
pub async fn remove(api: &Api<DynamicObject>, name: &str, limit: Duration) -> Result<bool> {
    let gone = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 404);
    match api.delete(name, &DeleteParams::default()).await {
        Err(error) if !gone(&error) => return Err(error.into()),
        _ => {}
    }
    let began = Instant::now();
    while api.get_opt(name).await?.is_some() {
        if began.elapsed() > limit {
            match release(api, name).await {
                Err(error) if !gone(&error) => return Err(error.into()),
                _ => {}
            }
            until(api, name, |object| object.is_none()).await?;
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(true)
}

/// Takes all finalizers off. A namespace has another list of them, and here is nobody who would empty it.
async fn release(api: &Api<DynamicObject>, name: &str) -> kube::Result<()> {
    let Some(mut object) = api.get_opt(name).await? else { return Ok(()) };
    if let Some(finalizers) = object.data.pointer_mut("/spec/finalizers") {
        *finalizers = json!([]);
        return api.replace_subresource("finalize", name, &PostParams::default(), &object).await.map(drop);
    }
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch(name, &PatchParams::default(), &patch).await.map(drop)
}

/// Whether a condition is True for the object's present generation.
pub fn holds(object: &DynamicObject, condition: &str) -> bool {
    let all = object.data.pointer("/status/conditions").and_then(Value::as_array);
    all.into_iter().flatten().any(|one| {
        let current = one["observedGeneration"].as_i64().is_none_or(|generation| Some(generation) == object.metadata.generation);
        one["type"] == condition && one["status"] == "True" && current
    })
}

/// `status.state`.
pub fn state(object: &DynamicObject) -> &str {
    object.data.pointer("/status/state").and_then(Value::as_str).unwrap_or_default()
}

/// When objects of a kind came to be what, as a watch saw it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// First seen with `state` ACTIVE (of definitions: Active).
    pub active: Option<Instant>,
    /// First seen Ready at its present generation.
    pub ready: Option<Instant>,
    /// First seen with any state.
    pub stated: Option<Instant>,
    /// Seen to be gone.
    pub gone: Option<Instant>,
}

/// A watch on all objects of a kind; ends when dropped.
pub struct Watched {
    seen: Arc<Mutex<BTreeMap<String, Seen>>>,
    moved: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watched {
    /// Starts to watch.
    pub fn start(client: &Client, kind: &ApiResource) -> Self {
        let seen: Arc<Mutex<BTreeMap<String, Seen>>> = Arc::default();
        let (sender, moved) = watch::channel(0);
        let (book, api) = (Arc::clone(&seen), api(client, kind, None));
        let task = tokio::spawn(async move {
            let mut events = watcher(api, watcher::Config::default()).boxed();
            loop {
                match events.try_next().await {
                    Ok(Some(event)) => {
                        note(&book, event);
                        sender.send_modify(|count| *count += 1);
                    }
                    // The watcher lists again by itself; a kind that is not served yet is asked for again soon.
                    Ok(None) | Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        });
        Self { seen, moved, task }
    }

    /// Waits until `is_so` holds of all the names; answers with what was seen, in the order of the names.
    pub async fn until(&self, names: &[String], is_so: impl Fn(&Seen) -> bool) -> Result<Vec<Seen>> {
        let mut moved = self.moved.clone();
        let began = Instant::now();
        loop {
            moved.mark_unchanged();
            {
                let seen = lock(&self.seen);
                let all: Option<Vec<Seen>> =
                    names.iter().map(|name| seen.get(name).filter(|seen| is_so(seen)).cloned()).collect();
                if let Some(all) = all {
                    return Ok(all);
                }
            }
            if began.elapsed() > PATIENCE {
                let seen = lock(&self.seen);
                let late: Vec<&String> = names.iter().filter(|name| !seen.get(*name).is_some_and(&is_so)).take(5).collect();
                return Err(format!("not so after {PATIENCE:?}: {late:?}").into());
            }
            let _timeout = tokio::time::timeout(Duration::from_secs(5), moved.changed()).await;
        }
    }
}

fn lock(seen: &Mutex<BTreeMap<String, Seen>>) -> MutexGuard<'_, BTreeMap<String, Seen>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(book: &Mutex<BTreeMap<String, Seen>>, event: watcher::Event<DynamicObject>) {
    let now = Instant::now();
    let mut book = lock(book);
    match event {
        watcher::Event::Apply(object) | watcher::Event::InitApply(object) => {
            let seen = book.entry(object.name_any()).or_default();
            if state(&object).eq_ignore_ascii_case("active") {
                seen.active.get_or_insert(now);
            }
            if holds(&object, "Ready") {
                seen.ready.get_or_insert(now);
            }
            if !state(&object).is_empty() {
                seen.stated.get_or_insert(now);
            }
        }
        watcher::Event::Delete(object) => {
            book.entry(object.name_any()).or_default().gone.get_or_insert(now);
        }
        watcher::Event::Init | watcher::Event::InitDone => {}
    }
}
