//! Kubernetes' quantities: `1Gi`, `1500m`, `2e3`.

use cel::common::types::{CelDouble, Type};

use super::{
    Entry,
    arguments::{Arguments, Outcome, fail, get, give, give_bool, give_int, int, text},
    opaque::{Kind, Opaque, QUANTITY},
    ours,
};

pub(super) fn entries() -> Vec<Entry> {
    const BOTH: [&[&str]; 2] = [
        &[
            "kubernetes.Quantity.add(int) -> kubernetes.Quantity",
            "kubernetes.Quantity.add(kubernetes.Quantity) -> kubernetes.Quantity",
        ],
        &[
            "kubernetes.Quantity.sub(int) -> kubernetes.Quantity",
            "kubernetes.Quantity.sub(kubernetes.Quantity) -> kubernetes.Quantity",
        ],
    ];
    vec![
        ours("quantity", &["quantity(string) -> kubernetes.Quantity"], quantity),
        ours("isQuantity", &["isQuantity(string) -> bool"], is_quantity),
        ours("isInteger", &["kubernetes.Quantity.isInteger() -> bool"], is_integer),
        ours("asInteger", &["kubernetes.Quantity.asInteger() -> int"], as_integer),
        ours("asApproximateFloat", &["kubernetes.Quantity.asApproximateFloat() -> double"], as_approximate_float),
        ours("sign", &["sign(kubernetes.Quantity) -> int"], sign),
        ours("add", BOTH[0], add),
        ours("sub", BOTH[1], sub),
        ours("compareTo", &["kubernetes.Quantity.compareTo(kubernetes.Quantity) -> int"], compare_to),
        ours("isLessThan", &["kubernetes.Quantity.isLessThan(kubernetes.Quantity) -> bool"], is_less_than),
        ours("isGreaterThan", &["kubernetes.Quantity.isGreaterThan(kubernetes.Quantity) -> bool"], is_greater_than),
    ]
}

/// A quantity in billionths, the finest step that Kubernetes keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Quantity(i128);

impl Kind for Quantity {
    fn runtime_type() -> &'static Type {
        &QUANTITY
    }
}

const ONE: i128 = 1_000_000_000;
const FORM: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
/// Greatest size that Kubernetes keeps; what is larger becomes this.
const MOST: i128 = i64::MAX as i128 * ONE;

impl Quantity {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (negative, rest) = match text.strip_prefix(['+', '-']) {
            Some(rest) => (text.starts_with('-'), rest),
            None => (false, text),
        };
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(FORM);
        }
        let (binary, decimal) = scale(suffix).ok_or("unable to parse quantity's suffix")?;
        let digits = format!("{whole}{fraction}");
        let value = billionths(&digits, decimal + 9 - i32::try_from(fraction.len()).unwrap_or(i32::MAX / 2), binary);
        Ok(Self(if negative { -value } else { value }))
    }

    fn whole(self) -> Option<i64> {
        (self.0 % ONE == 0).then(|| i64::try_from(self.0 / ONE).ok()).flatten()
    }
}

/// Power of two and power of ten that a suffix stands for.
fn scale(suffix: &str) -> Option<(u32, i32)> {
    let decimal = |exponent| Some((0, exponent));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => Some((10, 0)),
        "Mi" => Some((20, 0)),
        "Gi" => Some((30, 0)),
        "Ti" => Some((40, 0)),
        "Pi" => Some((50, 0)),
        "Ei" => Some((60, 0)),
        _ => suffix
            .strip_prefix(['e', 'E'])?
            .parse()
            .ok()
            .filter(|exponent: &i32| exponent.abs() < 1000)
            .map(|exponent| (0, exponent)),
    }
}

/// `digits · 10^exponent · 2^binary`, rounded away from zero and held below [`MOST`].
fn billionths(digits: &str, exponent: i32, binary: u32) -> i128 {
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    // 30 digits before the point are more than is kept; digits far behind it only round up.
    let kept = &digits[..digits.len().min(28)];
    let exponent = exponent.saturating_add(i32::try_from(digits.len() - kept.len()).unwrap_or(i32::MAX));
    let lost = digits[kept.len()..].bytes().any(|digit| digit != b'0');
    let mut value: i128 = kept.parse().unwrap_or(i128::MAX);
    value = value.saturating_mul(1 << binary.min(60));
    for _ in 0..exponent.clamp(0, 40) {
        value = value.saturating_mul(10);
    }
    let mut rounded = lost && exponent <= 0;
    for _ in 0..exponent.saturating_neg().clamp(0, 60) {
        rounded |= value % 10 != 0;
        value /= 10;
    }
    value.saturating_add(i128::from(rounded)).min(MOST)
}

fn this(arguments: &Arguments<'_, '_>, index: usize) -> Result<Quantity, cel::ExecutionError> {
    Ok(get::<Opaque<Quantity>>(arguments, index)?.0)
}

fn quantity<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    match Quantity::parse(text(&arguments, 0)?) {
        Ok(quantity) => give(Opaque(quantity)),
        Err(message) => fail(message),
    }
}

fn is_quantity<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(Quantity::parse(text(&arguments, 0)?).is_ok())
}

fn is_integer<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(this(&arguments, 0)?.whole().is_some())
}

fn as_integer<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    match this(&arguments, 0)?.whole() {
        Some(whole) => give_int(whole),
        None => fail("cannot convert value to integer"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "approximate by name")]
fn as_approximate_float<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give(CelDouble::from(this(&arguments, 0)?.0 as f64 / ONE as f64))
}

fn sign<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_int(i64::try_from(this(&arguments, 0)?.0.signum()).unwrap_or(0))
}

/// The second operand, a quantity or a whole number.
fn operand(arguments: &Arguments<'_, '_>) -> Result<Quantity, cel::ExecutionError> {
    this(arguments, 1).or_else(|_| Ok(Quantity(i128::from(int(arguments, 1)?) * ONE)))
}

fn add<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give(Opaque(Quantity((this(&arguments, 0)?.0 + operand(&arguments)?.0).clamp(-MOST, MOST))))
}

fn sub<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give(Opaque(Quantity((this(&arguments, 0)?.0 - operand(&arguments)?.0).clamp(-MOST, MOST))))
}

fn compare_to<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_int(this(&arguments, 0)?.cmp(&this(&arguments, 1)?) as i64)
}

fn is_less_than<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(this(&arguments, 0)? < this(&arguments, 1)?)
}

fn is_greater_than<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(this(&arguments, 0)? > this(&arguments, 1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_kubernetes_reads() {
        for (text, value) in [
            ("0", 0),
            ("1", ONE),
            ("-1.5", -1_500_000_000),
            ("100m", 100_000_000),
            ("1Ki", 1024 * ONE),
            ("1.5Gi", 1_610_612_736 * ONE),
            (".5", 500_000_000),
            ("5.", 5 * ONE),
            ("1e3", 1000 * ONE),
            ("1E", 1_000_000_000_000_000_000 * ONE),
            ("1E2", 100 * ONE),
            ("1n", 1),
            ("0.1n", 1),
            ("99999999999999999999999999", MOST),
        ] {
            assert_eq!(Quantity::parse(text), Ok(Quantity(value)), "{text}");
        }
        for text in ["", "+", ".", "1.2.3", "1X", "1 Gi", "Gi", "1e", "1KiB", "--1", "1e99999999999"] {
            assert!(Quantity::parse(text).is_err(), "{text}");
        }
    }
}
