//! A stream of bytes that proves its digest.

use std::fmt;

use bytes::{Bytes, BytesMut};
use futures::stream::{BoxStream, StreamExt};

use crate::digest::{Digest, Hasher};
use crate::error::RepositoryError;

/// Bytes from a repository. The digest is known at the end only, so whoever writes them
/// somewhere must not use the result before the stream has ended without an error.
pub struct BlobStream {
    name: String,
    size: Option<u64>,
    chunks: BoxStream<'static, Result<Bytes, RepositoryError>>,
    checks: Vec<(String, Hasher, Digest)>,
    limit: u64,
    seen: u64,
}

impl fmt::Debug for BlobStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobStream").field("name", &self.name).field("size", &self.size).finish_non_exhaustive()
    }
}

impl BlobStream {
    /// Wraps chunks; `expected` is what the bytes must have in the end, `limit` how many bytes there may be.
    pub fn checked(
        name: impl Into<String>,
        size: Option<u64>,
        chunks: BoxStream<'static, Result<Bytes, RepositoryError>>,
        expected: &Digest,
        limit: u64,
    ) -> Self {
        let name = name.into();
        Self::unchecked(name.clone(), size, chunks, limit).also(&name, Some(expected))
    }

    /// Wraps chunks that nobody knows the digest of yet; [`BlobStream::also`] gives them one.
    pub(crate) fn unchecked(
        name: impl Into<String>,
        size: Option<u64>,
        chunks: BoxStream<'static, Result<Bytes, RepositoryError>>,
        limit: u64,
    ) -> Self {
        Self { name: name.into(), size, chunks, checks: Vec::new(), limit, seen: 0 }
    }

    /// Asks for a further digest of the same bytes; `what` names them in the error.
    #[must_use]
    pub fn also(mut self, what: &str, expected: Option<&Digest>) -> Self {
        let is_new = |expected: &&Digest| !self.checks.iter().any(|(_, _, known)| known == *expected);
        if let Some(expected) = expected.filter(is_new) {
            self.checks.push((what.to_owned(), expected.hasher(), expected.clone()));
        }
        self
    }

    /// Lowers the number of bytes that there may be.
    #[must_use]
    pub(crate) fn at_most(mut self, limit: u64) -> Self {
        self.limit = self.limit.min(limit);
        self
    }

    /// Wraps bytes that are already in memory and checks them like any others.
    pub fn from_bytes(name: impl Into<String>, bytes: Bytes, expected: &Digest) -> Self {
        let size = bytes.len() as u64;
        let chunks = futures::stream::once(async move { Ok(bytes) }).boxed();
        Self::checked(name, Some(size), chunks, expected, size)
    }

    /// The size that the repository says, in bytes. Not proven.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// The next chunk; `None` at the end, after the digest has been found right.
    pub async fn next(&mut self) -> Result<Option<Bytes>, RepositoryError> {
        match self.chunks.next().await {
            Some(chunk) => self.take(chunk?).map(Some),
            None => self.finish().map(|()| None),
        }
    }

    /// Reads to the end for the digest alone.
    pub async fn drain(mut self) -> Result<(), RepositoryError> {
        while self.next().await?.is_some() {}
        Ok(())
    }

    /// All bytes, at most `limit` of them.
    pub async fn read(mut self, limit: u64) -> Result<Bytes, RepositoryError> {
        self.limit = self.limit.min(limit);
        if self.size.is_some_and(|size| size > self.limit) {
            return Err(self.over_limit());
        }
        let mut all = BytesMut::new();
        while let Some(chunk) = self.next().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    }

    fn take(&mut self, chunk: Bytes) -> Result<Bytes, RepositoryError> {
        self.seen += chunk.len() as u64;
        if self.seen > self.limit {
            return Err(self.over_limit());
        }
        for (_, hasher, _) in &mut self.checks {
            hasher.update(&chunk);
        }
        Ok(chunk)
    }

    fn finish(&mut self) -> Result<(), RepositoryError> {
        for (what, hasher, expected) in self.checks.drain(..) {
            let found = hasher.finish();
            if found != expected {
                return Err(RepositoryError::Digest { what, expected, found });
            }
        }
        Ok(())
    }

    fn over_limit(&self) -> RepositoryError {
        RepositoryError::Limit { what: self.name.clone(), limit: self.limit, unit: "bytes" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(bytes: &'static [u8], expected: &Digest, limit: u64) -> BlobStream {
        let chunks = futures::stream::iter(bytes.chunks(2).map(|chunk| Ok(Bytes::from_static(chunk)))).boxed();
        BlobStream::checked("the blob", None, chunks, expected, limit)
    }

    #[tokio::test]
    async fn gives_all_bytes_when_the_digest_is_right() {
        let read = stream(b"hello", &Digest::of(b"hello"), 10).read(10).await.unwrap();
        assert_eq!(&read[..], b"hello");
    }

    #[tokio::test]
    async fn refuses_other_bytes_and_names_both_digests() {
        let error = stream(b"hullo", &Digest::of(b"hello"), 10).read(10).await.unwrap_err().to_string();
        assert!(error.contains(Digest::of(b"hello").as_str()) && error.contains(Digest::of(b"hullo").as_str()), "{error}");
    }

    #[tokio::test]
    async fn stops_at_the_limit() {
        let error = stream(b"hello", &Digest::of(b"hello"), 10).read(4).await.unwrap_err();
        assert!(matches!(error, RepositoryError::Limit { limit: 4, .. }), "{error}");
    }
}
