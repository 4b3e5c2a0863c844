//! The Common Transport Format: folder, tar, tgz (ocm.md section 4), and the same content in memory.

pub(crate) mod archive;
mod index;
mod store;
mod write;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

pub(crate) use index::INDEX_FILE;
pub use index::IndexEntry;
pub use store::ContentStore;
pub(crate) use store::{open_part, open_payload};
pub use write::Format;

use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::options::Limits;

/// Everything an OCI store holds: named manifests and blobs by digest. A CTF that was opened, or one that is being made.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Where it is, for messages.
    pub place: String,
    /// Manifests with repository and tag.
    pub artifacts: Vec<IndexEntry>,
    /// Manifests, configurations and layers.
    pub blobs: BTreeMap<Digest, Payload>,
}

/// Where the bytes of a blob are. They are hashed whenever they are read.
#[derive(Clone, Debug)]
pub enum Payload {
    /// In memory.
    Bytes(Bytes),
    /// A file of its own.
    File(PathBuf),
    /// A part of an archive.
    Range {
        /// The open archive.
        file: Arc<File>,
        /// Where the blob begins.
        offset: u64,
        /// Its size in bytes.
        size: u64,
    },
}

impl Payload {
    /// Size in bytes.
    pub(crate) fn size(&self) -> Result<u64, RepositoryError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.len() as u64),
            Self::Range { size, .. } => Ok(*size),
            Self::File(path) => Ok(std::fs::metadata(path).map_err(|cause| file_error("read", path, cause))?.len()),
        }
    }

    /// All bytes, at most `limit` of them, unchecked. Blocks.
    pub(crate) fn read(&self, limit: u64, what: &str) -> Result<Vec<u8>, RepositoryError> {
        let (mut reader, _) = write::open(self)?;
        archive::read_bounded(&mut reader, limit, what)
    }
}

impl Contents {
    /// Opens a CTF. Blobs are only looked at when they are asked for.
    pub fn open(path: &Path, limits: &Limits) -> Result<Self, RepositoryError> {
        let place = path.display().to_string();
        let metadata = std::fs::metadata(path).map_err(|cause| file_error("read", path, cause))?;
        if metadata.is_dir() { archive::open_folder(path, place, limits) } else { archive::open_file(path, place, limits) }
    }

    /// Puts a blob in and gives its digest.
    pub fn add_blob(&mut self, bytes: impl Into<Bytes>) -> Digest {
        let bytes = bytes.into();
        let digest = Digest::of(&bytes);
        self.blobs.insert(digest.clone(), Payload::Bytes(bytes));
        digest
    }

    /// Makes a store of it.
    pub fn into_store(self, limits: Limits) -> Arc<ContentStore> {
        Arc::new(ContentStore::new(self, limits))
    }
}

/// Makes a folder where it is missing. The one around it must be there: where it is not, somebody has mistyped its name.
pub(crate) fn make_folder(folder: &Path) -> Result<(), RepositoryError> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(|error| file_error("create", folder, error)),
    }
}

pub(crate) fn file_error(action: &'static str, path: &Path, cause: std::io::Error) -> RepositoryError {
    RepositoryError::File { action, path: path.to_owned(), cause }
}
