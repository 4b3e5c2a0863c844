//! From `required=true default="a b"` to keys and values (kro.md 2.4), kro's oddities included.

use crate::did_you_mean;

use super::marker::Marker;

/// A marker as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) marker: Marker,
    pub(super) value: String,
    /// Character offset of its key in the text given to [`lex`].
    pub(super) offset: usize,
    /// Whether blanks inside the key were dropped, which is hardly what was meant.
    pub(super) joined: bool,
}

/// What is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LexError {
    pub(super) message: String,
    pub(super) offset: usize,
    pub(super) hint: Option<String>,
}

/// Reads all markers. The first error ends it: what follows a lost quote or bracket means nothing.
pub(super) fn lex(text: &str) -> Result<Vec<Written>, LexError> {
    let mut lexer = Lexer::default();
    for (offset, character) in text.chars().enumerate() {
        lexer.step(offset, character)?;
    }
    lexer.finish(text.chars().count())
}

#[derive(Default)]
struct Lexer {
    found: Vec<Written>,
    /// The open key, once its `=` was seen.
    key: Option<(Marker, usize, bool)>,
    buffer: String,
    /// Offset of the buffer's first character.
    start: usize,
    /// A blank was dropped behind the buffer's last character.
    blank: bool,
    joined: bool,
    quoted: Option<usize>,
    escaped: bool,
    open: Vec<usize>,
}

impl Lexer {
    fn step(&mut self, offset: usize, character: char) -> Result<(), LexError> {
        let inside = self.quoted.is_some() || !self.open.is_empty();
        match character {
            '=' if !inside && self.key.is_none() => return self.end_key(offset),
            '"' if !self.escaped => self.quoted = if self.quoted.is_some() { None } else { Some(offset) },
            '{' | '[' if self.quoted.is_none() => self.open.push(offset),
            '}' | ']' if self.quoted.is_none() => self.close(offset)?,
            blank if blank.is_whitespace() && !inside => {
                self.end_value();
                self.blank = true;
                return Ok(());
            }
            _ => {}
        }
        self.escaped = self.quoted.is_some() && character == '\\' && !self.escaped;
        if self.buffer.is_empty() {
            self.start = offset;
        } else if self.blank {
            self.joined = true;
        }
        self.blank = false;
        self.buffer.push(character);
        Ok(())
    }

    fn close(&mut self, offset: usize) -> Result<(), LexError> {
        let opened = self.open.pop().map(drop);
        opened.ok_or_else(|| error("unmatched closing bracket/brace", offset, Some("put the value in double quotes")))
    }

    fn end_key(&mut self, offset: usize) -> Result<(), LexError> {
        let key = std::mem::take(&mut self.buffer);
        let key = key.trim();
        if key.is_empty() {
            return Err(error("empty marker key", offset, None));
        }
        let Some(marker) = Marker::named(key) else {
            let message = format!("invalid marker key {key:?}: unknown marker: {key}");
            return Err(LexError { message, offset: self.start, hint: unknown_hint(key, self.joined) });
        };
        self.key = Some((marker, self.start, self.joined));
        (self.blank, self.joined) = (false, false);
        Ok(())
    }

    fn end_value(&mut self) {
        if let Some((marker, offset, joined)) = self.key.take() {
            let value = unquote(&std::mem::take(&mut self.buffer));
            self.found.push(Written { marker, value, offset, joined });
            self.joined = false;
        }
    }

    fn finish(mut self, end: usize) -> Result<Vec<Written>, LexError> {
        if let Some(offset) = self.quoted {
            return Err(error("unclosed quote", offset, None));
        }
        if let Some(offset) = self.open.last() {
            return Err(error("unclosed bracket/brace", *offset, Some("put the value in double quotes")));
        }
        if self.key.is_none() {
            let word = &self.buffer;
            let hint = if self.found.last().is_some_and(|last| last.value.is_empty()) {
                "write KEY=VALUE without spaces around the equals sign".to_owned()
            } else if let Some(marker) = Marker::named(word) {
                format!("write {}=true", marker.name())
            } else if word.is_empty() {
                "take away the blank or the bar at the end".to_owned()
            } else {
                "a value of several words needs double quotes".to_owned()
            };
            let offset = if word.is_empty() { end } else { self.start };
            return Err(error(&format!("marker key '{word}' without a value"), offset, Some(&hint)));
        }
        self.end_value();
        Ok(self.found)
    }
}

fn error(message: &str, offset: usize, hint: Option<&str>) -> LexError {
    LexError { message: message.to_owned(), offset, hint: hint.map(str::to_owned) }
}

fn unknown_hint(key: &str, joined: bool) -> Option<String> {
    if let Some(rest) = key.strip_prefix('|') {
        return Some(format!("one bar is enough: markers are separated by blanks, as in \"| required=true {rest}=…\""));
    }
    if joined {
        return Some("a value of several words needs double quotes".to_owned());
    }
    did_you_mean(key, Marker::NAMES.iter().map(|(name, _)| *name))
}

/// Takes the quotes off a value that starts and ends with one; any other value is trimmed.
fn unquote(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return value.trim().to_owned();
    };
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some(next @ ('"' | '\\'))) => {
                text.push(*next);
                characters.next();
            }
            _ => text.push(character),
        }
    }
    text
}
