//! Is a descriptor the one that a lock names? A copy has other bytes, for it says where things are; all else must be there.

use plinth_api::lock::{LockedComponent, LockedReference, LockedResource};

use super::origin::Origin;
use super::staging::reference_name_of;
use crate::access::Access;
use crate::closure::Node;
use crate::descriptor::{Reference, Resource, content, of_signature};
use crate::fetch::is_manifest_type;
use crate::resolve::locked_component;

/// What keeps it from being that, each named; empty where it is. `origin` is what the place itself says it was copied from. A lock is a file
/// that can be edited too: all that it says of a descriptor is compared, whatever digest it has for it.
pub(super) fn differences(node: &Node, locked: &LockedComponent, origin: Option<&Origin>) -> Vec<String> {
    let at = node.at();
    let mut lines = lacking(node, locked);
    if node.digest.as_str() == locked.digest {
        lines.extend(edited(node, locked));
        return lines;
    }
    match &locked.content {
        Some(expected) if *expected == content(&node.descriptor).as_str() => lines.extend(unlisted(node, locked)),
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

/// What a lock says otherwise of the very descriptor that it names. References may be left out by a selection.
fn edited(node: &Node, locked: &LockedComponent) -> Vec<String> {
    let (at, ours) = (node.at(), locked_component(node));
    let mut lines = unlisted(node, locked);
    if locked.content.is_some() && locked.content != ours.content {
        lines.push(format!("component {at}: the lock's digest of what it says is not that of its descriptor"));
    }
    let is_known = |name: &str| locked.signatures.iter().any(|known| known.name == name);
    let unknown = ours.signatures.iter().filter(|signature| !is_known(&signature.name));
    lines.extend(unknown.map(|signature| format!("component {at}: its signature {} is not in the lock", signature.name)));
    for resource in &ours.resources {
        let same = locked.resources.iter().find(|known| {
            known.name == resource.name && known.extra_identity == resource.extra_identity && known.version == resource.version
        });
        if same.is_some_and(|known| known.access != resource.access) {
            lines.push(format!("resource {} of {at}: its access is another one in the lock", resource.name));
        }
    }
    lines
}

/// Resources of the descriptor that the lock has not.
fn unlisted(node: &Node, locked: &LockedComponent) -> Vec<String> {
    let at = node.at();
    let unlisted = |there: &&Resource| !locked.resources.iter().any(|known| is_resource(there, known));
    let line = |resource: &Resource| format!("component {at}: its resource {} is not in the lock", resource.identity);
    node.descriptor.resources.iter().filter(unlisted).map(line).collect()
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
    let of_reference = |reference: &Reference| {
        let (component, version) = (&reference.component, &reference.version);
        format!("component {at}: its reference {} to {component}:{version} is not in the lock", reference.identity)
    };
    references.map(of_reference).chain(unlisted(node, locked)).collect()
}

fn is_reference(there: &Reference, known: &LockedReference) -> bool {
    there.identity.name == known.name
        && there.identity.extra == known.extra_identity
        && there.component == known.target.component_name
        && there.version == known.target.version
}

/// The descriptor's resource that the lock means, or what it lacks or has otherwise there, before it is read. Where plinth made the copy, its
/// ordinary name is the one that it had: no signature covers that.
pub(super) fn held<'n>(node: &'n Node, known: &LockedResource, is_ours: bool) -> Result<&'n Resource, String> {
    let name = || format!("resource {} of {}", known.name, node.at());
    let there = node.descriptor.resources.iter().find(|there| is_resource(there, known)).ok_or_else(name)?;
    let renamed = || if is_ours { renamed(there, known) } else { None };
    let difference = unlike(there, known).or_else(renamed);
    difference.map_or(Ok(there), |difference| Err(format!("{}: {difference}", name())))
}

fn renamed(there: &Resource, known: &LockedResource) -> Option<String> {
    let Access::LocalBlob { media_type, reference_name, .. } = Access::read(&there.access) else { return None };
    let before = reference_name_of(&known.access).unwrap_or_default();
    let said = |name: &str| if name.is_empty() { "nothing".to_owned() } else { name.to_owned() };
    (is_manifest_type(&media_type) && reference_name != before)
        .then(|| format!("it is called {}, and {} in the lock", said(&reference_name), said(&before)))
}

/// Whether it is the resource that the lock means.
fn is_resource(there: &Resource, known: &LockedResource) -> bool {
    there.identity.name == known.name && there.identity.extra == known.extra_identity && there.version == known.version
}

/// Why a resource of the descriptor cannot be what the lock says, before it is read.
fn unlike(there: &Resource, known: &LockedResource) -> Option<String> {
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
