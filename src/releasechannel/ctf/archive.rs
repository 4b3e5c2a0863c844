//! Reading CTFs and other archives from strangers: names are checked, links refused, sizes and counts bounded.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;

use super::{Contents, INDEX_FILE, Payload, file_error, index};
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::options::Limits;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Below this size a high ratio of compression is no bomb.
const FREE_BYTES: u64 = 256 << 20;
/// Bytes of an index.
const INDEX_BYTES: u64 = 64 << 20;
/// Deflate can do up to about 1032; real content stays far below this.
const MOST_RATIO: u64 = 100;

/// Opens a CTF that is a folder.
pub(super) fn open_folder(path: &Path, place: String, limits: &Limits) -> Result<Contents, RepositoryError> {
    let index_path = path.join(INDEX_FILE);
    let bytes = read_file(regular(&index_path)?, limits.manifest_bytes.max(INDEX_BYTES))?;
    let artifacts = index::read(&bytes, &index_path.display().to_string())?;
    let folder = path.join("blobs");
    let mut blobs = BTreeMap::new();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Contents { place, artifacts, blobs }),
        Err(error) => return Err(file_error("list", &folder, error)),
    };
    for (count, entry) in entries.enumerate() {
        check_count(count, &place, limits)?;
        let entry = entry.map_err(|error| file_error("list", &folder, error))?;
        let Some(digest) = entry.file_name().to_str().and_then(digest_of_file) else { continue };
        // A link could lead out of the folder.
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            blobs.insert(digest, Payload::File(entry.path()));
        }
    }
    Ok(Contents { place, artifacts, blobs })
}

/// Opens a CTF that is a tar or tgz: one pass finds where the blobs are. A tgz is unpacked into a file without a name first.
pub(super) fn open_file(path: &Path, place: String, limits: &Limits) -> Result<Contents, RepositoryError> {
    let file = File::open(regular(path)?).map_err(|error| file_error("read", path, error))?;
    let set = open_set(file, &place, limits, &[INDEX_FILE])?;
    let artifacts = index::read(&set.index, &format!("{place}: {INDEX_FILE}"))?;
    let blob = |(name, payload): (String, Payload)| Some((name.strip_prefix("blobs/").and_then(digest_of_file)?, payload));
    Ok(Contents { artifacts, blobs: set.files.into_iter().filter_map(blob).collect(), place })
}

/// An archive with an index: a CTF, an artifact set, an OCI layout.
pub(crate) struct FileSet {
    /// The index.
    pub(crate) index: Vec<u8>,
    /// Everything else, by name.
    pub(crate) files: Vec<(String, Payload)>,
}

/// Opens a tar or tgz with an index of one of these names.
pub(crate) fn open_set(mut file: File, place: &str, limits: &Limits, index_names: &[&str]) -> Result<FileSet, RepositoryError> {
    let failed = |error| file_error("read", Path::new(place), error);
    file.rewind().map_err(failed)?;
    let mut magic = [0; 2];
    let is_gzip = file.read_exact(&mut magic).is_ok() && magic == GZIP_MAGIC;
    file.rewind().map_err(failed)?;
    let mut file = if is_gzip { gunzip(file, place, limits)? } else { file };
    file.rewind().map_err(failed)?;
    let (entries, index) = scan(&file, place, limits, index_names)?;
    let file = Arc::new(file);
    let index = index.ok_or_else(|| RepositoryError::malformed(place, format!("the archive has no {}", index_names[0])))?;
    let payload = |(name, (offset, size))| (name, Payload::Range { file: Arc::clone(&file), offset, size });
    Ok(FileSet { index, files: entries.into_iter().map(payload).collect() })
}

type Offsets = BTreeMap<String, (u64, u64)>;

fn scan(file: &File, place: &str, limits: &Limits, index_names: &[&str]) -> Result<(Offsets, Option<Vec<u8>>), RepositoryError> {
    let length = file.metadata().map_err(|error| RepositoryError::malformed(place, error))?.len();
    let mut archive = tar::Archive::new(file);
    let entries = archive.entries_with_seek().map_err(|error| not_a_tar(place, &error))?;
    let mut offsets = BTreeMap::new();
    let mut index = None;
    for (count, entry) in entries.enumerate() {
        check_count(count, place, limits)?;
        let mut entry = entry.map_err(|error| not_a_tar(place, &error))?;
        let Some(name) = checked_name(&entry, place)? else { continue };
        let (offset, size) = (entry.raw_file_position(), entry.size());
        if offset.checked_add(size).is_none_or(|end| end > length) {
            return Err(RepositoryError::malformed(place, format!("the archive ends inside {name}")));
        }
        if !index_names.contains(&name.as_str()) {
            offsets.insert(name, (offset, size));
        } else if index.is_some() {
            return Err(RepositoryError::malformed(place, format!("the archive has {name} twice")));
        } else {
            index = Some(read_bounded(&mut entry, INDEX_BYTES, &format!("{place}: {name}"))?);
        }
    }
    Ok((offsets, index))
}

/// Decompresses where the bytes have gzip's magic (ocm.md section 5: the media type does not tell), else gives them back.
pub(crate) fn gunzip_bytes(bytes: &Bytes, what: &str, limit: u64) -> Result<Bytes, RepositoryError> {
    if !bytes.starts_with(&GZIP_MAGIC) {
        return Ok(bytes.clone());
    }
    read_bounded(&mut MultiGzDecoder::new(bytes.as_ref()), limit, what).map(Bytes::from)
}

