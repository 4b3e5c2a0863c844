//! Normal forms of component descriptors: the exact bytes that are hashed and signed (ocm.md section 8).
//!
//! The tools decide, not the specification's text: labels of references are covered with everything they have, and the key is
//! `componentReferences`.

mod encode;
mod entries;
mod jcs;
mod numbers;

use std::fmt;
use std::str::FromStr;

use crate::descriptor::{Descriptor, DigestSpec};
use crate::digest::Digest;

/// A normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Normalisation {
    /// `jsonNormalisation/v1`: depends on the schema, objects as lists of entries.
    V1,
    /// `jsonNormalisation/v2`: as v3, with the version in the identity of ambiguous resources.
    V2,
    /// `jsonNormalisation/v3`: what the older tool signs by default.
    V3,
    /// `jsonNormalisation/v4alpha1`: what the newer tool signs by default.
    V4Alpha1,
}

/// The algorithm is none that plinth knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a normalisation of component descriptors that plinth knows")]
pub struct UnknownNormalisation(pub String);

impl Normalisation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::V1, Self::V2, Self::V3, Self::V4Alpha1];

    /// The name in a digest.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "jsonNormalisation/v1",
            Self::V2 => "jsonNormalisation/v2",
            Self::V3 => "jsonNormalisation/v3",
            Self::V4Alpha1 => "jsonNormalisation/v4alpha1",
        }
    }
}

impl FromStr for Normalisation {
    type Err = UnknownNormalisation;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL
            .into_iter()
            .find(|known| text == known.name() || known.name().strip_prefix("jsonNormalisation/") == Some(text));
        known.ok_or_else(|| UnknownNormalisation(text.chars().take(120).collect()))
    }
}

impl fmt::Display for Normalisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The bytes that are hashed. References and resources must have their digests already.
pub fn normalise(descriptor: &Descriptor, algorithm: Normalisation) -> Vec<u8> {
    let text = match algorithm {
        Normalisation::V1 => encode::entries(&entries::form(descriptor)),
        Normalisation::V2 | Normalisation::V3 | Normalisation::V4Alpha1 => encode::jcs(&jcs::form(descriptor, algorithm)),
    };
    text.into_bytes()
}

/// A descriptor's digest as statuses and references have it: `jsonNormalisation/v4alpha1`, SHA-256. It stays the same when a transfer
/// changes accesses.
pub fn digest(descriptor: &Descriptor) -> DigestSpec {
    let algorithm = Normalisation::V4Alpha1;
    let value = Digest::of(&normalise(descriptor, algorithm)).hex().to_owned();
    DigestSpec { hash: "SHA-256".to_owned(), normalisation: algorithm.name().to_owned(), value }
}

/// Whether a descriptor has this digest.
pub fn has_digest(descriptor: &Descriptor, digest: &DigestSpec) -> Result<bool, UnknownNormalisation> {
    digest_like(descriptor, digest).map(|(expected, found)| expected == found)
}

/// The digest of a descriptor, made as `like` was made: its normalisation and its hash.
pub(crate) fn digest_like(descriptor: &Descriptor, like: &DigestSpec) -> Result<(Digest, Digest), UnknownNormalisation> {
    let algorithm: Normalisation = like.normalisation.parse()?;
    let expected = like.digest().ok_or_else(|| UnknownNormalisation(format!("{} {}", like.hash, like.value)))?;
    let found = crate::fetch::hash_like(&expected, &normalise(descriptor, algorithm));
    Ok((expected, found))
}

#[cfg(test)]
pub(crate) mod tests;
