//! What the API server itself does about CRDs: the names of one are accepted where no other CRD of the group has them, and then it is
//! served (Kubernetes: apiextensions, NamesAccepted and Established).

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use plinth_api::{ClusterKey, Object};
use serde_json::{Map, Value, json};

use super::{kinds, state::State, write::SELF};
use crate::embedded::{
    collect::{defined_by, is_definition},
    fields::managers::{self, Manager, Operation},
    filter::Reach,
    store::{Part, Place, Precondition, Resource},
};

impl State {
    /// What the API server does by itself once an object is stored: a CRD is served, and says so.
    pub(super) fn stored(&mut self, place: &Place, object: &Arc<Object>, now: Timestamp) {
        if !is_definition(place) {
            return;
        }
        let names = Names::of(object, &self.used(place, object));
        let status = status_of(object, &names, now);
        if is(&status, "Established") {
            let mut accepted = (**object).clone();
            if let Some(spec) = accepted.0.get_mut("spec") {
                spec["names"].clone_from(&status["acceptedNames"]);
            }
            self.registry.define(&place.cluster, &place.name, kinds::of_crd(&accepted));
            let defined = (defined_by(place), place.cluster.clone());
            if self.retired.remove(&defined) {
                self.store.expire(&defined.0, &defined.1);
            }
        }
        if *object.status() == status {
            return;
        }
        let gives_up = object.status()["acceptedNames"] != status["acceptedNames"];
        self.write_status(place, object, status, now);
        if gives_up {
            self.names_are_free(&place.cluster, &place.name, now);
        }
    }

    /// A CRD is gone, or has other names: those of its group that wait for a name are looked at again.
    pub(crate) fn names_are_free(&mut self, cluster: &ClusterKey, crd: &str, now: Timestamp) {
        let Some((_, group)) = crd.split_once('.') else { return };
        let waiting: Vec<(Place, Arc<Object>)> = self
            .definitions(cluster, group)
            .filter(|(place, object)| place.name != crd && !is(object.status(), "NamesAccepted"))
            .map(|(place, object)| (place.clone(), Arc::clone(object)))
            .collect();
        for (place, object) in waiting {
            self.stored(&place, &object, now);
        }
    }

    fn definitions<'a>(&'a self, cluster: &ClusterKey, group: &'a str) -> impl Iterator<Item = (&'a Place, &'a Arc<Object>)> {
        let resource = Resource { group: "apiextensions.k8s.io".to_owned(), plural: "customresourcedefinitions".to_owned() };
        self.store.list(&resource, cluster, None).filter(move |(_, crd)| crd.spec()["group"] == group)
    }

    /// The names that other CRDs of the group have.
    fn used(&self, place: &Place, object: &Object) -> Used {
        let mut used = Used::default();
        let group = object.spec()["group"].as_str().unwrap_or_default();
        for (_, other) in self.definitions(&place.cluster, group).filter(|(other, _)| other.name != place.name) {
            let names = &other.status()["acceptedNames"];
            let texts = |fields: [&str; 2]| fields.map(|field| names[field].as_str().unwrap_or_default().to_owned());
            used.resources.extend(texts(["plural", "singular"]));
            used.resources.extend(short_names(names).map(str::to_owned));
            used.kinds.extend(texts(["kind", "listKind"]));
        }
        used
    }

    fn write_status(&mut self, place: &Place, object: &Object, status: Value, now: Timestamp) {
        let mut next = object.clone();
        next.0.insert("status".to_owned(), status);
        let manager = Manager {
            operation: Operation::Update,
            name: SELF.to_owned(),
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            subresource: "status".to_owned(),
        };
        if let Some(served) = self.registry.find(&Reach::default(), "apiextensions.k8s.io", "v1", "customresourcedefinitions") {
            managers::updated(object, &mut next, &served.schema, &manager, &[], &second(now));
        }
        let _ = self.store.update(place, next, Part::Status, &Precondition::default());
    }
}

/// Names that are taken.
#[derive(Default)]
struct Used {
    /// Plurals, singulars and short names: they share one space.
    resources: BTreeSet<String>,
    /// Kinds and kinds of lists.
    kinds: BTreeSet<String>,
}

