//! A CTF folder that a test may damage, or push to a registry.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Registry;

/// An unpacked CTF: `artifact-index.json` and `blobs/`.
#[derive(Debug)]
pub struct Ctf {
    folder: PathBuf,
}

impl Ctf {
    /// Takes a folder as a CTF.
    pub fn open(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Digests of the blobs that contain `text`, sorted.
    pub fn blobs_with(&self, text: &str) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.folder.join("blobs"))? {
            let entry = entry?;
            if find(&fs::read(entry.path())?, text.as_bytes()).is_some() {
                found.push(entry.file_name().to_string_lossy().replace('.', ":"));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Changes a blob's bytes and keeps its name, as somebody who tampers with an archive does.
    ///
    /// # Panics
    /// Where the blob lacks `from`, or the texts differ in length.
    pub fn tamper(&self, digest: &str, from: &str, to: &str) -> io::Result<()> {
        fs::write(self.blob(digest), replaced(&self.read(digest)?, from, to))
    }

    /// Changes a blob's bytes and everything that names it, so that every digest is right again.
    ///
    /// # Panics
    /// As [`Ctf::tamper`].
    pub fn rewrite(&self, digest: &str, from: &str, to: &str) -> io::Result<()> {
        let bytes = replaced(&self.read(digest)?, from, to);
        let renamed = digest_of(&bytes);
        fs::remove_file(self.blob(digest))?;
        fs::write(self.blob(&renamed), bytes)?;
        for holder in self.blobs_with(digest)? {
            self.rewrite(&holder, digest, &renamed)?;
        }
        let index = self.folder.join("artifact-index.json");
        fs::write(&index, fs::read_to_string(&index)?.replace(digest, &renamed))
    }

    /// Pushes every artifact to `registry`, its repository below `prefix`.
    ///
    /// # Panics
    /// Where the archive or the registry's answer is not as it should be, with what was being pushed.
    pub async fn push(&self, registry: &Registry, prefix: &str) {
        let client = registry.client();
        let index = fs::read(self.folder.join("artifact-index.json")).expect("a CTF has an artifact-index.json");
        let index: Value = serde_json::from_slice(&index).expect("artifact-index.json is JSON");
        for artifact in index["artifacts"].as_array().expect("the index lists artifacts") {
            let text = |field: &str| artifact[field].as_str().unwrap_or_default().to_owned();
            let repository = format!("{}/v2/{prefix}/{}", registry.url(), text("repository"));
            self.push_manifest(&client, registry, &repository, &text("digest"), &text("tag")).await;
        }
    }

    async fn push_manifest(&self, client: &reqwest::Client, registry: &Registry, repository: &str, digest: &str, tag: &str) {
        let bytes = self.read(digest).expect("the index names blobs that are there");
        let manifest: Value = serde_json::from_slice(&bytes).expect("a manifest is JSON");
        let layers = manifest["layers"].as_array().expect("a manifest has layers");
        for blob in layers.iter().chain([&manifest["config"]]) {
            let digest = blob["digest"].as_str().expect("a descriptor has a digest");
            let start = registry.authorized(client.post(format!("{repository}/blobs/uploads/")));
            let answer = start.send().await.expect("the registry answers");
            let place = answer.headers()["location"].to_str().expect("a location is a URL").to_owned();
            let join = if place.contains('?') { '&' } else { '?' };
            let put = client.put(format!("{place}{join}digest={digest}")).body(self.read(digest).expect("the blob is there"));
            let status = registry.authorized(put).send().await.expect("the registry answers").status();
            assert_eq!(status.as_u16(), 201, "push {digest} to {repository}");
        }
        let kind = manifest["mediaType"].as_str().unwrap_or("application/vnd.oci.image.manifest.v1+json").to_owned();
        let reference = if tag.is_empty() { digest } else { tag };
        let put = client.put(format!("{repository}/manifests/{reference}")).header("content-type", kind).body(bytes);
        let status = registry.authorized(put).send().await.expect("the registry answers").status();
        assert_eq!(status.as_u16(), 201, "push manifest {reference} to {repository}");
    }

    /// A blob's bytes.
    pub fn read(&self, digest: &str) -> io::Result<Vec<u8>> {
        fs::read(self.blob(digest))
    }

    fn blob(&self, digest: &str) -> PathBuf {
        self.folder.join("blobs").join(digest.replace(':', "."))
    }
}

fn digest_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// Texts of the same length keep sizes, and the headers of tar files, as they are.
fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len(), "{from} and {to} have the same length");
    let mut changed = bytes.to_vec();
    let mut next = 0;
    while let Some(at) = find(&changed[next..], from.as_bytes()) {
        changed[next + at..next + at + to.len()].copy_from_slice(to.as_bytes());
        next += at + to.len();
    }
    assert!(next > 0, "the blob has {from}");
    changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample() -> (tempfile::TempDir, Ctf) {
        let folder = tempfile::tempdir().unwrap();
        let blobs = folder.path().join("blobs");
        fs::create_dir(&blobs).unwrap();
        let add = |bytes: &[u8]| {
            let digest = digest_of(bytes);
            fs::write(blobs.join(digest.replace(':', ".")), bytes).unwrap();
            digest
        };
        let (layer, config) = (add(b"schemaVersion: v2"), add(b"{}"));
        let part = |digest: &str, size: usize| json!({"mediaType": "application/octet-stream", "digest": digest, "size": size});
        let manifest = json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": part(&config, 2), "layers": [part(&layer, 17)],
        });
        let manifest = add(manifest.to_string().as_bytes());
        let index = format!(r#"{{"schemaVersion":1,"artifacts":[{{"repository":"a/b","tag":"1.0.0","digest":"{manifest}"}}]}}"#);
        fs::write(folder.path().join("artifact-index.json"), index).unwrap();
        let ctf = Ctf::open(folder.path());
        (folder, ctf)
    }

    #[test]
    fn a_rewritten_blob_is_named_by_its_new_digest_up_to_the_index() {
        let (_folder, ctf) = sample();
        let old = ctf.blobs_with("schemaVersion").unwrap().remove(0);
        ctf.rewrite(&old, "v2", "v9").unwrap();
        let new = ctf.blobs_with("schemaVersion: v9").unwrap().remove(0);
        assert_eq!(new, digest_of(b"schemaVersion: v9"));
        let manifest = ctf.blobs_with(&new).unwrap().remove(0);
        let index = fs::read_to_string(ctf.folder().join("artifact-index.json")).unwrap();
        assert!(index.contains(&manifest), "{index}");
        assert!(ctf.blobs_with(&old).unwrap().is_empty());
    }

    #[test]
    fn a_tampered_blob_keeps_its_name() {
        let (_folder, ctf) = sample();
        let digest = ctf.blobs_with("schemaVersion").unwrap().remove(0);
        ctf.tamper(&digest, "v2", "v9").unwrap();
        assert_eq!(ctf.blobs_with("schemaVersion: v9").unwrap(), [digest]);
    }

    #[tokio::test]
    async fn it_is_pushed_with_a_login() {
        let (_folder, ctf) = sample();
        let login = Some(("ann".to_owned(), "secret".to_owned()));
        let registry = Registry::start_with(crate::RegistryOptions { tls: false, login }).unwrap();
        ctf.push(&registry, "mirror").await;
        let manifest = registry.client().get(format!("{}/v2/mirror/a/b/manifests/1.0.0", registry.url()));
        // The registry hides a manifest from whoever does not say that they read its kind.
        let manifest = manifest.header("accept", "application/vnd.oci.image.manifest.v1+json");
        assert_eq!(registry.authorized(manifest).send().await.unwrap().status().as_u16(), 200);
    }
}
