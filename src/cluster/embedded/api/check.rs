//! Holding a value against a schema in the words that an API server uses; what the engine's `validate` says is for authors.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use plinth_api::Object;
use plinth_engine::{
    cel::re2,
    schema::{Schema, formats, type_name},
};
use regex::Regex;
use serde_json::{Map, Value};

use super::{
    names::{self, Rule, kind_fault},
    problem::FieldFault,
};

/// Findings after which nobody reads more.
const MAX_FAULTS: usize = 100;
/// Compiled patterns that are remembered.
const MOST_PATTERNS: usize = 256;

/// Everything that is wrong with an object's fields; unknown ones are no fault, they were pruned. Formats of built-in kinds
/// are types, which are looked at where they are read.
pub fn check(object: &Map<String, Value>, schema: &Schema, builtin: bool) -> Vec<FieldFault> {
    let mut check = Check { formats: !builtin, ..Check::default() };
    check.fields(object, schema, At::Root(""), true);
    check.faults
}

/// Everything that is wrong with a value by itself.
pub fn value(value: &Value, schema: &Schema) -> Vec<FieldFault> {
    let mut check = Check { formats: true, ..Check::default() };
    check.value(value, schema, At::Root(""));
    check.faults
}

/// What is wrong with the kind, version and metadata of a whole object in a value.
pub fn whole(value: &Value, path: &str) -> Vec<FieldFault> {
    let Some(fields) = value.as_object() else { return Vec::new() };
    let mut check = Check::default();
    let invalid = |value: &str, why: &str| ("FieldValueInvalid", format!("Invalid value: {value:?}: {why}"));
    for name in ["apiVersion", "kind"] {
        let wrong = match fields.get(name).and_then(Value::as_str) {
            None => Some(("FieldValueRequired", "Required value".to_owned())),
            Some("") => Some(invalid("", "must not be empty")),
            Some(kind) if name == "kind" => kind_fault(kind).map(|why| invalid(kind, &why)),
            Some(version) => (version.matches('/').count() > 1)
                .then(|| invalid(version, &format!("unexpected GroupVersion string: {version}"))),
        };
        if let Some((reason, message)) = wrong {
            check.say(reason, At::Root(&join(path, name)), message);
        }
    }
    let metadata = Object(
        fields.iter().filter(|(name, _)| *name == "metadata").map(|(name, value)| (name.clone(), value.clone())).collect(),
    );
    let named = names::check(&metadata, Rule::Segment).into_iter().filter(|fault| fault.field != "metadata.name");
    check.faults.extend(
        named.map(|fault| FieldFault { field: format!("{path}.{}", fault.field).trim_start_matches('.').to_owned(), ..fault }),
    );
    check.faults
}

/// The first value that has another type than the schema says, as field, wanted type and actual type.
pub fn mistyped(value: &Value, schema: &Schema, path: &str) -> Option<(String, String, &'static str)> {
    mistyped_at(value, schema, At::Root(path))
}

fn mistyped_at(value: &Value, schema: &Schema, at: At<'_>) -> Option<(String, String, &'static str)> {
    if value.is_null() {
        return None;
    }
    if !has_type(value, schema) {
        return Some((at.to_string(), wanted(schema), type_name(value)));
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, inner)| {
            // The API server names the map, not the key.
            let here = if schema.properties.contains_key(name) { At::Field(&at, name) } else { at };
            mistyped_at(inner, schema.field(name)?, here)
        }),
        Value::Array(elements) => elements.iter().find_map(|element| mistyped_at(element, schema.items.as_ref()?, at)),
        _ => None,
    }
}

