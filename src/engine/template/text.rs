//! A string with expressions as one CEL expression (kro.md 3.2).

use std::fmt::Write;

use super::scan::{Piece, scan};

/// A string that has at least one expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The string as it was written.
    pub source: String,
    /// One CEL expression for the whole string.
    pub cel: String,
    /// Whether the string is exactly one expression, whose own value (of any type) is meant.
    pub standalone: bool,
    /// For each expression: its first byte in `cel`, its length, its first byte in `source`.
    spans: Vec<(usize, usize, usize)>,
}

impl Text {
    /// Reads a string; `None` where it has no expression. The error is [`super::NESTED`], at a byte offset.
    pub fn read(source: &str) -> Result<Option<Self>, usize> {
        let pieces = scan(source)?;
        if let [Piece::Expression { text, start }] = pieces.as_slice() {
            let spans = vec![(0, text.len(), *start)];
            return Ok(Some(Self { source: source.to_owned(), cel: (*text).to_owned(), standalone: true, spans }));
        }
        if !pieces.iter().any(|piece| matches!(piece, Piece::Expression { .. })) {
            return Ok(None);
        }
        let mut joined = Self { source: source.to_owned(), cel: String::new(), standalone: false, spans: Vec::new() };
        for piece in pieces {
            joined.push(piece);
        }
        Ok(Some(joined))
    }

    fn push(&mut self, piece: Piece<'_>) {
        if !self.cel.is_empty() {
            self.cel.push_str(" + ");
        }
        match piece {
            Piece::Literal(text) => quote(text, &mut self.cel),
            Piece::Expression { text, start } => {
                self.spans.push((self.cel.len() + 1, text.len(), start));
                let _ = write!(self.cel, "({text})");
            }
        }
    }

    /// The same string, where the expressions that `is_wrong` names, by their first byte in [`Text::source`], give a value of
    /// which nothing is known, so that the others can still be looked at. `None` where no other one is left.
    pub fn without(&self, is_wrong: impl Fn(usize) -> bool) -> Option<Self> {
        if self.expressions().all(|(_, start)| is_wrong(start)) {
            return None;
        }
        let mut left = Self { source: self.source.clone(), cel: String::new(), standalone: false, spans: Vec::new() };
        for piece in scan(&self.source).ok()? {
            left.push(match piece {
                Piece::Expression { start, .. } if is_wrong(start) => Piece::Expression { text: NOTHING, start },
                right => right,
            });
        }
        Some(left)
    }

    /// Where a place in [`Text::cel`] is in [`Text::source`]; the nearest expression's start for a place outside of all.
    pub fn in_source(&self, offset: usize) -> usize {
        let before = self.spans.iter().rev().find(|(start, _, _)| *start <= offset).or(self.spans.first());
        before.map_or(0, |(start, length, source)| source + offset.saturating_sub(*start).min(*length))
    }

    /// The expressions one by one, each with its first byte in [`Text::source`].
    pub fn expressions(&self) -> impl Iterator<Item = (&str, usize)> {
        self.spans.iter().map(|(_, length, source)| (&self.source[*source..source + length], *source))
    }
}

/// An expression of which nothing is known.
const NOTHING: &str = "dyn('')";

/// A CEL string literal. Only what would end or change the literal is escaped; kro's Go escapes more, to the same value.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_lead_back_into_the_source() {
        let text = Text::read("a-${xy}-${z}").unwrap().unwrap();
        assert_eq!(text.cel, r#""a-" + (xy) + "-" + (z)"#);
        let y = text.cel.find('y').unwrap();
        let z = text.cel.find('z').unwrap();
        assert_eq!((text.in_source(y), text.in_source(z)), (5, 10));
        assert_eq!(text.in_source(0), 4, "a place in a literal is the nearest expression");
        assert_eq!(text.expressions().collect::<Vec<_>>(), [("xy", 4), ("z", 10)]);
    }

    #[test]
    fn control_characters_stay_what_they_are() {
        let text = Text::read("\u{1}\"${x}").unwrap().unwrap();
        assert_eq!(text.cel, r#""\u0001\"" + (x)"#);
    }
}
