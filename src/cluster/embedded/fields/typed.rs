//! Walking values by their schema: which fields a value has, what is different, and how two values become one.
//!
//! | value | by the schema | merged |
//! | --- | --- | --- |
//! | list | `atomic`, or nothing said | as a whole |
//! | list | `set` | by element |
//! | list | `map` | by the elements' keys |
//! | object | `atomic` | as a whole |
//! | object | anything else | by field |

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use plinth_engine::schema::Schema;
use serde_json::{Map, Value};
use thiserror::Error;

use self::Shape::{Atomic, Fields, Keyed, Set};
use super::set::{FieldPath, FieldSet, Step, describe};

/// Why a value cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TypedError {
    /// A list with keys holds the same keys twice, or a set the same element.
    #[error("{0}: duplicate entries for key {1}")]
    Duplicate(String, String),
    /// An element of a list with keys has none of them.
    #[error(
        "{0}: element {1}: associative list with keys has an element that omits key field {2:?} (and doesn't have default value)"
    )]
    NoKey(String, usize, String),
    /// A value of another type; the words are those of the Go library.
    #[error("{0}: expected {1}, got &value.valueUnstructured{{Value:{2}}}")]
    Expected(String, &'static str, Value),
    /// A field that the schema does not know.
    #[error("{0}: field not declared in schema")]
    Undeclared(String),
}

/// What is different between two values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// In the second only.
    pub added: FieldSet,
    /// In both, with other values.
    pub modified: FieldSet,
    /// In the first only.
    pub removed: FieldSet,
}

/// How a value is taken apart.
enum Shape<'a> {
    Atomic,
    Set,
    Keyed(&'a [String]),
    Fields,
}

fn shape<'a>(value: &Value, schema: &'a Schema) -> Shape<'a> {
    match value {
        Value::Array(_) => match schema.list_type.as_deref() {
            Some("set") => Set,
            Some("map") => Keyed(&schema.list_map_keys),
            _ => Atomic,
        },
        Value::Object(_) if schema.map_type.as_deref() == Some("atomic") => Atomic,
        Value::Object(_) => Fields,
        _ => Atomic,
    }
}

static OPEN: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::any()));

fn below<'a>(schema: &'a Schema, name: &str) -> &'a Arc<Schema> {
    schema.field(name).unwrap_or(&OPEN)
}

fn items(schema: &Schema) -> &Arc<Schema> {
    schema.items.as_ref().unwrap_or(&OPEN)
}

/// The step to an element of a list that is merged by element.
fn step_of(element: &Value, index: usize, shape: &Shape<'_>, items: &Schema) -> Result<Step, TypedError> {
    let Keyed(names) = shape else { return Ok(Step::item(element)) };
    let mut keys = BTreeMap::new();
    for name in *names {
        let value = element.get(name).or_else(|| items.properties.get(name)?.default.as_ref());
        match value {
            Some(value) => drop(keys.insert(name.as_str(), value)),
            None if items.required.contains(name) || names.len() == 1 => {
                return Err(TypedError::NoKey(String::new(), index, name.clone()));
            }
            None => {}
        }
    }
    Ok(Step::key(&keys))
}

/// The elements of a list with their steps. An element that is there again counts once, its last value.
fn stepped<'a>(list: &'a [Value], shape: &Shape<'_>, items: &Schema) -> Vec<(Step, &'a Value)> {
    let mut found: Vec<(Step, &Value)> = Vec::new();
    for (index, element) in list.iter().enumerate() {
        if let Ok(step) = step_of(element, index, shape, items) {
            match found.iter_mut().find(|(known, _)| *known == step) {
                Some((_, value)) => *value = element,
                None => found.push((step, element)),
            }
        }
    }
    found
}

/// Whether a configuration can be merged: its lists' keys are there, each once, and its fields are declared.
pub fn check(value: &Value, schema: &Schema) -> Result<(), TypedError> {
    check_at(value, schema, &mut Vec::new())
}

fn check_at(value: &Value, schema: &Schema, path: &mut FieldPath) -> Result<(), TypedError> {
    if let Some(wanted) = other_type(value, schema) {
        return Err(TypedError::Expected(describe(path), wanted, value.clone()));
    }
    let shape = shape(value, schema);
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                path.push(Step::field(name));
                let known = schema.field(name);
                if known.is_none() && closed(schema) {
                    return Err(TypedError::Undeclared(describe(path)));
                }
                check_at(inner, known.unwrap_or(&OPEN), path)?;
                path.pop();
            }
        }
        Value::Array(elements) if !matches!(shape, Atomic) => {
            let mut seen = BTreeSet::new();
            for (index, element) in elements.iter().enumerate() {
                let step = step_of(element, index, &shape, items(schema)).map_err(|error| match error {
                    TypedError::NoKey(_, index, key) => TypedError::NoKey(describe(path), index, key),
                    other => other,
                })?;
                if !seen.insert(step.clone()) {
                    return Err(TypedError::Duplicate(describe(path), describe(std::slice::from_ref(&step))));
                }
                path.push(step);
                check_at(element, items(schema), path)?;
                path.pop();
            }
        }
        _ => {}
    }
    Ok(())
}

