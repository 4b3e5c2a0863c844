//! `artifact-index.json`.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::RepositoryError;

/// Name of the index inside a CTF.
pub(crate) const INDEX_FILE: &str = "artifact-index.json";

/// One manifest of a CTF. Untagged ones are normal: members of indexes, and older manifests of a version that was signed again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexEntry {
    /// Path as in a registry.
    pub repository: String,
    /// Tag.
    pub tag: Option<String>,
    /// The manifest.
    pub digest: Digest,
    /// Its media type; empty where the index does not say.
    pub media_type: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawIndex {
    schema_version: u64,
    #[serde(default)]
    artifacts: Vec<RawEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEntry {
    repository: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    tag: String,
    digest: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    media_type: String,
}

/// Reads the index; `what` names it in errors.
pub(crate) fn read(bytes: &[u8], what: &str) -> Result<Vec<IndexEntry>, RepositoryError> {
    let raw: RawIndex = crate::text::json(bytes).map_err(|error| RepositoryError::malformed(what, error))?;
    if raw.schema_version != 1 {
        return Err(RepositoryError::malformed(what, format!("schemaVersion {} is not known, only 1 is", raw.schema_version)));
    }
    let entry = |raw: RawEntry| {
        let digest = raw.digest.parse().map_err(|error| RepositoryError::malformed(what, error))?;
        let tag = (!raw.tag.is_empty()).then_some(raw.tag);
        Ok(IndexEntry { repository: raw.repository, tag, digest, media_type: raw.media_type })
    };
    raw.artifacts.into_iter().map(entry).collect()
}

/// Writes the index, sorted, so that the same content is the same bytes.
pub(crate) fn write(entries: &[IndexEntry]) -> Vec<u8> {
    let mut sorted = entries.to_vec();
    sorted.sort();
    sorted.dedup();
    let raw = |entry: IndexEntry| RawEntry {
        repository: entry.repository,
        tag: entry.tag.unwrap_or_default(),
        digest: entry.digest.to_string(),
        media_type: entry.media_type,
    };
    let index = RawIndex { schema_version: 1, artifacts: sorted.into_iter().map(raw).collect() };
    serde_json::to_vec(&index).expect("an index is plain data")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_it_writes_sorted() {
        let digest = Digest::of(b"x");
        let entry = |repository: &str, tag: Option<&str>| IndexEntry {
            repository: repository.into(),
            tag: tag.map(str::to_owned),
            digest: digest.clone(),
            media_type: String::new(),
        };
        let written = write(&[entry("b", Some("1")), entry("a", None), entry("a", None)]);
        assert_eq!(read(&written, "x").unwrap(), vec![entry("a", None), entry("b", Some("1"))]);
    }

    #[test]
    fn refuses_trailing_garbage_and_bad_digests() {
        for text in [
            r#"{"schemaVersion":1,"artifacts":[]}"x":1}]}"#,
            r#"{"schemaVersion":2,"artifacts":[]}"#,
            "[]",
            "",
            r#"{"schemaVersion":1,"artifacts":[{"repository":"a","digest":"sha256:../../x"}]}"#,
        ] {
            assert!(read(text.as_bytes(), "artifact-index.json").is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,80}", digest in "[a-z0-9:/.]{0,80}") {
            let _ = read(text.as_bytes(), "x");
            let _ = read(format!(r#"{{"schemaVersion":1,"artifacts":[{{"repository":"a","digest":"{digest}"}}]}}"#).as_bytes(), "x");
        }
    }
}
