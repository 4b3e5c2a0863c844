//! The standard functions and operators: the interpreter's, except for conversions that kro adds elsewhere.

use cel::common::types::{CelDouble, CelDuration, CelTimestamp};

use super::{
    Entry,
    arguments::{Arguments, Outcome, fail, give_int, give_text, no_overload},
    instead, theirs,
};
use crate::cel::environment::Environment;

pub(super) fn entries() -> Vec<Entry> {
    [operators(), comparisons(), conversions(), times(), texts()].into_iter().flatten().collect()
}

fn operators() -> Vec<Entry> {
    vec![
        theirs("!_", &["!_(bool) -> bool"]),
        theirs("-_", &["-_(double) -> double", "-_(int) -> int"]),
        theirs("@in", &["@in(<A>, list(<A>)) -> bool", "@in(<A>, map(<A>, <B>)) -> bool"]),
        theirs("_!=_", &["_!=_(<A>, <A>) -> bool"]),
        theirs("_%_", &["_%_(int, int) -> int", "_%_(uint, uint) -> uint"]),
        theirs("_&&_", &["_&&_(bool, bool) -> bool"]),
        theirs("_*_", &["_*_(double, double) -> double", "_*_(int, int) -> int", "_*_(uint, uint) -> uint"]),
        theirs(
            "_+_",
            &[
                "_+_(bytes, bytes) -> bytes",
                "_+_(double, double) -> double",
                "_+_(google.protobuf.Duration, google.protobuf.Duration) -> google.protobuf.Duration",
                "_+_(google.protobuf.Duration, google.protobuf.Timestamp) -> google.protobuf.Timestamp",
                "_+_(google.protobuf.Timestamp, google.protobuf.Duration) -> google.protobuf.Timestamp",
                "_+_(int, int) -> int",
                "_+_(list(<A>), list(<A>)) -> list(<A>)",
                "_+_(string, string) -> string",
                "_+_(uint, uint) -> uint",
            ],
        ),
        theirs(
            "_-_",
            &[
                "_-_(double, double) -> double",
                "_-_(google.protobuf.Duration, google.protobuf.Duration) -> google.protobuf.Duration",
                "_-_(google.protobuf.Timestamp, google.protobuf.Duration) -> google.protobuf.Timestamp",
                "_-_(google.protobuf.Timestamp, google.protobuf.Timestamp) -> google.protobuf.Duration",
                "_-_(int, int) -> int",
                "_-_(uint, uint) -> uint",
            ],
        ),
        theirs("_/_", &["_/_(double, double) -> double", "_/_(int, int) -> int", "_/_(uint, uint) -> uint"]),
        theirs("_==_", &["_==_(<A>, <A>) -> bool"]),
        theirs("_?._", &["_?._(dyn, string) -> optional_type(<V>)"]),
        theirs("_?_:_", &["_?_:_(bool, <A>, <A>) -> <A>"]),
        theirs(
            "_[?_]",
            &[
                "_[?_](list(<V>), int) -> optional_type(<V>)",
                "_[?_](map(<K>, <V>), <K>) -> optional_type(<V>)",
                "_[?_](optional_type(list(<V>)), int) -> optional_type(<V>)",
                "_[?_](optional_type(map(<K>, <V>)), <K>) -> optional_type(<V>)",
            ],
        ),
        theirs(
            "_[_]",
            &[
                "_[_](list(<A>), int) -> <A>",
                "_[_](map(<A>, <B>), <A>) -> <B>",
                "_[_](optional_type(list(<V>)), int) -> optional_type(<V>)",
                "_[_](optional_type(map(<K>, <V>)), <K>) -> optional_type(<V>)",
            ],
        ),
        theirs("_||_", &["_||_(bool, bool) -> bool"]),
    ]
}