/// The clean name of a regular file; `None` for folders and headers without content. Links, devices and names that lead out are
/// refused: nobody has a reason to put them into a CTF.
fn checked_name<R: Read>(entry: &tar::Entry<'_, R>, place: &str) -> Result<Option<String>, RepositoryError> {
    let raw = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    let kind = entry.header().entry_type();
    let name = raw.trim_start_matches("./").to_owned();
    let is_clean = !raw.starts_with('/') && !name.contains(['\\', '\0']) && !name.split('/').any(|part| part == "..");
    if !is_clean {
        return Err(RepositoryError::malformed(place, format!("the archive's entry `{}` leads out of it", raw.escape_debug())));
    }
    match kind {
        tar::EntryType::Regular | tar::EntryType::Continuous => Ok(Some(name)),
        tar::EntryType::Directory | tar::EntryType::XGlobalHeader => Ok(None),
        _ => Err(RepositoryError::malformed(
            place,
            format!("the archive's entry `{}` is a link or special file", raw.escape_debug()),
        )),
    }
}

/// Unpacks into a file without a name. Bounded three ways: by size, by how much more comes out than went in so far, and by time; so that a
/// bomb is known for one long before it has filled the disk.
fn gunzip(file: File, place: &str, limits: &Limits) -> Result<File, RepositoryError> {
    let path = Path::new(place);
    let mut plain = tempfile::tempfile().map_err(|error| file_error("create a temporary file for", path, error))?;
    unpack(file, &mut plain, place, limits)?;
    plain.seek(SeekFrom::Start(0)).map_err(|error| file_error("unpack", path, error))?;
    Ok(plain)
}

/// Whether a tgz that was just written will be read: content that is packed too well looks like a bomb.
pub(super) fn is_readable(file: File, place: &str) -> Result<(), RepositoryError> {
    match unpack(file, &mut std::io::sink(), place, &Limits::default()) {
        Err(RepositoryError::Limit { limit, unit, .. }) => {
            let reason = format!(
                "as .tgz it would be over the limit of {limit} {unit} that archives are read by: write it as .tar or a folder"
            );
            Err(RepositoryError::malformed(place, reason))
        }
        other => other,
    }
}

fn unpack(file: File, plain: &mut impl Write, place: &str, limits: &Limits) -> Result<(), RepositoryError> {
    let path = Path::new(place);
    let mut decoder = MultiGzDecoder::new(Counted { reader: file, read: 0 });
    let mut buffer = vec![0; 256 * 1024];
    let (started, mut total) = (Instant::now(), 0);
    loop {
        let count =
            decoder.read(&mut buffer).map_err(|error| RepositoryError::malformed(place, format!("decompressing it: {error}")))?;
        if count == 0 {
            return Ok(());
        }
        total += count as u64;
        let most = limits.archive_bytes.min(FREE_BYTES.max(decoder.get_ref().read.saturating_mul(MOST_RATIO)));
        if total > most {
            return Err(RepositoryError::Limit { what: format!("{place}, decompressed,"), limit: most, unit: "bytes" });
        }
        if started.elapsed() > limits.archive_time {
            let limit = limits.archive_time.as_secs();
            return Err(RepositoryError::Limit { what: format!("{place}, being decompressed,"), limit, unit: "seconds" });
        }
        plain.write_all(&buffer[..count]).map_err(|error| file_error("unpack", path, error))?;
    }
}

/// Counts what was read.
struct Counted<R> {
    reader: R,
    read: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.read += count as u64;
        Ok(count)
    }
}

/// Reads to the end, at most `limit` bytes.
pub(crate) fn read_bounded(reader: &mut impl Read, limit: u64, what: &str) -> Result<Vec<u8>, RepositoryError> {
    let mut bytes = Vec::new();
    reader.take(limit + 1).read_to_end(&mut bytes).map_err(|error| RepositoryError::malformed(what, error))?;
    if bytes.len() as u64 > limit {
        return Err(RepositoryError::Limit { what: what.to_owned(), limit, unit: "bytes" });
    }
    Ok(bytes)
}

/// Reads a file, at most `limit` bytes.
pub(crate) fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, RepositoryError> {
    let mut file = File::open(path).map_err(|error| file_error("read", path, error))?;
    read_bounded(&mut file, limit, &path.display().to_string())
}

/// Refuses what is neither a file nor a folder: a pipe may give nothing for as long as it likes, and a device without end.
pub(crate) fn regular(path: &Path) -> Result<&Path, RepositoryError> {
    let metadata = std::fs::metadata(path).map_err(|error| file_error("read", path, error))?;
    if metadata.is_file() || metadata.is_dir() {
        return Ok(path);
    }
    Err(RepositoryError::malformed(path.display().to_string(), "it is no regular file"))
}

/// `sha256.<hex>`.
pub(super) fn digest_of_file(name: &str) -> Option<Digest> {
    name.replacen('.', ":", 1).parse().ok()
}

fn check_count(count: usize, place: &str, limits: &Limits) -> Result<(), RepositoryError> {
    if count < limits.archive_entries {
        return Ok(());
    }
    Err(RepositoryError::Limit { what: place.to_owned(), limit: limits.archive_entries as u64, unit: "entries" })
}

fn not_a_tar(place: &str, error: &std::io::Error) -> RepositoryError {
    // Not the error's own text: it may quote the file, whatever that is.
    RepositoryError::malformed(place, format!("it is no tar archive with a channel, or a damaged one ({})", error.kind()))
}

#[cfg(test)]
mod tests;
