//! Looking a plane over at the end of a rehearsal.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, rgd};
use plinth_engine::{
    health::{Health, judge},
    ports::{Query, Reader},
    schema::Lookup,
};
use serde_json::Value;

use super::{Venue, verdict::Trouble};
use crate::{ports::Ports, preflight::AT_ONCE, wanted};

/// Deepest that an object is looked into.
const MAX_DEPTH: usize = 64;
/// What a container waits for while all is well with it.
const PATIENT: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// Reasons of a container whose image cannot be pulled.
const UNPULLED: [&str; 3] = ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"];
/// Reasons of events that say what an object lacks.
const LACKING: [&str; 2] = ["FailedMount", "FailedCreate"];

/// Kinds that have pods, or are some.
const WORKLOADS: [(&str, &str); 6] = [
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("apps", "ReplicaSet"),
    ("batch", "Job"),
    ("", "Pod"),
];

/// What was asked for in vain.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Survey {
    /// Objects by the image that they need.
    pub(super) images: BTreeMap<String, BTreeSet<String>>,
    /// Kinds that are not served.
    pub(super) unserved: BTreeSet<GroupVersionKind>,
    /// What workloads lack besides images.
    pub(super) troubles: BTreeSet<Trouble>,
}

/// Looks at everything that the run wrote, at the pods that came of it, and at the kinds that were waited for.
///
/// What cannot be read any more is left out: a rehearsal that could not be looked over says so by how it ended.
pub(super) async fn survey(ports: &Ports, venue: &dyn Venue) -> Survey {
    let mut survey = Survey { unserved: unserved(ports).await, ..Survey::default() };
    let keys: Vec<ObjectKey> = ports.log.read(|state| state.subjects.keys().cloned().collect());
    let reader = ports.reader.as_ref();
    let objects = stream::iter(&keys).map(|key| reader.get(key)).buffered(AT_ONCE);
    let objects: Vec<Object> = objects.filter_map(async |answer| answer.ok().flatten()).collect().await;
    for object in objects.iter().filter(|object| !is_definition(object)) {
        let mut named = BTreeSet::new();
        object.0.iter().filter(|(field, _)| *field != "status").for_each(|(name, value)| images(name, value, 0, &mut named));
        for image in named.into_iter().filter(|image| !venue.has_image(image)) {
            survey.images.entry(image).or_default().insert(name(object));
        }
    }
    for pod in all(reader, "Pod").await {
        let root = root(reader, &pod).await;
        survey.look_at(&pod, &root);
    }
    for event in all(reader, "Event").await {
        if LACKING.contains(&text(&event, "reason")) && is_unwell(reader, &event).await {
            survey.hear(&event);
        }
    }
    survey
}

/// Whether any workload has not started yet.
pub(super) async fn is_under_way(reader: &dyn Reader) -> bool {
    for (group, kind) in WORKLOADS {
        if of_kind(reader, group, kind).await.iter().any(|workload| judge(workload).health != Health::Current) {
            return true;
        }
    }
    false
}

fn text<'o>(object: &'o Object, field: &str) -> &'o str {
    object.at(&[field]).and_then(Value::as_str).unwrap_or_default()
}

/// Whether what an event is about is there and not well: what was lacking for a while and then came is told by events for ever.
async fn is_unwell(reader: &dyn Reader, event: &Object) -> bool {
    let Some(about) = event.at(&["involvedObject"]).and_then(reference) else { return false };
    let namespace = event.at(&["involvedObject", "namespace"]).and_then(Value::as_str).map(str::to_owned);
    let found = reader.get(&ObjectKey { namespace, ..about }).await;
    found.is_ok_and(|object| object.is_some_and(|object| judge(&object).health != Health::Current))
}

/// The kinds that anything waited for and that are still not served.
async fn unserved(ports: &Ports) -> BTreeSet<GroupVersionKind> {
    let waited: BTreeSet<GroupVersionKind> = ports.log.read(|state| {
        let planned = state.plan.iter().flat_map(|plan| &plan.deferred).flat_map(|deferred| &deferred.missing);
        planned.chain(state.subjects.values().flat_map(|known| &known.missing)).cloned().collect()
    });
    let waited: Vec<_> = waited.into_iter().collect();
    let Ok(schemas) = ports.schemas.ensure(&waited).await else { return waited.into_iter().collect() };
    waited.into_iter().filter(|gvk| schemas.kind(gvk) == Lookup::NotServed).collect()
}

