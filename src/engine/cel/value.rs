//! From JSON to values of the interpreter and back.

use std::{collections::HashMap, fmt::Write as _};

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use cel::common::{
    types::{
        CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional, CelString,
        CelTimestamp, CelUInt,
    },
    value::{CowVal, Val},
};
use serde_json::{Map, Number, Value};

use super::{
    environment::Environment,
    library::opaque::{Broken, Omit},
    unordered::Unordered,
};
use crate::schema::Schema;

/// A value of the interpreter that owns all it holds.
pub(super) type Boxed = Box<dyn Val>;

/// Base64 as kro writes it.
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, lenient(DecodePaddingMode::RequireCanonical));
/// Base64 without padding.
const UNPADDED: GeneralPurpose = GeneralPurpose::new(&STANDARD, lenient(DecodePaddingMode::RequireNone));

/// Go does not look at bits that are too many.
const fn lenient(padding: DecodePaddingMode) -> GeneralPurposeConfig {
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true).with_decode_padding_mode(padding)
}

/// Bytes of a base64 text, or the offset of what is none. As kro reads it: padding may be missing, but not in part, and line ends say
/// nothing.
pub(super) fn decode_base64(text: &str) -> Result<Vec<u8>, usize> {
    let is_line_end = |byte: u8| byte == b'\r' || byte == b'\n';
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let lines = text.bytes().any(is_line_end).then(|| text.replace(['\r', '\n'], ""));
    let joined = lines.as_deref().unwrap_or(text);
    // Go says where reading without padding ends: at the first byte that is no digit, or at the last one.
    let fault = || text.bytes().position(|byte| !is_digit(byte) && !is_line_end(byte)).unwrap_or(text.len().saturating_sub(1));
    BASE64.decode(joined).or_else(|_| UNPADDED.decode(joined)).map_err(|_| fault())
}

/// Base64 with padding.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Reads JSON; where there is a schema, reading follows it (kro.md section 4, "Run-time values").
pub(super) fn from_json(value: &Value, schema: Option<&Schema>) -> Boxed {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
        Value::Number(number) => from_number(number, schema),
        Value::String(text) => from_text(text, schema),
        Value::Array(elements) => {
            let items = schema.and_then(|schema| schema.items.as_deref());
            let list = CelList::from(elements.iter().map(|element| from_json(element, items)).collect::<Vec<_>>());
            match schema.and_then(|schema| schema.list_type.as_deref()) {
                Some("set") => Box::new(Unordered::set(list)),
                Some("map") => {
                    Box::new(Unordered::map(list, &schema.map(|schema| schema.list_map_keys.clone()).unwrap_or_default()))
                }
                _ => Box::new(list),
            }
        }
        Value::Object(fields) => {
            let entries = fields.iter().filter_map(|(name, value)| {
                // A null property counts as absent; a null value of a map is one.
                let absent = value.is_null() && schema.is_some_and(|schema| schema.properties.contains_key(name));
                let field = schema.and_then(|schema| schema.field(name));
                (!absent).then(|| (CelMapKey::from(name.clone()), from_json(value, field.map(AsRef::as_ref))))
            });
            Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
        }
    }
}

fn from_number(number: &Number, schema: Option<&Schema>) -> Boxed {
    let wants = |kind| schema.is_some_and(|schema| schema.is(kind));
    match (number.as_i64(), number.as_f64().unwrap_or(f64::NAN)) {
        (Some(whole), _) if !wants("number") => Box::new(CelInt::from(whole)),
        (None, value) if wants("integer") => match exact(value) {
            Some(whole) => Box::new(CelInt::from(whole)),
            None => Box::new(Broken(format!("invalid data, expected int, got non-integer float {value}"))),
        },
        (_, value) => Box::new(CelDouble::from(value)),
    }
}

