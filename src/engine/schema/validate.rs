//! Holding a value against a schema, as an API server does; unknown fields are findings too.

use plinth_api::Object;
use serde_json::{Map, Value};

use super::{
    Schema, formats,
    structural::{OBJECT_FIELDS, keeps_unknown},
};
use crate::{
    Diagnostic,
    cel::re2,
    did_you_mean,
    yaml::{element, field},
};

/// Findings after which we stop: nobody reads more, and a hostile value must not cost more.
const MAX_FINDINGS: usize = 100;

/// Every way in which `value` breaks `schema`, in the order of the value's fields; paths start with `path`.
///
/// CEL rules (`x-kubernetes-validations`) are not evaluated here.
pub fn validate(value: &Value, schema: &Schema, path: &str) -> Vec<Diagnostic> {
    let mut check = Check::default();
    check.value(value, schema, path);
    check.findings
}

/// The same for a whole object: `apiVersion`, `kind` and `metadata` are known without being described.
pub fn validate_object(object: &Object, schema: &Schema) -> Vec<Diagnostic> {
    let mut check = Check::default();
    check.fields(&object.0, schema, true, "");
    check.findings
}

/// The same without what is not described: an API server drops that.
pub(crate) fn validate_known(value: &Value, schema: &Schema) -> Vec<Diagnostic> {
    let mut check = Check { partial: true, ..Check::default() };
    check.value(value, schema, "");
    check.findings
}

/// The same for a default inside a CRD, where API servers do not look for elements that are there twice.
pub(crate) fn validate_default(value: &Value, schema: &Schema) -> Vec<Diagnostic> {
    let mut check = Check { repeats: true, ..Check::default() };
    check.value(value, schema, "");
    check.findings
}

#[derive(Default)]
struct Check {
    findings: Vec<Diagnostic>,
    /// Inside a combinator, whose branches describe only some of the fields.
    partial: bool,
    /// Whether elements of sets may repeat.
    repeats: bool,
}

impl Check {
    fn say(&mut self, path: &str, message: impl Into<String>) {
        self.push(Diagnostic::error(path, message));
    }