/// Where a type is not known yet, the first overload that fits decides it: those of one type stand first.
fn comparisons() -> Vec<Entry> {
    vec![
        theirs(
            "_<=_",
            &[
                "_<=_(bool, bool) -> bool",
                "_<=_(bytes, bytes) -> bool",
                "_<=_(double, double) -> bool",
                "_<=_(google.protobuf.Duration, google.protobuf.Duration) -> bool",
                "_<=_(google.protobuf.Timestamp, google.protobuf.Timestamp) -> bool",
                "_<=_(int, int) -> bool",
                "_<=_(string, string) -> bool",
                "_<=_(uint, uint) -> bool",
                "_<=_(double, int) -> bool",
                "_<=_(double, uint) -> bool",
                "_<=_(int, double) -> bool",
                "_<=_(int, uint) -> bool",
                "_<=_(uint, double) -> bool",
                "_<=_(uint, int) -> bool",
            ],
        ),
        theirs(
            "_<_",
            &[
                "_<_(bool, bool) -> bool",
                "_<_(bytes, bytes) -> bool",
                "_<_(double, double) -> bool",
                "_<_(google.protobuf.Duration, google.protobuf.Duration) -> bool",
                "_<_(google.protobuf.Timestamp, google.protobuf.Timestamp) -> bool",
                "_<_(int, int) -> bool",
                "_<_(string, string) -> bool",
                "_<_(uint, uint) -> bool",
                "_<_(double, int) -> bool",
                "_<_(double, uint) -> bool",
                "_<_(int, double) -> bool",
                "_<_(int, uint) -> bool",
                "_<_(uint, double) -> bool",
                "_<_(uint, int) -> bool",
            ],
        ),
        theirs(
            "_>=_",
            &[
                "_>=_(bool, bool) -> bool",
                "_>=_(bytes, bytes) -> bool",
                "_>=_(double, double) -> bool",
                "_>=_(google.protobuf.Duration, google.protobuf.Duration) -> bool",
                "_>=_(google.protobuf.Timestamp, google.protobuf.Timestamp) -> bool",
                "_>=_(int, int) -> bool",
                "_>=_(string, string) -> bool",
                "_>=_(uint, uint) -> bool",
                "_>=_(double, int) -> bool",
                "_>=_(double, uint) -> bool",
                "_>=_(int, double) -> bool",
                "_>=_(int, uint) -> bool",
                "_>=_(uint, double) -> bool",
                "_>=_(uint, int) -> bool",
            ],
        ),
        theirs(
            "_>_",
            &[
                "_>_(bool, bool) -> bool",
                "_>_(bytes, bytes) -> bool",
                "_>_(double, double) -> bool",
                "_>_(google.protobuf.Duration, google.protobuf.Duration) -> bool",
                "_>_(google.protobuf.Timestamp, google.protobuf.Timestamp) -> bool",
                "_>_(int, int) -> bool",
                "_>_(string, string) -> bool",
                "_>_(uint, uint) -> bool",
                "_>_(double, int) -> bool",
                "_>_(double, uint) -> bool",
                "_>_(int, double) -> bool",
                "_>_(int, uint) -> bool",
                "_>_(uint, double) -> bool",
                "_>_(uint, int) -> bool",
            ],
        ),
    ]
}

fn conversions() -> Vec<Entry> {
    vec![
        theirs("bool", &["bool(bool) -> bool", "bool(string) -> bool"]),
        theirs("bytes", &["bytes(bytes) -> bytes", "bytes(string) -> bytes"]),
        theirs(
            "double",
            &["double(double) -> double", "double(int) -> double", "double(string) -> double", "double(uint) -> double"],
        ),
        theirs(
            "duration",
            &["duration(google.protobuf.Duration) -> google.protobuf.Duration", "duration(string) -> google.protobuf.Duration"],
        ),
        theirs("dyn", &["dyn(<A>) -> dyn"]),
        instead(
            "int",
            &[
                "int(double) -> int",
                "int(google.protobuf.Duration) -> int",
                "int(google.protobuf.Timestamp) -> int",
                "int(int) -> int",
                "int(string) -> int",
                "int(uint) -> int",
            ],
            int_of,
        ),
        instead(
            "string",
            &[
                "string(bool) -> string",
                "string(bytes) -> string",
                "string(double) -> string",
                "string(google.protobuf.Duration) -> string",
                "string(google.protobuf.Timestamp) -> string",
                "string(int) -> string",
                "string(string) -> string",
                "string(uint) -> string",
            ],
            string_of,
        ),
        theirs(
            "timestamp",
            &[
                "timestamp(google.protobuf.Timestamp) -> google.protobuf.Timestamp",
                "timestamp(int) -> google.protobuf.Timestamp",
                "timestamp(string) -> google.protobuf.Timestamp",
            ],
        ),
        theirs("type", &["type(<A>) -> type(<A>)"]),
        theirs("uint", &["uint(double) -> uint", "uint(int) -> uint", "uint(string) -> uint", "uint(uint) -> uint"]),
    ]
}

