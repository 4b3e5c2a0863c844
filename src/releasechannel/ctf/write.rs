//! Writing a CTF that both OCM tools can read: index first, no `./`, no times, no owners, blobs sorted (ocm.md section 4).

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use flate2::{Compression, GzBuilder};

use super::{Contents, INDEX_FILE, Payload, archive, file_error, index, make_folder};
use crate::digest::Digest;
use crate::error::RepositoryError;

/// Endings of archives that nothing of OCM reads.
const OTHERS: [&str; 8] = [".zip", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".txz"];

/// Form of a CTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A folder.
    Folder,
    /// A tar archive.
    Tar,
    /// A gzip-compressed tar archive.
    Tgz,
}

impl Format {
    /// What the name of a file asks for: `.tar`, `.tgz` and `.tar.gz`, else a folder. A name of another kind of archive is refused, since
    /// nobody expects a folder there.
    pub fn of(path: &Path) -> Result<Self, RepositoryError> {
        if path.to_string_lossy().chars().any(char::is_control) {
            let shown = path.display().to_string().escape_debug().to_string();
            return Err(RepositoryError::malformed(shown, "its name has control characters"));
        }
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
        if ends(&[".tgz", ".tar.gz"]) {
            Ok(Self::Tgz)
        } else if ends(&[".tar"]) {
            Ok(Self::Tar)
        } else if ends(&OTHERS) {
            Err(RepositoryError::malformed(
                path.display().to_string(),
                "a channel is packed as .tgz, .tar.gz, .tar or a folder".to_owned(),
            ))
        } else {
            Ok(Self::Folder)
        }
    }
}

impl Contents {
    /// Writes a CTF. The same content gives the same bytes. An archive appears under its name only when it is complete.
    pub fn write(&self, path: &Path, format: Format) -> Result<(), RepositoryError> {
        if format == Format::Folder {
            return self.write_folder(path);
        }
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(|error| file_error("write", path, error))?;
        let failed = |error| file_error("write", path, error);
        match format {
            Format::Tgz => {
                let encoder = GzBuilder::new().mtime(0).write(temporary.as_file_mut(), Compression::default());
                self.write_tar(encoder, path)?.finish().map_err(failed)?;
            }
            Format::Tar | Format::Folder => {
                self.write_tar(temporary.as_file_mut(), path)?;
            }
        }
        if format == Format::Tgz {
            archive::is_readable(temporary.reopen().map_err(failed)?, &path.display().to_string())?;
        }
        temporary.as_file().sync_all().map_err(failed)?;
        temporary.persist(path).map_err(|error| file_error("write", path, error.error))?;
        Ok(())
    }

    fn write_folder(&self, path: &Path) -> Result<(), RepositoryError> {
        refuse_others(path)?;
        let blobs = path.join("blobs");
        make_folder(path)?;
        make_folder(&blobs)?;
        for (digest, payload) in &self.blobs {
            let target = blobs.join(digest.file_name());
            let file = File::create(&target).map_err(|error| file_error("write", &target, error))?;
            copy(digest, payload, file, &target)?;
        }
        // Last, so that a folder without index is one that was not finished.
        let target = path.join(INDEX_FILE);
        std::fs::write(&target, index::write(&self.artifacts)).map_err(|error| file_error("write", &target, error))?;
        self.remove_others(&blobs)
    }

    /// Blobs of what was in the folder before.
    fn remove_others(&self, blobs: &Path) -> Result<(), RepositoryError> {
        let entries = std::fs::read_dir(blobs).map_err(|error| file_error("list", blobs, error))?;
        for entry in entries.filter_map(Result::ok) {
            let digest = entry.file_name().to_str().and_then(archive::digest_of_file);
            if digest.is_some_and(|digest| !self.blobs.contains_key(&digest)) {
                std::fs::remove_file(entry.path()).map_err(|error| file_error("remove", &entry.path(), error))?;
            }
        }
        Ok(())
    }

    fn write_tar<W: Write>(&self, writer: W, path: &Path) -> Result<W, RepositoryError> {
        let failed = |error| file_error("write", path, error);
        let mut tar = tar::Builder::new(writer);
        let index = index::write(&self.artifacts);
        tar.append_data(&mut header(index.len() as u64), INDEX_FILE, index.as_slice()).map_err(failed)?;
        let mut folder = header(0);
        folder.set_entry_type(tar::EntryType::Directory);
        folder.set_mode(0o755);
        tar.append_data(&mut folder, "blobs", std::io::empty()).map_err(failed)?;
        for (digest, payload) in &self.blobs {
            let (reader, size) = open(payload)?;
            let mut reader = Checked { reader, hasher: digest.hasher() };
            tar.append_data(&mut header(size), format!("blobs/{}", digest.file_name()), &mut reader).map_err(failed)?;
            reader.prove(digest, path)?;
        }
        tar.into_inner().map_err(failed)
    }
}

/// A folder that has something else in it is somebody else's. One with `blobs` alone was not finished.
fn refuse_others(path: &Path) -> Result<(), RepositoryError> {
    if path.join(INDEX_FILE).is_file() || !path.is_dir() {
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(|error| file_error("read", path, error))?;
    match entries.filter_map(Result::ok).find(|entry| entry.file_name() != "blobs") {
        Some(other) => {
            let reason = format!("the folder holds {}, and no channel: choose an empty one", other.file_name().display());
            Err(RepositoryError::malformed(path.display().to_string(), reason))
        }
        None => Ok(()),
    }
}

fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn copy(digest: &Digest, payload: &Payload, mut file: File, target: &Path) -> Result<(), RepositoryError> {
    let (reader, _) = open(payload)?;
    let mut reader = Checked { reader, hasher: digest.hasher() };
    std::io::copy(&mut reader, &mut file).map_err(|error| file_error("write", target, error))?;
    reader.prove(digest, target)
}

/// Opens a blob's bytes, unchecked, with their size.
pub(super) fn open(payload: &Payload) -> Result<(Box<dyn Read + '_>, u64), RepositoryError> {
    match payload {
        Payload::Bytes(bytes) => Ok((Box::new(bytes.as_ref()), bytes.len() as u64)),
        Payload::Range { file, offset, size } => {
            let reader = RangeReader { file, offset: *offset, left: *size };
            Ok((Box::new(reader), *size))
        }
        Payload::File(path) => {
            let file = File::open(path).map_err(|error| file_error("read", path, error))?;
            let size = file.metadata().map_err(|error| file_error("read", path, error))?.len();
            Ok((Box::new(file), size))
        }
    }
}

struct RangeReader<'a> {
    file: &'a File,
    offset: u64,
    left: u64,
}

impl Read for RangeReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read_at(&mut buffer[..most], self.offset)?;
        self.offset += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}

/// Hashes what passes through, so that nothing is written that is not what it is called.
struct Checked<R> {
    reader: R,
    hasher: crate::digest::Hasher,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}

impl<R> Checked<R> {
    fn prove(self, expected: &Digest, target: &Path) -> Result<(), RepositoryError> {
        let found = self.hasher.finish();
        if found == *expected {
            return Ok(());
        }
        Err(RepositoryError::Digest {
            what: format!("a blob on its way to {}", target.display()),
            expected: expected.clone(),
            found,
        })
    }
}
