//! From text to values and places.

use std::{collections::BTreeMap, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Error, Options, RenderOptions, SnippetMode, Spanned, UserMessageFormatter};

use super::{
    Document,
    locations::{Below, Locations},
};
use crate::{Diagnostic, Location};

/// Largest text that is read.
const MAX_BYTES: usize = 16 << 20;
/// Most values in a text, after aliases are replaced.
const MAX_NODES: usize = 1_000_000;
/// Deepest nesting.
const MAX_DEPTH: usize = 64;

/// All documents of a text; empty ones are left out.
///
/// Booleans, octals and underscored numbers are read as Kubernetes reads them, whole floats become integers (`1.0` is `1`),
/// merge keys are merged. Duplicate keys, several megabytes, deep nesting and alias bombs are errors; each names its place.
pub fn documents(text: &str) -> Result<Vec<Document>, Diagnostic> {
    if text.len() > MAX_BYTES {
        let message = format!("the text has {} bytes, more than the {MAX_BYTES} that are read", text.len());
        return Err(Diagnostic::error("", message).with_hint("split it into several files"));
    }
    on_own_stack(|| {
        let nodes: Vec<Spanned<Node>> =
            serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| diagnostic(&error, text))?;
        nodes.into_iter().map(document).collect()
    })
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
        legacy_octal_numbers: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_documents: 10_000,
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_aliases: 10_000,
            max_anchors: 10_000,
            max_total_scalar_bytes: 2 * MAX_BYTES,
        },
    }
}

fn document(node: Spanned<Node>) -> Result<Document, Diagnostic> {
    let Node { value, mut locations, clash } = node.value;
    locations.here = place(&node.referenced);
    match clash {
        Some(clash) => Err(clash),
        None => Ok(Document { value, locations }),
    }
}

/// A value and the places inside it; its own place is known to whoever holds it.
#[derive(Default)]
struct Node {
    value: Value,
    locations: Locations,
    /// The first key inside that is there twice in JSON, though not in YAML (`1` and `"1"`). The parser's own errors carry a
    /// place, those that a visitor raises do not; hence this.
    clash: Option<Diagnostic>,
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
        let (mut values, mut places, mut clash) = (Vec::new(), Vec::new(), None);
        while let Some(Spanned { value: node, referenced, .. }) = elements.next_element::<Spanned<Node>>()? {
            values.push(node.value);
            places.push(Locations { here: place(&referenced), ..node.locations });
            clash = clash.or(node.clash);
        }
        Ok(Node { value: values.into(), locations: Locations { here: None, below: Below::Elements(places) }, clash })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Node, A::Error> {
        let (mut values, mut places, mut clash) = (Map::new(), BTreeMap::new(), None);
        while let Some(key) = fields.next_key::<Spanned<String>>()? {
            let Spanned { value: node, referenced, .. } = fields.next_value::<Spanned<Node>>()?;
            let container = !matches!(node.locations.below, Below::Nothing);
            let here = place(if container { &key.referenced } else { &referenced });
            places.insert(key.value.clone(), Locations { here, ..node.locations });
            let twice = values.contains_key(&key.value).then(|| duplicate(&key));
            clash = clash.or(node.clash).or(twice);
            values.insert(key.value, node.value);
        }
        Ok(Node { value: values.into(), locations: Locations { here: None, below: Below::Fields(places) }, clash })
    }
}

fn duplicate(key: &Spanned<String>) -> Diagnostic {
    Diagnostic { location: place(&key.referenced), ..Diagnostic::error("", format!("duplicate key \"{}\"", key.value)) }
}

/// JSON writers of Kubernetes print whole floats without a fraction, so that `1.0` counts as an integer.
fn whole(value: f64) -> Option<Number> {
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
    let mut message = error.without_snippet().render_with_options(options);
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
