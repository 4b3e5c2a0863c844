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

/// A quantity, compared by its value.
#[derive(Clone, Copy, Debug)]
struct Quantity {
    /// In billionths, the finest step that Kubernetes keeps.
    billionths: i128,
    /// The form in which Kubernetes keeps what is short enough. Only a quantity in this form is ever a whole number to it: `1.5Gi` is none.
    short: Option<Short>,
}

/// `digits · 10^scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Short {
    digits: i64,
    scale: i32,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.billionths == other.billionths
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.billionths.cmp(&other.billionths)
    }
}

impl Kind for Quantity {
    fn runtime_type() -> &'static Type {
        &QUANTITY
    }
}

const ONE: i128 = 1_000_000_000;
const FORM: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
/// Greatest size that Kubernetes keeps of what has a binary suffix; what is larger becomes this.
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
        let short = Short::parse(whole, fraction, (binary, decimal));
        let digits = format!("{whole}{fraction}");
        let value = billionths(&digits, decimal + 9 - i32::try_from(fraction.len()).unwrap_or(i32::MAX / 2), binary);
        let value = if binary > 0 && short.is_none() { value.min(MOST) } else { value };
        let sign = if negative { -1 } else { 1 };
        let short = short.map(|short| Short { digits: sign * short.digits, ..short });
        Ok(Self { billionths: i128::from(sign) * value, short })
    }

    fn of(whole: i64) -> Self {
        Self { billionths: i128::from(whole) * ONE, short: Some(Short { digits: whole, scale: 0 }) }
    }

    fn whole(self) -> Option<i64> {
        self.short.filter(|short| short.scale >= 0)?.scaled(0)
    }

    fn plus(self, other: Self) -> Self {
        let short = self.short.zip(other.short).and_then(|(left, right)| left.plus(right));
        Self { billionths: self.billionths.saturating_add(other.billionths), short }
    }

    fn negated(self) -> Self {
        let short = self.short.map(|short| Short { digits: -short.digits, ..short });
        Self { billionths: -self.billionths, short }
    }
}

impl Short {
    /// The short form, where Kubernetes takes it: by how many digits there are, and of a binary suffix without a fraction only.
    fn parse(whole: &str, fraction: &str, (binary, decimal): (u32, i32)) -> Option<Self> {
        const DIGITS: usize = 18;
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        let (mantissa, room) = match binary {
            0 => (1, DIGITS),
            _ if fraction.is_empty() => (1 << binary, 14_usize.checked_sub(binary as usize * 3 / 10)?),
            _ => return None,
        };
        if whole.len() + fraction.len() > room {
            return None;
        }
        let scale = decimal - i32::try_from(fraction.len()).ok()?;
        let digits: i64 = format!("{whole}{fraction}").parse().ok()?;
        (scale >= -9).then_some(())?;
        Some(Self { digits: digits.checked_mul(mantissa)?, scale })
    }

    fn plus(self, other: Self) -> Option<Self> {
        match (self.digits, other.digits) {
            (_, 0) => return Some(self),
            (0, _) => return Some(other),
            _ => {}
        }
        let scale = self.scale.min(other.scale);
        Some(Self { digits: self.scaled(scale)?.checked_add(other.scaled(scale)?)?, scale })
    }

    /// The digits at a scale that is not greater.
    fn scaled(self, scale: i32) -> Option<i64> {
        let steps = u32::try_from(self.scale - scale).ok()?;
        if self.digits == 0 { Some(0) } else { self.digits.checked_mul(10_i64.checked_pow(steps)?) }
    }
}

/// Whether two texts are the same quantity; texts that are none are not.
pub(crate) fn same_quantity(one: &str, other: &str) -> bool {
    matches!((Quantity::parse(one), Quantity::parse(other)), (Ok(one), Ok(other)) if one == other)
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

/// `digits · 10^exponent · 2^binary`, rounded away from zero.
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
    value.saturating_add(i128::from(rounded))
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
    give(CelDouble::from(this(&arguments, 0)?.billionths as f64 / ONE as f64))
}

fn sign<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_int(i64::try_from(this(&arguments, 0)?.billionths.signum()).unwrap_or(0))
}

/// The second operand, a quantity or a whole number.
fn operand(arguments: &Arguments<'_, '_>) -> Result<Quantity, cel::ExecutionError> {
    this(arguments, 1).or_else(|_| Ok(Quantity::of(int(arguments, 1)?)))
}

fn add<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give(Opaque(this(&arguments, 0)?.plus(operand(&arguments)?)))
}

fn sub<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give(Opaque(this(&arguments, 0)?.plus(operand(&arguments)?.negated())))
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
            ("9223372036854775808", (i128::from(i64::MAX) + 1) * ONE),
            ("99999999999999999999Gi", MOST),
        ] {
            assert_eq!(Quantity::parse(text).map(|quantity| quantity.billionths), Ok(value), "{text}");
        }
        for text in ["", "+", ".", "1.2.3", "1X", "1 Gi", "Gi", "1e", "1KiB", "--1", "1e99999999999"] {
            assert!(Quantity::parse(text).is_err(), "{text}");
        }
    }

    /// As apimachinery's `Quantity.AsInt64` answers.
    #[test]
    fn is_whole_where_kubernetes_says_so() {
        let whole = |text: &str| Quantity::parse(text).unwrap().whole();
        for (text, value) in [("0", 0), ("1Gi", 1 << 30), ("1k", 1000), ("1.5k", 1500), ("1e3", 1000), ("-2", -2), ("5.", 5)] {
            assert_eq!(whole(text), Some(value), "{text}");
        }
        for text in
            ["100m", "1500m", "2000m", "1.5Gi", "0.5Ki", "1.25Mi", "2.0", "1Pi", "1Ei", "8Ei", "9223372036854775808", "1e19"]
        {
            assert_eq!(whole(text), None, "{text}");
        }
        let sum = |left: &str, right: &str| Quantity::parse(left).unwrap().plus(Quantity::parse(right).unwrap()).whole();
        assert_eq!((sum("1Gi", "1Gi"), sum("1k", "1")), (Some(1 << 31), Some(1001)));
        assert_eq!((sum("1Gi", "1.5Gi"), sum("1", "500m")), (None, None));
    }
}
