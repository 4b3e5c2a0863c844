//! `metadata.managedFields`: which manager owns which fields, and what becomes of that with each write.

use std::collections::BTreeMap;

use plinth_api::Object;
use plinth_engine::schema::Schema;
use serde_json::{Value, json};
use thiserror::Error;

use super::{
    set::{FieldPath, FieldSet, Step, describe},
    typed::{self, Comparison, TypedError},
};

/// Most entries that are read of an object.
const MAX_ENTRIES: usize = 1000;

/// Who writes, and how.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    /// `Apply` or `Update`, which is how entries are ordered.
    pub operation: Operation,
    /// Its name.
    pub name: String,
    /// Of the request's object.
    pub api_version: String,
    /// Such as `status`; empty for the object itself.
    pub subresource: String,
}

/// How a manager came to its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

/// Managers, their fields, and when they last wrote.
pub type Managers = BTreeMap<Manager, (FieldSet, String)>;

/// A field that belongs to somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Whose it is.
    pub manager: Manager,
    /// Which.
    pub path: FieldPath,
}

/// Why a configuration is not applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ApplyError {
    /// Fields of others would change.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The configuration cannot be merged.
    #[error(transparent)]
    Typed(#[from] TypedError),
}

impl Conflict {
    /// The manager in the words of Kubernetes' messages.
    pub fn manager_text(&self) -> String {
        let manager = &self.manager;
        let mut text = format!("{:?}", manager.name);
        if !manager.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", manager.subresource);
        }
        if manager.operation == Operation::Update {
            text = format!("{text} using {}", manager.api_version);
        }
        text
    }

    /// The path in the words of Kubernetes' messages.
    pub fn path_text(&self) -> String {
        describe(&self.path)
    }
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", one.manager_text(), one.path_text());
    }
    let mut by_manager: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for conflict in conflicts {
        by_manager.entry(conflict.manager_text()).or_default().push(format!("- {}", conflict.path_text()));
    }
    let parts: Vec<String> =
        by_manager.iter().map(|(manager, paths)| format!("conflicts with {manager}:\n{}", paths.join("\n"))).collect();
    format!("Apply failed with {} conflicts: {}", conflicts.len(), parts.join("\n"))
}

/// Reads an object's managers; entries that are none are left out.
pub fn read(object: &Object) -> Managers {
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    entries.iter().take(MAX_ENTRIES).filter_map(entry).collect()
}

/// The managers that a write gives itself: none by an empty list, or by one of an empty entry. `None` where it says nothing, or nothing readable.
fn given(object: &Object) -> Option<Managers> {
    let entries = object.at(&["metadata", "managedFields"])?.as_array()?;
    if entries.is_empty() || *entries == [json!({})] {
        return Some(Managers::new());
    }
    let readable = |value: &Value| {
        value["fieldsType"] == "FieldsV1" && value["apiVersion"].as_str().is_some_and(|version| !version.is_empty())
    };
    entries.iter().take(MAX_ENTRIES).map(|value| entry(value).filter(|_| readable(value))).collect()
}

fn entry(value: &Value) -> Option<(Manager, (FieldSet, String))> {
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let operation = match value["operation"].as_str()? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return None,
    };
    let manager = Manager { operation, name: text("manager"), api_version: text("apiVersion"), subresource: text("subresource") };
    Some((manager, (FieldSet::from_json(&value["fieldsV1"])?, text("time"))))
}

/// Writes managers into an object, in Kubernetes' order: by operation, time, name.
pub fn write(object: &mut Object, managers: &Managers) {
    if managers.is_empty() {
        object.metadata_mut().remove("managedFields");
        return;
    }
    let mut entries: Vec<_> = managers.iter().collect();
    entries.sort_by(|(a, (_, at_a)), (b, (_, at_b))| (a.operation, at_a, a).cmp(&(b.operation, at_b, b)));
    let entries: Vec<Value> = entries.into_iter().map(|(manager, (set, time))| written(manager, set, time)).collect();
    object.metadata_mut().insert("managedFields".to_owned(), Value::Array(entries));
}

fn written(manager: &Manager, set: &FieldSet, time: &str) -> Value {
    let operation = match manager.operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    let mut entry = json!({
        "apiVersion": manager.api_version, "fieldsType": "FieldsV1", "fieldsV1": set.to_json(),
        "manager": manager.name, "operation": operation,
    });
    for (name, value) in [("subresource", manager.subresource.as_str()), ("time", time)] {
        if !value.is_empty() {
            entry[name] = json!(value);
        }
    }
    entry
}

/// Notes that `manager` made `new` out of `old` by other means than apply, and writes the managers into `new`.
///
/// `reset` names top-level fields that this write cannot change, such as `status`.
pub fn updated(old: &Object, new: &mut Object, schema: &Schema, manager: &Manager, reset: &[&str], time: &str) {
    let mut managers = if manager.subresource.is_empty() { given(new).unwrap_or_else(|| read(old)) } else { read(old) };
    if managers.is_empty() && old.uid().is_some() {
        // Somebody cleared them, and until the next apply nobody manages anything.
        return write(new, &managers);
    }
    let comparison = owned_part(typed::compare(old.as_value(), new.as_value(), schema), reset);
    take_over(&mut managers, &comparison, manager);
    let mine = managers.get(manager).map(|(set, _)| set.clone()).unwrap_or_default();
    let next = mine.union(&comparison.added).union(&comparison.modified).difference(&comparison.removed);
    if next.is_empty() {
        managers.remove(manager);
    } else if !comparison.is_same() || !managers.contains_key(manager) {
        managers.insert(manager.clone(), (next, time.to_owned()));
    }
    write(new, &managers);
}

