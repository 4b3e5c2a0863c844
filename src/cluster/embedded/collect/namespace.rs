//! How a namespace goes: its content first, and it says what is left of that.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plinth_api::Object;
use serde_json::{Value, json};

use super::edit;
use crate::embedded::store::{Left, Place, Precondition, Store};

/// What holds a namespace until its content is gone.
const KUBERNETES: &str = "kubernetes";

/// Type, reason and message of each condition where nothing is wrong, in Kubernetes' words and order.
const FINE: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    ("NamespaceDeletionContentFailure", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

/// Takes a namespace's content away as far as it goes, then what holds the namespace, and says what is left.
pub(super) fn empty(store: &mut Store, place: &Place, now: Timestamp) {
    let mut left = Remaining::default();
    for object in store.inside(&place.cluster, &place.name) {
        if let Ok(Left::There(kept)) = store.delete(&object, &Precondition::default(), now) {
            left.add(&object, &kept);
        }
    }
    edit(store, place, |namespace| {
        if left.resources.is_empty() {
            let_go(namespace);
        }
        if holders(namespace).next().is_some() {
            left.tell(namespace, now);
        }
    });
}

fn holders(namespace: &Object) -> impl Iterator<Item = &Value> {
    namespace.spec()["finalizers"].as_array().into_iter().flatten()
}

/// Others that hold the namespace go on doing so.
fn let_go(namespace: &mut Object) {
    let others: Vec<Value> = holders(namespace).filter(|name| *name != KUBERNETES).cloned().collect();
    let spec = if others.is_empty() { json!({}) } else { json!({"finalizers": others}) };
    namespace.0.insert("spec".to_owned(), spec);
}

/// How many objects are left, by resource and by what holds them.
#[derive(Default)]
struct Remaining {
    resources: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

impl Remaining {
    fn add(&mut self, place: &Place, object: &Object) {
        *self.resources.entry(format!("{}.{}", place.resource.plural, place.resource.group)).or_default() += 1;
        for finalizer in object.finalizers() {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    fn tell(&self, namespace: &mut Object, now: Timestamp) {
        let known = namespace.status()["conditions"].as_array().cloned().unwrap_or_default();
        let conditions: Vec<Value> = FINE.iter().map(|fine| self.condition(*fine, &known, now)).collect();
        let status = namespace.0.entry("status".to_owned()).or_insert_with(|| json!({}));
        status["conditions"] = json!(conditions);
    }

    /// A condition that says what it said keeps its time.
    fn condition(&self, fine: (&str, &str, &str), known: &[Value], now: Timestamp) -> Value {
        let (kind, reason, message) = fine;
        let counts = |counts: &BTreeMap<String, usize>, verb: &str| {
            counts.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances")).collect::<Vec<_>>().join(", ")
        };
        let (status, reason, message) = match kind {
            "NamespaceContentRemaining" if !self.resources.is_empty() => {
                let told = counts(&self.resources, "has");
                ("True", "SomeResourcesRemain", format!("Some resources are remaining: {told}"))
            }
            "NamespaceFinalizersRemaining" if !self.finalizers.is_empty() => {
                let told = counts(&self.finalizers, "in");
                ("True", "SomeFinalizersRemain", format!("Some content in the namespace has finalizers remaining: {told}"))
            }
            _ => ("False", reason, message.to_owned()),
        };
        let time = Timestamp::from_second(now.as_second()).map(|at| at.to_string()).unwrap_or_default();
        let mut condition =
            json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time});
        let before = known.iter().find(|known| known["type"] == kind && known["status"] == status);
        if let Some(before) = before {
            condition["lastTransitionTime"] = before["lastTransitionTime"].clone();
        }
        condition
    }
}