/// Where a value is. Written out only for what is wrong, which is nothing as a rule.
#[derive(Clone, Copy)]
enum At<'a> {
    Root(&'a str),
    Field(&'a At<'a>, &'a str),
    Element(&'a At<'a>, usize),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(path) => f.write_str(path),
            Self::Field(parent, name) => f.write_str(&join(&parent.to_string(), name)),
            Self::Element(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Takes `null` away where it is no value, as the API server does before it checks custom resources.
pub fn without_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, inner| !inner.is_null() || schema.field(name).is_none_or(|below| below.nullable));
            for (name, inner) in fields.iter_mut() {
                if let Some(below) = schema.field(name) {
                    without_nulls(inner, below);
                }
            }
        }
        Value::Array(elements) => {
            if let Some(items) = &schema.items {
                elements.iter_mut().for_each(|element| without_nulls(element, items));
            }
        }
        _ => {}
    }
}

/// Takes away what the types of built-in kinds leave out when they are written: `null`, and lists and maps that are empty and
/// need not be there. Status is left to those who write it.
pub fn without_nothing(object: &mut Map<String, Value>, schema: &Schema) {
    // Roles' rules are written even where there are none.
    let stays = |name: &str| ["status", "rules"].contains(&name);
    for (name, value) in object.iter_mut().filter(|(name, _)| *name != "status") {
        if let Some(below) = schema.field(name) {
            nothing_within(value, below);
        }
    }
    object.retain(|name, value| stays(name) || !is_left_out(value, schema, name));
}

fn nothing_within(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields.iter_mut() {
                let Some(below) = schema.field(name) else { continue };
                if inner.is_null() && !schema.properties.contains_key(name) && below.kind.as_deref() == Some("string") {
                    *inner = Value::String(String::new());
                }
                nothing_within(inner, below);
            }
            fields.retain(|name, inner| !is_left_out(inner, schema, name));
        }
        Value::Array(elements) => {
            if let Some(items) = &schema.items {
                elements.iter_mut().for_each(|element| nothing_within(element, items));
            }
        }
        _ => {}
    }
}

fn is_left_out(value: &Value, parent: &Schema, name: &str) -> bool {
    // An empty list of managers is a wish to have none.
    let is_free = name != "managedFields" && !parent.required.iter().any(|required| required == name);
    let Some(schema) = parent.properties.get(name).filter(|_| is_free) else { return false };
    match value {
        Value::Null => schema.kind.is_some() || schema.int_or_string,
        Value::Array(elements) => elements.is_empty() && schema.kind.is_some(),
        Value::Object(fields) => fields.is_empty() && schema.additional_properties.is_some() && schema.properties.is_empty(),
        _ => false,
    }
}

#[derive(Default)]
struct Check {
    faults: Vec<FieldFault>,
    /// Whether texts have to be of their format.
    formats: bool,
}

impl Check {
    fn say(&mut self, reason: &'static str, at: At<'_>, message: String) {
        if self.faults.len() < MAX_FAULTS {
            let path = at.to_string();
            let field = if path.is_empty() { "<nil>".to_owned() } else { path };
            self.faults.push(FieldFault { reason, field, message });
        }
    }

    /// `Invalid value: VALUE: PATH in body WHAT`.
    fn body(&mut self, at: At<'_>, value: &str, what: &str) {
        self.say("FieldValueInvalid", at, format!("Invalid value: {value}: {at} in body {what}"));
    }

    fn value(&mut self, value: &Value, schema: &Schema, at: At<'_>) {
        if value.is_null() && schema.nullable {
            return;
        }
        if !has_type(value, schema) {
            let (wanted, got) = (wanted(schema), type_name(value));
            let shown = if got == "null" { "null".to_owned() } else { format!("{got:?}") };
            let message = format!("Invalid value: {shown}: {at} in body must be of type {wanted}: {shown}");
            return self.say("FieldValueTypeInvalid", at, message);
        }
        if !schema.values.is_empty() && !schema.values.contains(value) {
            let allowed: Vec<String> = schema.values.iter().map(Value::to_string).collect();
            let message = format!("Unsupported value: {value}: supported values: {}", allowed.join(", "));
            self.say("FieldValueNotSupported", at, message);
        }
        match value {
            Value::Object(fields) => {
                if schema.embedded_resource {
                    self.faults.extend(whole(value, &at.to_string()));
                }
                self.fields(fields, schema, at, schema.embedded_resource);
            }
            Value::Array(elements) => self.elements(elements, schema, at),
            Value::String(text) => self.text(text, schema, at),
            Value::Number(number) => self.number(value, number.as_f64().unwrap_or_default(), schema, at),
            Value::Null | Value::Bool(_) => {}
        }
        self.combinators(value, schema, at);
    }