/// Applies `config` for `manager` to what is stored; the answer has its managers written.
pub fn applied(
    stored: &Object,
    config: &Object,
    schema: &Schema,
    manager: &Manager,
    force: bool,
    time: &str,
) -> Result<Object, ApplyError> {
    let (before, config) = (stored.as_value(), config.as_value());
    typed::check(config, schema)?;
    let mut managers = read(stored);
    let set = stripped(typed::fields(config, schema));
    let last = take_last(&mut managers, manager);
    let unchanged = last.as_ref().is_some_and(|(last, _)| *last == set);
    let at = last.as_ref().filter(|_| unchanged).map_or_else(|| time.to_owned(), |(_, at)| at.clone());
    let dropped = last.filter(|(last, _)| !last.difference(&set).is_empty());
    managers.insert(manager.clone(), (set, at));
    let merged = typed::merge(before, config, schema);
    let merged = match &dropped {
        Some((last, _)) => without_dropped(&merged, last, &managers, schema),
        None => merged,
    };
    let comparison = owned_part(typed::compare(before, &merged, schema), &[]);
    if !force {
        let conflicts = conflicts(&managers, &comparison, manager);
        if !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
    }
    take_over(&mut managers, &comparison, manager);
    if !comparison.is_same()
        && let Some((_, at)) = managers.get_mut(manager)
    {
        time.clone_into(at);
    }
    managers.retain(|_, (set, _)| !set.is_empty());
    let mut result = Object::from_value(merged).unwrap_or_default();
    write(&mut result, &managers);
    Ok(result)
}

/// Takes what the manager applied last time out of the managers: one that applies is the same in every version.
fn take_last(managers: &mut Managers, manager: &Manager) -> Option<(FieldSet, String)> {
    let is_same = |known: &&Manager| {
        (known.operation, &known.name, &known.subresource) == (manager.operation, &manager.name, &manager.subresource)
    };
    let known = managers.keys().find(is_same).cloned()?;
    managers.remove(&known)
}

/// Takes away what the manager applied last time and does not now, unless somebody else manages it.
///
/// The steps are those of structured-merge-diff's `prune`: what nobody manages goes with a parent that nobody manages any more.
fn without_dropped(merged: &Value, last: &FieldSet, managers: &Managers, schema: &Schema) -> Value {
    let whole = |set: &FieldSet| typed::with_parents(set, schema);
    let without = |set: &FieldSet| typed::remove(merged, set, schema).unwrap_or_else(|| json!({}));
    let fields = |value: &Value| whole(&typed::fields(value, schema));
    let (all, last) = (fields(merged), whole(last));
    let managed = whole(&managers.values().fold(FieldSet::default(), |all, (set, _)| all.union(set)));
    let left = fields(&without(&last));
    let kept = fields(&without(&all.difference(&left.union(&managed))));
    without(&all.difference(&kept).intersection(&last))
}

fn conflicts(managers: &Managers, comparison: &Comparison, manager: &Manager) -> Vec<Conflict> {
    let changed = comparison.modified.union(&comparison.added);
    let others = managers.iter().filter(|(other, _)| *other != manager);
    others
        .flat_map(|(other, (set, _))| {
            let paths = set.intersection(&changed).paths().into_iter();
            paths.map(|path| Conflict { manager: other.clone(), path })
        })
        .collect()
}

/// What changed is no longer the others', nor is what is gone.
fn take_over(managers: &mut Managers, comparison: &Comparison, manager: &Manager) {
    let changed = comparison.modified.union(&comparison.added);
    for (other, (set, _)) in managers.iter_mut() {
        if other != manager {
            *set = set.difference(&changed);
        }
        if other != manager || other.operation == Operation::Apply {
            *set = set.difference(&comparison.removed);
        }
    }
    managers.retain(|other, (set, _)| other == manager || !set.is_empty());
}

fn owned_part(comparison: Comparison, reset: &[&str]) -> Comparison {
    let owned = |set: FieldSet| {
        let mut set = stripped(set);
        reset.iter().for_each(|name| set.remove_all(&[Step::field(name)]));
        set
    };
    Comparison { added: owned(comparison.added), modified: owned(comparison.modified), removed: owned(comparison.removed) }
}

/// A set without what nobody manages.
fn stripped(mut set: FieldSet) -> FieldSet {
    const IDENTITY: [&str; 9] = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let metadata = Step::field("metadata");
    for name in ["apiVersion", "kind"] {
        set.remove_all(&[Step::field(name)]);
    }
    for name in IDENTITY {
        set.remove_all(&[metadata.clone(), Step::field(name)]);
    }
    let mut own = FieldSet::default();
    own.insert(&[metadata]);
    set.difference(&own)
}
