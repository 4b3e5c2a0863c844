//! Label values that always fit.

use sha2::{Digest, Sha256};

const LONGEST: usize = 63;
const HASH: usize = 10;

/// The text itself where it fits a label's 63 characters, else its beginning and ten characters of its hash.
///
/// Only for text that is otherwise a valid label value, such as an object's name.
pub fn label_value(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let hash: String = Sha256::digest(text).iter().take(HASH / 2).map(|byte| format!("{byte:02x}")).collect();
    let kept: String = text.chars().take_while(char::is_ascii).take(LONGEST - HASH - 1).collect();
    format!("{}-{hash}", kept.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
}
