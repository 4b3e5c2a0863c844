//! All that keeps component versions from being proven, not only the first: for whoever lists what is wrong with a copy.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{CheckedSignature, Verification, check_child, check_signatures};
use crate::closure::Node;
use crate::error::ResolveError;
use crate::repository::ComponentVersion;
use crate::signature::KeyRing;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What is wrong, each named.
    pub(crate) wrong: Vec<String>,
    /// What a person should know.
    pub(crate) remarks: Vec<String>,
    /// The root's signatures.
    pub(crate) signatures: Vec<CheckedSignature>,
}

/// Checks the root's signatures, and every component version that is there against the digest that its parents have. Digests count as wrong
/// only below a proven root: one of the two tools breaks others by copying.
pub(crate) fn findings(
    nodes: &BTreeMap<ComponentVersion, Node>,
    root: &ComponentVersion,
    keys: &KeyRing,
    now: Duration,
) -> Findings {
    let mut found = Findings::default();
    let Some(node) = nodes.get(root) else { return found };
    let mut verification = Verification::default();
    if let Err(error) = check_signatures(node, keys, now, &mut verification) {
        found.wrong.push(error.to_string());
    }
    found.remarks.append(&mut verification.remarks);
    for name in keys.given().iter().filter(|name| !node.descriptor.signatures.iter().any(|signature| signature.name == **name)) {
        found.wrong.push(format!("signature {name} of component {root}"));
    }
    let is_proven = verification.is_proven();
    found.signatures = verification.signatures;
    for (what, checked) in references(nodes) {
        match checked {
            Ok(false) if is_proven => found.wrong.push(format!("{what}: it has no digest, so its content is not signed")),
            Ok(_) => {}
            Err(error) if is_proven => found.wrong.push(format!("{what}: {error}")),
            Err(error) => found.remarks.push(format!("{what}: {error}")),
        }
    }
    found
}

/// The signatures of one component version. An error is one that there is a key for and that is not right.
pub(crate) fn signatures(node: &Node, keys: &KeyRing, now: Duration) -> Result<Vec<CheckedSignature>, ResolveError> {
    let mut verification = Verification::default();
    check_signatures(node, keys, now, &mut verification)?;
    Ok(verification.signatures)
}

/// References whose digest is not their target's, each named.
pub(crate) fn contradictions(nodes: &BTreeMap<ComponentVersion, Node>) -> Vec<String> {
    references(nodes).filter_map(|(what, checked)| checked.err().map(|error| format!("{what}: {error}"))).collect()
}

/// Every reference to something that is there, with what its digest says of it.
fn references(nodes: &BTreeMap<ComponentVersion, Node>) -> impl Iterator<Item = (String, Result<bool, ResolveError>)> {
    let all = nodes.values().flat_map(|node| node.descriptor.references.iter().map(move |reference| (node, reference)));
    all.filter_map(|(node, reference)| {
        let target = ComponentVersion::new(&reference.component, &reference.version);
        let child = nodes.get(&target)?;
        let what = format!("reference {} of {} to {target}", reference.identity, node.at());
        Some((what, check_child(node, reference, child)))
    })
}
