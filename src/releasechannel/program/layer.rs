//! The one layer of an image: the executable and the authorities that it trusts; the same executable gives the same bytes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::{Compression, GzBuilder};
use sha2::Sha256;

use super::Keep;
use crate::ctf::{Contents, Payload};
use crate::digest::{Digest, Hasher};

/// Where programs on Linux look for certificate authorities.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

/// A layer that is in the contents.
pub(super) struct Layer {
    /// Digest of the tar.
    pub(super) plain: Digest,
    /// Digest of its compressed form.
    pub(super) packed: Digest,
    /// Bytes of that.
    pub(super) size: u64,
}

/// Packs the executable under the name `program`.
pub(super) fn keep(file: &mut File, size: u64, program: &str, keep: &Keep<'_>, contents: &mut Contents) -> io::Result<Layer> {
    match keep {
        Keep::Memory => {
            let (out, layer) = write_layer(file, size, program, Vec::new())?;
            contents.blobs.insert(layer.packed.clone(), Payload::Bytes(out.into()));
            Ok(layer)
        }
        Keep::Folder(folder) => {
            let partial = tempfile::NamedTempFile::new_in(folder)?;
            let (partial, layer) = write_layer(file, size, program, partial)?;
            let path = folder.join(layer.packed.file_name());
            partial.persist(&path).map_err(|error| error.error)?;
            contents.blobs.insert(layer.packed.clone(), Payload::File(path));
            Ok(layer)
        }
    }
}

/// A tar, compressed; hashed before and after.
fn write_layer<W: Write>(file: &mut File, size: u64, program: &str, out: W) -> io::Result<(W, Layer)> {
    let encoder = GzBuilder::new().mtime(0).write(Hashed::new(out), Compression::default());
    let mut tar = tar::Builder::new(Hashed::new(encoder));
    add_authorities(&mut tar)?;
    file.seek(SeekFrom::Start(0))?;
    tar.append_data(&mut header(tar::EntryType::Regular, 0o755, size), program, file.take(size))?;
    let plain = tar.into_inner()?;
    let (encoder, digest, _) = plain.finish();
    let (out, packed, size) = encoder.finish()?.finish();
    Ok((out, Layer { plain: digest, packed, size }))
}

/// Mozilla's authorities, as the build has them: not those of the machine that packs.
fn add_authorities(tar: &mut tar::Builder<impl Write>) -> io::Result<()> {
    let folders = AUTHORITIES.match_indices('/').map(|(end, _)| &AUTHORITIES[..end]);
    for folder in folders {
        tar.append_data(&mut header(tar::EntryType::Directory, 0o755, 0), format!("{folder}/"), io::empty())?;
    }
    let text = authorities();
    tar.append_data(&mut header(tar::EntryType::Regular, 0o644, text.len() as u64), AUTHORITIES, text.as_bytes())
}

/// As PEM, one after the other.
pub(super) fn authorities() -> String {
    const LINE: usize = 64;
    let mut text = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = BASE64_STANDARD.encode(certificate);
        let mut rest = encoded.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(LINE));
            text.push_str(line);
            text.push('\n');
            rest = after;
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

/// Of the epoch's first second and root's.
fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Hashes and counts what is written.
struct Hashed<W> {
    inner: W,
    hasher: Hasher,
    size: u64,
}

impl<W> Hashed<W> {
    fn new(inner: W) -> Self {
        Self { inner, hasher: Hasher::Sha256(Sha256::default()), size: 0 }
    }

    fn finish(self) -> (W, Digest, u64) {
        (self.inner, self.hasher.finish(), self.size)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
