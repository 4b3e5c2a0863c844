//! Numbers and booleans as Go reads them, with Go's error texts.

/// Go's `ParseBool`.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(format!("strconv.ParseBool: parsing {text:?}: invalid syntax")),
    }
}

/// Go's `ParseInt` with base 10.
pub(super) fn integer(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error: std::num::ParseIntError| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let reason = if matches!(error.kind(), PosOverflow | NegOverflow) { "value out of range" } else { "invalid syntax" };
        format!("strconv.ParseInt: parsing {text:?}: {reason}")
    })
}

/// Go's `ParseFloat`; hexadecimal floats, which nobody writes, are refused.
pub(super) fn float(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) => {
            Err(format!("strconv.ParseFloat: parsing {text:?}: value out of range"))
        }
        Ok(number) => Ok(number),
        Err(_) => Err(format!("strconv.ParseFloat: parsing {text:?}: invalid syntax")),
    }
}
