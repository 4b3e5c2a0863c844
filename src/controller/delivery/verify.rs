//! Signatures of a Component: what `spec.verify` asks for must hold, all of it (ocm.md sections 9, 10 and 16). Pure.
//!
//! Invariant: a key is never taken from the component itself, and nothing counts as verified that the signed digests do not reach.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use plinth_api::delivery::SignatureRef;
use plinth_releasechannel::{
    access::Access,
    descriptor::{Descriptor, DigestSpec, Resource},
    signature::{self, Key},
};
use serde_json::Value;

use super::report::{Failed, Reason};

/// Where the key of a signature is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace<'a> {
    /// In the object.
    Value(&'a str),
    /// In a Secret of this name, under the signature's name.
    Secret(&'a str),
}

/// Exactly one of `value` and `secretRef`, as the OCM controllers ask for.
pub fn place(wanted: &SignatureRef) -> Result<KeyPlace<'_>, Failed> {
    let value = wanted.value.as_deref().filter(|value| !value.is_empty());
    let secret = wanted.secret_ref.as_ref().map(|secret| secret.name.as_str()).filter(|name| !name.is_empty());
    let wrong = |what: &str| {
        let message = format!("spec.verify: the signature {:?} has {what} of value and secretRef", wanted.signature);
        Err(Failed::wrong(Reason::GetComponentVersionFailed, message))
    };
    match (value, secret) {
        (Some(value), None) => Ok(KeyPlace::Value(value)),
        (None, Some(name)) => Ok(KeyPlace::Secret(name)),
        (None, None) => wrong("neither"),
        (Some(_), Some(_)) => wrong("both"),
    }
}

/// Reads a public key or certificates: PEM, or base64 of PEM. The error never has the text in it.
pub fn key(text: &str) -> Result<Key, String> {
    if text.contains("-----BEGIN ") {
        return Key::read(text);
    }
    let compact: String = text.split_whitespace().collect();
    let bytes = STANDARD.decode(compact).map_err(|_| "it is neither PEM nor base64 of PEM".to_owned())?;
    Key::read(std::str::from_utf8(&bytes).map_err(|_| "it is base64 of something that is not PEM".to_owned())?)
}

/// The text that a Secret's `data` holds under a signature's name.
pub fn text_in_secret(data: Option<&Value>, signature: &str) -> Result<String, String> {
    let Some(text) = data.and_then(|data| data.get(signature)).and_then(Value::as_str) else {
        return Err(format!("has no data[{signature:?}]"));
    };
    let bytes = STANDARD.decode(text).map_err(|_| format!("data[{signature:?}] is not base64"))?;
    String::from_utf8(bytes).map_err(|_| format!("data[{signature:?}] is not text"))
}

/// The same as a key.
pub fn key_in_secret(data: Option<&Value>, signature: &str) -> Result<Key, String> {
    let text = text_in_secret(data, signature)?;
    key(&text).map_err(|reason| format!("data[{signature:?}]: {reason}"))
}

/// Proves a descriptor by every one of the signatures.
pub fn check(descriptor: &Descriptor, keys: &[(String, Key)], now: Duration) -> Result<(), Failed> {
    let refuse = |message: String| {
        let message = format!("{}:{} is not verified: {message}", descriptor.name, descriptor.version);
        Err(Failed::repair(Reason::GetComponentVersionFailed, message))
    };
    if let Some(gap) = gap(descriptor) {
        return refuse(gap);
    }
    for (name, key) in keys {
        let Some(signature) = descriptor.signatures.iter().find(|signature| signature.name == *name) else {
            return refuse(format!("it has no signature {name:?}"));
        };
        if let Err(error) = signature::verify(descriptor, signature, std::slice::from_ref(key), now) {
            return refuse(format!("the signature {name:?}: {error}"));
        }
    }
    Ok(())
}

/// What the descriptor's digest does not cover: a reference or resource without a digest of its own.
fn gap(descriptor: &Descriptor) -> Option<String> {
    if let Some(reference) = descriptor.references.iter().find(|reference| reference.digest.is_none()) {
        return Some(format!("its reference {} has no digest, so its content is not signed", reference.identity));
    }
    let is_open = |resource: &&Resource| resource.digest.is_none() && Access::read(&resource.access) != Access::Nothing;
    let open = descriptor.resources.iter().find(is_open)?;
    Some(format!("its resource {} has no digest, so its content is not signed", open.identity))
}

