//! A ResourceGraphDefinition as it is handed to the compiler.

use plinth_api::{Object, rgd::RgdSpec};
use serde_json::Value;

use super::{
    document::{Rules, Stray},
    readable::readable,
};
use crate::{
    Diagnostic, Location,
    diagnostic::Severity,
    naming::keys,
    yaml::{Document, Locations, field, is_inside, place_of},
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
    /// The service account that it names for its instances, as written ([`keys::SERVICE_ACCOUNT`]).
    pub account: Option<String>,
    /// The platform that it belongs to ([`keys::PLATFORM`]), as its label says: what is made for it belongs there too.
    pub platform: Option<String>,
    /// What is defined.
    pub spec: RgdSpec,
    /// Where it came from, for lines and columns.
    pub source: Option<Source>,
    /// Findings of reading it. Errors among them make the compiler refuse it, together with all that it finds itself.
    pub findings: Vec<Diagnostic>,
    /// Fields that do not belong where they are; they are not in `spec`.
    pub(super) strays: Vec<Stray>,
    /// Whether `spec.schema` itself is missing.
    pub(super) has_no_schema: bool,
    /// Paths of values that are not what belongs there; in `spec` they are absent, or empty in a list.
    pub(super) wrong: Vec<String>,
}

/// The text a definition was read from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// The document's part of the text, so that an expression inside a scalar can be located.
    text: String,
    /// Lines of the text before that part.
    before: usize,
    /// Where each line of the part begins.
    lines: Vec<usize>,
    /// Places of the document's values.
    pub(super) locations: Locations,
}

impl Definition {
    /// Reads a stored object. Fails with every rule of the definition's CRD that it breaks where nobody can tell which kind it defines,
    /// such as without `spec`; else they are [`Definition::findings`].
    pub fn from_object(object: &Object) -> Result<Self, Vec<Diagnostic>> {
        let read = Self::read(object.as_value(), None, Vec::new())?;
        let of = &read.spec.schema;
        if of.kind.is_empty() || of.api_version.is_empty() { Err(read.findings) } else { Ok(read) }
    }

    /// Reads a document of a YAML text (best of [`crate::yaml::documents_with_duplicates`]); findings carry lines and columns. Fails where
    /// there is nothing to compile; a kind that cannot be told hides nothing else.
    pub fn from_document(document: &Document, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let source = Source::of(document, text);
        let duplicates = document
            .duplicates
            .iter()
            .cloned()
            .map(|duplicate| Diagnostic { severity: of_duplicate(&duplicate.path), ..duplicate });
        let findings = duplicates.chain(document.ambiguous.iter().cloned());
        Self::read(&document.value, Some(source), findings.collect())
    }

    fn read(document: &Value, source: Option<Source>, findings: Vec<Diagnostic>) -> Result<Self, Vec<Diagnostic>> {
        let mut rules = Rules { findings, ..Rules::default() };
        rules.document(document);
        let refused = rules.refused();
        let spec = match readable(&document["spec"], &rules.strays, &rules.wrong) {
            Some(spec) => serde_json::from_value(spec).map_err(|error| error.to_string()),
            None => Err("spec: Required value".to_owned()),
        };
        let mut findings = rules.findings;
        if let (Err(error), false) = (&spec, refused) {
            findings.push(Diagnostic::error("spec", error));
        }
        if let Some(source) = &source {
            source.locations.locate(&mut findings);
        }
        findings.sort_by_key(|finding| finding.location);
        match spec {
            Ok(spec) => Ok(Self { findings, strays: rules.strays, wrong: rules.wrong, ..Self::new(document, spec, source) }),
            Err(_) => Err(findings),
        }
    }