async fn all(reader: &dyn Reader, kind: &str) -> Vec<Object> {
    of_kind(reader, "", kind).await
}

async fn of_kind(reader: &dyn Reader, group: &str, kind: &str) -> Vec<Object> {
    let gvk = GroupVersionKind::new(group, "v1", kind);
    let query = Query { cluster: ClusterKey::host(), gvk, namespace: None, selector: String::new() };
    reader.list(&query).await.unwrap_or_default()
}

/// Texts in fields called `image` that can only be references to images: those of other things (machines, say) have no path.
fn images(name: &str, value: &Value, depth: usize, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if name == "image" && text.contains('/') && !text.contains([' ', '$']) => {
            found.insert(text.clone());
        }
        Value::Object(fields) if depth < MAX_DEPTH => {
            fields.iter().for_each(|(name, value)| images(name, value, depth + 1, found));
        }
        Value::Array(elements) if depth < MAX_DEPTH => elements.iter().for_each(|value| images("", value, depth + 1, found)),
        _ => {}
    }
}

impl Survey {
    fn look_at(&mut self, pod: &Object, root: &str) {
        let lists = ["initContainerStatuses", "containerStatuses"].into_iter();
        for container in lists.flat_map(|list| pod.status()[list].as_array().into_iter().flatten()) {
            let waiting = &container["state"]["waiting"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let Some(reason) = waiting["reason"].as_str().filter(|reason| !PATIENT.contains(reason)) else { continue };
            if UNPULLED.contains(&reason) {
                self.images.entry(text(&container["image"])).or_default().insert(root.to_owned());
            } else {
                let message = format!("container {}: {}", text(&container["name"]), text(&waiting["message"]));
                self.troubles.insert(Trouble { subject: root.to_owned(), reason: reason.to_owned(), message });
            }
        }
    }

    fn hear(&mut self, event: &Object) {
        let about = ["kind", "namespace", "name"]
            .map(|field| event.at(&["involvedObject", field]).and_then(Value::as_str).unwrap_or_default());
        let (reason, message) = (text(event, "reason").to_owned(), text(event, "message").to_owned());
        self.troubles.insert(Trouble { subject: about.join("/"), reason, message });
    }
}

/// A definition's texts are about objects that come later, and are looked at in those.
fn is_definition(object: &Object) -> bool {
    object.gvk().is_some_and(|gvk| gvk.kind == rgd::KIND || gvk == wanted::crd_kind())
}

/// How messages name an object.
fn name(object: &Object) -> String {
    object.key(&ClusterKey::host()).map(|key| key.to_string()).unwrap_or_default()
}

/// The workload that a pod comes from in the end.
async fn root(reader: &dyn Reader, pod: &Object) -> String {
    let mut object = pod.clone();
    // Pod, ReplicaSet, Deployment.
    for _ in 0..2 {
        let Some(above) = owner(&object) else { break };
        match reader.get(&above).await {
            Ok(Some(found)) => object = found,
            _ => return above.to_string(),
        }
    }
    name(&object)
}

fn owner(object: &Object) -> Option<ObjectKey> {
    let references = object.at(&["metadata", "ownerReferences"])?.as_array()?;
    let above = reference(references.iter().find(|reference| reference["controller"] == true)?)?;
    Some(ObjectKey { namespace: object.namespace().map(str::to_owned), ..above })
}

/// What a reference is about; its namespace is the caller's to know.
fn reference(reference: &Value) -> Option<ObjectKey> {
    Some(ObjectKey {
        cluster: ClusterKey::host(),
        gvk: GroupVersionKind::from_api_version(reference["apiVersion"].as_str()?, reference["kind"].as_str()?)?,
        namespace: None,
        name: reference["name"].as_str()?.to_owned(),
    })
}
