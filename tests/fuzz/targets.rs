//! Every parser of bytes from outside, as a function that says whether they are what it reads.
//!
//! A parser may refuse whatever it likes; it may not panic, and what it reads must mean the same when written and read again.

use std::{io::Write, str};

use plinth_engine::{
    cel::{Expression, Scope, check},
    graph::{Definition, Options, compile},
    schema::builtin,
    simpleschema, template, yaml,
};
use plinth_releasechannel::{
    Contents, Descriptor, ImageReference, Limits, Options as Reach, Registries, RepositoryRef, SourceRef,
    versions::{Constraint, Version},
};
use plinth_run::journal;
use serde_json::Value;

/// A parser.
pub(crate) struct Target {
    /// Name of the target and of its folder.
    pub(crate) name: &'static str,
    /// Whether the bytes parse.
    pub(crate) parse: fn(&[u8]) -> bool,
}

/// All of them.
pub(crate) const TARGETS: [Target; 13] = [
    Target { name: "yaml", parse: yaml_documents },
    Target { name: "definition", parse: definition },
    Target { name: "simpleschema", parse: simple_schema },
    Target { name: "cel", parse: cel },
    Target { name: "template", parse: template_text },
    Target { name: "descriptor", parse: descriptor },
    Target { name: "source", parse: source },
    Target { name: "image", parse: image },
    Target { name: "range", parse: range },
    Target { name: "archive", parse: archive },
    Target { name: "docker-config", parse: docker_config },
    Target { name: "ocm-config", parse: ocm_config },
    Target { name: "journal", parse: journal_lines },
];

fn text(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok()
}

fn yaml_documents(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let Ok(documents) = yaml::documents(text) else { return false };
    for document in documents {
        // What was read is JSON, and JSON is YAML.
        let again = yaml::documents(&document.value.to_string());
        let Ok(again) = again else { continue };
        if let [again] = again.as_slice() {
            assert_eq!(again.value, document.value);
        }
    }
    true
}

/// A whole definition, through to the compiler.
fn definition(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let Ok(documents) = yaml::documents_with_duplicates(text) else { return false };
    let Some(document) = documents.first() else { return false };
    let Ok(definition) = Definition::from_document(document, text) else { return false };
    compile(&definition, builtin(), &Options::default()).graph().is_some()
}

/// A mapping with `spec` and `types`, or the type of one field.
fn simple_schema(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let object = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let (spec, types) = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) => (object(map.get("spec")), object(map.get("types"))),
        _ => ([("field".to_owned(), Value::from(text))].into_iter().collect(), object(None)),
    };
    simpleschema::build(&spec, &types).is_ok()
}

fn cel(bytes: &[u8]) -> bool {
    let Some(expression) = text(bytes).and_then(|text| Expression::parse(text).ok()) else { return false };
    assert!(Expression::parse(expression.source()).is_ok(), "an expression parses as often as it is parsed");
    let _types_or_faults = check(&expression, &Scope::default());
    true
}

fn template_text(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let Ok(pieces) = template::scan(text) else { return false };
    let whole: String = pieces
        .iter()
        .map(|piece| match piece {
            template::Piece::Literal(text) => (*text).to_owned(),
            template::Piece::Expression { text, .. } => format!("${{{text}}}"),
        })
        .collect();
    assert_eq!(whole, text, "the pieces are the whole");
    template::Text::read(text).is_ok()
}

fn descriptor(bytes: &[u8]) -> bool {
    Descriptor::read(bytes).is_ok()
}

fn source(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let _repository = RepositoryRef::parse(text);
    SourceRef::parse(text).is_ok()
}

fn image(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let Some(image) = ImageReference::parse(text) else { return false };
    // The scheme is not printed.
    let again = ImageReference::parse(&image.to_string()).map(|again| ImageReference { plain_http: image.plain_http, ..again });
    assert_eq!(again, Some(image), "{text}");
    true
}

/// A range, a line end, and a version; without a line end the range alone.
fn range(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let (range, version) = text.split_once('\n').unwrap_or((text, ""));
    let version = Version::parse(version);
    if let Some(version) = &version {
        let again = Version::parse(&version.canonical());
        assert_eq!(again.map(|again| again.canonical()), Some(version.canonical()));
    }
    let Ok(range) = Constraint::parse(range) else { return false };
    version.is_none_or(|version| range.allows(&version))
}

/// A transport archive: tar, or tar.gz by its magic.
fn archive(bytes: &[u8]) -> bool {
    let Ok(mut file) = tempfile::Builder::new().suffix(".tar").tempfile() else { return false };
    if file.write_all(bytes).is_err() {
        return false;
    }
    Contents::open(file.path(), &Limits::default()).is_ok()
}

fn docker_config(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let reach = Reach { no_user_config: true, docker_config_texts: vec![text.to_owned()], ..Reach::default() };
    Registries::new(&reach).is_ok()
}

fn ocm_config(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let reach = Reach { no_user_config: true, ocm_config_texts: vec![text.to_owned()], ..Reach::default() };
    Registries::new(&reach).is_ok()
}

fn journal_lines(bytes: &[u8]) -> bool {
    let Ok(replay) = journal::decode(bytes) else { return false };
    for event in &replay.events {
        let line = journal::encode(event).expect("it was short enough to be read");
        let again = journal::decode(line.as_bytes()).expect("what was written is read");
        assert_eq!(again.events, std::slice::from_ref(event));
    }
    true
}