    /// Whether reading it found an error already.
    pub fn is_refused(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Whether something inside `path`, or all of it, could not be read: then what is missing there may be what was meant.
    pub(super) fn is_damaged(&self, path: &str) -> bool {
        self.strays.iter().map(|stray| &stray.path).chain(&self.wrong).any(|found| is_inside(found, path))
    }

    /// Whether the fields of instances are written where they cannot be read.
    pub(super) fn lacks_fields(&self) -> bool {
        self.spec.schema.spec.is_empty() && (self.has_no_schema || self.lacks("spec.schema", "spec"))
    }

    /// Whether custom types are written where they cannot be read.
    pub(super) fn lacks_types(&self) -> bool {
        self.spec.schema.types.is_empty() && (self.has_no_schema || self.lacks("spec.schema", "types"))
    }

    /// Whether resources are written where they cannot be read.
    pub(super) fn lacks_resources(&self) -> bool {
        self.spec.resources.is_empty() && self.lacks("spec", "resources")
    }

    fn lacks(&self, parent: &str, part: &str) -> bool {
        let place = field(parent, part);
        let is_beside = |path: &str| path.strip_prefix(parent).is_some_and(|rest| rest.rfind(['.', '[']) == Some(0));
        let misspelt = |stray: &Stray| is_beside(&stray.path) && stray.meant.as_deref().is_none_or(|meant| meant == part);
        self.wrong.iter().any(|path| is_inside(&place, path)) || self.strays.iter().any(misspelt)
    }

    /// Whether the iterators of the resource at `path` may be other ones than those that could be read.
    pub(super) fn may_iterate(&self, path: &str) -> bool {
        let misspelt = |stray: &Stray| stray.meant.as_deref().is_none_or(|meant| meant == "forEach");
        self.strays.iter().any(|stray| is_inside(&stray.path, path) && misspelt(stray))
            || self.wrong.iter().any(|found| is_inside(found, &field(path, "forEach")))
    }

    fn new(document: &Value, spec: RgdSpec, source: Option<Source>) -> Self {
        let text = |path: &str| document.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let api_version = text("/apiVersion");
        let group = api_version.split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default();
        Self {
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            group,
            account: document["metadata"]["annotations"][keys::SERVICE_ACCOUNT].as_str().map(str::to_owned),
            platform: document["metadata"]["labels"][keys::PLATFORM].as_str().map(str::to_owned),
            spec,
            source,
            findings: Vec::new(),
            strays: Vec::new(),
            has_no_schema: document["spec"]["schema"].is_null(),
            wrong: Vec::new(),
        }
    }
}

/// kro reads the schema strictly; in templates the last of two equal keys counts, as with `kubectl apply`.
fn of_duplicate(path: &str) -> Severity {
    let strict = ["spec.schema.spec", "spec.schema.types", "spec.schema.status"];
    if strict.iter().any(|root| path.starts_with(root)) { Severity::Error } else { Severity::Warning }
}

impl Source {
    fn of(document: &Document, text: &str) -> Self {
        let part = text.get(document.part.clone()).unwrap_or_default();
        let lines = std::iter::once(0).chain(part.match_indices('\n').map(|(at, _)| at + 1));
        let before = document.locations.nearest("").map_or(0, |place| place.line - 1);
        Self { text: part.to_owned(), before, lines: lines.collect(), locations: document.locations.clone() }
    }

    /// Where byte `offset` of the scalar `value` at `path` is: in the text where it is written, else where the scalar begins.
    pub(super) fn locate(&self, path: &str, value: &str, offset: usize) -> Option<Location> {
        let start = self.locations.nearest(path)?;
        let exact = self.byte_of(start).and_then(|at| place_of(&self.text, at, value, offset));
        Some(exact.map_or(start, |at| self.place(at)))
    }

    fn byte_of(&self, place: Location) -> Option<usize> {
        let start = *self.lines.get((place.line - 1).checked_sub(self.before)?)?;
        let line = self.text[start..].lines().next()?;
        Some(start + line.chars().take(place.column - 1).map(char::len_utf8).sum::<usize>())
    }

    fn place(&self, at: usize) -> Location {
        let line = self.lines.partition_point(|start| *start <= at).saturating_sub(1);
        let column = self.text[self.lines[line]..at].chars().count() + 1;
        Location { line: self.before + line + 1, column }
    }
}
