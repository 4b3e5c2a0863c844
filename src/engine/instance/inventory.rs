//! The instance's own metadata: labels, finalizer, and the ApplySet inventory (kro.md section 13).
//!
//! The inventory is what deletion and pruning find the children by, so it is written before anything is applied, as a
//! superset, and shrinks only after a complete pass.

use std::collections::BTreeSet;

use plinth_api::{GroupKind, Object, ObjectKey};
use serde_json::{Value, json};

use super::resolve::applyset_of;
use crate::{
    graph::Graph,
    naming::{inventory_hash, keys, label_value},
    ports::Apply,
};

/// Kinds and namespaces of the members of an ApplySet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inventory {
    pub(super) kinds: BTreeSet<GroupKind>,
    /// Without the parent's own.
    pub(super) namespaces: BTreeSet<String>,
}

impl Inventory {
    /// Whether everything of `other` is in it.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.kinds.is_superset(&other.kinds) && self.namespaces.is_superset(&other.namespaces)
    }

    /// Both together.
    pub(super) fn union(&self, other: &Self) -> Self {
        Self { kinds: &self.kinds | &other.kinds, namespaces: &self.namespaces | &other.namespaces }
    }

    /// What the instance records; `None` where it records nothing that can be read.
    pub(super) fn recorded(instance: &Object) -> Option<Self> {
        let kinds = instance.annotation(keys::APPLYSET_GROUP_KINDS)?;
        let namespaces = instance.annotation(keys::APPLYSET_NAMESPACES)?;
        let words = |text: &str| text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        Some(Self {
            kinds: words(kinds).iter().map(|kind| group_kind(kind)).collect(),
            namespaces: words(namespaces).into_iter().collect(),
        })
    }

    fn texts(&self) -> (String, String) {
        let kinds: BTreeSet<String> = self.kinds.iter().map(ToString::to_string).collect();
        let join = |words: Vec<&str>| words.join(",");
        (join(kinds.iter().map(String::as_str).collect()), join(self.namespaces.iter().map(String::as_str).collect()))
    }

    fn metadata(&self, id: &str) -> (Value, Value) {
        let (kinds, namespaces) = self.texts();
        let annotations = json!({
            keys::APPLYSET_TOOLING: keys::APPLYSET_TOOLING_VALUE,
            keys::APPLYSET_GROUP_KINDS: kinds,
            keys::APPLYSET_NAMESPACES: namespaces,
            keys::INVENTORY_HASH: inventory_hash(id, &kinds, &namespaces),
        });
        (json!({keys::APPLYSET_ID: id}), annotations)
    }
}

fn group_kind(text: &str) -> GroupKind {
    let (kind, group) = text.split_once('.').unwrap_or((text, ""));
    GroupKind { group: group.to_owned(), kind: kind.to_owned() }
}

/// The patch that the instance's labels and finalizer need, if any. Together with the finalizer goes an empty inventory, so
/// that an instance deleted before anything was applied can go at once.
pub(super) fn manage(graph: &Graph, instance: &Object, key: &ObjectKey) -> Option<Apply> {
    let name = label_value(&graph.name);
    let labels = [
        (keys::OWNED, "true"),
        (keys::VERSION, keys::VERSION_VALUE),
        (keys::RGD_ID, graph.uid.as_str()),
        (keys::RGD_NAME, name.as_str()),
    ];
    let labelled = labels.iter().all(|(label, value)| instance.label(label) == Some(value));
    if labelled && instance.finalizers().contains(&keys::FINALIZER) {
        return None;
    }
    let mut metadata = json!({"labels": {}, "finalizers": [keys::FINALIZER]});
    for (label, value) in labels {
        metadata["labels"][label] = json!(value);
    }
    if Inventory::recorded(instance).is_none() {
        let (id, annotations) = Inventory::default().metadata(&applyset_of(graph, instance));
        metadata["labels"][keys::APPLYSET_ID] = id[keys::APPLYSET_ID].clone();
        metadata["annotations"] = annotations;
    }
    Some(patch(graph, key, metadata, keys::MANAGER_LABELLER))
}

/// The patch that records an inventory.
pub(super) fn record(graph: &Graph, instance: &Object, key: &ObjectKey, inventory: &Inventory) -> Apply {
    let (labels, annotations) = inventory.metadata(&applyset_of(graph, instance));
    patch(graph, key, json!({"labels": labels, "annotations": annotations}), keys::MANAGER_APPLYSET_PARENT)
}

fn patch(graph: &Graph, key: &ObjectKey, mut metadata: Value, manager: &str) -> Apply {
    metadata["name"] = json!(key.name);
    if let Some(namespace) = &key.namespace {
        metadata["namespace"] = json!(namespace);
    }
    let gvk = &graph.instance.gvk;
    let object = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "metadata": metadata});
    let object = Object::from_value(object).expect("it was just made an object");
    Apply { key: key.clone(), object, manager: manager.to_owned(), force: true, subresource: None }
}

/// Whether everything that we record on an instance is there as we wrote it; else it is written again (kro.md section 13).
pub(super) fn is_intact(graph: &Graph, instance: &Object) -> bool {
    instance.label(keys::APPLYSET_ID) == Some(applyset_of(graph, instance).as_str()) && trusted(graph, instance).is_ok()
}

/// The inventory that a deletion goes by, or why none can be trusted. The label is no part of that: the id follows from the
/// instance's name, members are found by that id, and a deletion that waited for somebody's label would wait for ever.
pub(super) fn trusted(graph: &Graph, instance: &Object) -> Result<Inventory, String> {
    let id = applyset_of(graph, instance);
    let tooling = instance.annotation(keys::APPLYSET_TOOLING).unwrap_or_default();
    if !["kro/", "plinth/"].iter().any(|prefix| tooling.starts_with(prefix)) {
        return Err(format!("annotation {} is {tooling:?}: another tool manages this ApplySet", keys::APPLYSET_TOOLING));
    }
    let inventory = Inventory::recorded(instance)
        .ok_or_else(|| format!("annotation {} or {} is missing", keys::APPLYSET_GROUP_KINDS, keys::APPLYSET_NAMESPACES))?;
    let written = |name| instance.annotation(name).unwrap_or_default();
    let hash = inventory_hash(&id, written(keys::APPLYSET_GROUP_KINDS), written(keys::APPLYSET_NAMESPACES));
    match instance.annotation(keys::INVENTORY_HASH) {
        Some(recorded) if recorded != hash => Err(format!("annotation {} does not match the inventory", keys::INVENTORY_HASH)),
        _ => Ok(inventory),
    }
}

/// The kinds of the objects that an instance recorded as its own; none where it records nothing that can be read.
pub fn member_kinds(instance: &Object) -> BTreeSet<GroupKind> {
    Inventory::recorded(instance).map(|inventory| inventory.kinds).unwrap_or_default()
}

/// Whether we (or kro, before a take-over) applied an object; operators that copy labels to objects of their own do not
/// make those ours.
pub fn is_applied(object: &Object) -> bool {
    let managers = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    managers.into_iter().flatten().any(|entry| {
        let manager = entry.get("manager").and_then(Value::as_str).unwrap_or_default();
        let applied = entry.get("operation").and_then(Value::as_str) == Some("Apply");
        applied && (manager == keys::MANAGER_APPLYSET || manager == "kro.run/applyset")
    })
}
