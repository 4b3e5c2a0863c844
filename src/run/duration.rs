//! Durations as people read them.

use jiff::SignedDuration;

/// Seconds below a minute (`4s`), then two units: `2m10s`, `3h05m`, `2d04h`. Less than a second is `0s`, negative too.
pub fn short(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m{:02}s", seconds % 60),
        3600..86400 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

/// The same with tenths below ten seconds (`0.4s`), for what usually takes less than a second.
pub fn precise(duration: SignedDuration) -> String {
    let millis = duration.as_millis().max(0);
    if millis < 10_000 { format!("{}.{}s", millis / 1000, millis % 1000 / 100) } else { short(duration) }
}

/// Reads `90s`, `10m`, `1h30m`, `500ms` as Go does, without sign and fractions. `None` where it is not one.
pub fn parse(text: &str) -> Option<std::time::Duration> {
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let millis = match &rest[..end] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(millis)?)?;
        rest = &rest[end..];
    }
    (!text.is_empty()).then(|| std::time::Duration::from_millis(total))
}

/// A duration in whole milliseconds, 0 where it is negative, the largest number where it does not fit.
pub fn millis(duration: SignedDuration) -> u64 {
    u64::try_from(duration.as_millis().max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let cases = [
            (-5, "0s"),
            (0, "0s"),
            (59, "59s"),
            (60, "1m00s"),
            (130, "2m10s"),
            (3600, "1h00m"),
            (3900, "1h05m"),
            (187_200, "2d04h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(short(SignedDuration::from_secs(seconds)), text);
        }
        assert_eq!(precise(SignedDuration::from_millis(449)), "0.4s");
        assert_eq!(precise(SignedDuration::from_secs(75)), "1m15s");
    }

    #[test]
    fn go_durations_are_read() {
        for (text, millis) in [("90s", 90_000), ("10m", 600_000), ("1h30m", 5_400_000), ("500ms", 500), ("0s", 0)] {
            assert_eq!(parse(text), Some(std::time::Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "m", "10", "10x", "-1s", "1.5s", "99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
