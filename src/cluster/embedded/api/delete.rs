//! Deleting: one object or a collection, with preconditions, propagation and finalizers; and what follows a write.

use std::sync::Arc;

use jiff::Timestamp;
use plinth_api::Object;
use serde_json::{Map, Value, json};

use super::{
    kinds::{self, Served},
    problem::Problem,
    read::{filter, list_of, listed, present},
    state::{Ask, Reply, State},
    write::{SELF, refused},
};
use crate::embedded::{
    collect::{CLEANUP, FOREGROUND, ORPHAN, is_definition, with_finalizer},
    fields::managers::{self, Manager, Operation},
    filter::Reach,
    store::{Left, Part, Place, Precondition, Refusal},
};

/// What a deletion asks for.
#[derive(Default)]
struct Options {
    precondition: Precondition,
    finalizer: Option<&'static str>,
    dry_run: bool,
}

impl State {
    pub(super) fn delete(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        let name = ask.target.name.clone().unwrap_or_default();
        let options = options(ask)?;
        let place = ask.place(&name);
        self.seen(ask, &name)?;
        let left = self.remove(ask, &place, &options)?;
        Ok(Reply::Json(200, answer(ask, &left)))
    }

    pub(super) fn delete_all(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        let options = options(ask)?;
        let page = self.store.page(&ask.resource(), &filter(ask)?, None, usize::MAX);
        let items = page.map(|page| page.items).unwrap_or_default();
        for (place, _) in &items {
            self.remove(ask, place, &Options { precondition: Precondition::default(), ..options })?;
        }
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), json!(self.store.version().to_string()));
        let items: Vec<Value> = items.iter().map(|(_, object)| listed(object, &ask.served)).collect();
        Ok(Reply::Json(200, list_of(&ask.served, metadata, items)))
    }

    fn remove(&mut self, ask: &Ask<'_>, place: &Place, options: &Options) -> Result<Left, Problem> {
        let now = ask.call.now;
        let time = ask.time();
        let prepare = |object: &mut Object| prepared(object, &ask.served, options.finalizer, &time);
        let left = if options.dry_run {
            self.store.scratch(place).delete_after(place, &options.precondition, now, prepare)
        } else {
            self.store.delete_after(place, &options.precondition, now, prepare)
        };
        let left = left.map_err(|refusal| not_deleted(ask, &place.name, &refusal))?;
        if is_definition(place) && !options.dry_run && matches!(left, Left::There(_)) {
            self.ending.insert(place.clone());
        }
        Ok(left)
    }

    /// What the API server does by itself once an object is stored: a CRD is served, and says so.
    pub(super) fn stored(&mut self, place: &Place, object: &Arc<Object>, now: Timestamp) {
        if !is_definition(place) {
            return;
        }
        let taken = self.taken(place, object);
        let conditions = object.status()["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        if taken.is_none()
            || conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
        {
            self.registry.define(&place.cluster, &place.name, kinds::of_crd(object));
        }
        let status = crd_status(object, taken.as_deref(), now);
        if *object.status() == status {
            return;
        }
        let mut next = (**object).clone();
        next.0.insert("status".to_owned(), status);
        let manager = Manager {
            operation: Operation::Update,
            name: SELF.to_owned(),
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            subresource: "status".to_owned(),
        };
        let time = Timestamp::from_second(now.as_second()).map(|at| at.to_string()).unwrap_or_default();
        if let Some(served) = self.registry.find(&Reach::default(), "apiextensions.k8s.io", "v1", "customresourcedefinitions") {
            managers::updated(object, &mut next, &served.schema, &manager, &[], &time);
        }
        let _ = self.store.update(place, next, Part::Status, &Precondition::default());
    }

    /// The plural or kind that another CRD of the group already has.
    fn taken(&self, place: &Place, object: &Object) -> Option<String> {
        let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or_default();
        let (group, kind) = (text(&["spec", "group"]), text(&["spec", "names", "kind"]));
        let plural = text(&["spec", "names", "plural"]);
        let others = self.registry.all(&Reach::One(place.cluster.clone()));
        let clash = others.served.iter().find(|other| other.group == group && other.plural != plural && other.kind == kind);
        clash.map(|other| other.kind.clone())
    }
}

