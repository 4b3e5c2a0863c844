//! The tests' own watches: what is timed is timed here, not by our journal (contracts 26).

use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams},
    core::GroupVersionKind,
};
use tokio::task::JoinHandle;

/// How long a test waits for anything.
const LIMIT: Duration = Duration::from_mins(3);

/// A kind by its parts.
pub(crate) fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// When a CRD was seen Established.
pub(crate) fn established(client: Client, crd: &str) -> JoinHandle<Instant> {
    let kind = resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
    seen(client, &kind, None, crd, |object| {
        let conditions = object.data.pointer("/status/conditions").and_then(serde_json::Value::as_array);
        conditions.is_some_and(|list| list.iter().any(|one| one["type"] == "Established" && one["status"] == "True"))
    })
}

/// When an object was seen, its kind served or not.
pub(crate) fn appeared(client: Client, kind: &ApiResource, name: &str) -> JoinHandle<Instant> {
    seen(client, kind, None, name, |_| true)
}

/// When an object was first seen as `wanted`.
pub(crate) fn seen(
    client: Client,
    kind: &ApiResource,
    namespace: Option<&str>,
    name: &str,
    wanted: impl Fn(&DynamicObject) -> bool + Send + Sync + 'static,
) -> JoinHandle<Instant> {
    let api = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, kind),
        None => Api::<DynamicObject>::all_with(client, kind),
    };
    let what = format!("{} {name}", kind.kind);
    let name = name.to_owned();
    tokio::spawn(async move {
        let watched = async {
            loop {
                // Fails while the kind is not served; asked again at once, because this is a clock.
                if let Some(at) = watch_once(&api, name.as_str(), &wanted).await {
                    return at;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LIMIT, watched).await.unwrap_or_else(|_| panic!("{what} was not seen within {LIMIT:?}"))
    })
}

/// Lists, then watches from there: with Debian's etcd the server cannot start a watch at "any version".
async fn watch_once(api: &Api<DynamicObject>, name: &str, wanted: &impl Fn(&DynamicObject) -> bool) -> Option<Instant> {
    let field = format!("metadata.name={name}");
    let list = api.list(&ListParams::default().fields(&field)).await.ok()?;
    if list.items.iter().any(wanted) {
        return Some(Instant::now());
    }
    let version = list.metadata.resource_version?;
    let mut stream = api.watch(&WatchParams::default().fields(&field), &version).await.ok()?.boxed();
    while let Some(Ok(event)) = stream.next().await {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) if wanted(&object) => return Some(Instant::now()),
            WatchEvent::Error(_) => return None,
            _ => {}
        }
    }
    None
}
