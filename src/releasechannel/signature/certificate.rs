//! Certificates of signers: a chain to a given authority, for code signing, at this time.

use std::time::Duration;

use rsa::PublicKey;
use rsa::pkcs8::DecodePublicKey;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_cert::Certificate;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::{ExtendedKeyUsage, KeyUsage as KeyUsageBits};

use super::{IssuerMeaning, SignatureError};

/// 1.3.6.1.5.5.7.3.3, code signing.
const CODE_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 3];

type Signer = (PublicKey, String, Option<IssuerMeaning>);

/// The signer of a signature that brings its certificates.
pub(super) fn of_chain(chain: &[Vec<u8>], given: &[Vec<u8>], issuer: &str, now: Duration) -> Result<Signer, SignatureError> {
    let (leaf, others) = chain.split_first().expect("the caller has looked");
    let read = read(leaf)?;
    check_usage(&read)?;
    check_time(&read, now)?;
    if !given.contains(leaf) {
        check_path(leaf, others, given, now)?;
    }
    let meaning = meaning_of(issuer, &read)?;
    Ok((key_of(&read)?, read.tbs_certificate().subject().to_string(), meaning))
}

/// The first of the given certificates, for a signature without any.
pub(super) fn of_given(given: &[Vec<u8>], now: Duration) -> Result<Signer, SignatureError> {
    let read = read(given.first().expect("a key has at least one certificate"))?;
    check_time(&read, now)?;
    Ok((key_of(&read)?, read.tbs_certificate().subject().to_string(), None))
}

fn read(der: &[u8]) -> Result<Certificate, SignatureError> {
    Certificate::from_der(der).map_err(|error| refuse(&error.to_string()))
}

fn check_path(leaf: &[u8], others: &[Vec<u8>], given: &[Vec<u8>], now: Duration) -> Result<(), SignatureError> {
    let given: Vec<CertificateDer<'_>> = given.iter().map(|der| CertificateDer::from_slice(der)).collect();
    let anchors: Result<Vec<_>, _> = given.iter().map(anchor_from_trusted_cert).collect();
    let anchors = anchors.map_err(|error| refuse(&format!("a given certificate cannot be used: {error}")))?;
    let others: Vec<CertificateDer<'_>> = others.iter().map(|der| CertificateDer::from_slice(der)).collect();
    let leaf = CertificateDer::from_slice(leaf);
    let end = EndEntityCert::try_from(&leaf).map_err(|error| refuse(&error.to_string()))?;
    let algorithms = ring::default_provider().signature_verification_algorithms;
    // Authorities seldom carry the usage themselves: it is required of the signer, below, and of others only where they say anything.
    let usage = KeyUsage::required_if_present(CODE_SIGNING);
    let time = UnixTime::since_unix_epoch(now);
    end.verify_for_usage(algorithms.all, &anchors, &others, time, usage, None, None)
        .map_err(|error| refuse(&error.to_string()))?;
    Ok(())
}

fn check_usage(certificate: &Certificate) -> Result<(), SignatureError> {
    let tbs = certificate.tbs_certificate();
    let bits = tbs.get_extension::<KeyUsageBits>().ok().flatten();
    if !bits.is_some_and(|(_, bits)| bits.digital_signature()) {
        return Err(refuse("it is not for digital signatures"));
    }
    let usages = tbs.get_extension::<ExtendedKeyUsage>().ok().flatten();
    let is_for_code = usages.is_some_and(|(_, usages)| usages.0.iter().any(|usage| usage.as_bytes() == CODE_SIGNING));
    if is_for_code { Ok(()) } else { Err(refuse("it is not for signing code")) }
}

fn check_time(certificate: &Certificate, now: Duration) -> Result<(), SignatureError> {
    let validity = certificate.tbs_certificate().validity();
    if now < validity.not_before.to_unix_duration() {
        return Err(refuse("it is not valid yet"));
    }
    if now > validity.not_after.to_unix_duration() {
        return Err(refuse("it has expired"));
    }
    Ok(())
}

fn key_of(certificate: &Certificate) -> Result<PublicKey, SignatureError> {
    let der = certificate.tbs_certificate().subject_public_key_info().to_der().map_err(|error| refuse(&error.to_string()))?;
    PublicKey::from_public_key_der(&der).map_err(|error| refuse(&format!("its key is not an RSA key: {error}")))
}

/// One tool writes the signer's subject as the issuer, the other its issuer; both are accepted, nothing else.
fn meaning_of(issuer: &str, certificate: &Certificate) -> Result<Option<IssuerMeaning>, SignatureError> {
    if issuer.is_empty() {
        return Ok(None);
    }
    let tbs = certificate.tbs_certificate();
    let wanted = parts_of(issuer);
    if parts_of(&tbs.subject().to_string()) == wanted {
        return Ok(Some(IssuerMeaning::Subject));
    }
    if parts_of(&tbs.issuer().to_string()) == wanted {
        return Ok(Some(IssuerMeaning::Issuer));
    }
    let shown: String = issuer.chars().filter(|c| !c.is_control()).take(120).collect();
    Err(refuse(&format!("the signature names the issuer `{shown}`, the certificate is {} by {}", tbs.subject(), tbs.issuer())))
}

/// The tools write the parts of a name in different order.
fn parts_of(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = name.split([',', '+']).map(|part| part.trim().to_owned()).collect();
    parts.sort();
    parts
}

fn refuse(reason: &str) -> SignatureError {
    SignatureError::Certificate(reason.to_owned())
}
