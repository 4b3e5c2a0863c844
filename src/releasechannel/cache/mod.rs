//! Content by digest on disk: nothing is fetched twice within a run, and not again by the next one.
//!
//! An entry is a file named after its digest, written beside and renamed, so that two processes never see each other's halves. Whatever is
//! read is hashed first: an entry that is damaged is dropped, said, and fetched again. A cache that cannot be used never fails a run.

mod entry;
mod store;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) use store::CachedStore;

use crate::digest::Digest;
use crate::options::CacheFolder;

/// Bytes that a run keeps for itself where there is no folder.
const OWN_BYTES: u64 = 256 << 20;
/// No entry may have more than this part of the whole: one large blob must not drive everything else out.
const LARGEST: u64 = 8;
/// How much may be written before the folder is looked through again.
const BETWEEN_LOOKS: u64 = 20;

/// A folder of content by digest.
#[derive(Debug)]
pub(crate) struct ContentCache {
    folder: PathBuf,
    bytes: u64,
    /// Bytes written since the folder was looked through; at first as many as make it be looked through.
    written: AtomicU64,
    remarks: Mutex<Vec<String>>,
    /// A folder for this run alone; removed with the cache.
    _own: Option<tempfile::TempDir>,
}

impl ContentCache {
    /// Opens the folder that was asked for, or one for this run alone; `None` where neither can be written.
    pub(crate) fn open(asked: Option<&CacheFolder>) -> (Option<Self>, Vec<String>) {
        let mut remarks = Vec::new();
        if let Some(CacheFolder { folder, bytes }) = asked {
            match make(folder) {
                Ok(()) => return (Some(Self::new(folder.clone(), *bytes, None)), remarks),
                Err(error) => remarks.push(format!("the cache {} cannot be used: {error}", folder.display())),
            }
        }
        let own = tempfile::Builder::new().prefix("plinth-content-").tempdir().ok();
        (own.map(|own| Self::new(own.path().to_owned(), OWN_BYTES, Some(own))), remarks)
    }

    fn new(folder: PathBuf, bytes: u64, own: Option<tempfile::TempDir>) -> Self {
        Self { folder, bytes, written: AtomicU64::new(bytes), remarks: Mutex::default(), _own: own }
    }

    /// Opens an entry whose bytes were just found right; `None` where there is none. Blocks.
    pub(crate) fn find(&self, digest: &Digest) -> Option<(File, u64)> {
        let path = self.path(digest);
        let file = File::open(&path).ok()?;
        match entry::hash(&file, digest) {
            Ok((found, size)) if found == *digest => {
                // What was used last goes last. A file of somebody else's is used all the same.
                let _ = file.set_modified(jiff::Timestamp::now().into());
                Some((file, size))
            }
            other => {
                let what = other.map_or_else(|error| error.to_string(), |(found, _)| format!("its digest is {found}"));
                // Unless another process has mended it meanwhile, it goes; a second removal finds nothing.
                let _ = std::fs::remove_file(&path);
                self.remark(format!("the cached {digest} was damaged ({what}): dropped, and fetched again"));
                None
            }
        }
    }

    /// Begins an entry; `None` where it will not be kept.
    pub(crate) fn begin(&self, digest: &Digest, size: Option<u64>) -> Option<entry::Writer> {
        if size.is_some_and(|size| size > self.largest()) {
            return None;
        }
        entry::Writer::new(&self.folder, self.path(digest), self.largest()).ok()
    }

    /// Counts what was written, and makes room where it is time to.
    pub(crate) fn wrote(&self, bytes: u64) {
        let before = self.written.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.bytes / BETWEEN_LOOKS {
            self.written.store(0, Ordering::Relaxed);
            if let Err(error) = entry::make_room(&self.folder, self.bytes) {
                self.remark(format!("the cache {} could not be tidied: {error}", self.folder.display()));
            }
        }
    }

    /// What a person should know, each once.
    pub(crate) fn remarks(&self) -> Vec<String> {
        std::mem::take(&mut *self.remarks.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn remark(&self, text: String) {
        tracing::warn!("{text}");
        let mut remarks = self.remarks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !remarks.contains(&text) {
            remarks.push(text);
        }
    }

    fn largest(&self) -> u64 {
        self.bytes / LARGEST
    }

    /// Two levels, for folders with very many files are slow.
    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(&digest.hex()[..2]).join(digest.file_name())
    }
}

/// Place, repository and tag.
type Named = (String, String, String);

/// What several connections of one run remember together: a run sees one state of what it has read, and fetches nothing twice.
#[derive(Debug)]
pub struct RunMemory {
    cache: Option<Arc<ContentCache>>,
    /// What a tag leads to, and its media type.
    manifests: Mutex<BTreeMap<Named, (Digest, String)>>,
}

impl RunMemory {
    /// Opens the folder that was asked for, else one for this run alone; and what a person should know of it.
    pub fn new(asked: Option<&CacheFolder>) -> (Arc<Self>, Vec<String>) {
        let (cache, remarks) = ContentCache::open(asked);
        (Arc::new(Self { cache: cache.map(Arc::new), manifests: Mutex::default() }), remarks)
    }

    pub(crate) fn cache(&self) -> Option<Arc<ContentCache>> {
        self.cache.clone()
    }
}

/// Only the user may look: what is in it may have needed a login.
fn make(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let probe = tempfile::NamedTempFile::new_in(folder)?;
    probe.close()
}

#[cfg(test)]
mod tests;