fn times() -> Vec<Entry> {
    vec![
        theirs("getDate", &["google.protobuf.Timestamp.getDate() -> int", "google.protobuf.Timestamp.getDate(string) -> int"]),
        theirs(
            "getDayOfMonth",
            &["google.protobuf.Timestamp.getDayOfMonth() -> int", "google.protobuf.Timestamp.getDayOfMonth(string) -> int"],
        ),
        theirs(
            "getDayOfWeek",
            &["google.protobuf.Timestamp.getDayOfWeek() -> int", "google.protobuf.Timestamp.getDayOfWeek(string) -> int"],
        ),
        theirs(
            "getDayOfYear",
            &["google.protobuf.Timestamp.getDayOfYear() -> int", "google.protobuf.Timestamp.getDayOfYear(string) -> int"],
        ),
        theirs(
            "getFullYear",
            &["google.protobuf.Timestamp.getFullYear() -> int", "google.protobuf.Timestamp.getFullYear(string) -> int"],
        ),
        theirs(
            "getHours",
            &[
                "google.protobuf.Duration.getHours() -> int",
                "google.protobuf.Timestamp.getHours() -> int",
                "google.protobuf.Timestamp.getHours(string) -> int",
            ],
        ),
        theirs(
            "getMilliseconds",
            &[
                "google.protobuf.Duration.getMilliseconds() -> int",
                "google.protobuf.Timestamp.getMilliseconds() -> int",
                "google.protobuf.Timestamp.getMilliseconds(string) -> int",
            ],
        ),
        theirs(
            "getMinutes",
            &[
                "google.protobuf.Duration.getMinutes() -> int",
                "google.protobuf.Timestamp.getMinutes() -> int",
                "google.protobuf.Timestamp.getMinutes(string) -> int",
            ],
        ),
        theirs("getMonth", &["google.protobuf.Timestamp.getMonth() -> int", "google.protobuf.Timestamp.getMonth(string) -> int"]),
        theirs(
            "getSeconds",
            &[
                "google.protobuf.Duration.getSeconds() -> int",
                "google.protobuf.Timestamp.getSeconds() -> int",
                "google.protobuf.Timestamp.getSeconds(string) -> int",
            ],
        ),
    ]
}

fn texts() -> Vec<Entry> {
    vec![
        theirs("contains", &["string.contains(string) -> bool"]),
        theirs("endsWith", &["string.endsWith(string) -> bool"]),
        theirs(
            "size",
            &[
                "bytes.size() -> int",
                "list(<A>).size() -> int",
                "map(<A>, <B>).size() -> int",
                "size(bytes) -> int",
                "size(list(<A>)) -> int",
                "size(map(<A>, <B>)) -> int",
                "size(string) -> int",
                "string.size() -> int",
            ],
        ),
        theirs("startsWith", &["string.startsWith(string) -> bool"]),
    ]
}

/// Whole number of a value; the interpreter has none of a duration, which is its nanoseconds.
fn int_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    if let Some(duration) = arguments[0].downcast_ref::<CelDuration>() {
        return duration.inner().num_nanoseconds().map_or_else(|| fail("integer overflow"), give_int);
    }
    let convert = Environment::kro().interpreter().find_overload("int", &arguments).ok_or_else(no_overload)?;
    convert(arguments)
}

/// Text of a value; a double and a time differ from the interpreter's: as Go prints them, the time in the zone that it was written in.
fn string_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    if let Some(value) = arguments[0].downcast_ref::<CelDouble>() {
        return give_text(go_double(*value.inner()));
    }
    if let Some(time) = arguments[0].downcast_ref::<CelTimestamp>() {
        return give_text(go_time(time));
    }
    let convert = Environment::kro().interpreter().find_overload("string", &arguments).ok_or_else(no_overload)?;
    convert(arguments)
}

fn go_time(time: &CelTimestamp) -> String {
    let time = time.inner();
    let fraction = format!(".{:09}", time.timestamp_subsec_nanos());
    let zone = if time.offset().local_minus_utc() == 0 { "Z".to_owned() } else { time.format("%:z").to_string() };
    format!("{}{}{zone}", time.format("%Y-%m-%dT%H:%M:%S"), fraction.trim_end_matches('0').trim_end_matches('.'))
}

/// The shortest text that reads back as the same number; with an exponent from a million on and below a ten-thousandth.
pub(super) fn go_double(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN".to_owned()
        } else if value > 0.0 {
            "+Inf".to_owned()
        } else {
            "-Inf".to_owned()
        };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) || value == 0.0 {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::go_double;

    #[test]
    fn doubles_print_as_go_prints_them() {
        for (value, text) in [
            (1.0, "1"),
            (1.5, "1.5"),
            (1e21, "1e+21"),
            (1e6, "1e+06"),
            (123_456.0, "123456"),
            (-1.25e-7, "-1.25e-07"),
            (0.0001, "0.0001"),
            (f64::INFINITY, "+Inf"),
        ] {
            assert_eq!(go_double(value), text);
        }
    }
}