fn other_type(value: &Value, schema: &Schema) -> Option<&'static str> {
    if value.is_null() || schema.int_or_string {
        return None;
    }
    let (fits, wanted) = match schema.kind.as_deref()? {
        "string" => (value.is_string(), "string"),
        "boolean" => (value.is_boolean(), "boolean"),
        "integer" | "number" => (value.is_number(), "numeric (int or float)"),
        "array" => (value.is_array(), "list"),
        "object" => (value.is_object(), "map"),
        _ => return None,
    };
    (!fits).then_some(wanted)
}

fn closed(schema: &Schema) -> bool {
    !schema.is_open() && schema.additional_properties.is_none() && !schema.properties.is_empty()
}

/// The fields that a value has.
pub fn fields(value: &Value, schema: &Schema) -> FieldSet {
    let mut set = FieldSet::default();
    match (value, shape(value, schema)) {
        (Value::Object(map), Fields) => {
            for (name, inner) in map {
                let step = Step::field(name);
                let inner_schema = below(schema, name);
                let under = fields(inner, inner_schema);
                let empty = inner.is_null() || inner.as_object().is_some_and(Map::is_empty);
                if empty || is_leaf(inner, inner_schema) || !schema.properties.contains_key(name) {
                    set.insert(std::slice::from_ref(&step));
                }
                set.insert_below(&step, under);
            }
        }
        (Value::Array(list), shape @ (Set | Keyed(_))) => {
            for (step, element) in stepped(list, &shape, items(schema)) {
                set.insert(std::slice::from_ref(&step));
                set.insert_below(&step, fields(element, items(schema)));
            }
        }
        _ => {}
    }
    set
}

fn is_leaf(value: &Value, schema: &Schema) -> bool {
    matches!(shape(value, schema), Atomic)
}

/// A set with the declared fields that its paths lead through.
pub fn with_parents(set: &FieldSet, schema: &Schema) -> FieldSet {
    let mut all = set.clone();
    for (step, inner) in set.children() {
        let inner_schema = step.name().map_or_else(|| items(schema), |name| below(schema, name));
        if step.name().is_some_and(|name| schema.properties.contains_key(name)) {
            all.insert(std::slice::from_ref(step));
        }
        all.insert_below(step, with_parents(inner, inner_schema));
    }
    all
}

/// What is different between two values.
pub fn compare(old: &Value, new: &Value, schema: &Schema) -> Comparison {
    let mut comparison = Comparison::default();
    comparison.walk(Some(old), Some(new), schema, &mut Vec::new());
    comparison
}

impl Comparison {
    /// Whether nothing is different.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    fn walk(&mut self, old: Option<&Value>, new: Option<&Value>, schema: &Schema, path: &mut FieldPath) {
        match (old, new) {
            (None, Some(_)) => self.added.insert(path),
            (Some(_), None) => self.removed.insert(path),
            (Some(old), Some(new)) if old == new => return,
            _ => {}
        }
        let nothing =
            |value: Option<&Value>| value.is_some_and(|value| value.is_null() || (is_empty(value) && !is_leaf(value, schema)));
        if nothing(old) && nothing(new) {
            // An empty value and `null` are as different as two texts.
            return self.modified.insert(path);
        }
        let container = |value: Option<&Value>| value.is_some_and(|value| !is_leaf(value, schema));
        let null = |value: Option<&Value>| value.is_none_or(Value::is_null);
        let comparable = (container(old) || null(old)) && (container(new) || null(new)) && (container(old) || container(new));
        let mixed = matches!(
            (old, new),
            (Some(Value::Object(_)), Some(Value::Array(_))) | (Some(Value::Array(_)), Some(Value::Object(_)))
        );
        if !comparable || mixed {
            if old.is_some() && new.is_some() {
                self.modified.insert(path);
            }
            return;
        }
        let example = if container(old) { old } else { new };
        match example {
            Some(Value::Object(_)) => self.maps(old, new, schema, path),
            Some(value) => self.lists(old, new, &shape(value, schema), schema, path),
            None => {}
        }
    }

    fn maps(&mut self, old: Option<&Value>, new: Option<&Value>, schema: &Schema, path: &mut FieldPath) {
        let (old, new) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
        let names: BTreeSet<&String> = old.into_iter().chain(new).flat_map(Map::keys).collect();
        for name in names {
            let (old, new) = (old.and_then(|map| map.get(name)), new.and_then(|map| map.get(name)));
            path.push(Step::field(name));
            self.walk(old, new, below(schema, name), path);
            path.pop();
        }
    }

    fn lists(&mut self, old: Option<&Value>, new: Option<&Value>, shape: &Shape<'_>, schema: &Schema, path: &mut FieldPath) {
        let items = items(schema);
        let (old, new) = (keyed(old, shape, items), keyed(new, shape, items));
        for step in old.keys().chain(new.keys().filter(|step| !old.contains_key(*step))) {
            path.push(step.clone());
            self.walk(old.get(step).copied(), new.get(step).copied(), items, path);
            path.pop();
        }
    }
}

