//! `artifact-index.json`.

use std::collections::BTreeMap;

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
    /// `null` in an empty one of the older tool.
    #[serde(default)]
    artifacts: Option<Vec<RawEntry>>,
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
    let entries: Vec<IndexEntry> = raw.artifacts.unwrap_or_default().into_iter().map(entry).collect::<Result<_, _>>()?;
    refuse_two_meanings(&entries, what)?;
    Ok(entries)
}

/// A tag of a repository names one manifest. Where two are listed for it, which one counts would be chance.
fn refuse_two_meanings(entries: &[IndexEntry], what: &str) -> Result<(), RepositoryError> {
    let mut named = BTreeMap::new();
    for entry in entries {
        let Some(tag) = &entry.tag else { continue };
        let known = named.entry((entry.repository.as_str(), tag.as_str())).or_insert(&entry.digest);
        if **known != entry.digest {
            let reason = format!("{}:{tag} is listed twice, as {known} and as {}", entry.repository, entry.digest);
            return Err(RepositoryError::malformed(what, reason));
        }
    }
    Ok(())
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
    let index = RawIndex { schema_version: 1, artifacts: Some(sorted.into_iter().map(raw).collect()) };
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

    #[test]
    fn reads_empty_indexes_and_refuses_tags_with_two_meanings() {
        for text in [r#"{"schemaVersion":1}"#, r#"{"schemaVersion":1,"artifacts":null}"#, r#"{"schemaVersion":1,"artifacts":[]}"#]
        {
            assert_eq!(read(text.as_bytes(), "x").unwrap(), [], "{text}");
        }
        let two = |second: &[u8], tag: &str| {
            let entry =
                |content: &[u8]| serde_json::json!({"repository": "a", "tag": tag, "digest": Digest::of(content).as_str()});
            let index = serde_json::json!({"schemaVersion": 1, "artifacts": [entry(b"x"), entry(second)]});
            read(index.to_string().as_bytes(), "x")
        };
        assert_eq!(two(b"x", "1").unwrap().len(), 2);
        assert_eq!(two(b"y", "").unwrap().len(), 2);
        let error = two(b"y", "1").unwrap_err().to_string();
        assert!(error.contains("a:1 is listed twice"), "{error}");
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,80}", digest in "[a-z0-9:/.]{0,80}") {
            let _ = read(text.as_bytes(), "x");
            let _ = read(format!(r#"{{"schemaVersion":1,"artifacts":[{{"repository":"a","digest":"{digest}"}}]}}"#).as_bytes(), "x");
        }
    }
}
