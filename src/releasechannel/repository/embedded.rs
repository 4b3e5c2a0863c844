//! Content that stands in the descriptor that names it: `data` of the OCI image specification. What stands there needs no request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

use crate::digest::Digest;
use crate::error::RepositoryError;

/// The content of an OCI descriptor, where it stands there; refused where it is not what the digest says.
pub(super) fn bytes(entry: &Value, digest: &Digest, limit: u64, what: &str) -> Result<Option<Bytes>, RepositoryError> {
    let Some(text) = entry.get("data").and_then(Value::as_str).filter(|text| !text.is_empty()) else { return Ok(None) };
    let bytes = STANDARD.decode(text).map_err(|error| RepositoryError::malformed(what, format!("its `data`: {error}")))?;
    if bytes.len() as u64 > limit {
        return Err(RepositoryError::Limit { what: format!("{what}: its `data`"), limit, unit: "bytes" });
    }
    if !digest.matches(&bytes) {
        let found = crate::fetch::hash_like(digest, &bytes);
        return Err(RepositoryError::Digest { what: format!("{what}: its `data`"), expected: digest.clone(), found });
    }
    Ok(Some(bytes.into()))
}

/// Puts content into its OCI descriptor.
pub(crate) fn embed(entry: &mut Value, bytes: &[u8]) {
    entry["data"] = STANDARD.encode(bytes).into();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_stands_there_is_proven() {
        let digest = Digest::of(b"content");
        let mut entry = json!({"digest": digest.as_str(), "size": 7});
        assert_eq!(bytes(&entry, &digest, 10, "x").unwrap(), None);
        embed(&mut entry, b"content");
        assert_eq!(bytes(&entry, &digest, 10, "x").unwrap().as_deref(), Some(b"content".as_slice()));
        assert!(matches!(bytes(&entry, &digest, 6, "x"), Err(RepositoryError::Limit { .. })));
        assert!(matches!(bytes(&entry, &Digest::of(b"other"), 10, "x"), Err(RepositoryError::Digest { .. })));
        entry["data"] = "!".into();
        assert!(matches!(bytes(&entry, &digest, 10, "x"), Err(RepositoryError::Malformed { .. })));
    }
}
