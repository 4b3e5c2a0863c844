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

/// Go's `ParseFloat`: decimal or hexadecimal, `_` between digits.
pub(super) fn float(text: &str) -> Result<f64, String> {
    let refused = |reason: &str| Err(format!("strconv.ParseFloat: parsing {text:?}: {reason}"));
    if !parts_digits(text) {
        return refused("invalid syntax");
    }
    let plain = text.replace('_', "");
    let number = hexadecimal(&plain).or_else(|| plain.parse::<f64>().ok());
    match number {
        Some(number) if number.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) => refused("value out of range"),
        Some(number) => Ok(number),
        None => refused("invalid syntax"),
    }
}

/// Whether each `_` stands between two digits; the `0x` in front counts as one.
fn parts_digits(text: &str) -> bool {
    let number = text.trim_start_matches(['+', '-']);
    let is_hexadecimal = number.starts_with("0x") || number.starts_with("0X");
    let is_digit = |byte: &u8| if is_hexadecimal { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
    let bytes = number.as_bytes();
    let mut places = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_').map(|(place, _)| place);
    places.all(|place| {
        let follows = place > 0 && (is_digit(&bytes[place - 1]) || (is_hexadecimal && place == 2));
        follows && bytes.get(place + 1).is_some_and(is_digit)
    })
}

/// `0x1.8p-2`, rounded to the nearest number, to the even one of two; `None` for what is not of this form.
fn hexadecimal(text: &str) -> Option<f64> {
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = number.strip_prefix("0x").or_else(|| number.strip_prefix("0X"))?;
    let (digits, power) = number.split_once(['p', 'P'])?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_power = |power: &str| !power.is_empty() && power.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_power(power.strip_prefix(['+', '-']).unwrap_or(power)) {
        return None;
    }
    let (mut mantissa, mut exponent, mut rest) = (0_u64, 0_i64, false);
    for (place, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(digit.to_digit(16)?);
        let is_kept = mantissa >> 60 == 0;
        if is_kept {
            mantissa = mantissa << 4 | digit;
        } else {
            rest |= digit != 0;
        }
        exponent += 4 * (i64::from(!is_kept) - i64::from(place >= whole.len()));
    }
    // What is out of reach of a number stays so.
    let power = power.parse::<i64>().unwrap_or(if power.starts_with('-') { i64::MIN } else { i64::MAX });
    let bits = to_bits(mantissa, exponent.saturating_add(power), rest);
    Some(f64::from_bits(bits | u64::from(text.starts_with('-')) << 63))
}

/// The bits of `mantissa · 2^exponent`, where `rest` says that a little more is meant.
fn to_bits(mantissa: u64, exponent: i64, rest: bool) -> u64 {
    /// Bits of a number's digits, the first of which is not stored.
    const DIGITS: i64 = 53;
    /// Power of two of the last digit of the smallest numbers.
    const SMALLEST: i64 = -1074;
    if mantissa == 0 {
        return 0;
    }
    // Far beyond what there are numbers for, and near enough to be counted with.
    let exponent = exponent.clamp(-3000, 3000);
    let length = 64 - i64::from(mantissa.leading_zeros());
    // How far the digits go to the right; those of the smallest numbers are fewer.
    let right = (length - DIGITS).max(SMALLEST - exponent);
    let rounded = match u32::try_from(right) {
        Ok(right) => {
            let kept = mantissa.checked_shr(right).unwrap_or(0);
            let lost = u128::from(mantissa) << 1 & ((1_u128 << (right + 1).min(66)) - 1);
            let half = 1_u128 << right.min(66);
            let is_more = lost > half || (lost == half && (rest || kept & 1 == 1));
            kept + u64::from(is_more && right > 0)
        }
        Err(_) => mantissa << (-right).unsigned_abs(),
    };
    let power = exponent + right - SMALLEST;
    let infinite = f64::INFINITY.to_bits();
    // A carry out of the digits goes to the power, as it must.
    u64::try_from(power).ok().filter(|power| *power < 0x7FF).map_or(infinite, |power| (power << 52) + rounded).min(infinite)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Go 1.26 reads them.
    #[test]
    fn floats_are_those_of_go() {
        for (text, number) in [
            ("0x1p-2", 0.25),
            ("0X1P+3", 8.0),
            ("0x1.8p1", 3.0),
            ("0x.8p0", 0.5),
            ("0x1.p0", 1.0),
            ("0x_1p0", 1.0),
            ("0x1_0p1_0", 16384.0),
            ("1_0.5", 10.5),
            ("-0x1p4", -16.0),
            ("+0x1p4", 16.0),
            ("0x1p-2000", 0.0),
            ("0x1.fffffffffffff8p0", 2.0),
            ("0x1.00000000000008p0", 1.0),
            ("0x1.000000000000080000001p0", 1.000_000_000_000_000_2),
            ("0x1.00000000000018p0", 1.000_000_000_000_000_4),
            ("0x123456789abcdef01p0", 2.098_829_547_942_064_5e19),
            ("0x1p-1074", 5e-324),
            ("0x1p-1075", 0.0),
            ("0x1.8p-1075", 5e-324),
            ("0x1p-1022", f64::MIN_POSITIVE),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x0p0", 0.0),
            (".5", 0.5),
            ("5.", 5.0),
        ] {
            assert_eq!(float(text), Ok(number), "{text}");
        }
        for text in
            ["0x1", "0x1.8", "0xp1", "0x1p", "0x1p+", "0x__1p0", "0x1_p0", "_1", "1_", "1_e5", "0b1p1", " 1", "in_f", "1,5"]
        {
            assert_eq!(float(text), Err(format!("strconv.ParseFloat: parsing {text:?}: invalid syntax")));
        }
        for text in ["0x1p99999", "0x1.fffffffffffffcp1023", "1e400", "0x1p99999999999999999999"] {
            assert_eq!(float(text), Err(format!("strconv.ParseFloat: parsing {text:?}: value out of range")));
        }
    }
}
