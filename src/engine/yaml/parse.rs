//! From text to values and places.

use std::{collections::BTreeMap, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Error, Options, RenderOptions, SnippetMode, Spanned, UserMessageFormatter};

use super::{
    Document,
    locations::{Below, Locations},
    path,
};
use crate::{Diagnostic, Location, diagnostic::Severity};

/// Largest text that is read.
const MAX_BYTES: usize = 16 << 20;
/// Most values in a text, after aliases are replaced.
const MAX_NODES: usize = 1_000_000;
/// Most values that aliases stand for: nobody's manifests come near, and each costs as much as if it were written out.
const MAX_ALIASED: usize = 100_000;
/// Deepest nesting.
const MAX_DEPTH: usize = 64;

/// All documents of a text; empty ones are left out.
///
/// Booleans, octals and underscored numbers are read as Kubernetes reads them, whole floats become integers (`1.0` is `1`),
/// merge keys are merged. Duplicate keys, several megabytes, deep nesting and alias bombs are errors; each names its place.
pub fn documents(text: &str) -> Result<Vec<Document>, Diagnostic> {
    let mut documents = documents_with_duplicates(text)?;
    match documents.iter_mut().find_map(|document| document.duplicates.drain(..).next()) {
        Some(duplicate) => Err(duplicate),
        None => Ok(documents),
    }
}

/// The same, where duplicate keys are left to the caller ([`Document::duplicates`]): as with `kubectl apply`, the last one wins.
///
/// For RGDs, of which published ones have duplicate keys in templates, and kro accepts them.
pub fn documents_with_duplicates(text: &str) -> Result<Vec<Document>, Diagnostic> {
    if text.len() > MAX_BYTES {
        let message = format!("the text has {} bytes, more than the {MAX_BYTES} that are read", text.len());
        return Err(Diagnostic::error("", message).with_hint("split it into several files"));
    }
    on_own_stack(|| {
        let nodes: Vec<Spanned<Node>> =
            serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| diagnostic(&error, text))?;
        let mut documents: Vec<Document> = nodes.into_iter().map(document).collect();
        find_parts(&mut documents, text);
        keep_plain(&mut documents, text);
        Ok(documents)
    })
}

/// Of the keys that could be read otherwise, those in quotes are not.
fn keep_plain(documents: &mut [Document], text: &str) {
    if documents.iter().all(|document| document.ambiguous.is_empty()) {
        return;
    }
    let lines: Vec<&str> = text.lines().collect();
    let is_plain = |Location { line, column }: Location| {
        let first = lines.get(line - 1).and_then(|line| line.chars().nth(column - 1));
        first.is_some_and(char::is_alphabetic)
    };
    for document in documents {
        document.ambiguous.retain(|finding| finding.location.is_some_and(is_plain));
    }
}

/// Finds the part of the text that each document is written in: from the line of its first value to the next document.
fn find_parts(documents: &mut [Document], text: &str) {
    let mut ahead = documents.iter_mut();
    let Some(mut here) = ahead.next() else { return };
    let first_line = |document: &Document| document.locations.here.map_or(0, |place| place.line);
    let (mut begun, mut at) = (false, 0);
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        if begun && line.starts_with("---") {
            begun = false;
            let Some(next) = ahead.next() else { return };
            here = next;
        }
        if !begun && number >= first_line(here) {
            begun = true;
            here.part = at..at;
        }
        at += line.len();
        if begun {
            here.part.end = at;
        }
    }
}

/// Runs the recursive parser where [`MAX_DEPTH`] levels fit, whatever is left of the caller's stack.
///
/// Unoptimised, a level takes more than 32 KiB: 64 levels overflow the 2 MiB of a test's or a runtime's thread. The thread
/// is joined before this returns, so nothing here becomes concurrent.
fn on_own_stack<T: Send>(work: impl FnOnce() -> Result<T, Diagnostic> + Send) -> Result<T, Diagnostic> {
    const STACK: usize = 16 << 20;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("yaml".to_owned()).stack_size(STACK).spawn_scoped(scope, work);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(Diagnostic::error("", format!("starting the YAML reader: {error}"))),
        }
    })
}

fn options() -> Options {
    serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_ALIASED },
        legacy_octal_numbers: true,
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_documents: 10_000,
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_aliases: 10_000,
            max_anchors: 10_000,
            max_recorded_anchor_events: MAX_ALIASED,
            max_total_scalar_bytes: 2 * MAX_BYTES,
        },
    }
}

fn document(node: Spanned<Node>) -> Document {
    let Node { value, mut locations, duplicates, ambiguous } = node.value;
    locations.here = place(&node.referenced);
    Document { value, locations, duplicates, ambiguous, part: 0..0 }
}

/// A value and the places inside it; its own place is known to whoever holds it.
#[derive(Default)]
struct Node {
    value: Value,
    locations: Locations,
    /// Keys inside that are there twice, their paths relative to this value.
    duplicates: Vec<Diagnostic>,
    /// Keys inside that may be booleans to `kubectl`, in the same way.
    ambiguous: Vec<Diagnostic>,
}