fn keyed<'a>(list: Option<&'a Value>, shape: &Shape<'_>, items: &Schema) -> BTreeMap<Step, &'a Value> {
    let elements = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    stepped(elements, shape, items).into_iter().collect()
}

/// The stored value with a configuration laid over it.
pub fn merge(stored: &Value, applied: &Value, schema: &Schema) -> Value {
    match (stored, applied, shape(applied, schema)) {
        (_, Value::Null, _) if has_parts(stored, schema) => stored.clone(),
        (Value::Object(old), Value::Object(new), Fields) => {
            let of_old = old.iter().map(|(name, stored)| match new.get(name) {
                Some(value) => (name.clone(), merge(stored, value, below(schema, name))),
                None => (name.clone(), stored.clone()),
            });
            let added = new.iter().filter(|(name, _)| !old.contains_key(*name));
            Value::Object(of_old.chain(added.map(|(name, value)| (name.clone(), value.clone()))).collect())
        }
        (Value::Array(old), Value::Array(new), shape @ (Set | Keyed(_))) => {
            Value::Array(merge_lists(&stepped(old, &shape, items(schema)), &stepped(new, &shape, items(schema)), items(schema)))
        }
        _ => applied.clone(),
    }
}

/// Whether a value is merged by its parts and has some: a `null` says nothing of those.
fn has_parts(value: &Value, schema: &Schema) -> bool {
    !is_empty(value) && !is_leaf(value, schema)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        _ => true,
    }
}

/// Keeps the order of the applied list; elements that only the stored one has stay before the shared one they preceded.
fn merge_lists(old: &[(Step, &Value)], new: &[(Step, &Value)], items: &Schema) -> Vec<Value> {
    let stored = |step: &Step| old.iter().find(|(known, _)| known == step).map(|(_, value)| *value);
    let joined = |(step, value): &(Step, &Value)| stored(step).map_or_else(|| (*value).clone(), |old| merge(old, value, items));
    let mut merged = Vec::new();
    let mut next = 0;
    for (step, value) in old {
        let Some(place) = new.iter().position(|(other, _)| other == step) else {
            merged.push((*value).clone());
            continue;
        };
        let next_shared = (next..new.len()).find(|at| stored(&new[*at].0).is_some());
        if next_shared == Some(place) {
            merged.extend(new[next..=place].iter().map(joined));
            next = place + 1;
        }
    }
    merged.extend(new[next..].iter().map(joined));
    merged
}

/// The value without the fields of a set, and `null` in the place of what lost everything; `None` where nothing is left of a list or an object that had something.
pub fn remove(value: &Value, set: &FieldSet, schema: &Schema) -> Option<Value> {
    match (value, shape(value, schema)) {
        (Value::Object(fields), Fields) if !fields.is_empty() => {
            let mut kept = Map::new();
            for (name, inner) in fields {
                let step = Step::field(name);
                if set.has(&step) {
                    continue;
                }
                let inner = match set.below(&step) {
                    Some(under) => remove(inner, under, below(schema, name)).unwrap_or_default(),
                    None => inner.clone(),
                };
                kept.insert(name.clone(), inner);
            }
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        (Value::Array(list), shape @ (Set | Keyed(_))) if !list.is_empty() => {
            let mut kept = Vec::new();
            for (step, element) in stepped(list, &shape, items(schema)) {
                if set.has(&step) {
                    continue;
                }
                kept.push(match set.below(&step) {
                    Some(under) => remove(element, under, items(schema)).unwrap_or_default(),
                    None => element.clone(),
                });
            }
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        _ => Some(value.clone()),
    }
}
