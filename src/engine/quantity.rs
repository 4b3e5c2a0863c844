//! Kubernetes' quantities: `1Gi`, `1500m`, `2e3`.

use std::fmt;

/// A quantity, compared by its value.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// In billionths, the finest step that Kubernetes keeps.
    pub(crate) billionths: i128,
    /// The form in which Kubernetes keeps what is short enough. Only a quantity in this form is ever a whole number to it: `1.5Gi` is none.
    short: Option<Short>,
    form: Form,
}

/// The family of the suffix that a quantity was written with; it is shown in the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `k`, `m`, or none.
    Decimal,
    /// `Ki`.
    Binary,
    /// `e3`.
    Exponent,
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

pub(crate) const ONE: i128 = 1_000_000_000;
const FORM: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX: &str = "unable to parse quantity's suffix";
/// Greatest size that Kubernetes keeps of what has a binary suffix; what is larger becomes this.
const MOST: i128 = i64::MAX as i128 * ONE;

impl Quantity {
    /// Reads a quantity; the error is in Kubernetes' words.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
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
        let (binary, decimal) = scale(suffix).ok_or(if is_suffix(suffix) { SUFFIX } else { FORM })?;
        let short = Short::parse(whole, fraction, (binary, decimal));
        let digits = format!("{whole}{fraction}");
        let value = billionths(&digits, decimal + 9 - i32::try_from(fraction.len()).unwrap_or(i32::MAX / 2), binary);
        let value = if binary > 0 && short.is_none() { value.min(MOST) } else { value };
        let sign = if negative { -1 } else { 1 };
        let short = short.map(|short| Short { digits: sign * short.digits, ..short });
        let form = match suffix {
            _ if binary > 0 => Form::Binary,
            "" | "E" => Form::Decimal,
            _ if suffix.starts_with(['e', 'E']) => Form::Exponent,
            _ => Form::Decimal,
        };
        Ok(Self { billionths: i128::from(sign) * value, short, form })
    }

    /// Below zero -1, zero 0, above it 1.
    pub fn sign(self) -> i128 {
        self.billionths.signum()
    }

    /// Whether it is a whole number of what it counts.
    pub fn is_whole(self) -> bool {
        self.billionths % ONE == 0
    }

    pub(crate) fn of(whole: i64) -> Self {
        Self { billionths: i128::from(whole) * ONE, short: Some(Short { digits: whole, scale: 0 }), form: Form::Decimal }
    }

    pub(crate) fn whole(self) -> Option<i64> {
        self.short.filter(|short| short.scale >= 0)?.scaled(0)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let short = self.short.zip(other.short).and_then(|(left, right)| left.plus(right));
        Self { billionths: self.billionths.saturating_add(other.billionths), short, form: self.form }
    }

    pub(crate) fn negated(self) -> Self {
        let short = self.short.map(|short| Short { digits: -short.digits, ..short });
        Self { billionths: -self.billionths, short, form: self.form }
    }
}

/// Kubernetes' canonical form: the largest suffix of its family that leaves no fraction. What is below 1024 needs no binary one.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        let is_small = self.billionths.abs() < 1024 * ONE;
        if self.form == Form::Binary && !is_small {
            // Rounded away from zero, as what is no whole number of bytes is read.
            let whole = self.billionths / ONE + self.billionths.signum() * i128::from(self.billionths % ONE != 0);
            let (number, steps) = without_factors(whole, 1024, BINARY.len() - 1);
            return write!(f, "{number}{}", BINARY[steps]);
        }
        let (number, steps) = without_factors(self.billionths, 1000, DECIMAL.len() - 1);
        match (number, self.form) {
            (0, _) => f.write_str("0"),
            (_, Form::Exponent) if steps != 3 => write!(f, "{number}e{}", 3 * i32::try_from(steps).unwrap_or_default() - 9),
            _ => write!(f, "{number}{}", DECIMAL[steps]),
        }
    }
}

/// A number without these factors, and how many there were.
fn without_factors(mut number: i128, factor: i128, most: usize) -> (i128, usize) {
    let mut steps = 0;
    while steps < most && number != 0 && number % factor == 0 {
        number /= factor;
        steps += 1;
    }
    (number, steps)
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

/// Whether a text has the form of a suffix, though it may be none.
fn is_suffix(text: &str) -> bool {
    let rest = text.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    rest.bytes().all(|digit| digit.is_ascii_digit())
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

    #[test]
    fn says_what_is_wrong_as_kubernetes_does() {
        for (text, why) in [("1GB", FORM), ("much", FORM), ("", FORM), ("1GG", SUFFIX), ("1e", SUFFIX), ("1K", SUFFIX)] {
            assert_eq!(Quantity::parse(text).unwrap_err(), why, "{text}");
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

    /// As apimachinery's `Quantity.String` answers.
    #[test]
    fn is_shown_as_kubernetes_shows_it() {
        for (text, shown) in [
            ("0", "0"),
            ("0.5", "500m"),
            ("1500m", "1500m"),
            ("2000m", "2"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("-1Gi", "-1Gi"),
            ("1e3", "1e3"),
            ("5e0", "5"),
            ("1E", "1E"),
            ("+100M", "100M"),
        ] {
            assert_eq!(Quantity::parse(text).unwrap().to_string(), shown, "{text}");
        }
    }
}
