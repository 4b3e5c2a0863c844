//! Signatures of component descriptors (ocm.md section 9): PKCS1 and PSS with any salt, SHA-256 and SHA-512, hex and PEM with
//! certificates.

mod certificate;
mod keys;
mod pem;

pub use keys::{Key, KeyRing};

use rsa::PublicKey;
use rsa::signature::hazmat::PrehashVerifier;
use rsa::{pkcs1v15, pss};
use sha2::{Sha256, Sha512};

use crate::descriptor::{Descriptor, Signature};
use crate::digest::{Digest, unhex};
use crate::normalise;

/// Why a signature proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// What is signed is not this descriptor.
    #[error("it signs the digest {signed}, but the descriptor has {found}")]
    OtherContent {
        /// In the signature.
        signed: Digest,
        /// Of the descriptor.
        found: Digest,
    },
    /// The key does not fit.
    #[error("it was not made with the given key")]
    OtherKey,
    /// An algorithm, encoding or media type that is not known.
    #[error("{0}")]
    Unknown(String),
    /// The certificates do not prove the signer.
    #[error("its certificate does not prove the signer: {0}")]
    Certificate(String),
}

/// What proved a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The given public key.
    Key,
    /// A certificate that leads to a given authority, or is a given one.
    Certificate {
        /// Distinguished name of the signer.
        subject: String,
        /// What the signature's issuer field turned out to be, if it has one.
        issuer: Option<IssuerMeaning>,
    },
}

/// The two tools mean different things by the issuer of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssuerMeaning {
    /// Subject of the signer's certificate.
    Subject,
    /// Issuer of the signer's certificate.
    Issuer,
}

/// Proves a signature: the descriptor's normal form has the signed digest, and one of the keys made the signature.
pub fn verify(
    descriptor: &Descriptor,
    signature: &Signature,
    keys: &[Key],
    now: std::time::Duration,
) -> Result<Proof, SignatureError> {
    let digests = normalise::digest_like(descriptor, &signature.digest);
    let (signed, found) = digests.map_err(|error| SignatureError::Unknown(error.to_string()))?;
    if signed != found {
        return Err(SignatureError::OtherContent { signed, found });
    }
    let parts = pem::Parts::read(signature).map_err(SignatureError::Unknown)?;
    let mut last = SignatureError::OtherKey;
    for key in keys {
        match prove(signature, &signed, &parts, key, now) {
            Ok(proof) => return Ok(proof),
            // What the certificates say is more useful than that another key does not fit.
            Err(SignatureError::OtherKey) => {}
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn prove(
    signature: &Signature,
    signed: &Digest,
    parts: &pem::Parts,
    key: &Key,
    now: std::time::Duration,
) -> Result<Proof, SignatureError> {
    match key {
        Key::Public(key) => check(signature, signed, &parts.signature, key).map(|()| Proof::Key),
        Key::Certificates(given) => {
            let (signer, subject, issuer) = match parts.certificates.as_slice() {
                // A bare signature, and a certificate as the key.
                [] => certificate::of_given(given, now)?,
                chain => certificate::of_chain(chain, given, &signature.issuer, now)?,
            };
            check(signature, signed, &parts.signature, &signer)?;
            Ok(Proof::Certificate { subject, issuer })
        }
    }
}

/// The signature is over the digest's raw bytes as they are: they are not hashed once more.
fn check(signature: &Signature, signed: &Digest, bytes: &[u8], key: &PublicKey) -> Result<(), SignatureError> {
    let hash = unhex(signed.hex()).expect("a digest is hex");
    let is_sha512 = signed.as_str().starts_with("sha512:");
    let result = match (signature.algorithm.as_str(), is_sha512) {
        ("RSASSA-PKCS1-V1_5", false) => pkcs1(&pkcs1v15::VerifyingKey::<Sha256>::new(key.clone()), &hash, bytes),
        ("RSASSA-PKCS1-V1_5", true) => pkcs1(&pkcs1v15::VerifyingKey::<Sha512>::new(key.clone()), &hash, bytes),
        ("RSASSA-PSS", false) => salted(&pss::VerifyingKey::<Sha256>::new_with_auto_salt_len(key.clone()), &hash, bytes),
        ("RSASSA-PSS", true) => salted(&pss::VerifyingKey::<Sha512>::new_with_auto_salt_len(key.clone()), &hash, bytes),
        (other, _) => {
            return Err(SignatureError::Unknown(format!("the signature algorithm `{other}` is not one that plinth verifies")));
        }
    };
    result.map_err(|_| SignatureError::OtherKey)
}

fn pkcs1<K: PrehashVerifier<pkcs1v15::Signature>>(key: &K, hash: &[u8], bytes: &[u8]) -> Result<(), rsa::signature::Error> {
    key.verify_prehash(hash, &pkcs1v15::Signature::try_from(bytes)?)
}

fn salted<K: PrehashVerifier<pss::Signature>>(key: &K, hash: &[u8], bytes: &[u8]) -> Result<(), rsa::signature::Error> {
    key.verify_prehash(hash, &pss::Signature::try_from(bytes)?)
}

#[cfg(test)]
pub(crate) mod tests;
