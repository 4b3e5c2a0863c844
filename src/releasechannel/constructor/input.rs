//! Inputs of a constructor: a file, a folder, text, or an OCI layout becomes a local blob.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use bytes::Bytes;
use serde_json::Value;
use sha2::Sha256;

use super::{Constructor, layout};
use crate::assembly::Packed;
use crate::ctf::{Contents, Payload, file_error};
use crate::digest::Hasher;
use crate::error::RepositoryError;
use crate::options::Limits;
use crate::program::{self, Keep};
use crate::tarball::{gzip, tar};

/// Packs an input into the contents.
pub(super) fn pack(
    constructor: &Constructor,
    input: &Value,
    contents: &mut Contents,
    limits: &Limits,
) -> Result<Packed, RepositoryError> {
    let text = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default();
    let refuse = |reason: String| RepositoryError::malformed(constructor.file.display().to_string(), reason);
    let kind = text("type").split('/').next().unwrap_or_default();
    let path = || {
        if text("path").is_empty() {
            Err(refuse(format!("an input of type {kind} needs `path`")))
        } else {
            constructor.file_at(text("path"))
        }
    };
    let compress = input.get("compress").and_then(Value::as_bool).unwrap_or_default();
    match kind {
        "file" if !compress => plain_file(&path()?, &media_type(text("mediaType"), "application/octet-stream"), contents),
        "file" => {
            let bytes = crate::ctf::archive::read_file(&path()?, limits.document_bytes)?;
            Ok(blob(bytes, &media_type(text("mediaType"), "application/octet-stream"), true, contents))
        }
        "dir" => {
            let bytes = tar_of(&path()?, None, limits)?;
            Ok(blob(bytes, &media_type(text("mediaType"), program::TAR), compress, contents))
        }
        "helm" => {
            let path = path()?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let bytes = tar_of(&path, name.as_deref(), limits)?;
            Ok(blob(bytes, program::HELM, true, contents))
        }
        "utf8" => Ok(blob(text("text").as_bytes().to_vec(), &media_type(text("mediaType"), "text/plain"), compress, contents)),
        "ociLayout" | "ocilayout" => layout::pack(&path()?, contents, limits),
        "executable" => program::pack(&path()?, text("name"), &Keep::Memory, contents),
        _ => Err(refuse(format!("the input type `{}` is not file, dir, utf8, helm, ociLayout or executable", text("type")))),
    }
}

fn media_type(given: &str, default: &str) -> String {
    if given.is_empty() { default } else { given }.to_owned()
}

fn blob(bytes: Vec<u8>, media_type: &str, compress: bool, contents: &mut Contents) -> Packed {
    let bytes: Bytes = if compress { gzip(&bytes) } else { bytes }.into();
    let size = bytes.len() as u64;
    let digest = contents.add_blob(bytes);
    Packed { digest, media_type: media_type.to_owned(), size, reference_name: None, manifests: Vec::new() }
}

/// A file stays where it is; it is hashed now and again when it is read.
fn plain_file(path: &Path, media_type: &str, contents: &mut Contents) -> Result<Packed, RepositoryError> {
    let failed = |error| file_error("read", path, error);
    let mut file = File::open(path).map_err(failed)?;
    let mut hasher = Hasher::Sha256(Sha256::default());
    let mut buffer = vec![0; 128 * 1024];
    let mut size = 0;
    loop {
        let count = file.read(&mut buffer).map_err(failed)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        size += count as u64;
    }
    let digest = hasher.finish();
    contents.blobs.insert(digest.clone(), Payload::File(path.to_owned()));
    Ok(Packed { digest, media_type: media_type.to_owned(), size, reference_name: None, manifests: Vec::new() })
}

/// A tar of a folder: sorted, without times and owners; links are refused.
fn tar_of(folder: &Path, prefix: Option<&str>, limits: &Limits) -> Result<Vec<u8>, RepositoryError> {
    let mut files = Vec::new();
    collect(folder, folder, &mut files, limits)?;
    files.sort();
    let mut left = limits.document_bytes.max(1 << 30);
    let mut packed = Vec::new();
    for name in files {
        let path = folder.join(&name);
        let bytes = crate::ctf::archive::read_file(&path, left)?;
        left -= bytes.len() as u64;
        packed.push((prefix.map_or(name.clone(), |prefix| format!("{prefix}/{name}")), mode_of(&path), bytes));
    }
    tar(packed).map_err(|error| file_error("pack", folder, error))
}

/// Only whether it is executable counts, so that an umask does not change the bytes.
fn mode_of(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    let is_executable = path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o100 != 0);
    if is_executable { 0o755 } else { 0o644 }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<String>, limits: &Limits) -> Result<(), RepositoryError> {
    for entry in std::fs::read_dir(folder).map_err(|error| file_error("list", folder, error))? {
        let entry = entry.map_err(|error| file_error("list", folder, error))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| file_error("read", &path, error))?;
        if files.len() >= limits.archive_entries {
            return Err(RepositoryError::Limit {
                what: root.display().to_string(),
                limit: limits.archive_entries as u64,
                unit: "files",
            });
        }
        if kind.is_dir() {
            collect(root, &path, files, limits)?;
        } else if kind.is_file() {
            let relative = path.strip_prefix(root).expect("it was found below the root");
            files.push(relative.to_string_lossy().into_owned());
        } else {
            return Err(RepositoryError::malformed(path.display().to_string(), "links and special files are not packed"));
        }
    }
    Ok(())
}
