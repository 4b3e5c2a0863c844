//! What is made for definitions: their CRDs, and the revision that is in use.

use std::collections::BTreeMap;

use plinth_api::{GroupVersionKind, Object, ObjectKey, rgd};
use plinth_bootstrap::wanted;
use plinth_engine::naming::keys;
use serde_json::Value;

use super::Found;

/// The kinds of what is made for a definition.
pub(crate) fn of_definitions() -> [GroupVersionKind; 2] {
    [wanted::crd_kind(), GroupVersionKind::new(rgd::REVISION_GROUP, rgd::VERSION, rgd::REVISION_KIND)]
}

/// Whether objects of a kind may be made for a definition.
pub(super) fn is_of_definition(gvk: &GroupVersionKind) -> bool {
    of_definitions().contains(gvk)
}

/// Of these, what belongs to definitions that were found. Of revisions only the newest: the others are there to go back to, and nobody
/// looks at them.
pub(super) fn by_definitions(made: Found, found: &Found) -> Found {
    let ours = |object: &Object| {
        let uid = object.label(keys::RGD_ID)?;
        found.iter().find(|(key, object)| key.gvk.kind == rgd::KIND && object.uid() == Some(uid)).map(|(key, _)| key.clone())
    };
    let mut kept = Found::new();
    let mut newest: BTreeMap<ObjectKey, (i64, ObjectKey, Object)> = BTreeMap::new();
    for (key, object) in made {
        let Some(definition) = ours(&object) else { continue };
        if key.gvk.kind != rgd::REVISION_KIND {
            kept.insert(key, object);
            continue;
        }
        let number = object.at(&["spec", "revision"]).and_then(Value::as_i64).unwrap_or_default();
        if newest.get(&definition).is_none_or(|(known, ..)| *known < number) {
            newest.insert(definition, (number, key, object));
        }
    }
    kept.extend(newest.into_values().map(|(_, key, object)| (key, object)));
    kept
}
