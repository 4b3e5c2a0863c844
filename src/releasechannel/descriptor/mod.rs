//! Component descriptors: schemas v2 and v3alpha1 (ocm.md section 1).

mod content;
mod read;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

pub(crate) use content::{content, of_signature};
pub use read::DescriptorError;
pub(crate) use read::is_signing;

use crate::digest::Digest;

/// Which serialisation a descriptor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// `meta.schemaVersion: v2`.
    V2,
    /// `apiVersion: ocm.software/v3alpha1`.
    V3Alpha1,
}

/// A component descriptor: what we interpret as types, and all of it as it was read (signatures cover fields that we do not interpret).
#[derive(Clone, Debug, PartialEq)]
pub struct Descriptor {
    /// Its serialisation.
    pub schema: Schema,
    /// OCM component name.
    pub name: String,
    /// Version as it is spelled.
    pub version: String,
    /// Name of the provider.
    pub provider: String,
    /// Labels of the component.
    pub labels: Vec<Label>,
    /// Resources, in order.
    pub resources: Vec<Resource>,
    /// Sources, in order; they have the fields of resources but relation and digest.
    pub sources: Vec<Resource>,
    /// References to other component versions, in order.
    pub references: Vec<Reference>,
    /// Names of the signatures, with what they cover.
    pub signatures: Vec<Signature>,
    /// The whole document.
    pub document: Value,
}

/// Name and further attributes of a resource or reference. Compared as a map (ocm.md section 2).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Local name.
    pub name: String,
    /// Further attributes.
    pub extra: BTreeMap<String, String>,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.extra.iter().try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}

/// A label.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// Any JSON.
    pub value: Value,
    /// Whether signatures cover it.
    pub signing: bool,
}

/// A resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Name and further attributes.
    pub identity: Identity,
    /// Its version.
    pub version: String,
    /// OCM resource type, such as `ociImage`.
    pub kind: String,
    /// `local` or `external`, informational.
    pub relation: String,
    /// Where the bytes are. Unsigned.
    pub access: Value,
    /// What the bytes must be.
    pub digest: Option<DigestSpec>,
    /// Labels.
    pub labels: Vec<Label>,
}

/// A reference to another component version.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Name and further attributes.
    pub identity: Identity,
    /// OCM component name of the target.
    pub component: String,
    /// Version of the target.
    pub version: String,
    /// Digest of the target's normalised descriptor.
    pub digest: Option<DigestSpec>,
    /// Labels.
    pub labels: Vec<Label>,
}

/// A digest with the algorithm that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DigestSpec {
    /// `SHA-256` or `SHA-512`.
    pub hash: String,
    /// How bytes were made from the thing.
    pub normalisation: String,
    /// Lower-case hex.
    pub value: String,
}

/// A signature.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// Unique name.
    pub name: String,
    /// What was signed.
    pub digest: DigestSpec,
    /// `RSASSA-PKCS1-V1_5`, `RSASSA-PSS`, …
    pub algorithm: String,
    /// Hex or PEM.
    pub media_type: String,
    /// The signature.
    pub value: String,
    /// Distinguished name, where there is one.
    pub issuer: String,
}

impl DigestSpec {
    /// The digest as `sha256:…`, where the hash is one we know.
    pub fn digest(&self) -> Option<Digest> {
        let algorithm = match self.hash.to_ascii_uppercase().as_str() {
            "SHA-256" | "SHA256" => "sha256",
            "SHA-512" | "SHA512" => "sha512",
            _ => return None,
        };
        format!("{algorithm}:{}", self.value).parse().ok()
    }

    /// Whether the content is deliberately unchecked: only where all three fields say so.
    pub fn is_excluded(&self) -> bool {
        self.normalisation == "EXCLUDE-FROM-SIGNATURE" && self.hash == "NO-DIGEST" && self.value == "NO-DIGEST"
    }

    /// Whether it is the hash of a blob's bytes; the newer tool calls a manifest's digest so too.
    pub fn is_generic(&self) -> bool {
        self.normalisation == "genericBlobDigest/v1"
    }
}
