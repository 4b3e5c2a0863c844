//! OpenAPI documents that this process has read: API servers of one version serve the same ones, and a server that was away
//! mostly serves what it served before.

use std::{
    collections::VecDeque,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use bytes::Bytes;
use plinth_engine::schema::{KindInfo, openapi};
use sha2::{Digest, Sha256};

/// Most documents that are remembered, each of one group and version; the oldest goes first.
const MOST: usize = 64;

/// The kinds of one document.
pub(super) type Kinds = Arc<[Arc<KindInfo>]>;

/// The newest first.
type Read = VecDeque<Document>;

/// A document that was read.
struct Document {
    digest: [u8; 32],
    /// The text itself where somebody else holds it as well, as the embedded control plane does: it takes no room of its own, and
    /// the same memory is the same text.
    held: Option<Bytes>,
    kinds: Kinds,
}

impl Document {
    fn is_held(&self, text: &Bytes) -> bool {
        self.held.as_ref().is_some_and(|held| (held.as_ptr(), held.len()) == (text.as_ptr(), text.len()))
    }
}

static READ: LazyLock<Mutex<Read>> = LazyLock::new(Mutex::default);

/// The kinds of a document; read once for the same text, and shared.
pub(super) fn kinds(text: &Bytes) -> Result<Kinds, String> {
    let find = |wanted: &dyn Fn(&Document) -> bool| {
        let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        read.iter().find(|document| wanted(document)).map(|document| Arc::clone(&document.kinds))
    };
    if let Some(kinds) = find(&|document| document.is_held(text)) {
        return Ok(kinds);
    }
    let digest: [u8; 32] = Sha256::digest(text).into();
    if let Some(kinds) = find(&|document| document.digest == digest) {
        return Ok(kinds);
    }
    // The text stays out of the message.
    let document = serde_json::from_slice(text).map_err(|error| format!("the answer is not JSON: {error}"))?;
    let kinds: Kinds = openapi::kinds(&document).map_err(|error| error.to_string())?.into_iter().map(Arc::new).collect();
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if read.iter().all(|document| document.digest != digest) {
        read.truncate(MOST - 1);
        let held = (!text.is_unique()).then(|| text.clone());
        read.push_front(Document { digest, held, kinds: Arc::clone(&kinds) });
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(kind: &str) -> Bytes {
        let gvk = json!({"group": "documents.test", "version": "v1", "kind": kind});
        let path = json!({"get": {"x-kubernetes-group-version-kind": gvk}});
        json!({"paths": {"/apis/documents.test/v1/things": path}, "components": {"schemas": {}}}).to_string().into()
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
            let text = Bytes::from(text);
            assert!(kinds(&text).is_err() && kinds(&text).is_err());
        }
    }
}
