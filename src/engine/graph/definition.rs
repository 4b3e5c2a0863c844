//! A ResourceGraphDefinition as it is handed to the compiler.

use plinth_api::{Object, rgd::RgdSpec};
use serde_json::Value;

use super::document::Rules;
use crate::{
    Diagnostic, Location,
    diagnostic::Severity,
    yaml::{Document, Locations},
};

/// A definition to compile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// `metadata.name` of the definition.
    pub name: String,
    /// `metadata.uid`, empty for a definition that is not on a server.
    pub uid: String,
    /// Group of the definition's own kind: `kro.run` or `krop.opendefense.cloud`.
    pub group: String,
    /// What is defined.
    pub spec: RgdSpec,
    /// Where it came from, for lines and columns.
    pub source: Option<Source>,
    /// Findings of reading it that do not stop it from being used.
    pub warnings: Vec<Diagnostic>,
}

/// The text a definition was read from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// The whole text, so that an expression inside a block scalar can be located.
    pub text: String,
    /// Places of the document's values.
    pub locations: Locations,
}

impl Definition {
    /// Reads a stored object; answers with every rule of the definition's CRD that it breaks. A definition without `spec`
    /// is refused here like any other mistake.
    pub fn from_object(object: &Object) -> Result<Self, Vec<Diagnostic>> {
        Self::read(&Value::Object(object.0.clone()), None, Vec::new())
    }

    /// Reads a document of a YAML text (best of [`crate::yaml::documents_with_duplicates`]); findings carry lines and columns.
    pub fn from_document(document: &Document, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let source = Source { text: text.to_owned(), locations: document.locations.clone() };
        let duplicates = document
            .duplicates
            .iter()
            .cloned()
            .map(|duplicate| Diagnostic { severity: of_duplicate(&duplicate.path), ..duplicate });
        let mut definition = Self::read(&document.value, Some(source), duplicates.collect())?;
        definition.warnings.sort_by_key(|warning| warning.location);
        Ok(definition)
    }

    fn read(document: &Value, source: Option<Source>, findings: Vec<Diagnostic>) -> Result<Self, Vec<Diagnostic>> {
        let mut rules = Rules { findings };
        rules.document(document);
        if !rules.refused() {
            match serde_json::from_value(without_nulls(&document["spec"])) {
                Ok(spec) => return Ok(Self { warnings: rules.findings, ..Self::new(document, spec, source) }),
                Err(error) => rules.findings.push(Diagnostic::error("spec", error.to_string())),
            }
        }
        if let Some(source) = &source {
            source.locations.locate(&mut rules.findings);
        }
        rules.findings.sort_by_key(|finding| finding.location);
        Err(rules.findings)
    }

    fn new(document: &Value, spec: RgdSpec, source: Option<Source>) -> Self {
        let text = |path: &str| document.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let api_version = text("/apiVersion");
        let group = api_version.split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default();
        Self { name: text("/metadata/name"), uid: text("/metadata/uid"), group, spec, source, warnings: Vec::new() }
    }
}

/// kro reads the schema strictly; in templates the last of two equal keys counts, as with `kubectl apply`.
fn of_duplicate(path: &str) -> Severity {
    let strict = ["spec.schema.spec", "spec.schema.types", "spec.schema.status"];
    if strict.iter().any(|root| path.starts_with(root)) { Severity::Error } else { Severity::Warning }
}

impl Source {
    /// Where a part of a value is: the value's place, or the place in the text where `part` is first met from there on.
    pub(super) fn locate(&self, path: &str, part: &str, offset: usize) -> Option<Location> {
        let start = self.locations.nearest(path)?;
        let first = part.lines().next().unwrap_or_default();
        let from: usize = self.text.split_inclusive('\n').take(start.line - 1).map(str::len).sum();
        let line = self.text.get(from..)?.lines().next()?;
        let from = from + line.chars().take(start.column - 1).map(char::len_utf8).sum::<usize>();
        match self.text.get(from..).and_then(|rest| rest.find(first)) {
            Some(found) if !first.is_empty() => Some(self.place(from + found, part, offset)),
            _ => Some(start),
        }
    }

    /// Line and column of the `offset`-th byte of `part`, which starts at byte `at` of the text.
    fn place(&self, at: usize, part: &str, offset: usize) -> Location {
        let before = &self.text[..at];
        let inside = part.get(..offset).unwrap_or(part);
        let skipped = inside.matches('\n').count();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1 + skipped;
        let column = match inside.rfind('\n') {
            // Lines of a block scalar are indented in the text by as much as the first line is.
            Some(newline) => indent(&self.text[line_start..]) + inside[newline + 1..].chars().count() + 1,
            None => self.text[line_start..at].chars().count() + inside.chars().count() + 1,
        };
        Location { line, column }
    }
}

/// A `null` field of the definition is an absent one; what is inside templates and schemas stays as it is.
fn without_nulls(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let clean = |value: Option<&mut Value>| {
        if let Some(Value::Object(map)) = value {
            map.retain(|_, value| !value.is_null());
        }
    };
    clean(Some(&mut spec));
    clean(spec.get_mut("schema"));
    clean(spec.pointer_mut("/schema/metadata"));
    for resource in spec.get_mut("resources").and_then(Value::as_array_mut).into_iter().flatten() {
        clean(Some(resource));
    }
    spec
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}
