//! Formats of texts in custom resources (Kubernetes: `kube-openapi`, `validation/strfmt`); those that are not here say nothing.

use std::{net::Ipv6Addr, sync::LazyLock};

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::civil::Date;
use regex::Regex;

/// Whether a text is of a format. One that nobody knows fits everything.
pub fn fits(text: &str, format: &str) -> bool {
    match format {
        "date-time" | "datetime" => is_time(text),
        "date" => is_date(text),
        "duration" => is_duration(text),
        "ipv4" => is_ipv4(text),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_range(text),
        "mac" => is_hardware_address(text),
        "uri" => is_uri(text),
        "email" => is_email(text),
        "hostname" => is_host(text),
        "uuid" => UUID.is_match(text),
        "byte" => !text.is_empty() && STANDARD.decode(text).is_ok(),
        _ => true,
    }
}

static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern("^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$"));
static DURATION: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"));
/// Of Scala: a number, and a unit in words.
static WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)[0-9]+\s*(ns|nanos?|nanosecond|us|µs|micros?|ms|millis?|s|secs?|seconds?|m|mins?|minutes?|hr?|hours?|d|days?|w|wk|weeks?)",
    )
});
static HOST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
    )
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns in this file compile")
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<Date>().is_ok()
}

fn is_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.split_once('t').is_some_and(|(date, time)| is_date(date) && TIME.is_match(time))
}

/// As Go says it, `1h30m`, or as Scala does, `3 days`.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    while let Some(found) = DURATION.find(rest) {
        rest = &rest[found.end()..];
    }
    (rest.is_empty() && !text.is_empty()) || text == "0" || WORDS.is_match(text)
}

/// Zeros in front are no fault.
fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let fits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) && part.parse::<u8>().is_ok();
    parts.len() == 4 && parts.iter().all(fits)
}

fn is_range(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let is_four = is_ipv4(address);
    let most = if is_four { 32 } else { 128 };
    (is_four || address.parse::<Ipv6Addr>().is_ok()) && length.parse::<u8>().is_ok_and(|length| length <= most)
}

fn is_hardware_address(text: &str) -> bool {
    let (separator, digits) = if text.contains('.') { ('.', 4) } else { (if text.contains('-') { '-' } else { ':' }, 2) };
    let parts: Vec<&str> = text.split(separator).collect();
    let fits = |part: &&str| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.iter().all(fits) && [6, 8, 20].contains(&(parts.len() * digits / 2))
}

/// An address with a scheme, or an absolute path.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.contains(char::is_control) {
        return false;
    }
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    text.starts_with('/') || text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme))
}

fn is_email(text: &str) -> bool {
    let address = text.rsplit_once('<').and_then(|(_, rest)| rest.strip_suffix('>')).unwrap_or(text);
    let parts = address.rsplit_once('@');
    parts.is_some_and(|(who, host)| !who.is_empty() && !host.is_empty() && !address.contains(char::is_whitespace))
}

fn is_host(text: &str) -> bool {
    HOST.is_match(text) && text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go_and_scala() {
        for text in ["1h", "1h30m", "-1.5s", "0", "3 days", "22 ns"] {
            assert!(fits(text, "duration"), "{text}");
        }
        for text in ["", "5", "long", "h"] {
            assert!(!fits(text, "duration"), "{text}");
        }
    }
}
