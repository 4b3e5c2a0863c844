//! Walking a template along its kind's schema: finding the expressions and what each must be, and literals of the wrong
//! shape (kro.md 3.4).

use std::sync::Arc;

use serde_json::Value;

use super::{fill::path_text, nearest::nearest, scan::NESTED, text::Text};
use crate::{
    Diagnostic,
    schema::{Additional, Schema, Segment},
};

/// Deepest nesting of a template.
const MAX_DEPTH: usize = 128;

/// A string of a template that has expressions.
#[derive(Clone, Debug)]
pub struct Field {
    /// Where it is in the template.
    pub path: Vec<Segment>,
    /// The string.
    pub text: Text,
    /// What the value must be; `None` where anything is allowed.
    pub schema: Option<Arc<Schema>>,
}

/// What a walk found. Paths of findings are relative to the template.
#[derive(Clone, Debug, Default)]
pub struct Walked {
    /// Strings with expressions, in document order.
    pub fields: Vec<Field>,
    /// Literals that do not fit.
    pub findings: Vec<Diagnostic>,
}

/// Walks a template of a kind whose schema is known.
pub fn walk(template: &Value, schema: &Arc<Schema>) -> Walked {
    let mut walker = Walker::default();
    walker.value(template, Some(schema));
    walker.walked
}

/// Walks a template of which nothing is known: every string with an expression, of any type.
pub fn walk_open(template: &Value) -> Walked {
    let mut walker = Walker::default();
    walker.value(template, None);
    walker.walked
}

#[derive(Default)]
struct Walker {
    path: Vec<Segment>,
    walked: Walked,
}

impl Walker {
    fn value(&mut self, value: &Value, schema: Option<&Arc<Schema>>) {
        if self.path.len() > MAX_DEPTH {
            return self.find(format!("nested deeper than {MAX_DEPTH} levels"), None);
        }
        let Some(schema) = schema.filter(|schema| !schema.preserve_unknown_fields) else {
            return self.open(value, schema);
        };
        let Some(expected) = Expected::of(schema) else {
            let path = path_text(&self.path);
            return self.find(format!("schema at path {path} has no valid type, OneOf, AnyOf, or AdditionalProperties"), None);
        };
        match value {
            Value::Null => {}
            _ if expected.any => self.open(value, Some(schema)),
            Value::String(text) => self.string(text, schema, &expected),
            Value::Object(map) if expected.has("object") => {
                for (name, value) in map {
                    self.member(name, value, schema);
                }
            }
            Value::Array(list) if expected.has("array") => self.array(list, schema),
            Value::Bool(_) if expected.has("boolean") => {}
            Value::Number(number) if expected.takes(number) => {}
            other => self.mismatch(&expected, shape(other)),
        }
    }

    /// Below a place where everything is kept: literals may be anything there, and expressions what named properties say.
    fn open(&mut self, value: &Value, schema: Option<&Arc<Schema>>) {
        match value {
            Value::String(text) => self.expression(text, schema.cloned()),
            Value::Object(map) => map.iter().for_each(|(name, value)| {
                self.open_below(Segment::Field(name.clone()), value, schema.and_then(|schema| schema.field(name)));
            }),
            Value::Array(list) => list.iter().enumerate().for_each(|(index, value)| {
                self.open_below(Segment::Index(index), value, schema.and_then(|schema| schema.items.as_ref()));
            }),
            _ => {}
        }
    }

    fn open_below(&mut self, segment: Segment, value: &Value, schema: Option<&Arc<Schema>>) {
        if self.path.len() > MAX_DEPTH {
            return self.find(format!("nested deeper than {MAX_DEPTH} levels"), None);
        }
        self.path.push(segment);
        self.open(value, schema);
        self.path.pop();
    }

    fn below(&mut self, segment: Segment, value: &Value, schema: Option<&Arc<Schema>>) {
        self.path.push(segment);
        self.value(value, schema);
        self.path.pop();
    }

    fn member(&mut self, name: &str, value: &Value, schema: &Arc<Schema>) {
        if let Some(field) = schema.field(name) {
            return self.below(Segment::Field(name.to_owned()), value, Some(field));
        }
        if schema.additional_properties == Some(Additional::Allowed(true)) {
            return self.below(Segment::Field(name.to_owned()), value, None);
        }
        self.path.push(Segment::Field(name.to_owned()));
        let path = path_text(&self.path);
        let dot = if self.path.len() == 1 { "." } else { "" };
        let hint = nearest(name, schema.properties.keys().map(String::as_str)).map(|near| format!("did you mean {near}?"));
        self.find(format!("error getting field schema for path {dot}{path}: schema not found for field {name}"), hint);
        self.path.pop();
    }

    fn array(&mut self, list: &[Value], schema: &Arc<Schema>) {
        let Some(items) = &schema.items else {
            let path = path_text(&self.path);
            let message = format!("invalid array schema for path {path}: neither Items.Schema nor Properties are defined");
            return self.find(message, None);
        };
        for (index, value) in list.iter().enumerate() {
            self.below(Segment::Index(index), value, Some(items));
        }
    }

