//! Proving a channel: the root's signatures first, then everything below against digests that are signed (ocm.md section 10).
//!
//! Access fields are not signed: where bytes come from is never a proof, only what they are.

mod findings;
mod outside;

pub(crate) use findings::{contradictions, findings, signatures};

use std::collections::BTreeSet;
use std::time::Duration;

use crate::access::Access;
use crate::closure::{Closure, Node};
use crate::descriptor::{Reference, Resource};
use crate::digest::Digest;
use crate::error::{RepositoryError, ResolveError};
use crate::fetch::{DigestOf, Fetcher, expected_digest};
use crate::image::ImageReference;
use crate::normalise;
use crate::options::Verify;
use crate::repository::ComponentVersion;
use crate::signature::{self, IssuerMeaning, KeyRing, Proof};

/// What was proven, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// What was asked for.
    pub policy: Verify,
    /// The root's signatures.
    pub signatures: Vec<CheckedSignature>,
    /// Component versions whose descriptor has the digest that a proven parent names; the root counts where a signature proves it.
    pub proven: BTreeSet<ComponentVersion>,
    /// Resources whose bytes were read to their end and have the signed digest.
    pub resources_read: usize,
    /// OCI artifacts beside the descriptors whose manifest was read and has the signed digest. Their layers were not read.
    pub manifests_read: usize,
    /// OCI artifacts elsewhere whose manifest was asked for and has the signed digest.
    pub artifacts_compared: usize,
    /// Resources whose bytes will be compared with the signed digest when they are used.
    pub resources_later: usize,
    /// What a person should know: keys that are missing, content that is excluded, checks that were switched off.
    pub remarks: Vec<String>,
    /// Those of the remarks that say what was switched off by choice.
    pub switched_off: Vec<String>,
}

/// One signature of the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedSignature {
    /// Its name.
    pub name: String,
    /// `proven by …` or why nothing is known about it.
    pub verdict: String,
    /// Whether it is proven.
    pub is_proven: bool,
}

impl Verification {
    /// Whether the root is signed by somebody we know.
    pub fn is_proven(&self) -> bool {
        self.signatures.iter().any(|signature| signature.is_proven)
    }
}

/// Checks the root's signatures and then the closure. No resource is read.
pub(crate) fn verify(
    closure: &Closure,
    root: &ComponentVersion,
    keys: &KeyRing,
    policy: Verify,
    now: Duration,
) -> Result<Verification, ResolveError> {
    let mut verification = Verification { policy, ..Verification::default() };
    if policy == Verify::Off {
        let remark = "signatures were not looked at: verification is switched off".to_owned();
        verification.switched_off.push(remark.clone());
        verification.remarks.push(remark);
        return Ok(verification);
    }
    let node = closure.require(root)?;
    check_signatures(node, keys, now, &mut verification)?;
    if policy == Verify::Required && !verification.is_proven() {
        let reason = match verification.signatures.as_slice() {
            [] => "it is not signed, and a signature is required".to_owned(),
            signatures => {
                let verdicts: Vec<String> =
                    signatures.iter().map(|signature| format!("{}: {}", signature.name, signature.verdict)).collect();
                format!("a signature is required, and none could be proven ({})", verdicts.join("; "))
            }
        };
        return Err(unproven(std::slice::from_ref(root), reason));
    }
    // Else whoever takes a signature away has taken the proof away with it.
    if !keys.given().is_empty() && !verification.is_proven() {
        let there: Vec<&str> = verification.signatures.iter().map(|signature| signature.name.as_str()).collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        let reason = format!("a key was given, and it has no signature {}; it has: {there}", keys.given().join(", "));
        return Err(unproven(std::slice::from_ref(root), reason));
    }
    check_closure(closure, root, &mut verification)?;
    Ok(verification)
}

/// Every signature with a key must be right. One without says nothing.
fn check_signatures(node: &Node, keys: &KeyRing, now: Duration, verification: &mut Verification) -> Result<(), ResolveError> {
    for signature in &node.descriptor.signatures {
        let has_certificates = signature.media_type == "application/x-pem-file";
        let own = keys.of(&signature.name, has_certificates);
        let (verdict, is_proven) = if own.is_empty() {
            verification.remarks.push(format!("the signature {} was not verified: there is no key for it", signature.name));
            ("not verified: there is no key for it".to_owned(), false)
        } else {
            let proof = signature::verify(&node.descriptor, signature, &own, now);
            let proof = proof.map_err(|error| unproven(&node.path, format!("the signature {}: {error}", signature.name)))?;
            (said(&proof), true)
        };
        verification.signatures.push(CheckedSignature { name: signature.name.clone(), verdict, is_proven });
    }
    Ok(())
}

fn said(proof: &Proof) -> String {
    match proof {
        Proof::Key => "proven by the given key".to_owned(),
        Proof::Certificate { subject, issuer } => {
            let meaning = match issuer {
                Some(IssuerMeaning::Subject) => ", which the signature names",
                Some(IssuerMeaning::Issuer) => ", whose authority the signature names",
                None => "",
            };
            format!("proven by the certificate of {subject}{meaning}")
        }
    }
}

