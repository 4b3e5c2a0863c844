//! Content digests, `sha256:…` and `sha512:…`.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256, Sha512};

/// A checked digest: the algorithm is known and the value is lower-case hex of the right length.
///
/// A digest becomes a file name in archives, so nothing unchecked may ever be one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

/// The text is not a digest that plinth can check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a digest of the form sha256:<64 hex> or sha512:<128 hex>")]
pub struct NotADigest {
    /// What was read, shortened.
    pub text: String,
}

impl Digest {
    /// Hashes bytes with SHA-256.
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("sha256:{}", hex(&Sha256::digest(bytes))))
    }

    /// The whole text, `sha256:…`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hex part.
    pub fn hex(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, hex)| hex)
    }

    /// The name of the blob's file in a CTF, `sha256.…`.
    pub fn file_name(&self) -> String {
        self.0.replace(':', ".")
    }

    /// Starts hashing with this digest's algorithm.
    pub fn hasher(&self) -> Hasher {
        if self.0.starts_with("sha512:") { Hasher::Sha512(Sha512::new()) } else { Hasher::Sha256(Sha256::new()) }
    }

    /// Whether the bytes have this digest.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        let mut hasher = self.hasher();
        hasher.update(bytes);
        hasher.finish() == *self
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = match text.split_once(':') {
            Some(("sha256", hex)) => (hex, 64),
            Some(("sha512", hex)) => (hex, 128),
            _ => return Err(not_a_digest(text)),
        };
        let (hex, length) = wanted;
        let is_hex = hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if hex.len() == length && is_hex { Ok(Self(text.to_owned())) } else { Err(not_a_digest(text)) }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn not_a_digest(text: &str) -> NotADigest {
    NotADigest { text: text.chars().take(160).collect() }
}

/// A running hash.
#[derive(Clone, Debug)]
pub enum Hasher {
    /// SHA-256.
    Sha256(Sha256),
    /// SHA-512.
    Sha512(Sha512),
}

impl Hasher {
    /// Takes more bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hash) => hash.update(bytes),
            Self::Sha512(hash) => hash.update(bytes),
        }
    }

    /// Ends the hash.
    pub fn finish(self) -> Digest {
        match self {
            Self::Sha256(hash) => Digest(format!("sha256:{}", hex(&hash.finalize()))),
            Self::Sha512(hash) => Digest(format!("sha512:{}", hex(&hash.finalize()))),
        }
    }
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// Bytes of a hex text; `None` where it is not hex.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    bytes.chunks(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?)).collect()
}

fn nibble(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_digests_and_refuses_what_could_be_a_path() {
        let good = Digest::of(b"x").to_string();
        assert_eq!(good.parse::<Digest>().unwrap().to_string(), good);
        for bad in ["", "sha256:", "sha256:../../etc", "md5:00", &good.to_uppercase(), &good[..70], "sha256:zz"] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }

    #[test]
    fn hashes_with_the_algorithm_of_the_digest() {
        let mut hasher = Hasher::Sha512(Sha512::new());
        hasher.update(b"abc");
        let digest = hasher.finish();
        assert!(digest.as_str().starts_with("sha512:ddaf35a1"));
        assert!(digest.matches(b"abc") && !digest.matches(b"abd"));
    }

    #[test]
    fn hex_goes_both_ways() {
        assert_eq!(unhex(&hex(&[0, 15, 255])), Some(vec![0, 15, 255]));
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("0g"), None);
    }
}