fn crd_status(object: &Object, taken: Option<&str>, now: Timestamp) -> Value {
    let time = Timestamp::from_second(now.as_second()).map(|at| at.to_string()).unwrap_or_default();
    let old = object.status();
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| {
        let known =
            old["conditions"].as_array().and_then(|list| list.iter().find(|condition| condition["type"] == kind)).cloned();
        let status = if holds { "True" } else { "False" };
        let kept = known.filter(|condition| condition["status"] == status);
        kept.unwrap_or_else(
            || json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time}),
        )
    };
    let mut conditions = match taken {
        None => vec![
            condition("NamesAccepted", true, "NoConflicts", "no conflicts found"),
            condition("Established", true, "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        Some(kind) => vec![
            condition("NamesAccepted", false, "KindConflict", &format!("{kind:?} is already in use")),
            condition("Established", false, "NotAccepted", "not all names are accepted"),
        ],
    };
    let own = ["NamesAccepted", "Established"];
    let others = old["conditions"].as_array().into_iter().flatten();
    conditions.extend(others.filter(|other| !own.contains(&other["type"].as_str().unwrap_or_default())).cloned());
    let names = object.spec()["names"].clone();
    let accepted = if taken.is_none() { names } else { json!({"plural": "", "kind": ""}) };
    let versions = object.spec()["versions"].as_array().into_iter().flatten();
    let storage = versions.filter(|version| version["storage"] == true).map(|version| version["name"].clone());
    let mut stored: Vec<Value> = old["storedVersions"].as_array().cloned().unwrap_or_default();
    for version in storage {
        if !stored.contains(&version) {
            stored.push(version);
        }
    }
    json!({"conditions": conditions, "acceptedNames": accepted, "storedVersions": stored})
}

fn options(ask: &Ask<'_>) -> Result<Options, Problem> {
    let body = if ask.call.body.is_empty() { json!({}) } else { ask.json()? };
    let query = &ask.call.query;
    let policy = query.some("propagationPolicy").or_else(|| body["propagationPolicy"].as_str());
    let finalizer = match policy {
        None | Some("Background") => None,
        Some("Foreground") => Some(FOREGROUND),
        Some("Orphan") => Some(ORPHAN),
        Some(other) => {
            let supported = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
            let message = format!("Unsupported value: {other:?}: {supported}");
            let field = "propagationPolicy".to_owned();
            let fault = super::problem::FieldFault { reason: "FieldValueNotSupported", field, message };
            return Err(Problem::invalid("meta.k8s.io", "DeleteOptions", "", &[fault]));
        }
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let precondition =
        Precondition { uid: text(&body["preconditions"]["uid"]), version: text(&body["preconditions"]["resourceVersion"]) };
    let dry_run = ask.dry_run() || body["dryRun"].as_array().is_some_and(|list| list.contains(&json!("All")));
    Ok(Options { precondition, finalizer, dry_run })
}

/// Puts what holds an object onto it; whether that is the API server's own affair.
fn prepared(object: &mut Object, served: &Served, finalizer: Option<&str>, time: &str) -> bool {
    let finalizer = match (served.group.as_str(), served.plural.as_str()) {
        ("apiextensions.k8s.io", "customresourcedefinitions") => Some(CLEANUP),
        _ => finalizer,
    };
    if let Some(finalizer) = finalizer {
        with_finalizer(object, finalizer);
    }
    let namespace = served.group.is_empty() && served.plural == "namespaces";
    if namespace && let Some(Value::Object(status)) = object.0.get_mut("status") {
        status.insert("phase".to_owned(), json!("Terminating"));
    }
    let definition = served.plural == "customresourcedefinitions";
    if definition
        && let Some(Value::Array(conditions)) = object.0.get_mut("status").and_then(|status| status.get_mut("conditions"))
    {
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        conditions.push(json!({"type": "Terminating", "status": "True", "reason": "InstanceDeletionPending", "message": message, "lastTransitionTime": time}));
    }
    namespace || definition
}

fn not_deleted(ask: &Ask<'_>, name: &str, refusal: &Refusal) -> Problem {
    let Refusal::Conflict { field, wanted, stored } = refusal else { return refused(ask, name, refusal) };
    let (what, may) = match *field {
        "UID" => ("UID", "deleted and then recreated"),
        _ => ("ResourceVersion", "modified"),
    };
    let why = format!(
        "the {what} in the precondition ({wanted}) does not match the {what} in record ({stored}). The object might have been {may}"
    );
    Problem::conflict(&ask.served.group, &ask.served.kind, name, &why)
}

fn answer(ask: &Ask<'_>, left: &Left) -> Value {
    const RETURNED: [&str; 4] = ["services", "serviceaccounts", "pods", "persistentvolumeclaims"];
    let served = &ask.served;
    let object = match left {
        Left::There(object) => return present(object, served),
        Left::Gone(object) => object,
    };
    if served.builtin && RETURNED.contains(&served.plural.as_str()) {
        return present(object, served);
    }
    let mut details = json!({"name": object.name(), "kind": served.plural, "uid": object.uid().unwrap_or_default()});
    if !served.group.is_empty() {
        details["group"] = json!(served.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
