//! Files of the cache: hashed, written beside and renamed, and removed by age.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::digest::Digest;

/// How full the folder is after room was made, of ten.
const LEFT_OF_TEN: u64 = 8;

/// The digest of a file's bytes, made as `like` was, and their number.
pub(super) fn hash(mut file: &File, like: &Digest) -> io::Result<(Digest, u64)> {
    let mut hasher = like.hasher();
    let mut buffer = vec![0; 128 * 1024];
    let mut size = 0;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok((hasher.finish(), size));
        }
        hasher.update(&buffer[..count]);
        size += count as u64;
    }
}

/// An entry that is being written. Dropped without [`Writer::commit`] it leaves nothing.
#[derive(Debug)]
pub(crate) struct Writer {
    file: tempfile::NamedTempFile,
    path: PathBuf,
    left: u64,
    written: u64,
}

impl Writer {
    pub(super) fn new(folder: &Path, path: PathBuf, most: u64) -> io::Result<Self> {
        Ok(Self { file: tempfile::NamedTempFile::new_in(folder)?, path, left: most, written: 0 })
    }

    /// Adds bytes; an error where they are more than an entry may have. Blocks for as long as a write to the page cache takes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u64;
        self.left = self.left.checked_sub(length).ok_or_else(|| io::Error::other("too large for the cache"))?;
        self.written += length;
        self.file.write_all(bytes)
    }

    /// Puts the entry in its place. Only for bytes that were found right.
    pub(crate) fn commit(self) -> io::Result<u64> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        self.file.persist(&self.path).map_err(|error| error.error)?;
        Ok(self.written)
    }
}

/// Removes what was used longest ago until the folder is well below its size. Where another process is at it, it does it for us too.
pub(super) fn make_room(folder: &Path, most: u64) -> io::Result<()> {
    let lock = File::options().create(true).truncate(false).write(true).open(folder.join("lock"))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let mut files = Vec::new();
    for below in std::fs::read_dir(folder)?.flatten().filter(|entry| entry.path().is_dir()) {
        files.extend(std::fs::read_dir(below.path())?.flatten().filter_map(|entry| aged(&entry)));
    }
    let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
    if total <= most {
        return Ok(());
    }
    files.sort();
    for (_, size, path) in files {
        if total <= most / 10 * LEFT_OF_TEN {
            break;
        }
        match std::fs::remove_file(&path) {
            Ok(()) => total -= size,
            Err(error) if error.kind() == io::ErrorKind::NotFound => total -= size,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn aged(entry: &std::fs::DirEntry) -> Option<(SystemTime, u64, PathBuf)> {
    let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((metadata.modified().ok()?, metadata.len(), entry.path()))
}
