//! Where in a schema something is, and what is found wrong there.

use std::fmt;

use serde_json::Value;

use crate::embedded::api::problem::FieldFault;

/// A place below another one, written out only where something is wrong.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    above: Option<&'a At<'a>>,
    part: Part<'a>,
}

#[derive(Clone, Copy)]
enum Part<'a> {
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    pub(super) fn root(path: &'a str) -> Self {
        Self { above: None, part: Part::Field(path) }
    }

    pub(super) fn field<'b>(&'b self, name: &'b str) -> At<'b> {
        At { above: Some(self), part: Part::Field(name) }
    }

    pub(super) fn key<'b>(&'b self, name: &'b str) -> At<'b> {
        At { above: Some(self), part: Part::Key(name) }
    }

    pub(super) fn index(&self, index: usize) -> At<'_> {
        At { above: Some(self), part: Part::Index(index) }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(formatter)?;
        }
        match self.part {
            Part::Field(name) if self.above.is_none() => formatter.write_str(name),
            Part::Field(name) => write!(formatter, ".{name}"),
            Part::Key(name) => write!(formatter, "[{name}]"),
            Part::Index(index) => write!(formatter, "[{index}]"),
        }
    }
}

/// What is wrong, in the words of Kubernetes' `field.Error`.
#[derive(Default)]
pub(super) struct Found(pub(super) Vec<FieldFault>);

impl Found {
    fn say(&mut self, reason: &'static str, at: &At<'_>, message: String) {
        self.0.push(FieldFault { reason, field: at.to_string(), message });
    }

    pub(super) fn invalid(&mut self, at: &At<'_>, value: &Value, why: &str) {
        self.say("FieldValueInvalid", at, format!("Invalid value: {value}: {why}"));
    }

    pub(super) fn forbidden(&mut self, at: &At<'_>, why: &str) {
        self.say("FieldValueForbidden", at, format!("Forbidden: {why}"));
    }

    /// `why` may be empty.
    pub(super) fn required(&mut self, at: &At<'_>, why: &str) {
        let more = if why.is_empty() { String::new() } else { format!(": {why}") };
        self.say("FieldValueRequired", at, format!("Required value{more}"));
    }

    pub(super) fn duplicate(&mut self, at: &At<'_>, value: &Value) {
        self.say("FieldValueDuplicate", at, format!("Duplicate value: {value}"));
    }

    pub(super) fn unsupported(&mut self, at: &At<'_>, value: &Value, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|text| format!("{text:?}")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        self.say("FieldValueNotSupported", at, message);
    }

    pub(super) fn too_many(&mut self, at: &At<'_>, count: usize, most: usize) {
        self.say("FieldValueTooMany", at, format!("Too many: {count}: must have at most {most} items"));
    }
}

/// Whether a field of a schema says something: what Go's zero values say is nothing.
pub(super) fn says(schema: &Value, name: &str) -> bool {
    match &schema[name] {
        Value::Null | Value::Bool(false) => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

/// Names and values below a field of a schema.
pub(super) fn fields<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema[name].as_object().into_iter().flatten()
}

/// Elements of a list in a schema.
pub(super) fn list<'a>(schema: &'a Value, name: &str) -> &'a [Value] {
    schema[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A text in a schema, empty where there is none.
pub(super) fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema[name].as_str().unwrap_or_default()
}
