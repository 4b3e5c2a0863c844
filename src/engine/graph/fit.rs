//! Whether a value of one type may stand where another is expected (kro.md section 5).

use crate::cel::{Structure, Type};

/// The reason why a value of type `from` does not fit where `to` is expected; kro's words.
pub(super) fn misfit(from: &Type, to: &Type) -> Option<String> {
    match (from, to) {
        (Type::Dyn | Type::Null, _) | (_, Type::Dyn) => None,
        (Type::Optional(inner), _) => misfit(inner, to),
        (Type::List(from), Type::List(to)) => misfit(from, to).map(|why| format!("list element type incompatible: {why}")),
        (Type::Map(from_key, from), Type::Map(to_key, to)) => maps((from_key, from), (to_key, to)),
        (Type::Struct(from), Type::Struct(to)) => structures(from, to),
        (Type::Map(key, value), Type::Struct(to)) => map_into_structure(key, value, to),
        (Type::Struct(from), Type::Map(_, value)) => structure_into_map(from, value),
        (_, Type::List(_)) => Some("list parameter count mismatch: got 0, expected 1".to_owned()),
        (_, Type::Map(..)) => Some("map parameter count mismatch: got 0, expected 2".to_owned()),
        _ if from == to => None,
        _ => Some(format!("type kind mismatch: got \"{from}\", expected \"{to}\"")),
    }
}

fn maps((from_key, from): (&Type, &Type), (to_key, to): (&Type, &Type)) -> Option<String> {
    let key = misfit(from_key, to_key).map(|why| format!("map key type incompatible: {why}"));
    key.or_else(|| misfit(from, to).map(|why| format!("map value type incompatible: {why}")))
}

/// Fields may be missing, but none may be too many.
fn structures(from: &Structure, to: &Structure) -> Option<String> {
    if from.name == to.name {
        return None;
    }
    from.fields().iter().find_map(|(name, of)| match to.fields().get(name) {
        Some(expected) => misfit(of, expected).map(|why| format!("field \"{name}\" has incompatible type: {why}")),
        None if to.open => None,
        None => Some(format!("field \"{name}\" exists in output but not in expected type")),
    })
}

fn map_into_structure(key: &Type, value: &Type, to: &Structure) -> Option<String> {
    if let Some(why) = misfit(key, &Type::String) {
        return Some(format!("map key type incompatible: {why}"));
    }
    to.fields().iter().find_map(|(name, expected)| {
        misfit(value, expected).map(|why| format!("map value incompatible with struct field \"{name}\": {why}"))
    })
}

fn structure_into_map(from: &Structure, value: &Type) -> Option<String> {
    from.fields()
        .iter()
        .find_map(|(name, of)| misfit(of, value).map(|why| format!("field \"{name}\" has incompatible type: {why}")))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use super::*;

    fn structure(name: &str, open: bool, fields: &[(&str, Type)]) -> Type {
        let fields: BTreeMap<_, _> = fields.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect();
        Type::Struct(Arc::new(Structure::new(name, fields, open)))
    }

    #[test]
    fn kinds_of_misfits() {
        let named = structure("b", false, &[("name", Type::String)]);
        let closed = structure("a", false, &[("name", Type::String), ("count", Type::Int)]);
        for (from, to, expected) in [
            (Type::Bool, Type::String, Some("type kind mismatch: got \"bool\", expected \"string\"")),
            (Type::optional(Type::String), Type::String, None),
            (Type::Dyn, Type::Int, None),
            (Type::String, Type::map(Type::Dyn), Some("map parameter count mismatch: got 0, expected 2")),
            (Type::String, Type::list(Type::Dyn), Some("list parameter count mismatch: got 0, expected 1")),
            (named.clone(), closed.clone(), None),
            (closed.clone(), named.clone(), Some("field \"count\" exists in output but not in expected type")),
            (closed.clone(), structure("c", true, &[]), None),
            (Type::map(Type::String), named.clone(), None),
            (Type::map(Type::Dyn), closed.clone(), None),
        ] {
            assert_eq!(misfit(&from, &to).as_deref(), expected, "{from} into {to}");
        }
        let why = misfit(&Type::list(Type::map(Type::String)), &Type::list(closed)).unwrap();
        assert_eq!(
            why,
            "list element type incompatible: map value incompatible with struct field \"count\": type kind mismatch: got \"string\", expected \"int\""
        );
    }
}
