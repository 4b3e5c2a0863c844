//! Types that are the same but for their names.

use crate::cel::types::Type;

/// Whether two types with fields have the same fields: the branches of a ternary.
pub(super) fn alike(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Struct(left), Type::Struct(right)) => {
            left.name == right.name
                || (left.open == right.open
                    && left.fields().len() == right.fields().len()
                    && left
                        .fields()
                        .iter()
                        .all(|(name, of)| right.fields().get(name).is_some_and(|other| of == other || alike(of, other))))
        }
        (Type::List(left), Type::List(right)) | (Type::Optional(left), Type::Optional(right)) => alike(left, right),
        (Type::Map(key, value), Type::Map(other_key, other)) => key == other_key && alike(value, other),
        _ => false,
    }
}
