//! The schema of a status field, from the type of its expression (kro.md 15.1).

use crate::{
    cel::{Structure, Type, unescape},
    schema::{Additional, Schema},
};

/// The schema that kro gives a field of this type.
pub(super) fn schema_of(of: &Type) -> Schema {
    let text = |format: &str| Schema { format: Some(format.to_owned()), ..Schema::of_type("string") };
    match of {
        Type::Bool => Schema::of_type("boolean"),
        Type::Int | Type::Uint => Schema::of_type("integer"),
        Type::Double => Schema::of_type("number"),
        Type::String => Schema::of_type("string"),
        Type::Bytes => text("byte"),
        Type::Timestamp => Schema { description: Some("Timestamp representing a creation time".to_owned()), ..text("date-time") },
        Type::List(element) => Schema::array(schema_of(element)),
        Type::Map(_, value) => Schema::map(schema_of(value)),
        Type::Struct(structure) => object(structure),
        Type::Dyn | Type::Null => Schema::any(),
        Type::Opaque(_) if of.is_object() => {
            Schema { additional_properties: Some(Additional::Allowed(true)), ..Schema::of_type("object") }
        }
        Type::Optional(_) | Type::Duration | Type::Type(_) | Type::Opaque(_) | Type::Var(_) => {
            Schema { description: Some(format!("unknown CEL type: {of}")), ..Schema::any() }
        }
    }
}

/// Takes a type's fields off the room that is left; false once there is none, without looking at the rest.
pub(super) fn take(room: &mut usize, of: &Type) -> bool {
    let Some(left) = room.checked_sub(1) else { return false };
    *room = left;
    match of {
        Type::List(inner) | Type::Map(_, inner) => take(room, inner),
        Type::Struct(structure) => structure.fields().values().all(|of| take(room, of)),
        _ => true,
    }
}

fn object(structure: &Structure) -> Schema {
    let fields = structure.fields().iter().map(|(name, of)| (unescape(name), field_of(of)));
    Schema { preserve_unknown_fields: structure.open, ..Schema::object(fields) }
}

/// kro describes points in time only where they are a status field themselves.
fn field_of(of: &Type) -> Schema {
    match of {
        Type::Timestamp => Schema::any(),
        Type::List(element) if **element == Type::Timestamp => Schema::array(Schema::any()),
        _ => schema_of(of),
    }
}