    fn fields(&mut self, fields: &Map<String, Value>, schema: &Schema, at: At<'_>, whole: bool) {
        let missing = |name: &&String| fields.get(*name).is_none_or(|value| value.is_null() && !nullable(schema, name));
        for name in schema.required.iter().filter(missing) {
            self.say("FieldValueRequired", At::Field(&at, name), "Required value".to_owned());
        }
        for (name, value) in fields {
            if whole && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                continue;
            }
            // From what is not applied to custom resources it was taken away.
            if value.is_null() {
                self.null(schema.field(name).filter(|_| self.formats), At::Field(&at, name));
                continue;
            }
            if let Some(below) = schema.field(name) {
                self.value(value, below, At::Field(&at, name));
            }
        }
        let count = fields.len();
        if let Some(least) = schema.min_properties.filter(|least| under(count, *least)) {
            self.body(at, &count.to_string(), &format!("should have at least {least} properties"));
        }
        if let Some(most) = schema.max_properties.filter(|most| over(count, *most)) {
            self.say("FieldValueTooMany", at, format!("Too many: {count}: must have at most {most} items"));
        }
    }

    fn null(&mut self, schema: Option<&Arc<Schema>>, at: At<'_>) {
        let typed = schema.filter(|schema| !schema.nullable && (schema.kind.is_some() || schema.int_or_string));
        if let Some(schema) = typed {
            let message = format!("Invalid value: \"null\": {at} in body must be of type {}: \"null\"", wanted(schema));
            self.say("FieldValueTypeInvalid", at, message);
        }
    }

    fn elements(&mut self, elements: &[Value], schema: &Schema, at: At<'_>) {
        for (index, element) in elements.iter().enumerate() {
            if let Some(items) = &schema.items {
                self.value(element, items, At::Element(&at, index));
            }
        }
        let count = elements.len();
        if let Some(least) = schema.min_items.filter(|least| under(count, *least)) {
            self.body(at, &count.to_string(), &format!("should have at least {least} items"));
        }
        if let Some(most) = schema.max_items.filter(|most| over(count, *most)) {
            self.say("FieldValueTooMany", at, format!("Too many: {count}: must have at most {most} items"));
        }
        let key = |element: &Value| match schema.list_type.as_deref() {
            Some("set") => Some(element.clone()),
            Some("map") => {
                let keys = schema.list_map_keys.iter();
                Some(keys.filter_map(|key| Some((key.clone(), element.get(key)?.clone()))).collect::<Map<_, _>>().into())
            }
            _ => None,
        };
        let mut seen = BTreeSet::new();
        for (index, element) in elements.iter().enumerate() {
            if let Some(key) = key(element)
                && !seen.insert(key.to_string())
            {
                self.say("FieldValueDuplicate", At::Element(&at, index), format!("Duplicate value: {key}"));
            }
        }
    }

    fn text(&mut self, text: &str, schema: &Schema, at: At<'_>) {
        let length = text.chars().count();
        if let Some(least) = schema.min_length.filter(|least| under(length, *least)) {
            self.body(at, &format!("{text:?}"), &format!("should be at least {least} chars long"));
        }
        if let Some(most) = schema.max_length.filter(|most| over(length, *most)) {
            self.say("FieldValueTooLong", at, format!("Too long: may not be more than {most} bytes"));
        }
        if let Some(format) = schema.format.as_deref().filter(|format| self.formats && !formats::fits(text, format)) {
            let message = format!("Invalid value: {text:?}: {at} in body must be of type {format}: {text:?}");
            self.say("FieldValueTypeInvalid", at, message);
        }
        if let Some(pattern) = &schema.pattern
            && compiled(pattern).is_some_and(|compiled| !compiled.is_match(text))
        {
            self.body(at, &format!("{text:?}"), &format!("should match '{pattern}'"));
        }
    }

    fn number(&mut self, value: &Value, number: f64, schema: &Schema, at: At<'_>) {
        let shown = || value.to_string();
        let or_equal = |exclusive: bool| if exclusive { "" } else { " or equal to" };
        if let Some(least) = schema.minimum
            && (number < least || (schema.exclusive_minimum && number <= least))
        {
            self.body(at, &shown(), &format!("should be greater than{} {least}", or_equal(schema.exclusive_minimum)));
        }
        if let Some(most) = schema.maximum
            && (number > most || (schema.exclusive_maximum && number >= most))
        {
            self.body(at, &shown(), &format!("should be less than{} {most}", or_equal(schema.exclusive_maximum)));
        }
        if let Some(step) = schema.multiple_of.filter(|step| *step > 0.0)
            && ((number / step).round() - number / step).abs() > 1e-9
        {
            self.body(at, &shown(), &format!("should be a multiple of {step}"));
        }
    }

    fn combinators(&mut self, value: &Value, schema: &Schema, at: At<'_>) {
        let formats = self.formats;
        let holds = |schema: &Arc<Schema>| {
            let mut check = Self { formats, ..Self::default() };
            check.value(value, schema, at);
            check.faults.is_empty()
        };
        for part in &schema.all_of {
            self.value(value, part, at);
        }
        if !schema.any_of.is_empty() && !schema.any_of.iter().any(holds) {
            self.body(at, &value.to_string(), "must validate at least one schema (anyOf)");
        }
        if !schema.one_of.is_empty() && schema.one_of.iter().filter(|part| holds(part)).count() != 1 {
            self.body(at, &value.to_string(), "must validate one and only one schema (oneOf)");
        }
        if schema.not.as_ref().is_some_and(holds) {
            self.body(at, &value.to_string(), "must not validate the schema (not)");
        }
    }
}