    fn string(&mut self, text: &str, schema: &Arc<Schema>, expected: &Expected) {
        let standalone = match Text::read(text) {
            Err(_) => return self.find(NESTED.to_owned(), Some(ESCAPE.to_owned())),
            Ok(Some(read)) if read.standalone => true,
            Ok(_) => false,
        };
        if standalone || expected.has("string") {
            self.expression(text, Some(Arc::clone(schema)));
        } else {
            self.mismatch(expected, "string");
        }
    }

    fn expression(&mut self, text: &str, schema: Option<Arc<Schema>>) {
        match Text::read(text) {
            Ok(None) => {}
            Ok(Some(text)) => self.walked.fields.push(Field { path: self.path.clone(), text, schema }),
            Err(_) => self.find(NESTED.to_owned(), Some(ESCAPE.to_owned())),
        }
    }

    fn mismatch(&mut self, expected: &Expected, got: &str) {
        let (types, path) = (expected.types.join(" or "), path_text(&self.path));
        self.find(format!("expected {types} type for path {path}, got {got}"), None);
    }

    fn find(&mut self, message: String, hint: Option<String>) {
        self.walked.findings.push(Diagnostic { hint, ..Diagnostic::error(path_text(&self.path), message) });
    }
}

const ESCAPE: &str = "write a literal ${…} inside an expression as a string: ${\"${NAME}\"}";

/// The types that a place takes.
struct Expected {
    types: Vec<&'static str>,
    any: bool,
}

impl Expected {
    /// The first rule that matches decides; `None` where none does.
    fn of(schema: &Schema) -> Option<Self> {
        let types = if schema.int_or_string {
            vec!["string", "integer"]
        } else if !schema.one_of.is_empty() && schema.one_of.iter().any(|member| member.kind.is_some()) {
            members(&schema.one_of)
        } else if !schema.any_of.is_empty() && schema.any_of.iter().any(|member| member.kind.is_some()) {
            members(&schema.any_of)
        } else if let Some(kind) = &schema.kind {
            vec![known(kind)?]
        } else if schema.additional_properties == Some(Additional::Allowed(true)) {
            return Some(Self { types: Vec::new(), any: true });
        } else if schema.additional_properties.is_some() || !schema.properties.is_empty() {
            vec!["object"]
        } else {
            return None;
        };
        Some(Self { types, any: false })
    }

    fn has(&self, kind: &str) -> bool {
        self.types.contains(&kind)
    }

    fn takes(&self, number: &serde_json::Number) -> bool {
        self.has("number") || (self.has("integer") && number.as_f64().is_some_and(|value| value.fract() == 0.0))
    }
}

fn members(schemas: &[Arc<Schema>]) -> Vec<&'static str> {
    let mut types: Vec<_> = schemas.iter().filter_map(|schema| known(schema.kind.as_deref()?)).collect();
    if schemas.iter().any(|schema| !schema.required.is_empty() || schema.not.is_some()) {
        types.push("object");
    }
    types
}

fn known(kind: &str) -> Option<&'static str> {
    ["object", "array", "string", "integer", "number", "boolean"].into_iter().find(|known| *known == kind)
}

/// Go's words for the shapes of JSON, which kro prints.
fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(value: Value) -> Arc<Schema> {
        Arc::new(serde_json::from_value(value).unwrap())
    }

    fn example() -> Arc<Schema> {
        schema(json!({"type": "object", "properties": {
            "replicas": {"type": "integer"}, "name": {"type": "string"}, "ratio": {"type": "number"}, "on": {"type": "boolean"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "port": {"x-kubernetes-int-or-string": true},
            "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "list": {"type": "array", "items": {"type": "string"}},
        }}))
    }

    #[test]
    fn expressions_are_found_with_their_schemas() {
        let template =
            json!({"replicas": "${a}", "labels": {"a.b/c": "x-${b}"}, "anything": {"deep": ["${c}"]}, "list": ["l", "${d}"]});
        let walked = walk(&template, &example());
        assert_eq!(walked.findings, []);
        let found: Vec<_> = walked.fields.iter().map(|field| (path_text(&field.path), field.schema.is_some())).collect();
        let expected = [("anything.deep[0]", false), (r#"labels["a.b/c"]"#, true), ("list[1]", true), ("replicas", true)];
        assert_eq!(found, expected.map(|(path, known)| (path.to_owned(), known)));
    }

    #[test]
    fn literals_of_the_wrong_shape_are_all_reported() {
        let template = json!({"replicas": "x-${a}", "name": 5, "list": "no", "on": [], "ratio": 1, "port": "http", "nmae": "x"});
        let walked = walk(&template, &example());
        let messages: Vec<_> = walked.findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "expected array type for path list, got string",
                "expected string type for path name, got integer",
                "error getting field schema for path .nmae: schema not found for field nmae",
                "expected boolean type for path on, got array",
                "expected integer type for path replicas, got string",
            ]
        );
        assert_eq!(walked.findings[2].hint.as_deref(), Some("did you mean name?"));
    }
}
