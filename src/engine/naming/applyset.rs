//! Identity of ApplySets (reference/kro.md section 13).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

/// Id of the set whose parent is this object: `applyset-<hash>-v1`. `namespace` is empty for cluster-scoped parents.
pub fn applyset_id(name: &str, namespace: &str, kind: &str, group: &str) -> String {
    let hash = Sha256::digest(format!("{name}.{namespace}.{kind}.{group}"));
    format!("applyset-{}-v1", URL_SAFE_NO_PAD.encode(hash))
}

/// Hash that guards the recorded inventory: over the id and both annotations' values.
pub fn inventory_hash(id: &str, group_kinds: &str, namespaces: &str) -> String {
    let hash = Sha256::digest(format!("{id}\0{group_kinds}\0{namespaces}"));
    format!("sha256:{}", URL_SAFE_NO_PAD.encode(hash))
}
