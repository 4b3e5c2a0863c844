//! Numbers as both tools write them: every number is an IEEE double first (ocm.md 8.5).

/// Shortest digits, plain from 1e-6 up to 1e21, else with an exponent; `-0` stays where `keeps_minus` says so.
pub(super) fn text(number: &serde_json::Number, keeps_minus: bool) -> String {
    let value = number.as_f64().unwrap_or_default();
    if value == 0.0 {
        return if keeps_minus && value.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').expect("the format writes an exponent");
    let exponent: i32 = exponent.parse().expect("the format writes a number");
    let digits = mantissa.replace('.', "");
    format!("{sign}{}", placed(&digits, exponent))
}

fn placed(digits: &str, exponent: i32) -> String {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    match exponent {
        21.. | ..=-7 => {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            let sign = if exponent < 0 { "-" } else { "+" };
            format!("{first}{point}{rest}e{sign}{}", exponent.abs())
        }
        _ if exponent < 0 => format!("0.{}{digits}", "0".repeat(usize::try_from(-exponent - 1).unwrap_or_default())),
        _ if count > exponent + 1 => {
            let (whole, part) = digits.split_at(usize::try_from(exponent + 1).unwrap_or_default());
            format!("{whole}.{part}")
        }
        _ => format!("{digits}{}", "0".repeat(usize::try_from(exponent + 1 - count).unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(json: &str, expected: &str) {
        assert_eq!(text(&serde_json::from_str(json).unwrap(), false), expected, "{json}");
    }

    #[test]
    fn writes_numbers_as_ecmascript() {
        for (json, expected) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("1", "1"),
            ("-1", "-1"),
            ("2.50", "2.5"),
            ("1.5e21", "1.5e+21"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("1e-6", "0.000001"),
            ("1e-7", "1e-7"),
            ("1.25e-9", "1.25e-9"),
            ("9007199254740993", "9007199254740992"),
            ("123456789.125", "123456789.125"),
            ("18446744073709551615", "18446744073709552000"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("0.000035689", "0.000035689"),
            ("51.24817837550540", "51.2481783755054"),
            ("9.355983643671867e-259", "9.355983643671867e-259"),
        ] {
            check(json, expected);
        }
        assert_eq!(text(&serde_json::from_str("-0.0").unwrap(), true), "-0");
    }

    proptest! {
        #[test]
        fn is_read_back_as_the_same_double(value in any::<f64>().prop_filter("finite", |value| value.is_finite())) {
            let number = serde_json::Number::from_f64(value).unwrap();
            prop_assert_eq!(text(&number, true).parse::<f64>().unwrap().to_bits(), value.to_bits());
            let read: serde_json::Number = serde_json::from_str(&format!("{value:e}")).unwrap();
            prop_assert_eq!(read.as_f64().unwrap().to_bits(), value.to_bits(), "as it is read from a descriptor");
        }
    }
}
