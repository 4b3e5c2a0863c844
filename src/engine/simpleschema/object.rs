//! Objects and their fields (kro.md 2.1, 2.3).

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    Findings, default,
    grammar::{ATOMS, Syntax, split},
    lexer::{Written, lex},
    marker::{self, Applied, Marker},
    types::Types,
};
use crate::{Diagnostic, did_you_mean, schema::Schema, yaml};

/// Most schemas in one, uses of custom types counted each: they could double at every level.
const MAX_SIZE: usize = 100_000;
/// Deepest nesting of inline objects; documents that come as JSON have other bounds than YAML.
const MAX_DEPTH: usize = 64;

/// A field's schema, and whether the object around it requires it.
pub(super) struct Field {
    pub(super) schema: Schema,
    pub(super) required: bool,
    /// Whether it counts as one with a default, though its schema has none.
    pub(super) defaulted: bool,
}

/// A field of which nothing is known.
pub(super) fn unknown() -> Field {
    Field { schema: Schema::any(), required: false, defaulted: false }
}

/// Builds an object. A field that cannot be built is any value, so that what uses it is judged too.
pub(super) fn build(fields: &Map<String, Value>, types: &Types, path: &str, findings: &mut Findings) -> Schema {
    at_depth(fields, types, path, 0, findings)
}

fn at_depth(fields: &Map<String, Value>, types: &Types, path: &str, depth: usize, findings: &mut Findings) -> Schema {
    let mut object = Schema::of_type("object");
    let mut defaulted = false;
    for (name, spec) in fields {
        let path = yaml::field(path, name);
        let field = match spec {
            Value::String(text) => text_field(text, types, &path, findings),
            Value::Object(_) if depth >= MAX_DEPTH => {
                findings.errors.push(Diagnostic::error(&path, format!("objects are nested more than {MAX_DEPTH} levels deep")));
                unknown()
            }
            Value::Object(inner) => {
                Field { schema: at_depth(inner, types, &path, depth + 1, findings), required: false, defaulted: false }
            }
            other => {
                findings.errors.push(unexpected(other, &path));
                unknown()
            }
        };
        if field.required {
            object.required.push(name.clone());
        }
        defaulted |= field.defaulted || field.schema.default.is_some();
        object.properties.insert(name.clone(), Arc::new(field.schema));
    }
    object.required.sort();
    // So that an instance without the object gets its defaults; a required child would make `{}` invalid.
    if object.required.is_empty() && defaulted {
        object.default = Some(json!({}));
    }
    object
}

/// kro's words, Go's names of JSON types.
pub(super) fn unexpected(value: &Value, path: &str) -> Diagnostic {
    let name = match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    let hint = match value {
        Value::Array(_) => "write the element's type: \"[]string\"",
        Value::Null => "write a type, such as string, or {} for an empty object",
        _ => "write a type, such as \"string\"; a default is a marker: \"string | default=x\"",
    };
    Diagnostic::error(path, format!("unexpected type: {name}")).with_hint(hint)
}

/// Builds a field from its text.
pub(super) fn text_field(text: &str, types: &Types, path: &str, findings: &mut Findings) -> Field {
    let (syntax, markers) = split(text);
    let (schema, required) = match Syntax::parse(syntax).map(|syntax| resolve(&syntax, types)) {
        Ok(Ok(resolved)) => resolved,
        Ok(Err(name)) => {
            let unknown = Diagnostic::error(path, format!("unknown type: {name}"));
            findings.errors.push(Diagnostic { hint: type_hint(name, types), ..unknown });
            (Schema::any(), false)
        }
        Err(message) => {
            findings.errors.push(Diagnostic::error(path, message));
            (Schema::any(), false)
        }
    };
    let mut field = Field { schema, required, defaulted: false };
    let Some(markers) = markers else { return field };
    let before = syntax.chars().count() + 1;
    let at =
        |offset: usize, diagnostic: Diagnostic| Diagnostic { expression: Some((text.to_owned(), before + offset)), ..diagnostic };
    match lex(markers) {
        Err(error) => {
            findings.errors.push(at(error.offset, Diagnostic { hint: error.hint, ..Diagnostic::error(path, error.message) }));
        }
        // A field without a type has nothing that markers could be judged by.
        Ok(_) if field.schema.kind.is_none() => {}
        Ok(written) => apply(&written, &mut field, path, &at, findings),
    }
    field
}

