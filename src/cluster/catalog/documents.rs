//! OpenAPI documents that this process has read: API servers of one version serve the same ones, and a server that was away
//! mostly serves what it served before.

use std::{
    collections::VecDeque,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use plinth_engine::schema::{KindInfo, openapi};
use sha2::{Digest, Sha256};

/// Most documents that are remembered, each of one group and version; the oldest goes first.
const MOST: usize = 64;

/// The kinds of one document.
pub(super) type Kinds = Arc<[Arc<KindInfo>]>;

/// The newest first, each with the digest of its text.
type Read = VecDeque<([u8; 32], Kinds)>;

static READ: LazyLock<Mutex<Read>> = LazyLock::new(Mutex::default);

/// The kinds of a document; read once for the same text, and shared.
pub(super) fn kinds(text: &[u8]) -> Result<Kinds, String> {
    let digest: [u8; 32] = Sha256::digest(text).into();
    let known = |read: &Read| read.iter().find(|(of, _)| *of == digest).map(|(_, kinds)| Arc::clone(kinds));
    if let Some(kinds) = known(&READ.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(kinds);
    }
    // The text stays out of the message.
    let document = serde_json::from_slice(text).map_err(|error| format!("the answer is not JSON: {error}"))?;
    let kinds: Kinds = openapi::kinds(&document).map_err(|error| error.to_string())?.into_iter().map(Arc::new).collect();
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if known(&read).is_none() {
        read.truncate(MOST - 1);
        read.push_front((digest, Arc::clone(&kinds)));
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(kind: &str) -> Vec<u8> {
        let gvk = json!({"group": "documents.test", "version": "v1", "kind": kind});
        let path = json!({"get": {"x-kubernetes-group-version-kind": gvk}});
        json!({"paths": {"/apis/documents.test/v1/things": path}, "components": {"schemas": {}}}).to_string().into_bytes()
    }

    #[test]
    fn the_same_document_is_read_once() {
        let (first, again, other) =
            (kinds(&document("A")).unwrap(), kinds(&document("A")).unwrap(), kinds(&document("B")).unwrap());
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!((first[0].gvk.kind.as_str(), other[0].gvk.kind.as_str()), ("A", "B"));
    }

    #[test]
    fn what_is_no_document_is_refused_each_time() {
        for text in ["{", "{}"] {
            assert!(kinds(text.as_bytes()).is_err() && kinds(text.as_bytes()).is_err());
        }
    }
}
