//! JSON and YAML from outside, bounded, with line and column in errors.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::budget;

/// Why a text could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place(*line, *column))]
pub struct TextError {
    /// 1-based, 0 where unknown.
    pub line: u64,
    /// 1-based, 0 where unknown.
    pub column: u64,
    /// What is wrong.
    pub message: String,
}

impl TextError {
    /// `FILE:line:column`, as compilers write it.
    pub(crate) fn place_in(&self, file: impl std::fmt::Display) -> String {
        if self.line == 0 { file.to_string() } else { format!("{file}:{}:{}", self.line, self.column) }
    }
}

fn place(line: u64, column: u64) -> String {
    if line == 0 { String::new() } else { format!("line {line}, column {column}: ") }
}

/// Reads one document: JSON where it starts with `{` or `[`, else YAML with the scalars of YAML 1.2 (a bare `yes` is text, ocm.md 1.3).
pub(crate) fn document<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, TextError> {
    let text = utf8(bytes)?;
    if text.trim_start().starts_with(['{', '[']) {
        // YAML's flow style starts like JSON. A text that is not JSON gets its second chance, but keeps JSON's message.
        return json(bytes).or_else(|error| yaml(text).map_err(|_| error));
    }
    yaml(text)
}

/// Reads one JSON document and nothing after it.
pub(crate) fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, TextError> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        TextError { line: error.line() as u64, column: error.column() as u64, message }
    })
}

/// Reads one YAML document.
pub(crate) fn yaml<T: DeserializeOwned>(text: &str) -> Result<T, TextError> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| yaml_error(&error))
}

/// Reads all YAML documents of a text; empty ones are left out.
pub(crate) fn yaml_documents(bytes: &[u8]) -> Result<Vec<Value>, TextError> {
    serde_saphyr::from_multiple_with_options(utf8(bytes)?, options()).map_err(|error| yaml_error(&error))
}

fn utf8(bytes: &[u8]) -> Result<&str, TextError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count() as u64;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() as u64 + 1;
        TextError { line, column, message: "that is not UTF-8".to_owned() }
    })
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        legacy_octal_numbers: true,
        budget: budget! {
            max_documents: 10_000,
            max_nodes: 4_000_000,
            max_events: 10_000_000,
            max_total_scalar_bytes: 64 << 20,
        },
    }
}

fn yaml_error(error: &serde_saphyr::Error) -> TextError {
    let (line, column) = error.location().map_or((0, 0), |at| (at.line(), at.column()));
    // The first line says what is wrong; the rest is a picture of the source.
    let text = plinth_api::bound::words(error).unwrap_or_else(|| error.to_string());
    let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    // The place is data of its own.
    let message = message.strip_prefix(&format!("line {line} column {column}: ")).unwrap_or(message);
    let message = message.strip_suffix(&format!(" at line {line}, column {column}")).unwrap_or(message);
    TextError { line, column, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_json_and_yaml_alike() {
        for text in [r#"{"a": [1, "yes"]}"#, "a: [1, yes]", "{a: [1, yes]}"] {
            assert_eq!(document::<Value>(text.as_bytes()).unwrap(), serde_json::json!({"a": [1, "yes"]}), "{text}");
        }
    }

    /// As YAML 1.2's core schema has them, and numbers of any size as the nearest double.
    #[test]
    fn scalars_are_what_they_look_like() {
        for (text, expected) in [
            ("1.5e+21", "1.5e+21"),
            ("123456789012345678901234567890", "1.2345678901234568e+29"),
            ("9007199254740993", "9007199254740993"),
            ("-0.0", "-0.0"),
            (".5", "0.5"),
            ("~", "null"),
            ("", "null"),
            ("true", "true"),
            ("on", "\"on\""),
            ("n", "\"n\""),
            ("1.2.3", "\"1.2.3\""),
            ("2026-11-29", "\"2026-11-29\""),
            ("2026-11-29T14:05:41Z", "\"2026-11-29T14:05:41Z\""),
            ("12:30:45", "\"12:30:45\""),
            ("'1'", "\"1\""),
        ] {
            let read: Value = document(format!("a: {text}").as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(read["a"].to_string(), expected, "{text}");
        }
    }

    #[test]
    fn says_where() {
        let error = document::<Value>(b"{\"a\":1}]}\"x\":1}]}").unwrap_err();
        assert_eq!((error.line, error.column), (1, 8), "{error}");
        let error = document::<Value>(b"a: 1\nb: [\n").unwrap_err();
        assert!(error.line >= 2, "{error}");
        assert_eq!(error.to_string().matches("line ").count(), 1, "{error}");
        let error = document::<Value>(b"a: 1\na: 2\n").unwrap_err();
        assert_eq!(error.to_string().matches("line ").count(), 1, "{error}");
        let error = document::<Value>(b"a: 1\nb: \xff\n").unwrap_err();
        assert_eq!((error.line, error.column), (2, 4));
    }

    #[test]
    fn refuses_bombs() {
        let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..12 {
            let previous = format!("*a{}", level - 1);
            let line = format!("a{level}: &a{level} [{}]\n", vec![previous; 10].join(","));
            text.push_str(&line);
        }
        assert!(document::<Value>(text.as_bytes()).is_err());
        assert!(document::<Value>("[".repeat(100_000).as_bytes()).is_err());
    }
}
