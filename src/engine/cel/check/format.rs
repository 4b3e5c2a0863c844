//! Format strings that are literals are checked with their arguments.

use cel::common::ast::{CallExpr, ListExpr};

use super::Checker;
use crate::cel::{macros::literal_text, types::Type};

impl Checker<'_> {
    /// The type of the arguments of `'…'.format([…])`. Where both are literals, the clauses are checked with what they print.
    pub(super) fn format(&mut self, id: u64, call: &CallExpr, list: &ListExpr) -> Type {
        let elements = self.elements_of(list);
        if let Some(text) = call.target.as_deref().and_then(literal_text) {
            let message = match clauses(text) {
                Ok(clauses) => return self.printed(id, &clauses, list, &elements),
                Err(message) => message,
            };
            self.error(id, message, None);
        }
        self.list_of(&elements)
    }

    fn printed(&mut self, id: u64, clauses: &[char], list: &ListExpr, elements: &[Type]) -> Type {
        for (index, clause) in clauses.iter().enumerate() {
            let Some(of) = elements.get(index) else {
                self.error(id, format!("index {index} out of range"), None);
                break;
            };
            let of = self.unifier.resolved(of);
            if let Some(message) = mismatch(*clause, &of) {
                let given = bare(&of);
                self.error(list.elements[index].id, format!("error during formatting: {message}, was given {given}"), None);
            }
        }
        if elements.len() > clauses.len() {
            let (expected, got) = (clauses.len(), elements.len());
            let message = format!("too many arguments supplied to string.format (expected {expected}, got {got})");
            self.error(id, message, None);
        }
        self.list_of(elements)
    }
}

/// The letters of the clauses, in order.
fn clauses(text: &str) -> Result<Vec<char>, String> {
    let mut found = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        if letter != '%' || rest.next_if_eq(&'%').is_some() {
            continue;
        }
        if rest.next_if_eq(&'.').is_some() {
            while rest.next_if(char::is_ascii_digit).is_some() {}
        }
        match rest.next() {
            None => return Err("unexpected end of string".to_owned()),
            Some(clause) if "sdfeboxX".contains(clause) => found.push(clause),
            Some(other) => return Err(format!("could not parse formatting clause: unrecognized formatting clause \"{other}\"")),
        }
    }
    Ok(found)
}

/// A type by its name alone, without what it is made of.
fn bare(of: &Type) -> String {
    match of {
        Type::List(_) => "list".to_owned(),
        Type::Map(..) => "map".to_owned(),
        Type::Optional(_) => "optional_type".to_owned(),
        Type::Type(_) => "type".to_owned(),
        other => other.to_string(),
    }
}

fn mismatch(clause: char, of: &Type) -> Option<&'static str> {
    let number = matches!(of, Type::Int | Type::Uint | Type::Double);
    let whole = matches!(of, Type::Int | Type::Uint);
    let (fits, message) = match clause {
        's' => {
            const TEXT: &str = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps";
            (!matches!(of, Type::Struct(_) | Type::Opaque(_) | Type::Optional(_)), TEXT)
        }
        'd' => (number, "decimal clause can only be used on ints, uints, and doubles"),
        'f' => (number, "fixed-point clause can only be used on ints, uints, and doubles"),
        'e' => (number, "scientific clause can only be used on ints, uints, and doubles"),
        'b' => (whole || *of == Type::Bool, "only ints, uints, and bools can be formatted as binary"),
        'o' => (whole, "octal clause can only be used on ints and uints"),
        'x' | 'X' => {
            (whole || matches!(of, Type::String | Type::Bytes), "only ints, uints, bytes, and strings can be formatted as hex")
        }
        _ => (true, ""),
    };
    (!fits && *of != Type::Dyn).then_some(message)
}
