//! Whether a value of one type may be written to a field of another (kro.md section 5, "Accept if").

use super::unify::Unifier;
use crate::cel::types::{Structure, Type};

/// Whether the result of an expression fits a field; the error is kro's detail, such as
/// `type kind mismatch: got "bool", expected "string"`. What is required, enums, patterns and formats are not compared.
pub fn fits(output: &Type, expected: &Type) -> Result<(), String> {
    if Unifier::default().assignable(output, expected) && !has_struct(expected) {
        return Ok(());
    }
    match (output, expected) {
        (Type::Dyn, _) | (_, Type::Dyn) | (Type::Null, Type::Struct(_) | Type::Timestamp | Type::Duration) => Ok(()),
        (Type::Optional(value), _) => fits(value, expected),
        (Type::List(output), Type::List(expected)) => {
            fits(output, expected).map_err(|detail| format!("list element type incompatible: {detail}"))
        }
        (_, Type::List(_)) => Err("list parameter count mismatch: got 0, expected 1".to_owned()),
        (Type::Map(key, value), Type::Map(expected_key, expected)) => {
            fits(key, expected_key).map_err(|detail| format!("map key type incompatible: {detail}"))?;
            fits(value, expected).map_err(|detail| format!("map value type incompatible: {detail}"))
        }
        (Type::Struct(output), Type::Struct(expected)) => struct_fits(output, expected),
        (Type::Map(key, value), Type::Struct(expected)) => map_fits(key, value, expected),
        (Type::Struct(output), Type::Map(key, value)) => fields_fit(output, key, value),
        (_, Type::Map(..)) => Err("map parameter count mismatch: got 0, expected 2".to_owned()),
        _ if output == expected => Ok(()),
        _ => Err(format!("type kind mismatch: got \"{output}\", expected \"{expected}\"")),
    }
}

/// Types with named fields are compared field by field, whatever they are called.
fn has_struct(of: &Type) -> bool {
    match of {
        Type::Struct(_) => true,
        Type::List(part) | Type::Optional(part) => has_struct(part),
        Type::Map(_, value) => has_struct(value),
        _ => false,
    }
}

/// Fewer fields are fine, more are not.
fn struct_fits(output: &Structure, expected: &Structure) -> Result<(), String> {
    if output.name == expected.name {
        return Ok(());
    }
    for (name, of) in &output.fields {
        match expected.fields.get(name) {
            Some(wanted) => fits(of, wanted).map_err(|detail| format!("field \"{name}\" has incompatible type: {detail}"))?,
            None if expected.open => {}
            None => return Err(format!("field \"{name}\" exists in output but not in expected type")),
        }
    }
    Ok(())
}

/// The values of a map must fit every field, since any key may be there.
fn map_fits(key: &Type, value: &Type, expected: &Structure) -> Result<(), String> {
    if !matches!(key, Type::String | Type::Dyn) {
        return Err(format!("map key type incompatible: type kind mismatch: got \"{key}\", expected \"string\""));
    }
    for (name, wanted) in &expected.fields {
        fits(value, wanted).map_err(|detail| format!("map value incompatible with struct field \"{name}\": {detail}"))?;
    }
    Ok(())
}

fn fields_fit(output: &Structure, key: &Type, value: &Type) -> Result<(), String> {
    if !matches!(key, Type::String | Type::Dyn) {
        return Err(format!("map key type incompatible: type kind mismatch: got \"string\", expected \"{key}\""));
    }
    for (name, of) in &output.fields {
        fits(of, value).map_err(|detail| format!("struct field \"{name}\" incompatible with map value: {detail}"))?;
    }
    Ok(())
}

/// Whether two types with fields have the same fields: the branches of a ternary.
pub(super) fn alike(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Struct(left), Type::Struct(right)) => {
            left.name == right.name
                || (left.open == right.open
                    && left.fields.len() == right.fields.len()
                    && left
                        .fields
                        .iter()
                        .all(|(name, of)| right.fields.get(name).is_some_and(|other| of == other || alike(of, other))))
        }
        (Type::List(left), Type::List(right)) | (Type::Optional(left), Type::Optional(right)) => alike(left, right),
        (Type::Map(key, value), Type::Map(other_key, other)) => key == other_key && alike(value, other),
        _ => false,
    }
}
