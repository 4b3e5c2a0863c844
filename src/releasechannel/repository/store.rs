//! What a registry and a CTF have in common: OCI repositories with tags, manifests and blobs.

use std::fmt;

use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;

use super::BlobStream;
use crate::digest::Digest;
use crate::error::RepositoryError;

/// What kind of content a digest names: registries keep the two apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A layer, a configuration or any other blob.
    Blob,
    /// A manifest or an index.
    Manifest,
}

/// How a manifest is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// By tag.
    Tag(String),
    /// By digest, which the bytes are checked against.
    Digest(Digest),
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => write!(f, ":{tag}"),
            Self::Digest(digest) => write!(f, "@{digest}"),
        }
    }
}

/// A manifest or index.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The bytes, exactly as they are stored.
    pub bytes: Bytes,
    /// Their digest.
    pub digest: Digest,
    /// The media type that the store says, else the document's own; may be empty.
    pub media_type: String,
    /// The document.
    pub document: Value,
}

impl Manifest {
    /// Decodes a manifest; `what` names it in errors.
    pub fn decode(bytes: Bytes, digest: Digest, media_type: &str, what: &str) -> Result<Self, RepositoryError> {
        let document: Value = crate::text::json(&bytes).map_err(|error| RepositoryError::malformed(what, error))?;
        if !document.is_object() {
            return Err(RepositoryError::malformed(what, "a manifest must be a JSON object"));
        }
        let own = document.get("mediaType").and_then(Value::as_str).unwrap_or_default();
        let media_type = if own.is_empty() { media_type } else { own }.to_owned();
        Ok(Self { bytes, digest, media_type, document })
    }

    /// Whether it lists other manifests instead of layers.
    pub fn is_index(&self) -> bool {
        self.document.get("manifests").is_some_and(Value::is_array)
    }

    /// Descriptors of the blobs that it names itself: configuration and layers.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = &Value> {
        self.document.get("config").into_iter().chain(self.entries("layers"))
    }

    /// Descriptors in one of its lists, `layers` or `manifests`.
    pub fn entries(&self, list: &str) -> &[Value] {
        self.document.get(list).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

/// OCI repositories with tags, manifests and blobs. Everything it gives out has the digest it was asked by.
pub trait ArtifactStore: Send + Sync + fmt::Debug {
    /// Where this is, for messages: a host or a file.
    fn place(&self) -> String;

    /// Whether reading costs no request.
    fn is_local(&self) -> bool {
        false
    }

    /// Tags of a repository; empty where the repository is unknown.
    fn tags<'a>(&'a self, repository: &'a str) -> BoxFuture<'a, Result<Vec<String>, RepositoryError>>;

    /// A manifest or index.
    fn manifest<'a>(&'a self, repository: &'a str, pointer: &'a Pointer) -> BoxFuture<'a, Result<Manifest, RepositoryError>>;

    /// A blob as a checked stream.
    fn blob<'a>(&'a self, repository: &'a str, digest: &'a Digest) -> BoxFuture<'a, Result<BlobStream, RepositoryError>>;

    /// The size of a blob in bytes, as the store says it; `None` where it does not say. Nothing is read.
    fn size<'a>(&'a self, repository: &'a str, digest: &'a Digest) -> BoxFuture<'a, Result<Option<u64>, RepositoryError>>;

    /// Names of all repositories, sorted, where they can be listed.
    fn repositories(&self) -> BoxFuture<'_, Result<Option<Vec<String>>, RepositoryError>>;
}