/// A pattern, compiled once: the same schemas check object after object. `None` for one that cannot be compiled.
fn compiled(pattern: &str) -> Option<Arc<Regex>> {
    // Shared and not cloned: a clone has to make the memory for matching anew.
    static COMPILED: LazyLock<Mutex<BTreeMap<String, Option<Arc<Regex>>>>> = LazyLock::new(Mutex::default);
    let mut known = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(compiled) = known.get(pattern) {
        return compiled.clone();
    }
    if known.len() >= MOST_PATTERNS {
        known.clear();
    }
    let compiled = re2(pattern).ok().map(Arc::new);
    known.insert(pattern.to_owned(), compiled.clone());
    compiled
}

fn nullable(schema: &Schema, name: &str) -> bool {
    schema.field(name).is_some_and(|field| field.nullable)
}

fn under(count: usize, least: i64) -> bool {
    i64::try_from(count).is_ok_and(|count| count < least)
}

fn over(count: usize, most: i64) -> bool {
    i64::try_from(count).is_ok_and(|count| count > most)
}

pub(super) fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        _ if name.contains(['.', '/']) => format!("{path}[{name}]"),
        _ => format!("{path}.{name}"),
    }
}

fn wanted(schema: &Schema) -> String {
    if schema.int_or_string { "integer,string".to_owned() } else { schema.kind.clone().unwrap_or_default() }
}

fn has_type(value: &Value, schema: &Schema) -> bool {
    // Larger ones no integer of the API server holds.
    let integer = || value.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() < 1e19);
    if schema.int_or_string {
        return value.is_string() || integer();
    }
    match schema.kind.as_deref() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => integer(),
        _ => true,
    }
}
