//! Label values that always fit.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::keys;

const LONGEST: usize = 63;
const HASH: usize = 10;

/// The text itself where it fits a label's 63 characters, else its beginning and ten characters of its hash.
///
/// Only for text that is otherwise a valid label value, such as an object's name.
pub fn label_value(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let mut hash = String::new();
    for byte in Sha256::digest(text).iter().take(HASH / 2) {
        // Writing into a string cannot fail.
        let _ = write!(hash, "{byte:02x}");
    }
    let kept: String = text.chars().take_while(char::is_ascii).take(LONGEST - HASH - 1).collect();
    format!("{}-{hash}", kept.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
}

/// Selects what belongs to a platform, by the label that every object of it carries.
pub fn platform_selector(platform: &str) -> String {
    format!("{}={}", keys::PLATFORM, label_value(platform))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_text_stays_and_long_text_keeps_its_beginning() {
        assert_eq!(label_value("platform"), "platform");
        assert_eq!(label_value(&"a".repeat(63)), "a".repeat(63));
        let long = label_value(&"a".repeat(64));
        assert_eq!((long.len(), &long[..52]), (63, "a".repeat(52).as_str()));
        assert_ne!(long, label_value(&"a".repeat(65)));
    }

    proptest! {
        #[test]
        fn every_object_name_becomes_a_label_value(name in "[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?") {
            let value = label_value(&name);
            prop_assert!(value.len() <= 63);
            prop_assert!(value.starts_with(|c: char| c.is_ascii_alphanumeric()) && value.ends_with(|c: char| c.is_ascii_alphanumeric()));
        }
    }
}
