//! Signatures of functions, written as the field writes them: `list(<T>).slice(int, int) -> list(<T>)`.

use super::types::Type;

/// What an overload takes and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    /// Called on a value, which is then the first parameter.
    pub(super) member: bool,
    pub(super) parameters: Vec<Type>,
    pub(super) result: Type,
}

impl Signature {
    /// Whether it orders numbers of two types, such as `_<_(int, double)`: of two concrete ones only comparisons take two types.
    pub(super) fn orders_mixed_numbers(&self) -> bool {
        let number = |of: &Type| matches!(of, Type::Int | Type::Uint | Type::Double);
        let is_mixed = |pair: &[Type]| pair.iter().all(number) && pair[0] != pair[1];
        self.result == Type::Bool && self.parameters.len() == 2 && is_mixed(&self.parameters)
    }

    /// Reads a signature of the function called `name`. The tables are ours, so a mistake in one is a mistake in this program.
    pub(super) fn parse(name: &str, text: &str) -> Self {
        let (head, result) = text.rsplit_once(" -> ").expect("a signature has a result");
        let global = format!("{name}(");
        let member = format!(".{name}(");
        let (receiver, parameters) = match head.strip_prefix(&global) {
            Some(parameters) => (None, parameters),
            None => head
                .rsplit_once(&member)
                .map(|(receiver, parameters)| (Some(receiver), parameters))
                .expect("the name is in the signature"),
        };
        let parameters = parameters.strip_suffix(')').expect("parameters end with a bracket");
        let parameters = receiver.into_iter().chain(split(parameters)).map(read).collect();
        Self { member: receiver.is_some(), parameters, result: read(result) }
    }
}

/// Splits at commas that are in no bracket.
fn split(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (at, letter) in list.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !list[start..].trim().is_empty() {
        parts.push(list[start..].trim());
    }
    parts
}

fn read(text: &str) -> Type {
    if let Some(letter) = text.strip_prefix('<').and_then(|rest| rest.chars().next()) {
        return Type::Var(u32::from(letter));
    }
    if let Some((name, inner)) = text.split_once('(') {
        let inner = split(inner.strip_suffix(')').expect("brackets close"));
        return match (name, inner.as_slice()) {
            ("list", [element]) => Type::list(read(element)),
            ("map", [key, value]) => Type::Map(Box::new(read(key)), Box::new(read(value))),
            ("optional_type", [value]) => Type::optional(read(value)),
            ("type", [of]) => Type::Type(Box::new(read(of))),
            _ => unreachable!("no type is called {name}"),
        };
    }
    match text {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        "kro.run.Condition" => super::library::runtime::condition_type(),
        opaque => Type::Opaque(opaque.to_owned().into()),
    }
}
