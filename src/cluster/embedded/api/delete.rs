//! Deleting: one object or a collection, with preconditions, propagation and finalizers.

use plinth_api::Object;
use serde_json::{Map, Value, json};

use super::{
    kinds::Served,
    listing::Listing,
    options,
    problem::Problem,
    read::{filter, present},
    state::{Ask, Reply, State},
    write::refused,
};
use crate::embedded::{
    collect::{CLEANUP, FOREGROUND, ORPHAN, is_definition, with_finalizer},
    store::{Left, Place, Precondition, Refusal},
};

/// What a deletion asks for.
#[derive(Default)]
struct Options {
    precondition: Precondition,
    policy: Option<Policy>,
    dry_run: bool,
}

/// What becomes of dependents, where the request says it: the finalizer that holds the object until that is done.
#[derive(Clone, Copy)]
struct Policy(Option<&'static str>);

impl State {
    pub(super) fn delete(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        let name = ask.target.name.clone().unwrap_or_default();
        let options = options(ask)?;
        let place = ask.place(&name);
        may_go(ask, &name)?;
        self.seen(ask, &name)?;
        let left = self.remove(ask, &place, &options)?;
        Ok(answer(ask, &left))
    }

    pub(super) fn delete_all(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        let options = options(ask)?;
        let page = self.store.page(&ask.resource(), &filter(ask)?, None, usize::MAX);
        let items = page.map(|page| page.items).unwrap_or_default();
        for (place, _) in &items {
            self.remove(ask, place, &options)?;
        }
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), json!(self.store.version().to_string()));
        let items = items.iter().map(|(_, object)| present(object, &ask.served)).collect();
        Ok(Reply::List(Box::new(Listing::of(&ask.served, metadata, items))))
    }

    fn remove(&mut self, ask: &Ask<'_>, place: &Place, options: &Options) -> Result<Left, Problem> {
        let now = ask.call.now;
        let time = ask.time();
        let prepare = |object: &mut Object| prepared(object, &ask.served, options.policy, &time);
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
}

fn options(ask: &Ask<'_>) -> Result<Options, Problem> {
    let said = options::of_deletion(ask)?;
    let policy = match (said["propagationPolicy"].as_str(), said["orphanDependents"].as_bool()) {
        (Some("Foreground"), _) => Some(Policy(Some(FOREGROUND))),
        (Some("Orphan"), _) | (None, Some(true)) => Some(Policy(Some(ORPHAN))),
        (Some("Background"), _) | (None, Some(false)) => Some(Policy(None)),
        _ => None,
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let precondition =
        Precondition { uid: text(&said["preconditions"]["uid"]), version: text(&said["preconditions"]["resourceVersion"]) };
    let dry_run = said["dryRun"].as_array().is_some_and(|list| list.contains(&json!("All")));
    Ok(Options { precondition, policy, dry_run })
}

/// Namespaces without which there is no cluster.
fn may_go(ask: &Ask<'_>, name: &str) -> Result<(), Problem> {
    let is_namespace = ask.served.group.is_empty() && ask.served.plural == "namespaces";
    if is_namespace && ["default", "kube-system", "kube-public"].contains(&name) {
        return Err(Problem::forbidden("", "namespaces", name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// Puts what holds an object onto it; whether that is the API server's own affair.
fn prepared(object: &mut Object, served: &Served, policy: Option<Policy>, time: &str) -> bool {
    let is_definition = (served.group.as_str(), served.plural.as_str()) == ("apiextensions.k8s.io", "customresourcedefinitions");
    if is_definition {
        with_finalizer(object, CLEANUP);
    } else if let Some(Policy(finalizer)) = policy {
        with_policy(object, finalizer);
    }
    if object.is_terminating() {
        return false;
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

/// Puts one policy's finalizer in the place of any other's; the last policy that is said holds.
fn with_policy(object: &mut Object, finalizer: Option<&str>) {
    let is_policy = |name: &str| name == FOREGROUND || name == ORPHAN;
    let others = object.finalizers().into_iter().filter(|name| !is_policy(name));
    let kept: Vec<String> = others.chain(finalizer).map(str::to_owned).collect();
    if kept.is_empty() {
        object.metadata_mut().remove("finalizers");
    } else {
        object.metadata_mut().insert("finalizers".to_owned(), json!(kept));
    }
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

fn answer(ask: &Ask<'_>, left: &Left) -> Reply {
    const RETURNED: [&str; 4] = ["services", "serviceaccounts", "pods", "persistentvolumeclaims"];
    let served = &ask.served;
    let object = match left {
        Left::There(object) => return Reply::Object(200, present(object, served)),
        Left::Gone(object) => object,
    };
    if served.builtin && RETURNED.contains(&served.plural.as_str()) {
        return Reply::Object(200, present(object, served));
    }
    let mut details = json!({"name": object.name(), "kind": served.plural, "uid": object.uid().unwrap_or_default()});
    if !served.group.is_empty() {
        details["group"] = json!(served.group);
    }
    Reply::Json(200, json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}))
}