fn from_text(text: &str, schema: Option<&Schema>) -> Boxed {
    let format = schema.filter(|schema| schema.is("string")).and_then(|schema| schema.format.as_deref());
    let read = match format {
        Some("byte") => decode_base64(text).ok().map(|bytes| -> Boxed { Box::new(CelBytes::from(bytes)) }),
        Some("date-time") => converted("timestamp", text.to_owned()),
        Some("date") => converted("timestamp", format!("{text}T00:00:00Z")),
        Some("duration") => converted("duration", text.to_owned()),
        _ => Some(Box::new(CelString::from(text.to_owned())) as Boxed),
    };
    let expected = format.unwrap_or("string");
    read.unwrap_or_else(|| Box::new(Broken(format!("invalid data, expected {expected}, got {text:?}"))))
}

/// A text converted by the interpreter's own function.
pub(super) fn converted(function: &str, text: String) -> Option<Boxed> {
    let arguments = vec![CowVal::owned(CelString::from(text))];
    let convert = Environment::kro().interpreter().find_overload(function, &arguments)?;
    Some(convert(arguments).ok()?.into_owned())
}

/// What a value is as JSON, for a field of this schema if it is known; `None` for `omit()`. Parts that are `omit()` are left
/// out of lists and maps.
///
/// Rules: kro.md section 4, "Conversion of results to JSON"; the error is kro's text.
pub(super) fn to_json(value: &dyn Val, field: Option<&Schema>) -> Result<Option<Value>, String> {
    let is_bytes_field = field.is_some_and(|field| field.format.as_deref() == Some("byte"));
    match value.downcast_ref::<CelBytes>() {
        Some(bytes) if is_bytes_field => Ok(Some(Value::from(encode_base64(bytes.inner())))),
        Some(_) => Err(unsupported("bytes")),
        None => part(value),
    }
}

/// A value or a part of one. Bytes and times in a part mostly come from an object that is copied whole, so they are written as
/// they stand there: base64, and with their fractions of a second.
fn part(value: &dyn Val) -> Result<Option<Value>, String> {
    if value.downcast_ref::<Omit>().is_some() {
        return Ok(None);
    }
    if let Some(optional) = value.downcast_ref::<CelOptional>() {
        return optional.option().map_or(Ok(Some(Value::Null)), |value| to_json(value, None));
    }
    if let Some(list) = value.downcast_ref::<CelList>() {
        let elements = list.inner().iter().filter_map(|element| inner_part(element.as_ref()).transpose());
        return Ok(Some(Value::Array(elements.collect::<Result<_, _>>()?)));
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        return Ok(Some(object(map)?));
    }
    scalar(value).map(Some)
}

fn inner_part(value: &dyn Val) -> Result<Option<Value>, String> {
    if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        return Ok(Some(Value::from(encode_base64(bytes.inner()))));
    }
    if let Some(time) = value.downcast_ref::<CelTimestamp>() {
        return Ok(Some(Value::from(time.inner().to_utc().format("%Y-%m-%dT%H:%M:%S%.fZ").to_string())));
    }
    part(value)
}

fn scalar(value: &dyn Val) -> Result<Value, String> {
    Ok(if let Some(value) = value.downcast_ref::<CelBool>() {
        Value::Bool(*value.inner())
    } else if let Some(value) = value.downcast_ref::<CelInt>() {
        Value::from(*value.inner())
    } else if let Some(value) = value.downcast_ref::<CelUInt>() {
        Value::from(i64::try_from(*value.inner()).map_err(|_| unsupported_uint(*value.inner()))?)
    } else if let Some(value) = value.downcast_ref::<CelDouble>() {
        double(*value.inner())?
    } else if let Some(value) = value.downcast_ref::<CelString>() {
        Value::from(value.inner())
    } else if value.downcast_ref::<CelNull>().is_some() {
        Value::Null
    } else if let Some(time) = value.downcast_ref::<CelTimestamp>() {
        Value::from(time.inner().to_utc().format("%Y-%m-%dT%H:%M:%SZ").to_string())
    } else if let Some(duration) = value.downcast_ref::<CelDuration>() {
        Value::from(go_duration(duration.inner().num_nanoseconds().unwrap_or(i64::MAX)))
    } else if let Some(broken) = value.downcast_ref::<Broken>() {
        return Err(broken.0.clone());
    } else {
        return Err(unsupported(value.get_type().name()));
    })
}

