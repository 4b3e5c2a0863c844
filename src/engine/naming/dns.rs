//! The forms that Kubernetes gives names (RFC 1123), without their bounds of length.

/// Lower-case letters, digits and `-`, a letter or digit at both ends: namespaces.
pub fn is_label(text: &str) -> bool {
    is_made_of(text, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), b"-")
}

/// The same with a letter in front and its bound of 63 characters (RFC 1035): kinds and their short names, Services.
pub fn is_name_of_kind(text: &str) -> bool {
    text.len() <= 63 && text.starts_with(|first: char| first.is_ascii_lowercase()) && is_label(text)
}

/// Whether a text has only letters of these, at both ends, and what may stand `between` them.
pub(super) fn is_made_of(text: &str, letter: fn(u8) -> bool, between: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let ends = bytes.first().zip(bytes.last()).is_some_and(|(first, last)| letter(*first) && letter(*last));
    ends && bytes.iter().all(|byte| letter(*byte) || between.contains(byte))
}

/// Labels parted by dots: most other names.
pub fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_forms_of_the_field() {
        for (text, label, subdomain) in [
            ("a", true, true),
            ("0-a", true, true),
            ("a.b-c", false, true),
            ("", false, false),
            ("-a", false, false),
            ("a..b", false, false),
            ("A", false, false),
            ("a b", false, false),
        ] {
            assert_eq!((is_label(text), is_subdomain(text)), (label, subdomain), "{text:?}");
        }
    }
}
