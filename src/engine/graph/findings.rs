//! Collecting findings, each with its place.

use std::collections::HashSet;

use super::definition::Source;
use crate::{
    Diagnostic,
    cel::function_meant,
    diagnostic::Severity,
    template::{Text, nearest},
    yaml::is_inside,
};

/// More findings than anybody reads one by one.
const MANY: usize = 200;

/// The findings of one compilation.
pub(super) struct Findings<'a> {
    source: Option<&'a Source>,
    found: Vec<Diagnostic>,
    /// Paths, messages and places in expressions so far, so that nothing is said twice.
    said: HashSet<(String, String, Option<usize>)>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(source: Option<&'a Source>) -> Self {
        Self { source, found: Vec::new(), said: HashSet::new() }
    }

    /// A mistake at a place.
    pub(super) fn error(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.push(Diagnostic::error(path, message));
    }

    /// A mistake at a place, with the next step.
    pub(super) fn hinted(&mut self, path: impl Into<String>, message: impl Into<String>, hint: Option<String>) {
        self.push(Diagnostic { hint, ..Diagnostic::error(path, message) });
    }

    /// A mistake inside an expression: `offset` counts characters of [`Text::cel`].
    pub(super) fn expression(
        &mut self,
        path: &str,
        text: &Text,
        offset: usize,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        let byte = text.cel.char_indices().nth(offset).map_or(text.cel.len(), |(byte, _)| byte);
        self.in_string(path, text, text.in_source(byte), message, hint);
    }

    /// A mistake inside a string with expressions: `at` is a byte of [`Text::source`].
    pub(super) fn in_string(&mut self, path: &str, text: &Text, at: usize, message: impl Into<String>, hint: Option<String>) {
        let shown = text.source.get(..at).map_or(0, |before| before.chars().count());
        let location = self.source.and_then(|source| source.locate(path, &text.source, at));
        let finding =
            Diagnostic { hint, location, expression: Some((text.source.clone(), shown)), ..Diagnostic::error(path, message) };
        self.push(finding);
    }

    /// Adds a finding that another module made.
    pub(super) fn push(&mut self, mut finding: Diagnostic) {
        if finding.location.is_none() {
            finding.location = self.source.and_then(|source| source.locations.nearest(&finding.path));
        }
        let offset = finding.expression.as_ref().map(|(_, offset)| *offset);
        if self.said.insert((finding.path.clone(), finding.message.clone(), offset)) {
            self.found.push(finding);
        }
    }

    /// Whether the definition is refused.
    pub(super) fn refused(&self) -> bool {
        self.found.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Whether something at or inside `path` is refused already.
    pub(super) fn refused_in(&self, path: &str) -> bool {
        self.found.iter().any(|finding| finding.severity == Severity::Error && is_inside(&finding.path, path))
    }

    /// Whether exactly what is at `path` is refused already.
    pub(super) fn refused_at(&self, path: &str) -> bool {
        self.found.iter().any(|finding| finding.severity == Severity::Error && finding.path == path)
    }

    /// "Did you mean …" for a name; nothing once there are so many findings that nobody reads them all: each looks at every candidate.
    pub(super) fn near<'n>(&self, name: &str, candidates: impl IntoIterator<Item = &'n str>) -> Option<String> {
        if self.found.len() >= MANY {
            return None;
        }
        nearest(name, candidates).map(|near| format!("did you mean {near}?"))
    }

    /// The same for a function.
    pub(super) fn function(&self, name: &str) -> Option<String> {
        let meant = (self.found.len() < MANY).then(|| function_meant(name))??;
        Some(format!("did you mean {meant}?"))
    }

    /// Number of findings so far.
    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    /// Everything in the order of the document, as far as places are known.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|finding| finding.location);
        self.found
    }
}
