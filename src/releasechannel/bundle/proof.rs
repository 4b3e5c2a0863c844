//! Is a descriptor the one that a lock names? A copy has other bytes, for it says where things are; all else must be there.

use plinth_api::lock::{LockedComponent, LockedReference, LockedResource};

use super::origin::Origin;
use crate::access::Access;
use crate::closure::Node;
use crate::descriptor::{Reference, Resource, content, of_signature};

/// What keeps it from being that, each named; empty where it is. `origin` is what the place itself says it was copied from.
pub(super) fn differences(node: &Node, locked: &LockedComponent, origin: Option<&Origin>) -> Vec<String> {
    if node.digest.as_str() == locked.digest {
        return Vec::new();
    }
    let at = node.at();
    let mut lines = lacking(node, locked);
    match &locked.content {
        Some(expected) if *expected == content(&node.descriptor).as_str() => {}
        Some(_) => {
            lines.extend(added(node, locked));
            if lines.is_empty() {
                lines.push(format!("component {at}: its descriptor says other things than the one of the lock"));
            }
        }
        None => lines.push(format!(
            "component {at}: its descriptor is {}, and of {} the lock says too little to compare them: make the lock again",
            node.digest, locked.digest
        )),
    }
    if origin.is_some_and(|origin| !origin.knows(locked)) {
        lines.push(format!("component {at}: no copy of it on the way here had the descriptor {} of the lock", locked.digest));
    }
    lines
}

/// What the lock has and the descriptor has not.
fn lacking(node: &Node, locked: &LockedComponent) -> Vec<String> {
    let (at, descriptor) = (node.at(), &node.descriptor);
    let mut lines = Vec::new();
    for signature in &locked.signatures {
        match descriptor.signatures.iter().find(|there| there.name == signature.name) {
            Some(there) if of_signature(there).as_str() == signature.digest => {}
            Some(_) => lines.push(format!("signature {} of component {at}: it is another one", signature.name)),
            None => lines.push(format!("signature {} of component {at}", signature.name)),
        }
    }
    for reference in &locked.references {
        if !descriptor.references.iter().any(|there| is_reference(there, reference)) {
            let target = &reference.target;
            lines.push(format!("reference {} of {at} to {}:{}", reference.name, target.component_name, target.version));
        }
    }
    lines
}

/// What the descriptor has and the lock has not. Of a lock that was made with a selection, other references are left out, so that this is
/// asked only where something is known to differ.
fn added(node: &Node, locked: &LockedComponent) -> Vec<String> {
    let (at, descriptor) = (node.at(), &node.descriptor);
    let references =
        descriptor.references.iter().filter(|there| !locked.references.iter().any(|known| is_reference(there, known)));
    let resources = descriptor.resources.iter().filter(|there| !locked.resources.iter().any(|known| is_resource(there, known)));
    let of_reference = |reference: &Reference| {
        let (component, version) = (&reference.component, &reference.version);
        format!("component {at}: its reference {} to {component}:{version} is not in the lock", reference.identity)
    };
    let of_resource = |resource: &Resource| format!("component {at}: its resource {} is not in the lock", resource.identity);
    references.map(of_reference).chain(resources.map(of_resource)).collect()
}

fn is_reference(there: &Reference, known: &LockedReference) -> bool {
    there.identity.name == known.name
        && there.identity.extra == known.extra_identity
        && there.component == known.target.component_name
        && there.version == known.target.version
}

/// Whether it is the resource that the lock means.
pub(super) fn is_resource(there: &Resource, known: &LockedResource) -> bool {
    there.identity.name == known.name && there.identity.extra == known.extra_identity && there.version == known.version
}

/// Why a resource of the descriptor cannot be what the lock says, before it is read.
pub(super) fn unlike(there: &Resource, known: &LockedResource) -> Option<String> {
    if there.kind != known.kind {
        return Some(format!("its type is {}, not {}", there.kind, known.kind));
    }
    if let Some(digest) = &known.digest {
        let found = there.digest.as_ref().and_then(crate::descriptor::DigestSpec::digest);
        if found.as_ref().is_none_or(|found| found.as_str() != digest) {
            let found = found.map_or_else(|| "unknown".to_owned(), |found| found.to_string());
            return Some(format!("its digest is {found}, not {digest}"));
        }
    }
    let is_empty = |access: &serde_json::Value| Access::read(access) == Access::Nothing;
    (is_empty(&there.access) && !is_empty(&known.access)).then(|| "its access says that it has no content".to_owned())
}
