//! An OCI image layout becomes nested manifests beside the component's descriptor, as the newer OCM tool does it (ocm.md 4.1).

use std::collections::BTreeSet;
use std::path::Path;

use bytes::Bytes;
use serde_json::Value;

use crate::assembly::Packed;
use crate::ctf::archive::{read_file, regular};
use crate::ctf::{Contents, Payload};
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::options::Limits;
use crate::repository::{annotation, entry_digest, media_type};

/// Packs the one artifact of a layout folder with everything it needs.
pub(super) fn pack(path: &Path, contents: &mut Contents, limits: &Limits) -> Result<Packed, RepositoryError> {
    let index_path = path.join("index.json");
    let what = index_path.display().to_string();
    let bytes = read_file(regular(&index_path)?, limits.manifest_bytes)?;
    let index: Value = crate::text::json(&bytes).map_err(|error| RepositoryError::malformed(&what, error))?;
    let entries = index.get("manifests").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let [main] = entries else {
        return Err(RepositoryError::malformed(&what, format!("it lists {} artifacts, not one", entries.len())));
    };
    let mut walk = Walk { path, contents, limits, manifests: Vec::new(), seen: BTreeSet::new() };
    walk.add_manifest(main, &what, 0)?;
    let manifests = walk.manifests;
    let (digest, media_type) = manifests[0].clone();
    let size = read_file(&blob_path(path, &digest), limits.manifest_bytes)?.len() as u64;
    let name = annotation(main, "io.containerd.image.name").or_else(|| annotation(main, "org.opencontainers.image.ref.name"));
    Ok(Packed { digest, media_type, size, reference_name: name.filter(|name| name.contains(':')).map(str::to_owned), manifests })
}

struct Walk<'a> {
    path: &'a Path,
    contents: &'a mut Contents,
    limits: &'a Limits,
    manifests: Vec<(Digest, String)>,
    seen: BTreeSet<Digest>,
}

impl Walk<'_> {
    fn add_manifest(&mut self, entry: &Value, what: &str, depth: usize) -> Result<(), RepositoryError> {
        const DEPTH: usize = 4;
        let digest = entry_digest(entry, what)?;
        if depth > DEPTH || self.seen.len() > self.limits.archive_entries {
            return Err(RepositoryError::malformed(what, "its manifests are nested too deeply"));
        }
        if !self.seen.insert(digest.clone()) {
            return Ok(());
        }
        let path = blob_path(self.path, &digest);
        let bytes: Bytes = read_file(regular(&path)?, self.limits.manifest_bytes)?.into();
        let what = path.display().to_string();
        let document: Value = crate::text::json(&bytes).map_err(|error| RepositoryError::malformed(&what, error))?;
        self.manifests.push((digest.clone(), media_type(entry).to_owned()));
        self.contents.blobs.insert(digest, Payload::Bytes(bytes));
        let list = |key: &str| document.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        for member in list("manifests") {
            self.add_manifest(&member, &what, depth + 1)?;
        }
        for blob in list("layers").iter().chain(document.get("config")) {
            let digest = entry_digest(blob, &what)?;
            let path = blob_path(self.path, &digest);
            if !path.is_file() {
                return Err(RepositoryError::NotFound { what: format!("blob {digest}"), place: what });
            }
            self.contents.blobs.insert(digest, Payload::File(path));
        }
        Ok(())
    }
}

fn blob_path(layout: &Path, digest: &Digest) -> std::path::PathBuf {
    layout.join("blobs").join(digest.as_str().replace(':', "/"))
}
