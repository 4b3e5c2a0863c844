//! What is wrong with a document, said so that its author can mend it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A place in a source text; both numbers start at 1, columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Location {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

/// Whether a finding stops a document from being used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document is refused.
    #[default]
    Error,
    /// The document is used as it is.
    Warning,
}

/// One finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// Where in the document: dotted, as in `spec.resources[2].template.spec.replicas`.
    pub path: String,
    /// What is wrong: lower case, no full stop. Where kro says it, kro's words (users search for them).
    pub message: String,
    /// Error or warning.
    #[serde(default)]
    pub severity: Severity,
    /// Place in the source text, where the document came from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// The expression, and the character offset in it, where an expression is at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<(String, usize)>,
    /// The next step: "did you mean …".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error at `path`.
    pub fn error(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), ..Self::default() }
    }

    /// The printed form, followed by the expression at fault where the message does not quote it: for people who have no editor
    /// open at that place.
    ///
    /// Of a long expression only the part around the place is shown.
    pub fn quoted(&self) -> String {
        let Some((expression, offset)) = &self.expression else { return self.to_string() };
        let shown = window(expression, *offset);
        if self.message.contains(expression.as_str()) {
            return Self { message: self.message.replace(expression.as_str(), &shown), ..self.clone() }.to_string();
        }
        format!("{self} in {shown:?}")
    }

    /// The printed form in several lines: the finding, the line of the expression that is at fault, and a mark under the place.
    pub fn marked(&self) -> Vec<String> {
        let Some((expression, offset)) = &self.expression else { return vec![self.to_string()] };
        let shown = window(expression, *offset);
        let bare = Self { message: self.message.replace(expression.as_str(), &shown), ..self.clone() };
        let [line, mark] = mark(expression, *offset);
        vec![bare.to_string(), line, mark]
    }

    /// The same finding with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The text where it is short, else what lies around the character at `offset`.
fn window(text: &str, offset: usize) -> String {
    const AROUND: usize = 60;
    let all = text.chars().count();
    if all <= 2 * AROUND {
        return text.to_owned();
    }
    let from = offset.min(all).saturating_sub(AROUND);
    let inside: String = text.chars().skip(from).take(2 * AROUND).collect();
    let (before, after) = (if from > 0 { "…" } else { "" }, if from + 2 * AROUND < all { "…" } else { "" });
    format!("{before}{inside}{after}")
}

/// The line of `text` that has the character at `offset`, and a line with `^` under that character. Of a long line only the part
/// around it is there; what a terminal would act on is not.
fn mark(text: &str, offset: usize) -> [String; 2] {
    const AROUND: usize = 60;
    let letters: Vec<char> = text.chars().collect();
    let offset = offset.min(letters.len());
    let begin = letters[..offset].iter().rposition(|letter| *letter == '\n').map_or(0, |newline| newline + 1);
    let end = letters[offset..].iter().position(|letter| *letter == '\n').map_or(letters.len(), |newline| offset + newline);
    let (from, to) = (begin.max(offset.saturating_sub(AROUND)), end.min(offset + AROUND));
    let (mut line, mut mark) = (String::new(), String::new());
    if from > begin {
        line.push('…');
        mark.push(' ');
    }
    for letter in &letters[from..offset] {
        mark.push_str(match columns(*letter) {
            _ if *letter == '\t' => "\t",
            0 => "",
            1 => " ",
            _ => "  ",
        });
    }
    mark.push('^');
    line.extend(letters[from..to].iter().map(|letter| if letter.is_control() && *letter != '\t' { '\u{fffd}' } else { *letter }));
    if to < end {
        line.push('…');
    }
    [line, mark]
}

