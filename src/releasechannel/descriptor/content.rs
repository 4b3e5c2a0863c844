//! What a copy of a component version must keep of its descriptor, whether signatures cover it or not.
//!
//! Signed fields alone would let a copy change labels that are not signed and content that is excluded from signatures. A copy may change
//! where bytes are, and tools write what is empty in different ways; everything else must stay.

use serde_json::{Map, Value};

use super::{Descriptor, Signature};
use crate::digest::Digest;

/// Digest of the descriptor without access, repository contexts, signatures and what is empty.
pub(crate) fn content(descriptor: &Descriptor) -> Digest {
    let mut document = descriptor.document.clone();
    if let Some(root) = document.as_object_mut() {
        for unkept in ["signatures", "nestedDigests", "repositoryContexts"] {
            root.remove(unkept);
        }
    }
    for holder in ["component", "spec", "metadata"] {
        let Some(Value::Object(holder)) = document.get_mut(holder) else { continue };
        holder.remove("repositoryContexts");
        for list in ["resources", "sources"] {
            let elements = holder.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            elements.filter_map(Value::as_object_mut).for_each(|element| drop(element.remove("access")));
        }
    }
    without_empty(&mut document);
    Digest::of(document.to_string().as_bytes())
}

/// Digest of a signature with all that belongs to it.
pub(crate) fn of_signature(signature: &Signature) -> Digest {
    let Signature { name, digest, algorithm, media_type, value, issuer } = signature;
    let parts =
        [name, &digest.hash, &digest.normalisation, &digest.value, algorithm, media_type, value, issuer].map(|part| part.trim());
    Digest::of(Value::from(parts.to_vec()).to_string().as_bytes())
}

/// Leaves the values of labels alone: there, nothing is not the same as nothing said.
fn without_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let is_label = is_label(map);
            map.iter_mut().filter(|(key, _)| !(is_label && *key == "value")).for_each(|(_, value)| without_empty(value));
            map.retain(|key, value| (is_label && key == "value") || !is_empty(value));
        }
        Value::Array(items) => items.iter_mut().for_each(without_empty),
        _ => {}
    }
}

fn is_label(map: &Map<String, Value>) -> bool {
    map.contains_key("value")
        && map.keys().all(|key| ["name", "value", "version", "signing", "mergeAlgorithm"].contains(&key.as_str()))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(change: impl FnOnce(&mut Value)) -> Digest {
        let mut document = json!({"meta": {"schemaVersion": "v2"}, "component": {"name": "a.test/x", "version": "1.0.0", "provider": "a.test",
            "repositoryContexts": [{"type": "OCIRegistry"}], "sources": [], "componentReferences": null,
            "labels": [{"name": "l", "value": {"a": null}}],
            "resources": [{"name": "r", "version": "1", "type": "blob", "relation": "local", "access": {"type": "wget", "url": "https://a.test"}}]}});
        change(&mut document);
        content(&Descriptor::from_value(document).unwrap())
    }

    #[test]
    fn a_copy_may_change_places_and_nothing_else() {
        let own = of(|_| ());
        let resource = |document: &mut Value| document["component"]["resources"][0].take();
        assert_eq!(own, of(|document| document["component"]["repositoryContexts"] = Value::Null));
        assert_eq!(own, of(|document| document["component"]["componentReferences"] = json!([])));
        assert_eq!(own, of(|document| document["component"]["resources"][0]["access"] = json!({"type": "none"})));
        assert_eq!(own, of(|document| document["signatures"] = json!([])));
        assert_ne!(own, of(|document| document["component"]["labels"][0]["value"] = json!({})));
        assert_ne!(own, of(|document| document["component"]["resources"][0]["type"] = "other".into()));
        assert_ne!(own, of(|document| document["component"]["resources"][0]["labels"] = json!([{"name": "x", "value": 1}])));
        assert_ne!(
            own,
            of(|document| {
                let mut added = resource(document);
                added["name"] = "second".into();
                document["component"]["resources"] =
                    json!([{"name": "r", "version": "1", "type": "blob", "access": {"type": "none"}}, added]);
            })
        );
    }
}
