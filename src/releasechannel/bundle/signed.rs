//! Who made an archive: its signatures, and by them everything that is in it.

use std::collections::{BTreeMap, BTreeSet};

use super::Claims;
use crate::closure::{Closure, Node};
use crate::error::ResolveError;
use crate::program;
use crate::registry::Registries;
use crate::repository::ComponentVersion;
use crate::signature::KeyRing;
use crate::verify::{CheckedSignature, contradictions, findings, signatures};

/// What is known of who made an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signed {
    /// What is not proven although there are keys, each named.
    pub unproven: Vec<String>,
    /// What a person should know.
    pub remarks: Vec<String>,
    /// Signatures of the roots.
    pub signatures: Vec<CheckedSignature>,
}

/// Component versions by name and version.
pub(super) type Nodes = BTreeMap<ComponentVersion, Node>;

/// Proves every root of an archive with the keys of the options, as `bundle verify` proves that of a lock. With a key, nothing may be there
/// that no proven root leads to, but plinth itself, which is said. Whether the index is founded is [`Claims::unfounded`]'s question.
pub fn signed(claims: &Claims<'_>, registries: &Registries) -> Result<Signed, ResolveError> {
    let keys = KeyRing::load(registries.options(), registries.configuration())?;
    let nodes = &claims.nodes;
    let (mut signed, mut proven) = (Signed::default(), BTreeSet::new());
    for root in roots(nodes) {
        let below = below(nodes, root)?;
        let found = findings(&below, root, &keys, crate::resolve::now());
        if found.signatures.iter().any(|signature| signature.is_proven) {
            proven.extend(below.into_keys());
        }
        signed.unproven.extend(found.wrong);
        signed.remarks.extend(found.remarks);
        signed.signatures.extend(found.signatures);
    }
    let unreached = nodes.iter().filter(|(at, _)| !proven.contains(at));
    let (own, others): (Vec<_>, Vec<_>) = unreached.partition(|(at, _)| at.name == program::COMPONENT);
    for (_, node) in own {
        match of_program(node, &keys) {
            Ok(remark) => signed.remarks.extend(remark),
            Err(wrong) => signed.unproven.push(wrong),
        }
    }
    if !keys.given().is_empty() && signed.unproven.is_empty() {
        let line = |(at, _)| format!("component {at}: nothing that is signed leads to it");
        signed.unproven.extend(others.into_iter().map(line));
        if proven.is_empty() {
            signed.unproven.push("no component version in it has a signature that a key proves".to_owned());
        }
    }
    Ok(signed)
}

/// What nothing else refers to. plinth itself goes along with a channel, and is a root only where it is alone.
fn roots(nodes: &Nodes) -> Vec<&ComponentVersion> {
    let targets: BTreeSet<ComponentVersion> = nodes.values().flat_map(targets).collect();
    let mut roots: Vec<&ComponentVersion> = nodes.keys().filter(|at| !targets.contains(at)).collect();
    if roots.iter().any(|at| at.name != program::COMPONENT) {
        roots.retain(|at| at.name != program::COMPONENT);
    }
    roots
}

fn targets(node: &Node) -> impl Iterator<Item = ComponentVersion> {
    node.descriptor.references.iter().map(|reference| ComponentVersion::new(&reference.component, &reference.version))
}

/// What a component version leads to and is there, itself included, with the digests that it has for them.
fn below(nodes: &Nodes, root: &ComponentVersion) -> Result<Nodes, ResolveError> {
    let (mut reached, mut left) = (BTreeMap::new(), vec![root.clone()]);
    while let Some(at) = left.pop() {
        if let Some(node) = nodes.get(&at)
            && reached.insert(at, node.clone()).is_none()
        {
            left.extend(targets(node));
        }
    }
    let mut closure = Closure { nodes: reached, repositories: Vec::new() };
    crate::nested::fill(&mut closure, root)?;
    Ok(closure.nodes)
}

/// Component versions that are not what a reference below a signature says, each named. Elsewhere wrong digests are none of anybody's
/// saying: one of the two tools breaks them by copying.
pub(super) fn contradicted(nodes: &Nodes) -> Vec<String> {
    let is_signed = |at: &&ComponentVersion| nodes.get(at).is_some_and(|node| !node.descriptor.signatures.is_empty());
    let (mut done, mut lines) = (BTreeSet::new(), BTreeSet::new());
    for root in roots(nodes).into_iter().chain(nodes.keys()).filter(is_signed) {
        if done.contains(root) {
            continue;
        }
        match below(nodes, root) {
            Ok(below) => {
                lines.extend(contradictions(&below));
                done.extend(below.into_keys());
            }
            Err(error) => drop(lines.insert(error.to_string())),
        }
    }
    lines.into_iter().collect()
}

/// What is to be said of plinth itself, where nothing signed leads to it: unsigned it goes along. An error is a signature that there is a key
/// for and that does not prove it.
pub(super) fn of_program(node: &Node, keys: &KeyRing) -> Result<Option<String>, String> {
    let signatures = signatures(node, keys, crate::resolve::now()).map_err(|error| error.to_string())?;
    let is_proven = signatures.iter().any(|signature| signature.is_proven);
    Ok((!is_proven).then(|| own_remark(node)))
}

/// The digest is that of plinth's image, by which nodes pull it.
fn own_remark(node: &Node) -> String {
    let image = node.descriptor.resources.iter().find(|resource| resource.identity.name == program::RESOURCE);
    let digest = image.and_then(|image| image.digest.as_ref()).and_then(crate::descriptor::DigestSpec::digest);
    let digest = digest.map_or_else(|| "unknown".to_owned(), |digest| digest.to_string());
    format!(
        "{} {} is not in the lock, and {}: its image's digest is {digest}",
        node.descriptor.name,
        node.descriptor.version,
        if node.descriptor.signatures.is_empty() { "not signed" } else { "no key proves its signature" }
    )
}
