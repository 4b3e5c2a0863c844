//! What an actor sees and does: the store to look into, the API to write by.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use plinth_api::Object;
use serde_json::{Value, json};

use super::{Acting, Memory, Wake, controller};
use crate::embedded::{
    api::{
        rbac::User,
        route::QueryText,
        state::{Call, Reply, State},
    },
    seam::root,
    store::{Place, Resource},
};

/// Field manager of a cluster's controllers.
pub(super) const CONTROLLERS: &str = "kube-controller-manager";
/// Field manager of a node's agent.
pub(super) const KUBELET: &str = "kubelet";
/// Field manager of the scheduler.
pub(super) const SCHEDULER: &str = "kube-scheduler";

/// The hands of one actor for one step.
pub(super) struct Hands<'a> {
    pub(super) state: &'a mut State,
    pub(super) now: Timestamp,
    pub(super) acting: &'a Acting,
    pub(super) memory: &'a mut Memory,
}

/// What a request is about.
struct To<'a> {
    method: Method,
    place: &'a Place,
    part: Option<&'a str>,
    query: &'a str,
}

impl<'a> To<'a> {
    /// The object itself, and nothing more to say.
    fn of(method: Method, place: &'a Place) -> Self {
        Self { method, place, part: None, query: "" }
    }
}

/// A warning or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Normal,
    Warning,
}

