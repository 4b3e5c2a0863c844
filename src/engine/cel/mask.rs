//! Keeps letters beyond ASCII away from the lexer.
//!
//! Its tables know ASCII only: any other letter costs it a tenth of a millisecond, so a template with a long Chinese text would
//! take seconds. Before parsing, such letters in texts and comments are replaced by one ASCII letter each, which keeps all
//! places; afterwards the texts get them back.

use cel::{
    IdedExpr,
    common::{
        ast::{EntryExpr, Expr, LiteralValue},
        types::{CelBytes, CelString},
    },
};

use super::literal::literal;

/// Stands for a letter beyond ASCII.
const MASK: char = '\u{1}';

/// Ways to write [`MASK`] itself; a source that has one is left alone.
const WAYS: [&str; 6] = ["\u{1}", "\\x01", "\\X01", "\\u0001", "\\U00000001", "\\001"];

/// A source with masked texts.
pub(super) struct Masked {
    /// As many characters as the source.
    pub(super) source: String,
    /// What was masked, with its place in characters.
    letters: Vec<(usize, char)>,
}

impl Masked {
    /// Masks a source; `None` where nothing is to be masked.
    pub(super) fn new(source: &str) -> Option<Self> {
        if source.is_ascii() || WAYS.iter().any(|way| source.contains(way)) {
            return None;
        }
        let mut masked = Self { source: String::with_capacity(source.len()), letters: Vec::new() };
        let mut within = 0;
        for (place, (start, letter)) in source.char_indices().enumerate() {
            if start >= within
                && let Some(literal) = literal(source.as_bytes(), start).filter(|literal| literal.closed)
            {
                within = literal.end;
            }
            if letter.is_ascii() || start >= within {
                masked.source.push(letter);
            } else {
                masked.source.push(MASK);
                masked.letters.push((place, letter));
            }
        }
        Some(masked)
    }

    /// Gives the texts of a tree their letters back; `offset` is the place of a node.
    pub(super) fn restore(&self, expr: &mut IdedExpr, offset: &dyn Fn(u64) -> usize) {
        match &mut expr.expr {
            Expr::Literal(LiteralValue::String(text)) => {
                let restored = self.text(text.inner(), offset(expr.id));
                *text = CelString::from(restored);
            }
            Expr::Literal(LiteralValue::Bytes(bytes)) => {
                let restored = self.bytes(bytes.inner(), offset(expr.id));
                *bytes = CelBytes::from(restored);
            }
            Expr::Call(call) => {
                let target = call.target.iter_mut().map(AsMut::as_mut);
                target.chain(&mut call.args).for_each(|part| self.restore(part, offset));
            }
            Expr::Select(select) => self.restore(&mut select.operand, offset),
            Expr::List(list) => list.elements.iter_mut().for_each(|element| self.restore(element, offset)),
            Expr::Map(map) => map.entries.iter_mut().for_each(|entry| self.entry(&mut entry.expr, offset)),
            Expr::Struct(structure) => structure.entries.iter_mut().for_each(|entry| self.entry(&mut entry.expr, offset)),
            Expr::Literal(_) | Expr::Ident(_) | Expr::Comprehension(_) | Expr::Unspecified => {}
        }
    }

    fn entry(&self, entry: &mut EntryExpr, offset: &dyn Fn(u64) -> usize) {
        match entry {
            EntryExpr::MapEntry(entry) => {
                self.restore(&mut entry.key, offset);
                self.restore(&mut entry.value, offset);
            }
            EntryExpr::StructField(field) => self.restore(&mut field.value, offset),
        }
    }

    /// The letters masked from a place on.
    fn masked_from(&self, place: usize) -> impl Iterator<Item = char> {
        self.letters[self.letters.partition_point(|(masked, _)| *masked < place)..].iter().map(|(_, letter)| *letter)
    }

    fn text(&self, text: &str, place: usize) -> String {
        let mut letters = self.masked_from(place);
        text.chars().map(|letter| if letter == MASK { letters.next().unwrap_or(MASK) } else { letter }).collect()
    }

    fn bytes(&self, bytes: &[u8], place: usize) -> Vec<u8> {
        let mut letters = self.masked_from(place);
        let mut restored = Vec::with_capacity(bytes.len());
        for byte in bytes {
            if *byte == MASK as u8 {
                restored.extend(letters.next().unwrap_or(MASK).encode_utf8(&mut [0; 4]).bytes());
            } else {
                restored.push(*byte);
            }
        }
        restored
    }
}
