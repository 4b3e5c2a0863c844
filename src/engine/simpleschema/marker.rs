//! What each marker does to a schema (kro.md 2.5). Error texts are kro's.

use serde_json::Value;

use super::{default, default::Fault, scalar};
use crate::{
    cel::{Expression, Scope, Type, check, re2},
    schema::{Schema, ValidationRule},
};

/// A marker's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Required,
    Default,
    Description,
    Minimum,
    Maximum,
    Enum,
    MinLength,
    MaxLength,
    Pattern,
    MinItems,
    MaxItems,
    UniqueItems,
    ListType,
    ListMapKey,
    Validation,
    Message,
    Immutable,
}

impl Marker {
    pub(super) const NAMES: [(&'static str, Marker); 17] = [
        ("required", Marker::Required),
        ("default", Marker::Default),
        ("description", Marker::Description),
        ("minimum", Marker::Minimum),
        ("maximum", Marker::Maximum),
        ("enum", Marker::Enum),
        ("minLength", Marker::MinLength),
        ("maxLength", Marker::MaxLength),
        ("pattern", Marker::Pattern),
        ("minItems", Marker::MinItems),
        ("maxItems", Marker::MaxItems),
        ("uniqueItems", Marker::UniqueItems),
        ("listType", Marker::ListType),
        ("listMapKey", Marker::ListMapKey),
        ("validation", Marker::Validation),
        ("message", Marker::Message),
        ("immutable", Marker::Immutable),
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, marker)| *marker)
    }

    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, marker)| *marker == self).map_or("", |(name, _)| name)
    }
}

/// What applying a marker came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Applied {
    /// The schema has it.
    Done,
    /// The schema has it, and its author should know this.
    Odd(String),
    /// The schema has none, and the object around it counts it as one all the same.
    NoDefault(String),
    /// The field is (not) required; the parent's schema holds that.
    Required(bool),
    /// kro refuses it.
    Error(String),
    /// kro accepts it, the API server does not.
    Refused(String),
}

/// Applies one marker.
pub(super) fn apply(marker: Marker, value: &str, schema: &mut Schema) -> Applied {
    let result = match marker {
        Marker::Required => match scalar::boolean(value) {
            Ok(required) => return Applied::Required(required),
            Err(error) => Err(format!("failed to parse required marker value: {error}")),
        },
        Marker::Default => return apply_default(value, schema),
        Marker::Description => {
            schema.description = Some(value.to_owned());
            Ok(())
        }
        Marker::Minimum | Marker::Maximum => return bound(marker, value, schema),
        Marker::Enum => values(value, schema).map(|values| schema.values = values),
        Marker::MinLength => size(marker, value, "string", schema).map(|size| schema.min_length = Some(size)),
        Marker::MaxLength => size(marker, value, "string", schema).map(|size| schema.max_length = Some(size)),
        Marker::MinItems => size(marker, value, "array", schema).map(|size| schema.min_items = Some(size)),
        Marker::MaxItems => size(marker, value, "array", schema).map(|size| schema.max_items = Some(size)),
        Marker::Pattern => pattern(value, schema),
        Marker::UniqueItems => unique(value, schema),
        Marker::ListType => list_type(value, schema),
        Marker::ListMapKey => list_map_key(value, schema),
        Marker::Validation => return validation(value, schema),
        Marker::Message => message(value, schema),
        Marker::Immutable => match scalar::boolean(value) {
            Ok(true) => rule("self == oldSelf", "field is immutable", schema),
            Ok(false) => Ok(()),
            Err(error) => Err(format!("failed to parse immutable marker value: {error}")),
        },
    };
    result.map_or_else(Applied::Error, |()| Applied::Done)
}

fn apply_default(value: &str, schema: &mut Schema) -> Applied {
    match default::parse(value, schema) {
        Ok(Value::Null) => {
            schema.default = None;
            Applied::NoDefault("null is no default: API servers leave it out".to_owned())
        }
        Ok(parsed) => {
            let oddity = default::oddity(value, &parsed);
            schema.default = Some(parsed);
            oddity.map_or(Applied::Done, Applied::Odd)
        }
        Err(Fault::Error(message)) => Applied::Error(message),
        Err(Fault::NotJson(message)) => Applied::Refused(message),
    }
}

fn validation(value: &str, schema: &mut Schema) -> Applied {
    if let Err(message) = rule(value, "validation failed", schema) {
        return Applied::Error(message);
    }
    match Expression::parse(value) {
        Ok(_) => Applied::Done,
        Err(error) => Applied::Refused(format!("validation rule is not an expression: {error}")),
    }
}

/// What is said where the rule before does not hold; kro has one text for all rules (kro#357).
fn message(value: &str, schema: &mut Schema) -> Result<(), String> {
    if value.trim().is_empty() || value.contains('\n') {
        return Err("message marker value must be one line of text".to_owned());
    }
    let rule = schema.validations.last_mut().ok_or("message marker must follow a validation marker")?;
    value.clone_into(&mut rule.message);
    Ok(())
}

/// What our types say against a rule. Doubts, not errors: the API server has functions that kro's environment has not.
pub(super) fn doubts(rule: &str, schema: &Schema) -> Vec<String> {
    let Ok(expression) = Expression::parse(rule) else { return Vec::new() };
    let mut scope = Scope::new().with_mixed_numbers();
    for name in ["self", "oldSelf"] {
        scope.set(name, Type::of_schema(name, schema));
    }
    match check(&expression, &scope) {
        Ok(Type::Bool | Type::Dyn) => Vec::new(),
        Ok(other) => vec![format!("validation rule gives {other}, not bool")],
        Err(errors) => errors.into_iter().map(|error| format!("validation rule may be refused: {}", error.message)).collect(),
    }
}