fn apply(
    written: &[Written],
    field: &mut Field,
    path: &str,
    at: &dyn Fn(usize, Diagnostic) -> Diagnostic,
    findings: &mut Findings,
) {
    for Written { marker, value, offset, joined } in written {
        let say = |message: String| at(*offset, Diagnostic::error(path, message));
        if *joined {
            findings.warnings.push(warning(say(format!("blanks inside the marker key {} are dropped", marker.name()))));
        }
        match marker::apply(*marker, value, &mut field.schema) {
            Applied::Done => {}
            Applied::Odd(message) => findings.warnings.push(warning(say(message))),
            // Once it is required, by a marker or by its type, nothing takes that back.
            Applied::NoDefault(message) => {
                field.defaulted = true;
                findings.warnings.push(warning(say(message)));
            }
            Applied::Required(required) => field.required |= required,
            Applied::Error(message) => findings.errors.push(say(message)),
            Applied::Refused(message) => findings.refused.push(say(message)),
        }
    }
    for rule in written.iter().filter(|written| written.marker == Marker::Validation) {
        let doubts = marker::doubts(&rule.value, &field.schema).into_iter();
        findings.warnings.extend(doubts.map(|message| warning(at(rule.offset, Diagnostic::error(path, message)))));
    }
    if let Some(message) = marker::after_all(&field.schema) {
        findings.errors.push(Diagnostic::error(path, message));
    } else if let Some(message) = marker::refused_list(&field.schema) {
        findings.refused.push(Diagnostic::error(path, message));
    }
    if let Some(message) = default::refusal(&field.schema) {
        let offset = written.iter().rev().find(|written| written.marker == Marker::Default).map_or(0, |written| written.offset);
        findings.refused.push(at(offset, Diagnostic::error(path, message)));
    }
}

fn warning(diagnostic: Diagnostic) -> Diagnostic {
    Diagnostic { severity: crate::diagnostic::Severity::Warning, ..diagnostic }
}

/// The schema of a type, and whether an alias makes its fields required; the error is the unknown name.
fn resolve<'a>(syntax: &Syntax<'a>, types: &Types) -> Result<(Schema, bool), &'a str> {
    let schema = match syntax {
        Syntax::String => Schema::of_type("string"),
        Syntax::Integer => Schema::of_type("integer"),
        Syntax::Boolean => Schema::of_type("boolean"),
        Syntax::Float => Schema::of_type("number"),
        Syntax::Object => Schema::open_object(),
        Syntax::List(element) => Schema::array(resolve(element, types)?.0),
        Syntax::Map(values) => Schema::map(resolve(values, types)?.0),
        Syntax::Named(name) => {
            let known = types.get(*name).ok_or(*name)?;
            return Ok((known.schema.clone(), known.required));
        }
    };
    Ok((schema, false))
}

/// What was meant by a type name that there is not.
pub(super) fn type_hint(name: &str, types: &Types) -> Option<String> {
    let usual = match name {
        "number" | "double" => "float",
        "int" | "int32" | "int64" => "integer",
        "bool" => "boolean",
        "str" => "string",
        "array" | "list" => "[]string",
        "map" | "any" => "object",
        _ => return did_you_mean(name, types.keys().map(String::as_str).chain(ATOMS)),
    };
    Some(format!("did you mean \"{usual}\"?"))
}

/// Whether a schema is within bounds; stops counting there.
pub(super) fn is_small(schema: &Schema) -> bool {
    let mut left = MAX_SIZE;
    count(schema, &mut left)
}

fn count(schema: &Schema, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    let map = match &schema.additional_properties {
        Some(crate::schema::Additional::Schema(values)) => Some(values),
        _ => None,
    };
    schema.properties.values().chain(&schema.items).chain(map).all(|inner| count(inner, left))
}

pub(super) fn too_large(path: &str) -> Diagnostic {
    Diagnostic::error(path, format!("the schema has more than {MAX_SIZE} fields, custom types written out"))
}
