//! Whether a value of one type may stand where another is expected (kro.md section 5).

use crate::cel::{Structure, Type};

/// What is known of objects where types are compared.
#[derive(Clone, Copy, Default)]
pub(super) struct Sight<'a> {
    /// Name of the expected type, where kro does not find what its objects are made of.
    pub(super) hidden: Option<&'a str>,
    /// Whether kro's sight is all there is: it does not find the fields of the objects of a list of objects either.
    pub(super) is_kros: bool,
}

impl Sight<'_> {
    fn sees(self, structure: &Structure) -> bool {
        let is_hidden =
            |root: &str| structure.name.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let is_listed = structure.name.split('.').nth(1) == Some("@idx");
        !self.is_kros || !(is_listed || self.hidden.is_some_and(is_hidden))
    }
}

/// The reason why a value of type `from` does not fit where `to` is expected; kro's words.
pub(super) fn misfit(from: &Type, to: &Type, sight: Sight<'_>) -> Option<String> {
    match (from, to) {
        (Type::Dyn, _) | (_, Type::Dyn) => None,
        (Type::Optional(inner), _) => misfit(inner, to, sight),
        (Type::Struct(from), Type::Struct(to)) if sight.sees(from) && sight.sees(to) => structures(from, to, sight),
        (Type::Map(key, value), Type::Struct(to)) if sight.sees(to) => map_into_structure(key, value, to, sight),
        // kro compares nothing with an object but objects and maps ([`doubt`]), and knows no fields of values like quantities.
        (_, Type::Struct(_)) => None,
        (Type::Opaque(_), Type::Map(..)) if from.is_object() => None,
        (Type::Struct(from), Type::Map(_, value)) => {
            if sight.sees(from) {
                structure_into_map(from, value, sight)
            } else {
                None
            }
        }
        (_, Type::List(to)) => match parameters(from).first() {
            Some(from) => misfit(from, to, sight).map(|why| format!("list element type incompatible: {why}")),
            None => Some("list parameter count mismatch: got 0, expected 1".to_owned()),
        },
        (_, Type::Map(to_key, to)) => match parameters(from).as_slice() {
            [from_key, from] => maps((from_key, from), (to_key, to), sight),
            other => Some(format!("map parameter count mismatch: got {}, expected 2", other.len())),
        },
        _ if from == to => None,
        _ => Some(format!("type kind mismatch: got \"{}\", expected \"{to}\"", alone(from))),
    }
}

/// What a type is made of.
fn parameters(of: &Type) -> Vec<&Type> {
    match of {
        Type::List(element) | Type::Type(element) => vec![element],
        Type::Map(key, value) => vec![key, value],
        _ => Vec::new(),
    }
}

/// What kro lets through and no API server takes: something else where an object or a list is expected.
pub(super) fn doubt(from: &Type, to: &Type) -> Option<String> {
    let is_object = |of: &Type| matches!(of, Type::Struct(_) | Type::Map(..) | Type::Dyn | Type::Null);
    match (from, to) {
        (Type::Optional(inner), _) => doubt(inner, to),
        (from, Type::Struct(_)) if !is_object(from) => Some(format!("an object is expected here, and this is {}", alone(from))),
        (Type::Map(..) | Type::Type(_), Type::List(_)) => Some(format!("a list is expected here, and this is {}", alone(from))),
        (Type::List(from), Type::List(to)) => doubt(from, to),
        _ => None,
    }
}

/// A type as kro prints it alone: `null` has another name then.
pub(super) fn alone(of: &Type) -> String {
    if *of == Type::Null { "null_type".to_owned() } else { of.to_string() }
}

fn maps((from_key, from): (&Type, &Type), (to_key, to): (&Type, &Type), sight: Sight<'_>) -> Option<String> {
    let key = misfit(from_key, to_key, sight).map(|why| format!("map key type incompatible: {why}"));
    key.or_else(|| misfit(from, to, sight).map(|why| format!("map value type incompatible: {why}")))
}

/// Fields may be missing, but none may be too many.
fn structures(from: &Structure, to: &Structure, sight: Sight<'_>) -> Option<String> {
    if from.name == to.name {
        return None;
    }
    from.fields().iter().find_map(|(name, of)| match to.fields().get(name) {
        Some(expected) => misfit(of, expected, sight).map(|why| format!("field \"{name}\" has incompatible type: {why}")),
        None if to.open => None,
        None => Some(format!("field \"{name}\" exists in output but not in expected type")),
    })
}

fn map_into_structure(key: &Type, value: &Type, to: &Structure, sight: Sight<'_>) -> Option<String> {
    if *key != Type::String {
        return Some("map keys must be strings to assign to struct".to_owned());
    }
    to.fields().iter().find_map(|(name, expected)| {
        misfit(value, expected, sight).map(|why| format!("map value incompatible with struct field \"{name}\": {why}"))
    })
}

fn structure_into_map(from: &Structure, value: &Type, sight: Sight<'_>) -> Option<String> {
    from.fields().iter().find_map(|(name, of)| {
        misfit(of, value, sight).map(|why| format!("struct field \"{name}\" incompatible with map value type: {why}"))
    })
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
            assert_eq!(misfit(&from, &to, Sight::default()).as_deref(), expected, "{from} into {to}");
        }
        let why = misfit(&Type::list(Type::map(Type::String)), &Type::list(closed), Sight::default()).unwrap();
        assert_eq!(
            why,
            "list element type incompatible: map value incompatible with struct field \"count\": type kind mismatch: got \"string\", expected \"int\""
        );
    }
}
