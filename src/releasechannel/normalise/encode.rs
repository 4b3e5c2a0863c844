//! The two encodings: RFC 8785, and lists of entries as Go writes JSON.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::numbers;

/// RFC 8785: keys in order of their UTF-16 code units, no white space, ECMAScript numbers.
pub(super) fn jcs(value: &Value) -> String {
    let mut out = String::new();
    write_jcs(&mut out, value);
    out
}

fn write_jcs(out: &mut String, value: &Value) {
    match value {
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
        Value::Number(number) => out.push_str(&numbers::text(number, false)),
        Value::String(text) => out.push_str(&quoted(text)),
        Value::Array(items) => list(out, items, write_jcs),
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&quoted(key));
                out.push(':');
                write_jcs(out, &object[key]);
            }
            out.push('}');
        }
    }
}

/// Every object becomes a list of objects with one key each, sorted; text is escaped for HTML.
pub(super) fn entries(value: &Value) -> String {
    let mut out = String::new();
    write_entries(&mut out, value);
    out
}

fn write_entries(out: &mut String, value: &Value) {
    match value {
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
        Value::Number(number) => out.push_str(&numbers::text(number, true)),
        Value::String(text) => html_quoted(out, text),
        Value::Array(items) => list(out, items, write_entries),
        Value::Object(object) => write_object_entries(out, object),
    }
}

/// serde_json's map is sorted by bytes, which is Go's order.
fn write_object_entries(out: &mut String, object: &Map<String, Value>) {
    out.push('[');
    for (index, (key, value)) in object.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push('{');
        html_quoted(out, key);
        out.push(':');
        write_entries(out, value);
        out.push('}');
    }
    out.push(']');
}

fn list(out: &mut String, items: &[Value], write: fn(&mut String, &Value)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

/// serde_json escapes exactly what RFC 8785 asks for.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn html_quoted(out: &mut String, text: &str) {
    for c in quoted(text).chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
}