/// "enum" stands in kro's text for both bounds.
fn bound(marker: Marker, value: &str, schema: &mut Schema) -> Applied {
    let name = marker.name();
    match scalar::float(value) {
        Ok(number) if !number.is_finite() => Applied::Refused(format!("{name} must be a number of JSON, got: {value}")),
        Ok(number) => {
            let place = if marker == Marker::Minimum { &mut schema.minimum } else { &mut schema.maximum };
            *place = Some(number);
            Applied::Done
        }
        Err(error) => Applied::Error(format!("failed to parse {name} enum value: {error}")),
    }
}

fn expect_type(marker: Marker, wanted: &str, schema: &Schema) -> Result<(), String> {
    if schema.is(wanted) {
        return Ok(());
    }
    let got = schema.kind.as_deref().unwrap_or_default();
    Err(format!("{} marker is only valid for {wanted} types, got type: {got}", marker.name()))
}

fn size(marker: Marker, value: &str, wanted: &str, schema: &Schema) -> Result<i64, String> {
    expect_type(marker, wanted, schema)?;
    scalar::integer(value).map_err(|error| format!("failed to parse {} value: {error}", marker.name()))
}

fn values(value: &str, schema: &Schema) -> Result<Vec<Value>, String> {
    let kind = schema.kind.as_deref().unwrap_or_default();
    if !matches!(kind, "string" | "integer") {
        return Err(format!("enum values only supported for string and integer types, got type: {kind}"));
    }
    let read = |item: &str| match item.trim() {
        "" => Err("empty enum values are not allowed".to_owned()),
        item if kind == "string" => Ok(Value::from(item)),
        item => scalar::integer(item).map(Value::from).map_err(|error| format!("failed to parse integer enum value: {error}")),
    };
    value.split(',').map(read).collect()
}

fn pattern(value: &str, schema: &mut Schema) -> Result<(), String> {
    if value.is_empty() {
        return Err("pattern marker value cannot be empty".to_owned());
    }
    expect_type(Marker::Pattern, "string", schema)?;
    re2(value).map_err(|error| format!("invalid pattern regex: {error}"))?;
    schema.pattern = Some(value.to_owned());
    Ok(())
}

fn unique(value: &str, schema: &mut Schema) -> Result<(), String> {
    let unique = scalar::boolean(value).map_err(|error| format!("failed to parse uniqueItems marker value: {error}"))?;
    expect_type(Marker::UniqueItems, "array", schema)?;
    if !unique {
        return Ok(());
    }
    match schema.list_type.as_deref() {
        Some(other) if other != "set" => Err(format!("cannot set unique when listType is set to {other}")),
        _ => {
            schema.list_type = Some("set".to_owned());
            Ok(())
        }
    }
}

fn list_type(value: &str, schema: &mut Schema) -> Result<(), String> {
    if !schema.is("array") {
        return Err("listType marker only applies to array types".to_owned());
    }
    if !matches!(value, "atomic" | "set" | "map") {
        return Err(format!("unsupported value for listType {value}, needs to be one of atomic, set, or map"));
    }
    match schema.list_type.as_deref() {
        Some(other) if other != value => Err(format!(
            "listType attempting to overwrite set type of {other}, this can happen if you set contradictory markers like \
             unique=true | listType=map"
        )),
        _ => {
            schema.list_type = Some(value.to_owned());
            Ok(())
        }
    }
}

fn list_map_key(value: &str, schema: &mut Schema) -> Result<(), String> {
    if !schema.is("array") {
        return Err("listMapKey marker only applies to array types".to_owned());
    }
    if schema.list_map_keys.iter().any(|key| key == value) {
        return Err(format!("duplicate listMapKey marker, value {value}"));
    }
    schema.list_map_keys.push(value.to_owned());
    Ok(())
}

fn rule(rule: &str, message: &str, schema: &mut Schema) -> Result<(), String> {
    if rule.trim().is_empty() {
        return Err("validation failed".to_owned());
    }
    schema.validations.push(ValidationRule { rule: rule.to_owned(), message: message.to_owned(), ..ValidationRule::default() });
    Ok(())
}

/// kro's check after all markers of a field.
pub(super) fn after_all(schema: &Schema) -> Option<String> {
    if schema.list_map_keys.is_empty() {
        return None;
    }
    match schema.list_type.as_deref() {
        Some("map") => None,
        None => Some("listMapKey set while listType is unset, listType must be set to map".to_owned()),
        Some(other) => Some(format!("listMapKey set while listType is set to {other}, listType must be set to map")),
    }
}

/// What the API server's rules for list types refuse and kro does not see.
pub(super) fn refused_list(schema: &Schema) -> Option<String> {
    let items = schema.items.as_deref()?;
    match schema.list_type.as_deref() {
        Some("map") if schema.list_map_keys.is_empty() => Some("listType=map needs at least one listMapKey".to_owned()),
        Some("map") if !items.is("object") => Some("listType=map needs elements that are objects".to_owned()),
        Some("map") => schema.list_map_keys.iter().find_map(|key| refused_key(key, items)),
        Some("set") if items.is("object") && items.map_type.as_deref() != Some("atomic") => {
            Some("a set cannot have objects as elements".to_owned())
        }
        _ => None,
    }
}

fn refused_key(key: &str, items: &Schema) -> Option<String> {
    let Some(property) = items.properties.get(key) else {
        return Some(format!("listMapKey {key} is not a field of the list's elements"));
    };
    if property.is("object") || property.is("array") {
        return Some(format!("listMapKey {key} must be a string, number or boolean"));
    }
    let present = property.default.is_some() || items.required.iter().any(|name| name == key);
    (!present).then(|| format!("listMapKey {key} must be required or have a default in the list's elements"))
}
