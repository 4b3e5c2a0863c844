//! An executable as an image of one layer: how plinth itself gets into a bundle and from there into a cluster (contracts 10).
//!
//! The same executable gives the same bytes: no time, no owner, no name of the machine.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::assembly::{Blobs, MANIFEST, Packed, added, store};
use crate::ctf::{Contents, Payload, file_error};
use crate::descriptor::Descriptor;
use crate::digest::{Digest, Hasher};
use crate::error::RepositoryError;
use crate::image::ImageReference;

/// Name of the component that plinth is.
pub const COMPONENT: &str = "plinth.dev/plinth";
/// Name of its resource with the image.
pub const RESOURCE: &str = "image";

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// Larger than any build, so that a wrong path does not fill the disk.
const LONGEST: u64 = 2 << 30;
/// Nobody, by number: the image has no list of users.
const USER: &str = "65532:65532";

/// Where the layer's bytes are kept.
pub(crate) enum Keep<'a> {
    /// In memory.
    Memory,
    /// As a file of this folder, under its digest.
    Folder(&'a Path),
}

/// Refuses an executable that cannot run in an image with nothing else in it.
pub fn check(executable: &Path) -> Result<(), RepositoryError> {
    let failed = |error| file_error("read", executable, error);
    let mut file = File::open(executable).map_err(failed)?;
    let found = architecture(&mut file).map_err(failed)?;
    found.map(|_| ()).map_err(|reason| RepositoryError::malformed(executable.display().to_string(), reason))
}

/// Packs a static Linux executable. `name` is `repository:tag`, the ordinary name of the image.
pub(crate) fn pack(executable: &Path, name: &str, keep: &Keep<'_>, contents: &mut Contents) -> Result<Packed, RepositoryError> {
    let refuse = |reason: String| RepositoryError::malformed(executable.display().to_string(), reason);
    if ImageReference::parse(name).is_none_or(|image| image.tag.is_none()) {
        return Err(refuse(format!("`{name}` is not a name and a tag for its image")));
    }
    let failed = |error| file_error("read", executable, error);
    let mut file = File::open(executable).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if size > LONGEST {
        return Err(RepositoryError::Limit { what: executable.display().to_string(), limit: LONGEST, unit: "bytes" });
    }
    let architecture = architecture(&mut file).map_err(failed)?.map_err(refuse)?;
    let program = executable.file_name().map_or_else(|| "plinth".to_owned(), |name| name.to_string_lossy().into_owned());
    let layer = keep_layer(&mut file, size, &program, keep, contents).map_err(|error| file_error("pack", executable, error))?;
    let config = json!({"architecture": architecture, "os": "linux", "config": {"Entrypoint": [format!("/{program}")], "User": USER, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [layer.plain.as_str()]}, "history": [{"created_by": "plinth"}]});
    let config = added(contents, bytes(&config), CONFIG);
    let layer = json!({"mediaType": LAYER, "digest": layer.packed.as_str(), "size": layer.size});
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
    let manifest = bytes(&manifest);
    let size = manifest.len() as u64;
    let digest = contents.add_blob(manifest);
    let manifests = vec![(digest.clone(), MANIFEST.to_owned())];
    Ok(Packed { digest, media_type: MANIFEST.to_owned(), size, reference_name: Some(name.to_owned()), manifests })
}

/// What [`component`] added.
pub(crate) struct Added {
    /// Ordinary name of the image.
    pub(crate) name: String,
    /// Its manifest, and the manifest's type.
    pub(crate) manifest: (Digest, String),
    /// Bytes of its layer.
    pub(crate) size: u64,
}

/// Packs the executable and puts it into a component version of its own.
pub(crate) fn component(
    executable: &Path,
    version: &str,
    keep: &Keep<'_>,
    contents: &mut Contents,
) -> Result<Added, RepositoryError> {
    let name = format!("{COMPONENT}:{version}");
    let packed = pack(executable, &name, keep, contents)?;
    let digest =
        json!({"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "genericBlobDigest/v1", "value": packed.digest.hex()});
    let access = json!({"type": "localBlob", "localReference": packed.digest.as_str(), "mediaType": packed.media_type, "referenceName": name});
    let resource = json!({"name": RESOURCE, "version": version, "type": "ociImage", "relation": "local", "access": access, "digest": digest});
    let document = json!({"meta": {"schemaVersion": "v2"}, "component": {"name": COMPONENT, "version": version, "provider": "plinth.dev",
        "repositoryContexts": [], "resources": [resource], "sources": [], "componentReferences": []}});
    let manifest = packed.manifests[0].clone();
    let mut blobs = Blobs::default();
    blobs.add(packed, "resource", resource.as_object().expect("an object was just written"));
    let read = Descriptor::from_value(document).map_err(|error| RepositoryError::malformed(COMPONENT, error))?;
    store(contents, &read, bytes(&read.document), &blobs);
    let size = executable.metadata().map_or(0, |metadata| metadata.len());
    Ok(Added { name, manifest, size })
}

fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data")
}

struct Layer {
    plain: Digest,
    packed: Digest,
    size: u64,
}

fn keep_layer(file: &mut File, size: u64, program: &str, keep: &Keep<'_>, contents: &mut Contents) -> io::Result<Layer> {
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

/// A tar of one file, compressed; hashed before and after.
fn write_layer<W: Write>(file: &mut File, size: u64, program: &str, out: W) -> io::Result<(W, Layer)> {
    let encoder = GzBuilder::new().mtime(0).write(Hashed::new(out), Compression::default());
    let mut tar = tar::Builder::new(Hashed::new(encoder));
    let mut header = tar::Header::new_ustar();
    header.set_size(size);
    header.set_mode(0o755);
    header.set_mtime(0);
    file.seek(SeekFrom::Start(0))?;
    tar.append_data(&mut header, program, file.take(size))?;
    let plain = tar.into_inner()?;
    let (encoder, digest, _) = plain.finish();
    let (out, packed, size) = encoder.finish()?.finish();
    Ok((out, Layer { plain: digest, packed, size }))
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

/// The architecture of a static ELF executable, as images name it; why it cannot run in an image with nothing else in it.
fn architecture(file: &mut File) -> io::Result<Result<&'static str, String>> {
    const HEADER: usize = 64;
    const INTERPRETER: u32 = 3;
    let mut header = [0; HEADER];
    if file.read(&mut header)? < HEADER || header[..6] != [0x7f, b'E', b'L', b'F', 2, 1] {
        return Ok(Err("it is not an executable for Linux of 64 bits".to_owned()));
    }
    let number = |at: usize, length: usize| header[at..at + length].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let architecture = match number(18, 2) {
        0x3e => "amd64",
        0xb7 => "arm64",
        other => return Ok(Err(format!("its architecture (ELF machine {other}) is not one that images are made for"))),
    };
    let (start, entry, count) = (number(32, 8), number(54, 2), number(56, 2));
    for index in 0..count {
        let mut kind = [0; 4];
        file.seek(SeekFrom::Start(start.saturating_add(index * entry)))?;
        file.read_exact(&mut kind)?;
        if u32::from_le_bytes(kind) == INTERPRETER {
            return Ok(Err("it is not a static build: it needs libraries that an image of one file does not have".to_owned()));
        }
    }
    Ok(Ok(architecture))
}

#[cfg(test)]
mod tests;