    fn push(&mut self, finding: Diagnostic) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }

    fn value(&mut self, value: &Value, schema: &Schema, path: &str) {
        if self.findings.len() >= MAX_FINDINGS || (value.is_null() && schema.nullable) {
            return;
        }
        if !has_type(value, schema) {
            let wanted = if schema.int_or_string { "integer or string" } else { schema.kind.as_deref().unwrap_or("a value") };
            return self.say(path, format!("expected {wanted}, got {}", type_name(value)));
        }
        if !schema.values.is_empty() && !schema.values.iter().any(|allowed| same(allowed, value)) {
            self.not_allowed(value, schema, path);
        }
        match value {
            Value::Object(fields) => self.fields(fields, schema, schema.embedded_resource, path),
            Value::Array(elements) => self.elements(elements, schema, path),
            Value::String(text) => self.text(text, schema, path),
            Value::Number(number) => self.number(number.as_f64().unwrap_or_default(), schema, path),
            Value::Null | Value::Bool(_) => {}
        }
        self.combinators(value, schema, path);
    }

    fn not_allowed(&mut self, value: &Value, schema: &Schema, path: &str) {
        let allowed: Vec<String> = schema.values.iter().take(20).map(Value::to_string).collect();
        let finding = Diagnostic::error(path, format!("{} is not one of {}", short(value), allowed.join(", ")));
        let hint = value.as_str().and_then(|word| did_you_mean(word, schema.values.iter().filter_map(Value::as_str)));
        self.push(Diagnostic { hint, ..finding });
    }

    fn fields(&mut self, fields: &Map<String, Value>, schema: &Schema, whole: bool, path: &str) {
        for (name, value) in fields {
            if whole && OBJECT_FIELDS.contains(&name.as_str()) {
                continue;
            }
            match schema.field(name) {
                Some(below) => self.value(value, below, &field(path, name)),
                None if self.partial || keeps_unknown(schema) => {}
                None => self.unknown_field(name, schema, path),
            }
        }
        for name in schema.required.iter().filter(|name| !fields.contains_key(*name)) {
            self.say(&field(path, name), "is required and missing");
        }
        self.count(fields.len(), "fields", (schema.min_properties, schema.max_properties), path);
    }

    fn unknown_field(&mut self, name: &str, schema: &Schema, path: &str) {
        let names: Vec<&str> = schema.properties.keys().map(String::as_str).collect();
        let hint = did_you_mean(name, names.iter().copied())
            .or_else(|| (!names.is_empty() && names.len() <= 12).then(|| format!("fields here are {}", names.join(", "))));
        self.push(Diagnostic { hint, ..Diagnostic::error(field(path, name), "unknown field") });
    }

    fn elements(&mut self, elements: &[Value], schema: &Schema, path: &str) {
        if let Some(items) = &schema.items {
            for (index, value) in elements.iter().enumerate() {
                self.value(value, items, &element(path, index));
            }
        }
        self.count(elements.len(), "elements", (schema.min_items, schema.max_items), path);
        if self.repeats {
            return;
        }
        let keys: Vec<Value> = match schema.list_type.as_deref() {
            Some("map") => elements.iter().map(|element| map_key(element, schema)).collect(),
            Some("set") => elements.to_vec(),
            _ if schema.unique_items => elements.to_vec(),
            _ => return,
        };
        let mut seen = std::collections::BTreeSet::new();
        for (index, key) in keys.iter().enumerate() {
            if !seen.insert(key.to_string()) {
                self.say(&element(path, index), format!("{} is there twice", short(key)));
            }
        }
    }

    fn text(&mut self, text: &str, schema: &Schema, path: &str) {
        let length = text.chars().count();
        self.count(length, "characters", (schema.min_length, schema.max_length), path);
        if let Some(pattern) = &schema.pattern
            && let Ok(compiled) = re2(pattern)
            && !compiled.is_match(text)
        {
            self.say(path, format!("{} does not match {pattern}", short(&Value::from(text))));
        }
        if let Some(format) = schema.format.as_deref().filter(|format| !formats::fits(text, format)) {
            self.say(path, format!("{} is not of the format {format}", short(&Value::from(text))));
        }
    }

    fn number(&mut self, number: f64, schema: &Schema, path: &str) {
        if schema.format.as_deref() == Some("int32") && !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number) {
            self.say(path, format!("{number} does not fit int32"));
        }
        if let Some(minimum) = schema.minimum
            && (number < minimum || (schema.exclusive_minimum && number <= minimum))
        {
            let than = if schema.exclusive_minimum { "greater than" } else { "at least" };
            self.say(path, format!("{number} is not {than} {minimum}"));
        }
        if let Some(maximum) = schema.maximum
            && (number > maximum || (schema.exclusive_maximum && number >= maximum))
        {
            let than = if schema.exclusive_maximum { "less than" } else { "at most" };
            self.say(path, format!("{number} is not {than} {maximum}"));
        }
        if let Some(step) = schema.multiple_of
            && step > 0.0
            && ((number / step).round() - number / step).abs() > 1e-9
        {
            self.say(path, format!("{number} is not a multiple of {step}"));
        }
    }

    fn count(&mut self, count: usize, what: &str, (least, most): (Option<i64>, Option<i64>), path: &str) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if let Some(least) = least.filter(|least| count < *least) {
            self.say(path, format!("has {count} {what}, at least {least} are needed"));
        }
        if let Some(most) = most.filter(|most| count > *most) {
            self.say(path, format!("has {count} {what}, at most {most} are allowed"));
        }
    }

    fn combinators(&mut self, value: &Value, schema: &Schema, path: &str) {
        if schema.all_of.is_empty() && schema.any_of.is_empty() && schema.one_of.is_empty() && schema.not.is_none() {
            return;
        }
        let branch = |schema: &Schema| {
            let mut check = Check { partial: true, ..Check::default() };
            check.value(value, schema, path);
            check.findings
        };
        for part in &schema.all_of {
            for finding in branch(part) {
                self.push(finding);
            }
        }
        let holds = |schemas: &[std::sync::Arc<Schema>]| schemas.iter().filter(|schema| branch(schema).is_empty()).count();
        if !schema.any_of.is_empty() && holds(&schema.any_of) == 0 {
            self.say(path, "matches none of the forms allowed here (anyOf)");
        }
        if !schema.one_of.is_empty() {
            let matches = holds(&schema.one_of);
            if matches != 1 {
                self.say(path, format!("matches {matches} of the forms allowed here, not exactly one (oneOf)"));
            }
        }
        if schema.not.as_deref().is_some_and(|not| branch(not).is_empty()) {
            self.say(path, "has a form that is not allowed here (not)");
        }
    }
}

fn has_type(value: &Value, schema: &Schema) -> bool {
    if schema.int_or_string {
        return value.is_string() || is_integer(value);
    }
    match schema.kind.as_deref() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => is_integer(value),
        _ => true,
    }
}

/// As the API server reads JSON: what does not fit 64 bits is a float, and one that is not exact is no integer.
fn is_integer(value: &Value) -> bool {
    const EXACT: f64 = 9_007_199_254_740_991.0;
    value.is_i64() || value.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() <= EXACT)
}

/// JSON equality where `1` and `1.0` are one number.
fn same(a: &Value, b: &Value) -> bool {
    a == b || (a.is_number() && a.as_f64() == b.as_f64())
}

/// The fields that tell an element of a `map` list from the others, defaults filled in.
fn map_key(element: &Value, schema: &Schema) -> Value {
    let default = |key: &str| Some(schema.items.as_ref()?.properties.get(key)?.default.as_ref()?.clone());
    schema.list_map_keys.iter().map(|key| element.get(key).cloned().or_else(|| default(key)).unwrap_or_default()).collect()
}

/// The type of a JSON value, as Kubernetes names it in messages: a number without a fraction is an `integer`.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value for a message: a whole document does not fit a line.
fn short(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    if text.chars().count() <= LONGEST { text } else { text.chars().take(LONGEST).chain("…".chars()).collect() }
}
