//! JSON as kro's functions read and write it.

use std::collections::HashMap;

use cel::common::{
    types::{CelBool, CelBytes, CelDouble, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt},
    value::{CowVal, Val},
};
use serde_json::{Map, Value};

use super::{
    Entry,
    arguments::{Arguments, Outcome, fail, give_text, text},
    ours,
};
use crate::cel::{
    budget::spend,
    value::{encode_base64, to_json},
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
    let json = native(arguments[0].as_ref()).map_err(|message| format!("json.marshal failed: {message}"));
    match json {
        Ok(json) => give_text(escaped(&json.to_string())),
        Err(message) => fail(message),
    }
}

fn encode<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    match native(arguments[0].as_ref()) {
        Ok(mut json) => {
            quoted(&mut json);
            give_text(escaped(&json.to_string()))
        }
        Err(message) => fail(format!("json.encode failed: {message}")),
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

/// Like the conversion of results, but bytes become base64 and large unsigned numbers stay.
fn native(value: &dyn Val) -> Result<Value, String> {
    if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        return Ok(Value::from(encode_base64(bytes.inner())));
    }
    if let Some(number) = value.downcast_ref::<CelUInt>() {
        return Ok(Value::from(*number.inner()));
    }
    if let Some(list) = value.downcast_ref::<CelList>() {
        return list.inner().iter().map(|element| native(element.as_ref())).collect::<Result<_, _>>().map(Value::Array);
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        let mut fields = Map::new();
        for (key, value) in map.inner() {
            let CelMapKey::String(name) = key else { return Err("map key must be string".to_owned()) };
            fields.insert(name.inner().to_owned(), native(value.as_ref())?);
        }
        return Ok(Value::Object(fields));
    }
    to_json(value, None)?.ok_or_else(|| "omit() is no JSON value".to_owned())
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
