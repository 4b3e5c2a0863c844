//! The forms that Kubernetes gives names (RFC 1123), without their bounds of length.

/// Lower-case letters, digits and `-`, a letter or digit at both ends: namespaces.
pub fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = bytes.first().zip(bytes.last()).is_some_and(|(first, last)| inner(*first) && inner(*last));
    ends && bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
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