/// How many columns of a terminal a character takes: none that is drawn over the one before, two in the scripts of East Asia and for
/// pictures. Unicode's ranges, roughly: only the place of a mark depends on it.
fn columns(letter: char) -> usize {
    match u32::from(letter) {
        0x300..=0x36F | 0x200B..=0x200F | 0x20D0..=0x20FF | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F680..=0x1F6FF
        | 0x1F900..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// Prints `line:column path: message (hint)`, leaving out what is not known.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Location { line, column }) = self.location {
            write!(f, "{line}:{column} ")?;
        }
        // Words of the API server begin with the path themselves.
        if !self.path.is_empty() && !self.message.starts_with(&self.path) {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// "did you mean …", where one of the candidates is close enough to be what was meant.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    const LONGEST: usize = 64;
    let letters = word.chars().count();
    if letters == 0 || letters > LONGEST {
        return None;
    }
    candidates
        .into_iter()
        .filter(|candidate| *candidate != word && candidate.chars().count() <= LONGEST)
        .map(|candidate| (distance(word, candidate), !starts_alike(word, candidate), candidate))
        .filter(|(distance, ..)| *distance <= 1 + letters / 4)
        .min()
        .map(|(.., candidate)| format!("did you mean \"{candidate}\"?"))
}

fn starts_alike(word: &str, candidate: &str) -> bool {
    word.chars().next().map(|c| c.to_ascii_lowercase()) == candidate.chars().next().map(|c| c.to_ascii_lowercase())
}

/// Number of letters to add, take away or change, upper and lower case alike (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.to_lowercase().chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_expression_the_part_around_the_place_is_quoted() {
        let long = format!("{}wrong{}", "a + ".repeat(500), " + b".repeat(500));
        for message in ["no such name".to_owned(), format!("bad: {long}")] {
            let finding = Diagnostic { expression: Some((long.clone(), 2000)), ..Diagnostic::error("spec", message) };
            let text = finding.quoted();
            assert!(text.contains("a + wrong + b") && text.contains('…') && text.len() < 200, "{text}");
        }
        let short = Diagnostic { expression: Some(("a +".into(), 3)), ..Diagnostic::error("spec", "no end") };
        assert_eq!(short.quoted(), "spec: no end in \"a +\"");
    }

    #[test]
    fn the_place_is_marked_under_its_character() {
        for (text, line, mark) in [
            ("x-${a + wrong}", "x-${a + wrong}", "        ^"),
            ("first\n\tä ${wrong}\nlast", "\tä ${wrong}", "\t    ^"),
            ("'東京' + e\u{301}🎉 + wrong", "'東京' + e\u{301}🎉 + wrong", "               ^"),
            ("\u{1b}[31m + wrong", "\u{fffd}[31m + wrong", "        ^"),
            ("wrong", "wrong", "^"),
        ] {
            let offset = text[..text.find("wrong").unwrap()].chars().count();
            let finding = Diagnostic { expression: Some((text.into(), offset)), ..Diagnostic::error("a", "b") };
            assert_eq!(finding.marked(), ["a: b", line, mark], "{text}");
        }
        let end = Diagnostic { expression: Some(("1 +".into(), 3)), ..Diagnostic::error("a", "in \"1 +\"") };
        assert_eq!(end.marked(), ["a: in \"1 +\"", "1 +", "   ^"]);
        let long = format!("{}wrong{}", "ä + ".repeat(500), " + b".repeat(500));
        let finding = Diagnostic { expression: Some((long.clone(), 2000)), ..Diagnostic::error("a", format!("bad: {long}")) };
        let [said, line, mark] = finding.marked().try_into().unwrap();
        assert!(said.chars().count() < 200, "{said}");
        let under: String = line.chars().skip(mark.chars().count() - 1).take(5).collect();
        assert_eq!((under.as_str(), line.chars().count()), ("wrong", 122), "{line}");
        assert_eq!(Diagnostic::error("a", "b").marked(), ["a: b"]);
    }

    #[test]
    fn a_path_is_said_once() {
        assert_eq!(Diagnostic::error("spec.schema", "spec.schema: Required value").to_string(), "spec.schema: Required value");
        assert_eq!(Diagnostic::error("spec", "must be an object").to_string(), "spec: must be an object");
    }

    #[test]
    fn only_close_words_are_meant() {
        let words = ["replicas", "image", "name", "deploymentEnabled"];
        for (word, meant) in [
            ("replica", Some("replicas")),
            ("Image", Some("image")),
            ("deployementEnabled", Some("deploymentEnabled")),
            ("nmae", Some("name")),
            ("port", None),
            ("", None),
        ] {
            let expected = meant.map(|meant| format!("did you mean \"{meant}\"?"));
            assert_eq!(did_you_mean(word, words), expected, "{word}");
        }
    }
}
