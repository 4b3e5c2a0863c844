//! Which certificates are trusted: the system's authorities, the given ones, and a given certificate that a registry uses itself.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;
use x509_cert::der::Decode;

use crate::error::ResolveError;

/// A certificate with its chain, and its key.
type Own = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A TLS configuration that trusts these certificates besides the system's, and shows its own where there is one.
pub(super) fn configuration(extra: Vec<CertificateDer<'static>>, own: Option<Own>) -> Result<ClientConfig, ResolveError> {
    let provider = Arc::new(ring::default_provider());
    // A container without certificates has no authorities at all. It can still speak plain HTTP, and to what was given.
    let authorities = Verifier::new_with_extra_roots(extra.iter().cloned(), Arc::clone(&provider)).ok();
    with(Trust { authorities, given: extra, takes_all: false, provider }, own)
}

/// A TLS configuration that takes every certificate, for hosts that somebody named so. What is read there is still proven by its digests.
pub(super) fn blind() -> Result<ClientConfig, ResolveError> {
    let provider = Arc::new(ring::default_provider());
    with(Trust { authorities: None, given: Vec::new(), takes_all: true, provider }, None)
}

fn with(trust: Trust, own: Option<Own>) -> Result<ClientConfig, ResolveError> {
    let refuse =
        |error: Error| ResolveError::Option { option: "the certificate authorities".to_owned(), reason: error.to_string() };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&trust.provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(refuse)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(trust));
    let Some((chain, key)) = own else { return Ok(builder.with_no_client_auth()) };
    let refuse = |error: Error| ResolveError::Option { option: "the client certificate".to_owned(), reason: error.to_string() };
    builder.with_client_auth_cert(chain, key).map_err(refuse)
}

/// What the authorities say; and where they say no, whether the registry shows exactly a certificate that was given. A self-signed
/// certificate is often marked as an authority, which the check of chains refuses for a server.
#[derive(Debug)]
struct Trust {
    authorities: Option<Verifier>,
    given: Vec<CertificateDer<'static>>,
    /// Nothing of the certificate is looked at; the other side must still have its key.
    takes_all: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.takes_all {
            return Ok(ServerCertVerified::assertion());
        }
        let by_authority = match &self.authorities {
            Some(authorities) => authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        };
        if by_authority.is_ok() || !self.given.iter().any(|given| given.as_ref() == end_entity.as_ref()) {
            return by_authority;
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        check_time(end_entity, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn check_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let read = x509_cert::Certificate::from_der(certificate.as_ref()).map_err(|_| CertificateError::BadEncoding)?;
    let validity = read.tbs_certificate().validity();
    let seconds = now.as_secs();
    if seconds < validity.not_before.to_unix_duration().as_secs() {
        return Err(CertificateError::NotValidYet.into());
    }
    if seconds > validity.not_after.to_unix_duration().as_secs() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}
