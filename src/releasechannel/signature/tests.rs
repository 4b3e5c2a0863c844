use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::testing::{data, names};

/// 1 December 2026: within the corpus' certificates.
pub(crate) const NOW: Duration = Duration::from_hours(498_912);

fn descriptor(vector: &str, what: &str) -> Descriptor {
    let path = data().join(format!("ocm/descriptors/{vector}.{what}.yaml"));
    let mut document: Value = crate::text::document(&std::fs::read(path).unwrap()).unwrap();
    if let Value::Array(mut list) = document {
        document = list.remove(0);
    }
    Descriptor::from_value(document).unwrap()
}

pub(crate) fn key(name: &str) -> Key {
    Key::read(&std::fs::read_to_string(data().join("ocm/keys").join(name)).unwrap()).unwrap()
}

pub(crate) fn check(vector: &str, what: &str, key: &Key) -> Result<Proof, SignatureError> {
    let descriptor = descriptor(vector, what);
    verify(&descriptor, &descriptor.signatures[0], std::slice::from_ref(key), NOW)
}

/// Every signed descriptor of the corpus: proven by its key in each spelling, by none other.
#[test]
fn show_04_signatures() {
    let names = names("descriptors");
    let mut right = 0;
    let mut wrong = Vec::new();
    for name in &names {
        let (vector, what) = name.trim_end_matches(".yaml").rsplit_once('.').unwrap();
        let good: &[&str] = if vector.ends_with("-pem") { &["ca.crt"] } else { &["acme.pub", "acme.pkcs1.pub"] };
        let proven = good.iter().map(|file| check(vector, what, &key(file))).collect::<Result<Vec<_>, _>>();
        let other = check(vector, what, &key("other.pub"));
        if proven.is_ok() && other == Err(SignatureError::OtherKey) {
            right += 1;
        } else {
            wrong.push(format!("{name}: {proven:?}, other key {other:?}"));
        }
    }
    eprintln!("SHOW 04 signatures {right}/{}", names.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(names.len() >= 13);
}

#[test]
fn says_what_the_issuer_meant() {
    let proof = check("v3-pkcs1-pem", "channel", &key("ca.crt")).unwrap();
    let Proof::Certificate { subject, issuer } = proof else { panic!() };
    assert!(subject.contains("acme-sig"));
    assert_eq!(issuer, Some(IssuerMeaning::Subject));
    // The signer's own certificate is as good as its authority.
    assert!(check("v3-pkcs1-pem", "channel", &key("leaf-acme-sig.crt")).is_ok());
    // And so is the bare key.
    assert!(matches!(check("v3-pkcs1-pem", "channel", &key("acme.pub")), Ok(Proof::Key) | Err(SignatureError::OtherKey)));
}

#[test]
fn certificates_are_held_to_time_and_usage_and_chain() {
    let descriptor = descriptor("v3-pkcs1-pem", "channel");
    let signature = &descriptor.signatures[0];
    for now in [Duration::from_secs(1), Duration::from_hours(2_500_000)] {
        assert!(matches!(verify(&descriptor, signature, &[key("ca.crt")], now), Err(SignatureError::Certificate(_))));
    }
    // An end entity of the same authority is none itself.
    assert!(verify(&descriptor, signature, &[key("leaf.crt")], NOW).is_err());
    let mut other = signature.clone();
    other.issuer = "CN=somebody else".into();
    assert!(
        matches!(verify(&descriptor, &other, &[key("ca.crt")], NOW), Err(SignatureError::Certificate(reason)) if reason.contains("somebody else"))
    );
}

#[test]
fn changed_content_and_strange_algorithms_are_refused() {
    let mut changed = descriptor("v3-pkcs1-sha256", "channel");
    let signature = changed.signatures[0].clone();
    let with = |change: &dyn Fn(&mut Signature)| {
        let mut signature = signature.clone();
        change(&mut signature);
        verify(&changed, &signature, &[key("acme.pub")], NOW)
    };
    assert!(with(&|_| ()).is_ok());
    assert!(matches!(with(&|s| s.algorithm = "sigstore".into()), Err(SignatureError::Unknown(_))));
    assert!(matches!(with(&|s| s.media_type = "text/plain".into()), Err(SignatureError::Unknown(_))));
    assert!(matches!(with(&|s| s.value = "zz".into()), Err(SignatureError::Unknown(_))));
    assert!(matches!(with(&|s| s.digest.normalisation = "jsonNormalisation/v9".into()), Err(SignatureError::Unknown(_))));
    assert!(matches!(with(&|s| s.algorithm = "RSASSA-PSS".into()), Err(SignatureError::OtherKey)));
    changed.document["component"]["labels"][0]["value"] = "other".into();
    assert!(matches!(verify(&changed, &signature, &[key("acme.pub")], NOW), Err(SignatureError::OtherContent { .. })));
}

#[test]
fn private_keys_and_nonsense_are_no_keys() {
    assert!(Key::read("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").unwrap_err().contains("private"));
    for text in ["", "hello", "-----BEGIN PUBLIC KEY-----\n", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"] {
        assert!(Key::read(text).is_err(), "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn never_panics(text in "(-----(BEGIN|END) [A-Z ]{0,12}-----\n|[A-Za-z0-9+/=]{0,20}\n){0,6}", any in "\\PC{0,60}") {
        let _ = Key::read(&text);
        let signature = Signature { name: "x".into(), digest: crate::descriptor::DigestSpec::default(), algorithm: "RSASSA-PSS".into(), media_type: "application/x-pem-file".into(), value: text, issuer: any };
        let _ = pem::Parts::read(&signature);
    }
}