/// What became of the names of a CRD.
struct Names {
    /// For `status.acceptedNames`.
    accepted: Value,
    /// Reason and message of the last name that is taken.
    conflict: Option<(&'static str, String)>,
}

impl Names {
    /// A name that was accepted once stays so; every other one has to be free.
    fn of(crd: &Object, used: &Used) -> Self {
        let (wanted, before) = (&crd.spec()["names"], &crd.status()["acceptedNames"]);
        let mut accepted = before.as_object().cloned().unwrap_or_default();
        let mut conflict = None;
        for (field, reason, taken) in [
            ("plural", "PluralConflict", &used.resources),
            ("singular", "SingularConflict", &used.resources),
            ("shortNames", "ShortNamesConflict", &used.resources),
            ("kind", "KindConflict", &used.kinds),
            ("listKind", "ListKindConflict", &used.kinds),
        ] {
            let clashes = if field == "shortNames" {
                short_names(wanted)
                    .filter(|name| !short_names(before).any(|own| own == *name))
                    .filter(|name| taken.contains(*name))
                    .collect()
            } else {
                let name = wanted[field].as_str().unwrap_or_default();
                let is_taken = before[field] != name && taken.contains(name);
                if is_taken { vec![name] } else { Vec::new() }
            };
            if clashes.is_empty() {
                take(&mut accepted, wanted, field);
            } else {
                conflict = Some((reason, in_use(&clashes)));
            }
        }
        take(&mut accepted, wanted, "categories");
        for field in ["plural", "kind"] {
            accepted.entry(field).or_insert_with(|| json!(""));
        }
        Self { accepted: Value::Object(accepted), conflict }
    }
}

fn take(into: &mut Map<String, Value>, wanted: &Value, field: &str) {
    match wanted.get(field) {
        Some(value) => drop(into.insert(field.to_owned(), value.clone())),
        None => drop(into.remove(field)),
    }
}

fn short_names(names: &Value) -> impl Iterator<Item = &str> {
    names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn in_use(names: &[&str]) -> String {
    let all: Vec<String> = names.iter().map(|name| format!("{name:?} is already in use")).collect();
    if let [only] = all.as_slice() { only.clone() } else { format!("[{}]", all.join(", ")) }
}

fn status_of(crd: &Object, names: &Names, now: Timestamp) -> Value {
    let old = crd.status();
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| {
        let status = if holds { "True" } else { "False" };
        let known = find(old, kind).filter(|known| known["status"] == status);
        let since = known.map_or_else(|| json!(second(now)), |known| known["lastTransitionTime"].clone());
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
    };
    let named = match &names.conflict {
        None => condition("NamesAccepted", true, "NoConflicts", "no conflicts found"),
        Some((reason, message)) => condition("NamesAccepted", false, reason, message),
    };
    // What is served once stays so, by the names that it has.
    let established = match find(old, "Established").filter(|known| known["status"] == "True") {
        Some(known) => known.clone(),
        None if names.conflict.is_none() => {
            condition("Established", true, "InitialNamesAccepted", "the initial names have been accepted")
        }
        None => condition("Established", false, "NotAccepted", "not all names are accepted"),
    };
    let own = ["NamesAccepted", "Established"];
    let others = old["conditions"].as_array().into_iter().flatten();
    let others = others.filter(|other| !own.contains(&other["type"].as_str().unwrap_or_default())).cloned();
    let conditions: Vec<Value> = [named, established].into_iter().chain(others).collect();
    json!({"conditions": conditions, "acceptedNames": names.accepted, "storedVersions": stored_versions(crd)})
}

/// Every version that objects were ever stored in.
fn stored_versions(crd: &Object) -> Vec<Value> {
    let mut stored: Vec<Value> = crd.status()["storedVersions"].as_array().cloned().unwrap_or_default();
    let versions = crd.spec()["versions"].as_array().into_iter().flatten();
    for version in versions.filter(|version| version["storage"] == true).map(|version| &version["name"]) {
        if !stored.contains(version) {
            stored.push(version.clone());
        }
    }
    stored
}

fn find<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn is(status: &Value, kind: &str) -> bool {
    find(status, kind).is_some_and(|condition| condition["status"] == "True")
}

fn second(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second()).map(|at| at.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(spec: &Value, accepted: &Value, resources: &[&str], kinds: &[&str]) -> Names {
        let crd = Object::from_value(json!({"spec": {"names": spec}, "status": {"acceptedNames": accepted}})).unwrap();
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Names::of(&crd, &Used { resources: set(resources), kinds: set(kinds) })
    }

    #[test]
    fn a_name_that_another_one_has_is_not_accepted_and_the_others_are() {
        let wanted =
            json!({"plural": "things", "singular": "thing", "shortNames": ["t", "u"], "kind": "Thing", "listKind": "ThingList"});
        let none = Value::Null;
        assert_eq!(names(&wanted, &none, &[], &[]).accepted, wanted);
        for (resources, kinds, reason, message, missing) in [
            (vec!["things"], vec![], "PluralConflict", "\"things\" is already in use", "plural"),
            (vec!["thing"], vec![], "SingularConflict", "\"thing\" is already in use", "singular"),
            (vec!["t", "u"], vec![], "ShortNamesConflict", "[\"t\" is already in use, \"u\" is already in use]", "shortNames"),
            (vec![], vec!["Thing"], "KindConflict", "\"Thing\" is already in use", "kind"),
            (vec![], vec!["ThingList"], "ListKindConflict", "\"ThingList\" is already in use", "listKind"),
        ] {
            let found = names(&wanted, &none, &resources, &kinds);
            assert_eq!(found.conflict, Some((reason, message.to_owned())));
            let mut rest = wanted.clone();
            rest.as_object_mut().unwrap().remove(missing);
            if ["plural", "kind"].contains(&missing) {
                rest[missing] = json!("");
            }
            assert_eq!(found.accepted, rest, "{reason}");
            // What it has already nobody takes.
            assert!(names(&wanted, &wanted, &resources, &kinds).conflict.is_none());
        }
    }
}