impl Node {
    fn scalar(value: impl Into<Value>) -> Self {
        Self { value: value.into(), ..Self::default() }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::scalar(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::scalar(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::scalar(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
        whole(value)
            .or_else(|| Number::from_f64(value))
            .map(Node::scalar)
            .ok_or_else(|| E::custom(format_args!("{value} is not a number in JSON")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::scalar(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::scalar(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Node, A::Error> {
        let (mut values, mut places) = (Vec::new(), Vec::new());
        let (mut duplicates, mut ambiguous) = (Vec::new(), Vec::new());
        while let Some(Spanned { value: node, referenced, .. }) = elements.next_element::<Spanned<Node>>()? {
            let own = path::element("", values.len());
            collect(&mut duplicates, node.duplicates, &own);
            collect(&mut ambiguous, node.ambiguous, &own);
            values.push(node.value);
            places.push(Locations { here: place(&referenced), ..node.locations });
        }
        let locations = Locations { here: None, below: Below::Elements(places) };
        Ok(Node { value: values.into(), locations, duplicates, ambiguous })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Node, A::Error> {
        let (mut values, mut places) = (Map::new(), BTreeMap::new());
        let (mut duplicates, mut ambiguous) = (Vec::new(), Vec::new());
        while let Some(key) = fields.next_key::<Spanned<String>>()? {
            let Spanned { value: node, referenced, .. } = fields.next_value::<Spanned<Node>>()?;
            let container = !matches!(node.locations.below, Below::Nothing);
            let here = place(if container { &key.referenced } else { &referenced });
            places.insert(key.value.clone(), Locations { here, ..node.locations });
            let own = path::field("", &key.value);
            if values.contains_key(&key.value) {
                collect(&mut duplicates, vec![duplicate(&key)], &own);
            }
            collect(&mut ambiguous, otherwise(&key).into_iter().collect(), &own);
            collect(&mut duplicates, node.duplicates, &own);
            collect(&mut ambiguous, node.ambiguous, &own);
            values.insert(key.value, node.value);
        }
        let locations = Locations { here: None, below: Below::Fields(places) };
        Ok(Node { value: values.into(), locations, duplicates, ambiguous })
    }
}

/// Takes findings over from inside; a text may repeat keys as often as it likes, a reader wants to know of some.
fn collect(found: &mut Vec<Diagnostic>, inner: Vec<Diagnostic>, own: &str) {
    const MOST: usize = 50;
    let room = MOST.saturating_sub(found.len());
    found.extend(inner.into_iter().take(room).map(|finding| Diagnostic { path: path::joined(own, &finding.path), ..finding }));
}

fn duplicate(key: &Spanned<String>) -> Diagnostic {
    let finding = Diagnostic::error("", format!("duplicate key {:?}", key.value));
    Diagnostic { location: place(&key.referenced), hint: Some("the last one counts; take the others away".to_owned()), ..finding }
}

/// Words that YAML 1.1 reads as true and as false, which `kubectl` does of keys too; then it makes text of them again.
const TRUE: [&str; 10] = ["y", "Y", "yes", "Yes", "YES", "True", "TRUE", "on", "On", "ON"];
const FALSE: [&str; 10] = ["n", "N", "no", "No", "NO", "False", "FALSE", "off", "Off", "OFF"];

fn otherwise(key: &Spanned<String>) -> Option<Diagnostic> {
    let word = key.value.as_str();
    let read = [(TRUE, "true"), (FALSE, "false")].into_iter().find(|(words, _)| words.contains(&word))?.1;
    let finding =
        Diagnostic::error("", format!("the key {word} is text here, and {read:?} to kubectl, which reads it as a boolean"));
    let hint = Some(format!("write {word:?} in quotes"));
    Some(Diagnostic { severity: Severity::Warning, location: place(&key.referenced), hint, ..finding })
}

/// JSON writers of Kubernetes print whole floats without a fraction, so that `1.0` counts as an integer.
pub(crate) fn whole(value: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
    (value.fract() == 0.0 && value.abs() <= EXACT).then(|| Number::from(value as i64))
}

fn place(location: &serde_saphyr::Location) -> Option<Location> {
    let (line, column) = (usize::try_from(location.line()).ok()?, usize::try_from(location.column()).ok()?);
    (line > 0).then_some(Location { line, column })
}

fn diagnostic(error: &Error, text: &str) -> Diagnostic {
    let location = error.location().as_ref().and_then(place);
    let mut options = RenderOptions::new(&UserMessageFormatter);
    options.snippets = SnippetMode::Off;
    let mut message = plinth_api::bound::words(error).unwrap_or_else(|| error.without_snippet().render_with_options(options));
    // The place is data of its own.
    if let Some(Location { line, column }) = location
        && let Some(bare) = message.strip_suffix(&format!(" at line {line}, column {column}"))
    {
        message.truncate(bare.len());
    }
    Diagnostic { location, hint: hint(location, text), ..Diagnostic::error("", message) }
}

/// The one mistake that everybody makes with expressions in YAML.
fn hint(location: Option<Location>, text: &str) -> Option<String> {
    let line = text.lines().nth(location?.line.checked_sub(1)?)?;
    let plain = line.contains("${") && line.contains(": ");
    plain
        .then(|| "put the whole value in quotes: an expression with a colon or a hash in it is not plain text in YAML".to_owned())
}
