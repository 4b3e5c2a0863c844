//! JSON as kro's functions read and write it.

use std::{collections::HashMap, io};

use cel::common::{
    types::{CelBool, CelBytes, CelDouble, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt},
    value::{CowVal, Val},
};
use serde::Serialize;
use serde_json::{Map, Number, Serializer, Value, ser::Formatter};

use super::{
    Entry,
    arguments::{Arguments, Outcome, fail, give_text, text},
    ours,
    standard::go_double,
};
use crate::cel::{
    budget::spend,
    value::{encode_base64, go_kind, to_json},
};

/// The greatest whole number up to which doubles have each.
const MOST_IN_DOUBLE: u64 = (1 << 53) - 1;

pub(super) fn entries() -> Vec<Entry> {
    vec![
        ours("json.marshal", &["json.marshal(dyn) -> string"], marshal),
        ours("json.unmarshal", &["json.unmarshal(string) -> dyn"], unmarshal),
        ours("json.encode", &["json.encode(dyn) -> string"], encode),
    ]
}

/// Keys sorted, and `<`, `>`, `&` escaped, as Go's encoder does.
fn marshal<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    match native(arguments[0].as_ref()) {
        Ok(json) => give_text(escaped(&go_text(&json))),
        Err(message) => fail(format!("json.marshal failed to {message}")),
    }
}

fn encode<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    match native(arguments[0].as_ref()) {
        Ok(mut json) => {
            quoted(&mut json);
            give_text(escaped(&go_text(&json)))
        }
        Err(message) => fail(format!("json.encode failed to {message}")),
    }
}

fn go_text(json: &Value) -> String {
    let mut bytes = Vec::new();
    json.serialize(&mut Serializer::with_formatter(&mut bytes, Go)).expect("a value in memory can be written");
    String::from_utf8(bytes).expect("JSON is text")
}

/// Writes numbers as Go's encoder does: with an exponent from `1e+21` on and below a millionth.
struct Go;

impl Formatter for Go {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let size = value.abs();
        if size >= 1e21 {
            writer.write_all(format!("{value:e}").replace('e', "e+").as_bytes())
        } else if size < 1e-6 && size > 0.0 {
            write!(writer, "{value:e}")
        } else {
            write!(writer, "{value}")
        }
    }
}

/// Whole numbers that a double cannot hold become texts, as protobuf's JSON has them.
fn quoted(json: &mut Value) {
    match json {
        Value::Number(number) if number.is_i64() || number.is_u64() => {
            let size = number.as_i64().map_or(u64::MAX, i64::unsigned_abs);
            if size > MOST_IN_DOUBLE {
                *json = Value::from(number.to_string());
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(quoted),
        Value::Object(fields) => fields.values_mut().for_each(quoted),
        _ => {}
    }
}

/// JSON text with what Go's encoder escapes besides.
pub(crate) fn escaped(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Like the conversion of results, but bytes become base64, and large unsigned numbers and floats stay what they are. An error begins
/// with what failed.
fn native(value: &dyn Val) -> Result<Value, String> {
    if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        return Ok(Value::from(encode_base64(bytes.inner())));
    }
    if let Some(number) = value.downcast_ref::<CelUInt>() {
        return Ok(Value::from(*number.inner()));
    }
    if let Some(number) = value.downcast_ref::<CelDouble>() {
        let number = *number.inner();
        let encoded = Number::from_f64(number).map(Value::Number);
        return encoded.ok_or_else(|| format!("encode value: json: unsupported value: {}", go_double(number)));
    }
    if let Some(list) = value.downcast_ref::<CelList>() {
        return list.inner().iter().map(|element| native(element.as_ref())).collect::<Result<_, _>>().map(Value::Array);
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        let mut fields = Map::new();
        for (key, value) in map.inner() {
            let CelMapKey::String(name) = key else {
                return Err(format!("convert value: map key must be string, got {}", go_kind(key)));
            };
            fields.insert(name.inner().to_owned(), native(value.as_ref())?);
        }
        return Ok(Value::Object(fields));
    }
    let json = to_json(value, None).map_err(|message| format!("convert value: {message}"))?;
    json.ok_or_else(|| "convert value: omit() is no JSON value".to_owned())
}

/// Every number becomes a double, as kro does.
fn unmarshal<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let text = text(&arguments, 0)?;
    spend(text.len() as u64 / 8)?;
    match serde_json::from_str(text) {
        Ok(json) => Ok(CowVal::Owned(decoded(json))),
        Err(error) => fail(format!("json.unmarshal failed to parse JSON: {error}")),
    }
}

fn decoded<'v>(json: Value) -> Box<dyn Val + 'v> {
    match json {
        Value::Null => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(value)),
        Value::Number(number) => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
        Value::String(text) => Box::new(CelString::from(text)),
        Value::Array(elements) => Box::new(CelList::from(elements.into_iter().map(decoded).collect::<Vec<_>>())),
        Value::Object(fields) => {
            let entries = fields.into_iter().map(|(name, value)| (CelMapKey::from(name), decoded(value)));
            Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
        }
    }
}