fn unsupported(type_name: &str) -> String {
    match type_name {
        "bytes" => "unsupported type: bytes value cannot be used directly in a resource template or status field; encode it \
                    explicitly, e.g. base64.encode(...)"
            .to_owned(),
        other => format!("unsupported type: {other}"),
    }
}

fn unsupported_uint(value: u64) -> String {
    format!("unsupported type: uint value {value} overflows int64; convert it explicitly, e.g. string(...)")
}

fn double(value: f64) -> Result<Value, String> {
    match exact(value) {
        // Go writes a whole float without a fraction, and a field of type integer takes nothing else.
        Some(whole) => Ok(Value::from(whole)),
        None => Number::from_f64(value).map(Value::Number).ok_or_else(|| format!("unsupported value: {value} is no JSON number")),
    }
}

fn object(map: &CelMap<'_>) -> Result<Value, String> {
    let mut fields = Map::new();
    for (key, value) in map.inner() {
        let CelMapKey::String(name) = key else {
            return Err(format!("map key must be string, got {}", go_kind(key)));
        };
        if let Some(value) = inner_part(value.as_ref())? {
            fields.insert(name.inner().to_owned(), value);
        }
    }
    Ok(Value::Object(fields))
}

pub(super) fn go_kind(key: &CelMapKey<'_>) -> &'static str {
    match key {
        CelMapKey::Int(_) => "int64",
        CelMapKey::UInt(_) => "uint64",
        CelMapKey::Bool(_) => "bool",
        CelMapKey::String(_) => "string",
    }
}

/// The whole number that a float is, where it is one.
pub(super) fn exact(value: f64) -> Option<i64> {
    const BOUND: f64 = 9_223_372_036_854_775_808.0; // 2^63
    #[expect(clippy::cast_possible_truncation, reason = "whole and within range")]
    (value.fract() == 0.0 && (-BOUND..BOUND).contains(&value)).then_some(value as i64)
}

/// A duration as Go prints it: `1h30m0s`, `1.5s`, `20ms`.
fn go_duration(nanoseconds: i64) -> String {
    let total = nanoseconds.unsigned_abs();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    if total == 0 {
        return "0s".to_owned();
    }
    if total < 1_000_000_000 {
        let (unit, size) = [("ms", 1_000_000), ("µs", 1_000)].into_iter().find(|(_, size)| total >= *size).unwrap_or(("ns", 1));
        return format!("{sign}{}{unit}", decimal(total, size));
    }
    let seconds = total / 1_000_000_000;
    let mut text = sign.to_owned();
    if seconds >= 3600 {
        let _ = write!(text, "{}h", seconds / 3600);
    }
    if seconds >= 60 {
        let _ = write!(text, "{}m", seconds / 60 % 60);
    }
    text + &decimal(total % 60_000_000_000, 1_000_000_000) + "s"
}

fn decimal(value: u64, unit: u64) -> String {
    if value.is_multiple_of(unit) {
        return (value / unit).to_string();
    }
    let width = unit.ilog10() as usize;
    format!("{}.{:0width$}", value / unit, value % unit).trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_as_go_prints_them() {
        let second = 1_000_000_000;
        for (nanoseconds, text) in [
            (0, "0s"),
            (90 * second, "1m30s"),
            (5400 * second, "1h30m0s"),
            (3600 * second, "1h0m0s"),
            (1_500_000_000, "1.5s"),
            (-1_500_000, "-1.5ms"),
            (20_000, "20µs"),
            (7, "7ns"),
            (60 * second + 5_000_000, "1m0.005s"),
        ] {
            assert_eq!(go_duration(nanoseconds), text);
        }
    }
}
