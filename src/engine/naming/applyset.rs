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

#[cfg(test)]
mod tests {
    use plinth_api::Object;
    use serde_json::Value;

    use super::*;
    use crate::{naming::keys, testing::recorded};

    /// Recorded instances carry the set's id, its annotations and their hash.
    #[test]
    fn show_03_applysets() {
        let Some(folder) = recorded("kro/golden-instances") else { return };
        let mut equal = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let golden: Value = serde_json::from_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap()).unwrap();
            let Some(instance) = Object::from_value(golden["instance"].clone()) else { continue };
            let text = |map: &str, key: &str| instance.at(&["metadata", map, key]).and_then(Value::as_str);
            let (Some(id), Some(hash)) = (text("labels", keys::APPLYSET_ID), text("annotations", keys::INVENTORY_HASH)) else {
                continue;
            };
            let gvk = instance.gvk().unwrap();
            assert_eq!(applyset_id(instance.name(), instance.namespace().unwrap_or_default(), &gvk.kind, &gvk.group), id);
            let annotation = |key| text("annotations", key).unwrap_or_default();
            let ours = inventory_hash(id, annotation(keys::APPLYSET_GROUP_KINDS), annotation(keys::APPLYSET_NAMESPACES));
            assert_eq!(ours, hash, "{id}");
            equal += 1;
        }
        println!("SHOW 03 applysets {equal}/{equal}");
        assert!(equal > 0);
    }
}
