//! The HTTP client: trust and time limits. It follows no redirect by itself.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::{Client, ClientBuilder};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use url::Url;

use crate::config::{ClientCertificate, Configuration};
use crate::ctf::archive::read_file;
use crate::error::ResolveError;
use crate::options::Options;

const CONNECT: Duration = Duration::from_secs(10);
/// Longest silence in the middle of an answer.
const SILENCE: Duration = Duration::from_mins(1);

/// One client that checks certificates, and one that does not, for the hosts that were named so.
#[derive(Debug)]
pub(crate) struct Clients {
    checking: Client,
    trusting: Option<Client>,
    authorities: Vec<CertificateDer<'static>>,
    insecure: BTreeSet<String>,
}

impl Clients {
    /// Builds them. Extra authorities are added to those of the system.
    pub(super) fn new(options: &Options, configuration: &Configuration) -> Result<Self, ResolveError> {
        // Fails only where somebody chose a provider before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let authorities = certificates(options, configuration)?;
        let checking = client(super::trust::configuration(authorities.clone(), None)?)?;
        let insecure = configuration.insecure_tls.clone();
        let trusting = if insecure.is_empty() { None } else { Some(client(super::trust::blind()?)?) };
        Ok(Self { checking, trusting, authorities, insecure })
    }

    /// A client that shows this certificate. It checks the other side's, whatever is switched off for its host.
    pub(super) fn certified(&self, own: &ClientCertificate) -> Result<Client, ResolveError> {
        let what = "the client certificate";
        let refuse = |reason: String| ResolveError::Option { option: what.to_owned(), reason };
        let chain = bundle(own.certificate.as_bytes(), what)?;
        let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).map_err(|error| refuse(format!("its key: {error}")))?;
        client(super::trust::configuration(self.authorities.clone(), Some((chain, key)))?)
    }

    /// The client for a URL. A redirect to another host meets that host's own switch.
    pub(super) fn of(&self, url: &Url) -> &Client {
        let Some(trusting) = &self.trusting else { return &self.checking };
        let host = url.host_str().unwrap_or_default();
        let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        if !super::is_listed(&self.insecure, &authority) {
            return &self.checking;
        }
        tracing::warn!(%authority, "its certificate is not looked at");
        trusting
    }
}

fn client(tls: rustls::ClientConfig) -> Result<Client, ResolveError> {
    builder()
        .tls_backend_preconfigured(tls)
        .build()
        .map_err(|error| ResolveError::Option { option: "the certificate authorities".to_owned(), reason: chain(&error) })
}

fn builder() -> ClientBuilder {
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .read_timeout(SILENCE)
        .user_agent(concat!("plinth/", env!("CARGO_PKG_VERSION")))
}

fn certificates(options: &Options, configuration: &Configuration) -> Result<Vec<CertificateDer<'static>>, ResolveError> {
    const LIMIT: u64 = 4 << 20;
    let mut certificates = Vec::new();
    for path in options.ca_files.iter().chain(&configuration.ca_files) {
        let pem = read_file(path, LIMIT)?;
        certificates.extend(bundle(&pem, &path.display().to_string())?);
    }
    for pem in options.ca_pem.iter().chain(&configuration.ca_pem) {
        certificates.extend(bundle(pem.as_bytes(), "the given certificate authority")?);
    }
    Ok(certificates)
}

fn bundle(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, ResolveError> {
    let refuse = |reason: String| ResolveError::Option { option: what.to_owned(), reason };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| refuse(error.to_string()))?;
    if certificates.is_empty() { Err(refuse("it holds no certificate".to_owned())) } else { Ok(certificates) }
}

/// What is wrong with the proxy of the environment, where there is one. It would be passed by in silence, and the address may hold a password:
/// the variable is named, and not what is in it.
pub(super) fn proxy_fault(tls: bool) -> Option<String> {
    let own = if tls { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    let set = own.into_iter().chain(["ALL_PROXY", "all_proxy"]).find_map(|name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        Some((name, value))
    });
    let (name, value) = set?;
    if value.to_str().is_some_and(is_proxy) {
        return None;
    }
    Some(format!("the environment variable {name} is not the address of a proxy, such as http://proxy.example:3128"))
}

fn is_proxy(text: &str) -> bool {
    const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];
    let address = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let is_plain = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    is_plain && Url::parse(&address).is_ok_and(|url| SCHEMES.contains(&url.scheme()) && url.has_host())
}

/// An error with its causes. reqwest puts the URL in the middle, which may hold a token: it is left out.
pub(crate) fn chain(error: &reqwest::Error) -> String {
    let mut text = if error.is_timeout() { "timed out".to_owned() } else { String::new() };
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let message = next.to_string();
        if !text.ends_with(&message) {
            let colon = if text.is_empty() { "" } else { ": " };
            text = format!("{text}{colon}{message}");
        }
        cause = next.source();
    }
    if text.is_empty() { "the connection failed".to_owned() } else { text }
}

/// Why TLS refused the other side's certificate, if that is what went wrong. Trying again does not help then.
pub(super) fn untrusted(error: &reqwest::Error) -> Option<String> {
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        if let Some(rustls::Error::InvalidCertificate(reason)) = tls_error(next) {
            return Some(format!("its certificate does not hold ({reason})"));
        }
        cause = next.source();
    }
    None
}

/// Whether the other side answered with something that is not TLS, as a server does that knows only plain HTTP.
pub(super) fn speaks_no_tls(error: &reqwest::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        if let Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) = tls_error(next) {
            return true;
        }
        cause = next.source();
    }
    false
}

/// I/O errors hide what they wrap from `source`, and here they wrap each other.
fn tls_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    let mut error = error;
    while let Some(io) = error.downcast_ref::<std::io::Error>() {
        error = io.get_ref()?;
    }
    error.downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_address_of_a_proxy() {
        for right in ["proxy.example:3128", "http://u:p%40@proxy.example:3128/", "socks5h://[::1]:1080", "10.0.0.1"] {
            assert!(is_proxy(right), "{right}");
        }
        for wrong in ["http://", "://x", "ftp://proxy.example", "http://proxy.example:99999", "proxy example", "file:///x"] {
            assert!(!is_proxy(wrong), "{wrong}");
        }
    }
}
