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

/// Prints `line:column path: message (hint)`, leaving out what is not known.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Location { line, column }) = self.location {
            write!(f, "{line}:{column} ")?;
        }
        if !self.path.is_empty() {
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
