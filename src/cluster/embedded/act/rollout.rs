//! Revisions of a pod template.

use std::fmt::Write as _;

use plinth_api::Object;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Letters that Kubernetes writes hashes with: no vowels, so that no words come out.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A name for a template: the same for the same content.
pub(super) fn hash(owner: &Object) -> String {
    let template = owner.spec()["template"].to_string();
    let digest = Sha256::digest(template.as_bytes());
    digest.iter().take(10).map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
}

/// A count or a percentage of `of`, rounded up or down.
pub(super) fn share(value: &Value, of: usize, up: bool) -> usize {
    if let Some(count) = value.as_u64() {
        return usize::try_from(count).unwrap_or(usize::MAX);
    }
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')).and_then(|text| text.parse::<usize>().ok());
    let product = percent.unwrap_or_default().saturating_mul(of);
    if up { product.div_ceil(100) } else { product / 100 }
}

/// A name of at most 63 characters that begins like `name` and ends with `end`.
pub(super) fn joined(name: &str, end: &str) -> String {
    let mut text: String = name.chars().take(62_usize.saturating_sub(end.len())).collect();
    let _ = write!(text, "-{end}");
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shares_are_counts_or_percentages() {
        assert_eq!((share(&json!("25%"), 1, false), share(&json!("25%"), 1, true)), (0, 1));
        assert_eq!((share(&json!(2), 9, false), share(&json!("50%"), 3, false), share(&Value::Null, 3, true)), (2, 1, 0));
    }

    #[test]
    fn a_template_has_one_name() {
        let of = |image: &str| Object::from_value(json!({"spec": {"replicas": 1, "template": {"image": image}}})).unwrap();
        assert_eq!(hash(&of("a")), hash(&of("a")));
        assert_ne!(hash(&of("a")), hash(&of("b")));
        assert_eq!(joined(&"n".repeat(70), "abc").len(), 63);
    }
}