/// Each child against the digest inside its parent. Below a proven root that digest must be there and must be right; elsewhere a wrong one
/// is only remarked, because one of the two tools breaks them by copying.
fn check_closure(closure: &Closure, root: &ComponentVersion, verification: &mut Verification) -> Result<(), ResolveError> {
    let is_proven = verification.is_proven();
    if is_proven {
        verification.proven.insert(root.clone());
    }
    let mut done = BTreeSet::new();
    for node in closure.nodes.values() {
        for reference in node.references() {
            let target = ComponentVersion::new(&reference.component, &reference.version);
            let key = (target.clone(), reference.digest.as_ref().map(|digest| format!("{digest:?}")).unwrap_or_default());
            if !done.insert(key) {
                continue;
            }
            match check_reference(closure, node, reference) {
                Ok(true) if is_proven => {
                    verification.proven.insert(target);
                }
                Ok(false) if is_proven => {
                    return Err(unproven(
                        &node.path,
                        format!("its reference {} to {target} has no digest, so its content is not signed", reference.identity),
                    ));
                }
                Ok(_) => {}
                Err(error) if is_proven => return Err(error),
                Err(error) => verification.remarks.push(error.to_string()),
            }
        }
    }
    Ok(())
}

/// Whether the reference has a digest; an error where it is not the target's.
fn check_reference(closure: &Closure, parent: &Node, reference: &Reference) -> Result<bool, ResolveError> {
    check_child(parent, reference, closure.require(&ComponentVersion::new(&reference.component, &reference.version))?)
}

fn check_child(parent: &Node, reference: &Reference, child: &Node) -> Result<bool, ResolveError> {
    let Some(spec) = &reference.digest else { return Ok(false) };
    let path = [parent.path.as_slice(), &[child.at()]].concat();
    let (expected, found) =
        normalise::digest_like(&child.descriptor, spec).map_err(|error| unproven(&path, error.to_string()))?;
    if expected == found {
        return Ok(true);
    }
    let what = format!("the component descriptor, as {} of {}", reference.identity, parent.at());
    Err(ResolveError::Repository { path, source: RepositoryError::Digest { what, expected, found } })
}

/// Reads every resource that is beside the descriptors and compares it; of OCI artifacts the manifest alone, elsewhere where it can be had.
/// `verification` is what [`verify`] said.
pub(crate) async fn verify_resources(
    closure: &Closure,
    fetcher: &Fetcher,
    verification: &mut Verification,
) -> Result<(), ResolveError> {
    configurations(closure).await?;
    let mut elsewhere = Vec::new();
    for node in closure.nodes.values() {
        for resource in &node.descriptor.resources {
            let what = format!("resource {} of {}", resource.identity, node.at());
            let in_node = |source| ResolveError::Repository { path: node.path.clone(), source };
            let Some(expected) = expected_digest(resource, &what).map_err(in_node)? else {
                remark_missing(node, resource, &what, verification)?;
                continue;
            };
            if matches!(Access::read(&resource.access), Access::LocalBlob { .. }) {
                match fetcher.prove(node, resource).await? {
                    DigestOf::Manifest => verification.manifests_read += 1,
                    DigestOf::Blob => verification.resources_read += 1,
                    DigestOf::Packed => {
                        verification
                            .remarks
                            .push(format!("the digest of {what} is that of its packed form, not of its manifest"));
                        verification.resources_read += 1;
                    }
                }
                continue;
            }
            check_pin(resource, &expected, &what).map_err(in_node)?;
            elsewhere.push((node, resource));
        }
    }
    outside::compare(&elsewhere, fetcher, verification).await?;
    let unread = verification.manifests_read + verification.artifacts_compared;
    if unread > 0 {
        verification.remarks.push(format!(
            "of {unread} OCI artifacts the manifest was read and no layer: `plinth bundle verify` reads all of an archive or mirror"
        ));
    }
    Ok(())
}

/// Reads the configuration of every component version and compares it.
pub(crate) async fn configurations(closure: &Closure) -> Result<(), ResolveError> {
    for node in closure.nodes.values() {
        let in_node = |source| ResolveError::Repository { path: node.path.clone(), source };
        node.source.prove_configuration(&node.at()).await.map_err(in_node)?;
    }
    Ok(())
}

fn remark_missing(node: &Node, resource: &Resource, what: &str, verification: &mut Verification) -> Result<(), ResolveError> {
    let is_without_content = Access::read(&resource.access) == Access::Nothing;
    let is_excluded = resource.digest.as_ref().is_some_and(crate::descriptor::DigestSpec::is_excluded);
    if is_without_content {
        return Ok(());
    }
    if is_excluded {
        verification.remarks.push(format!("the content of {what} is excluded from signatures by its maker"));
        return Ok(());
    }
    if verification.proven.contains(&node.at()) {
        return Err(unproven(
            &node.path,
            format!("the resource {} has no digest, so its content is not signed", resource.identity),
        ));
    }
    Ok(())
}

/// A reference with a digest other than the signed one can never be right.
fn check_pin(resource: &Resource, expected: &Digest, what: &str) -> Result<(), RepositoryError> {
    let pin = match Access::read(&resource.access) {
        Access::OciArtifact { image } => ImageReference::parse(&image).and_then(|image| image.digest),
        Access::OciBlob { digest, .. } => Some(digest),
        _ => None,
    };
    match pin {
        Some(pin) if pin != *expected && pin.as_str().split(':').next() == expected.as_str().split(':').next() => {
            Err(RepositoryError::Digest { what: what.to_owned(), expected: expected.clone(), found: pin })
        }
        _ => Ok(()),
    }
}

fn unproven(path: &[ComponentVersion], reason: String) -> ResolveError {
    ResolveError::Unproven { path: path.to_vec(), reason }
}

#[cfg(test)]
pub(crate) mod tests;
