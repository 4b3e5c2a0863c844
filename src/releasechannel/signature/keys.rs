//! Keys that signatures are verified with: public keys, and certificates of signers or authorities.

use std::collections::BTreeMap;
use std::path::Path;

use rsa::PublicKey;
use rsa::pkcs1::DecodeRsaPublicKey;
use rsa::pkcs8::DecodePublicKey;

use super::pem;
use crate::config::{Configuration, KeySource};
use crate::ctf::archive::read_file;
use crate::error::ResolveError;
use crate::options::Options;

/// What a signature may be proven by.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// A public key.
    Public(Box<PublicKey>),
    /// DER of certificates: an authority, or the signer's own.
    Certificates(Vec<Vec<u8>>),
}

/// Keys by signature name.
#[derive(Clone, Debug, Default)]
pub struct KeyRing {
    keys: BTreeMap<String, Vec<Key>>,
    /// Authorities for every signature that brings certificates.
    authorities: Vec<Key>,
    /// Signatures that a key was given for in so many words, not by a configuration that is for all channels.
    given: Vec<String>,
}

impl KeyRing {
    /// Reads what the options and the configuration name.
    pub(crate) fn load(options: &Options, configuration: &Configuration) -> Result<Self, ResolveError> {
        let given = options.keys.keys().chain(options.key_texts.keys()).cloned().collect();
        let mut ring = Self { given, ..Self::default() };
        for (name, path) in &options.keys {
            ring.add(name, key_in_file(path)?);
        }
        for (name, text) in &options.key_texts {
            ring.add(name, key_in_text(text, name)?);
        }
        for (name, source) in &configuration.keys {
            let key = match source {
                KeySource::File(path) => key_in_file(path)?,
                KeySource::Pem(text) => key_in_text(text, name)?,
            };
            ring.add(name, key);
        }
        for path in &options.ca_files {
            ring.authorities.push(key_in_file(path)?);
        }
        Ok(ring)
    }

    /// Adds a key for a signature name.
    pub fn add(&mut self, name: &str, key: Key) {
        self.keys.entry(name.to_owned()).or_default().push(key);
    }

    /// Whether there is a key for this name in particular.
    pub fn knows(&self, name: &str) -> bool {
        self.keys.contains_key(name)
    }

    /// Signatures that a key was given for: one of them is wanted.
    pub fn given(&self) -> &[String] {
        &self.given
    }

    /// Keys for a signature; with certificates in it, the authorities too.
    pub fn of(&self, name: &str, has_certificates: bool) -> Vec<Key> {
        let own = self.keys.get(name).cloned().unwrap_or_default();
        let authorities = if has_certificates { self.authorities.as_slice() } else { &[] };
        own.into_iter().chain(authorities.iter().cloned()).collect()
    }
}

impl Key {
    /// Reads a PEM text: `PUBLIC KEY`, `RSA PUBLIC KEY`, or one or more certificates.
    pub fn read(text: &str) -> Result<Self, String> {
        let blocks = pem::blocks(text)?;
        let certificates: Vec<Vec<u8>> =
            blocks.iter().filter(|block| block.label == "CERTIFICATE").map(|block| block.content.clone()).collect();
        if !certificates.is_empty() {
            return Ok(Self::Certificates(certificates));
        }
        match blocks.as_slice() {
            [block] if block.label == "PUBLIC KEY" => PublicKey::from_public_key_der(&block.content)
                .map(|key| Self::Public(Box::new(key)))
                .map_err(|error| error.to_string()),
            [block] if block.label == "RSA PUBLIC KEY" => PublicKey::from_pkcs1_der(&block.content)
                .map(|key| Self::Public(Box::new(key)))
                .map_err(|error| error.to_string()),
            [block] if block.label.contains("PRIVATE") => {
                Err("it is a private key, and only the public one is needed".to_owned())
            }
            _ => Err("it holds neither one RSA public key nor certificates".to_owned()),
        }
    }
}

fn key_in_file(path: &Path) -> Result<Key, ResolveError> {
    const LIMIT: u64 = 1 << 20;
    let bytes = read_file(path, LIMIT)?;
    key_in_text(&String::from_utf8_lossy(&bytes), &path.display().to_string())
}

fn key_in_text(text: &str, what: &str) -> Result<Key, ResolveError> {
    Key::read(text).map_err(|reason| ResolveError::Option { option: format!("the key {what}"), reason })
}