impl Hands<'_> {
    pub(super) fn get(&self, place: &Place) -> Option<Arc<Object>> {
        self.state.store.get(place)
    }

    /// The objects of a resource that this one controls, in the order of their names.
    pub(super) fn children(&self, resource: &Resource, owner: &Place, object: &Object) -> Vec<(Place, Arc<Object>)> {
        let uid = object.uid().unwrap_or_default();
        let all = self.state.store.list(resource, &owner.cluster, owner.namespace.as_deref());
        let own = all.filter(|(_, child)| controller(child).is_some_and(|reference| reference["uid"] == uid));
        own.map(|(place, child)| (place.clone(), Arc::clone(child))).collect()
    }

    /// Makes an object beside another; `None` where the API refuses it, with its words.
    pub(super) fn create(&mut self, by: &str, beside: &Place, resource: &Resource, object: &Value) -> Result<Object, String> {
        let place = Place { resource: resource.clone(), name: String::new(), ..beside.clone() };
        let (code, answer) = self.send(by, &To::of(Method::POST, &place), object);
        if code == 201 {
            return Object::from_value(answer).ok_or_else(|| "the answer is no object".to_owned());
        }
        Err(words(&answer))
    }

    /// Sets an object's status where it differs.
    pub(super) fn set_status(&mut self, by: &str, place: &Place, status: Value) {
        let Some(old) = self.get(place).filter(|old| *old.status() != status) else { return };
        let mut object = (*old).clone();
        object.0.insert("status".to_owned(), status);
        self.send(by, &To { part: Some("status"), ..To::of(Method::PUT, place) }, object.as_value());
    }

    /// Merges into an object; whether it could.
    pub(super) fn merge(&mut self, by: &str, place: &Place, patch: &Value) -> bool {
        self.merge_part(by, place, None, patch).is_ok()
    }

    /// Merges into an object, or into its status; the API's words where it refuses.
    pub(super) fn merge_part(&mut self, by: &str, place: &Place, part: Option<&str>, patch: &Value) -> Result<(), String> {
        let (code, answer) = self.send(by, &To { part, ..To::of(Method::PATCH, place) }, patch);
        if code == 200 { Ok(()) } else { Err(words(&answer)) }
    }

    /// Applies an object by force.
    pub(super) fn apply(&mut self, by: &str, place: &Place, object: &Value) -> Result<(), String> {
        let query = format!("fieldManager={by}&force=true");
        let (code, answer) = self.send(by, &To { query: &query, ..To::of(Method::PATCH, place) }, object);
        if matches!(code, 200 | 201) { Ok(()) } else { Err(words(&answer)) }
    }

    pub(super) fn delete(&mut self, place: &Place) {
        let background = "propagationPolicy=Background";
        self.send(CONTROLLERS, &To { query: background, ..To::of(Method::DELETE, place) }, &Value::Null);
    }

    /// Says what happened to an object, as people read it in `describe`.
    pub(super) fn event(&mut self, by: &str, place: &Place, tone: Tone, reason: &str, message: &str) {
        let Some(object) = self.get(place) else { return };
        let at = self.time();
        let namespace = place.namespace.as_deref().unwrap_or("default");
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"generateName": format!("{}.", place.name), "namespace": namespace},
            "involvedObject": {
                "apiVersion": object.0.get("apiVersion"), "kind": object.0.get("kind"), "name": place.name, "namespace": place.namespace,
                "uid": object.uid(), "resourceVersion": object.resource_version(),
            },
            "reason": reason, "message": message, "type": if tone == Tone::Warning { "Warning" } else { "Normal" },
            "source": {"component": by}, "reportingComponent": by, "reportingInstance": "",
            "firstTimestamp": at, "lastTimestamp": at, "count": 1, "eventTime": null,
        });
        let beside = Place { namespace: Some(namespace.to_owned()), ..place.clone() };
        // An event that is refused, as in a namespace that goes away, is one that nobody reads.
        let _unread = self.create(by, &beside, &resource("", "events"), &event);
    }

    /// The time as conditions write it.
    pub(super) fn time(&self) -> String {
        Timestamp::from_second(self.now.as_second()).map(|at| at.to_string()).unwrap_or_default()
    }

    /// Whether an object has stood as it is for this long; else when it will have.
    pub(super) fn has_stood(&mut self, object: &Object, long: SignedDuration) -> Result<(), Wake> {
        let since = *self.memory.since.entry(object.uid().unwrap_or_default().to_owned()).or_insert(self.now);
        let due = since.checked_add(long).unwrap_or(Timestamp::MAX);
        if due <= self.now { Ok(()) } else { Err(Wake { at: due, moves: true }) }
    }

    /// An object takes a step now.
    pub(super) fn steps(&mut self, object: &Object) {
        self.memory.since.insert(object.uid().unwrap_or_default().to_owned(), self.now);
    }

    /// The next number for an address.
    pub(super) fn number(&mut self) -> u32 {
        self.memory.addresses += 1;
        self.memory.addresses
    }

    fn send(&mut self, by: &str, to: &To<'_>, body: &Value) -> (u16, Value) {
        let To { method, place, part, query } = to;
        let Some(path) = self.path(place, *part) else {
            return (404, json!({"message": format!("{} is not served", place.resource.plural)}));
        };
        let kind = match *method {
            Method::PATCH if query.is_empty() => "application/merge-patch+json",
            Method::PATCH => "application/apply-patch+yaml",
            _ => "application/json",
        };
        let call = Call {
            method: method.clone(),
            path,
            query: QueryText::parse(query),
            content_type: kind.to_owned(),
            acceptable: true,
            agent: by.to_owned(),
            user: User::admin(),
            acting: None,
            token: None,
            body: if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) },
            now: self.now,
        };
        match self.state.handle(&call) {
            Reply::Json(code, answer) => (code, answer),
            Reply::Object(code, object) => (code, object.into_value()),
            Reply::List(list) => (200, serde_json::to_value(list).unwrap_or_default()),
            Reply::Written(code, text) => (code, serde_json::from_slice(&text).unwrap_or_default()),
            Reply::Text(code, text) => (code, json!({"message": text})),
            Reply::Watch(_) => (500, json!({"message": "no watch was asked for"})),
        }
    }

    fn path(&self, place: &Place, part: Option<&str>) -> Option<String> {
        let served = self.state.registry.stored(&place.cluster, &place.resource)?;
        let (root, group, plural) = (root(&place.cluster), &served.group, &served.plural);
        let api = if group.is_empty() { "api".to_owned() } else { format!("apis/{group}") };
        let inside = place.namespace.as_ref().map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
        let name = if place.name.is_empty() { String::new() } else { format!("/{}", place.name) };
        let part = part.map(|part| format!("/{part}")).unwrap_or_default();
        Some(format!("{root}/{api}/{}{inside}/{plural}{name}{part}", served.version))
    }
}

/// Why an answer says no.
fn words(answer: &Value) -> String {
    answer["message"].as_str().unwrap_or_default().to_owned()
}

/// A resource by its two names.
pub(super) fn resource(group: &str, plural: &str) -> Resource {
    Resource { group: group.to_owned(), plural: plural.to_owned() }
}

/// The reference of a controller from what it makes.
pub(super) fn owned_by(owner: &Object) -> Value {
    json!([{
        "apiVersion": owner.0.get("apiVersion"), "kind": owner.0.get("kind"), "name": owner.name(), "uid": owner.uid(),
        "controller": true, "blockOwnerDeletion": true,
    }])
}
