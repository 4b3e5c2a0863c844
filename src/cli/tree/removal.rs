//! What a removal that has begun leaves on the cluster until it has ended.

use std::collections::BTreeSet;

use plinth_api::{GroupVersionKind, Object, ObjectKey, rgd};
use plinth_bootstrap::wanted;
use plinth_engine::naming::{self, keys};

use super::Found;

/// The sign of it, as a sentence; `None` where the top-level instance is there and stays, or where nothing was taken yet.
///
/// In the order of a removal: the top-level instance goes, then definitions, then the kinds that they brought. A run that comes up
/// leaves none of this behind, as a kind comes after its definition.
pub(super) fn sign(found: &Found, defined: &BTreeSet<GroupVersionKind>, made: &BTreeSet<GroupVersionKind>) -> Option<String> {
    let deleted = |(key, object): (&ObjectKey, &Object)| object.is_terminating().then(|| format!("{key} is being deleted"));
    let top = found.iter().find(|(key, _)| defined.contains(&key.gvk) && !made.contains(&key.gvk));
    if let Some(top) = top {
        return deleted(top);
    }
    let definitions = || found.iter().filter(|(key, _)| key.gvk.kind == rgd::KIND);
    let names: BTreeSet<String> = definitions().map(|(key, _)| naming::label_value(&key.name)).collect();
    let is_left = |key: &ObjectKey, object: &Object| {
        key.gvk == wanted::crd_kind() && object.label(keys::RGD_NAME).is_some_and(|definition| !names.contains(definition))
    };
    let left =
        || found.iter().find(|(key, object)| is_left(key, object)).map(|(key, _)| format!("the definition of {key} is gone"));
    definitions().find_map(deleted).or_else(left)
}