/// `{hashAlgorithm, normalisationAlgorithm, value}` of a status as a digest.
pub fn digest_in(status: &Value) -> Option<DigestSpec> {
    let text = |field: &str| status.get(field).and_then(Value::as_str).map(str::to_owned);
    Some(DigestSpec {
        hash: text("hashAlgorithm")?,
        normalisation: text("normalisationAlgorithm")?,
        value: text("value").filter(|value| !value.is_empty())?,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use plinth_api::delivery::NameRef;
    use serde_json::json;

    use super::*;

    fn data(path: &str) -> Option<String> {
        let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
        std::fs::read_to_string(std::env::var_os("PLINTH_DATA").map_or_else(default, PathBuf::from).join("ocm").join(path)).ok()
    }

    fn signed(file: &str) -> Descriptor {
        let text = data(&format!("descriptors/{file}")).unwrap();
        Descriptor::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn signatures_are_proven_by_the_given_key_alone() {
        let (Some(right), Some(other)) = (data("keys/acme.pub"), data("keys/other.pub")) else {
            eprintln!("1 test did not run: PLINTH_DATA has no ocm/keys");
            return;
        };
        let now = Duration::from_secs(1_790_000_000);
        let keys = |name: &str, text: &str| vec![(name.to_owned(), key(text).unwrap())];
        for file in ["v3-pkcs1-sha256.channel.yaml", "v3-pss-sha512.channel.yaml"] {
            let descriptor = signed(file);
            assert_eq!(check(&descriptor, &keys("acme-sig", &right), now), Ok(()), "{file}");
            assert_eq!(check(&descriptor, &keys("acme-sig", &STANDARD.encode(&right)), now), Ok(()), "{file}");
            for (name, text, words) in
                [("acme-sig", &other, "not made with the given key"), ("nobody", &right, "no signature \"nobody\"")]
            {
                let failed = check(&descriptor, &keys(name, text), now).unwrap_err();
                assert!(failed.message.contains(words), "{file}: {}", failed.message);
                assert_eq!(failed.reason, Reason::GetComponentVersionFailed);
            }
            let both = [keys("acme-sig", &right), keys("nobody", &right)].concat();
            assert!(check(&descriptor, &both, now).is_err(), "one proof does not stand for another");
        }
        let mut open = signed("v3-pkcs1-sha256.channel.yaml");
        open.references[0].digest = None;
        assert!(check(&open, &keys("acme-sig", &right), now).unwrap_err().message.contains("has no digest"));
    }

    #[test]
    fn a_key_is_in_one_place() {
        let wanted = |value: Option<&str>, secret: Option<&str>| SignatureRef {
            signature: "s".into(),
            value: value.map(str::to_owned),
            secret_ref: secret.map(|name| NameRef { name: name.into() }),
        };
        assert_eq!(place(&wanted(Some("v"), None)), Ok(KeyPlace::Value("v")));
        assert_eq!(place(&wanted(None, Some("n"))), Ok(KeyPlace::Secret("n")));
        // The CRD's default of secretRef.name is "".
        assert_eq!(place(&wanted(Some("v"), Some(""))), Ok(KeyPlace::Value("v")));
        for (value, secret, words) in [(None, None, "neither"), (Some("v"), Some("n"), "both")] {
            assert!(place(&wanted(value, secret)).unwrap_err().message.contains(words));
        }
    }

    #[test]
    fn errors_keep_keys() {
        for text in ["s3cr3t", &STANDARD.encode("s3cr3t"), "-----BEGIN PUBLIC KEY-----\ns3cr3t\n-----END PUBLIC KEY-----"] {
            let error = key(text).unwrap_err();
            assert!(!error.contains("s3cr3t"), "{error}");
        }
        let data = json!({"s": STANDARD.encode("s3cr3t"), "t": "?"});
        for (data, words) in [(Some(&data), "data[\"s\"]"), (None, "has no data[\"s\"]")] {
            let error = key_in_secret(data, "s").unwrap_err();
            assert!(error.contains(words) && !error.contains("s3cr3t"), "{error}");
        }
        assert_eq!(key_in_secret(Some(&data), "t").unwrap_err(), "data[\"t\"] is not base64");
    }
}
