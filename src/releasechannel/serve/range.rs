//! `Range` of a request for a blob: one range, as those who go on with a broken download send it.

/// What of a blob is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it: there is no range, or one that may be ignored.
    Whole,
    /// From the first to the last byte, both included.
    From(u64, u64),
    /// Nothing that the blob has.
    Outside,
}

/// Reads the header for a blob of this size (RFC 9110, section 14). Several ranges at once are ignored, which the RFC allows.
pub(super) fn read(header: Option<&str>, size: u64) -> Part {
    let Some(range) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else { return Part::Whole };
    let Some((first, last)) = range.trim().split_once('-').filter(|_| !range.contains(',')) else { return Part::Whole };
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // More digits than fit mean "to the end".
        is_number.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    let (first, last) = (first.trim(), last.trim());
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first > last => Part::Whole,
        (Some(first), Some(last)) if first < size => Part::From(first, last.min(size - 1)),
        (Some(first), None) if last.is_empty() && first < size => Part::From(first, size - 1),
        (None, Some(tail)) if first.is_empty() && tail > 0 && size > 0 => Part::From(size.saturating_sub(tail), size - 1),
        (Some(_), Some(_)) => Part::Outside,
        (Some(_), None) if last.is_empty() => Part::Outside,
        (None, Some(_)) if first.is_empty() => Part::Outside,
        (Some(_) | None, None) | (None, Some(_)) => Part::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_rfc_has_them() {
        for (header, expected) in [
            (None, Part::Whole),
            (Some("bytes=0-3"), Part::From(0, 3)),
            (Some("bytes=4-"), Part::From(4, 9)),
            (Some("bytes=-3"), Part::From(7, 9)),
            (Some("bytes=-30"), Part::From(0, 9)),
            (Some("bytes=8-99"), Part::From(8, 9)),
            (Some("bytes=10-"), Part::Outside),
            (Some("bytes=10-12"), Part::Outside),
            (Some("bytes=-0"), Part::Outside),
            (Some("bytes=5-4"), Part::Whole),
            (Some("bytes=a-b"), Part::Whole),
            (Some("bytes=-"), Part::Whole),
            (Some("bytes=0-1,4-5"), Part::Whole),
            (Some("lines=0-1"), Part::Whole),
            (Some("bytes=0-99999999999999999999"), Part::From(0, 9)),
        ] {
            assert_eq!(read(header, 10), expected, "{header:?}");
        }
        assert_eq!(read(Some("bytes=0-"), 0), Part::Outside);
        assert_eq!(read(Some("bytes=-1"), 0), Part::Outside);
    }
}
