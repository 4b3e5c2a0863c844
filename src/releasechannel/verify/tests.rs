use std::path::PathBuf;

use super::*;
use crate::error::ErrorKind;
use crate::options::Options;
use crate::resolve::inspect;
use crate::selection::Selection;
use crate::source::SourceRef;
use crate::testing::{data, names, offline};

const CHANNEL: &str = "acme.example/releasechannel/stable:2026.11.0";

pub(crate) fn with_key(file: &str, policy: Verify) -> Options {
    let key = data().join("ocm/keys").join(file);
    Options { keys: [("acme-sig".to_owned(), key)].into(), verify: Some(policy), ..offline() }
}

pub(crate) async fn check(vector: &str, component: &str, options: &Options) -> Result<Verification, ResolveError> {
    let path: PathBuf = data().join("ocm/signed").join(vector);
    let source = SourceRef::parse(&format!("ctf::{}//{component}", path.display())).unwrap();
    let channel = inspect(&source, &Selection::default(), options).await?;
    channel.verify_resources().await
}

/// Every signed archive: proven where it should be, refused where it was changed.
#[tokio::test]
async fn show_04_verify() {
    let names = names("signed");
    let mut right = 0;
    let mut wrong = Vec::new();
    for name in &names {
        let component = if name.contains("-gateway-") { "acme.example/services/gateway:1.3.0" } else { CHANNEL };
        let key = if name.contains("-pem") { "ca.crt" } else { "acme.pub" };
        let proven = check(name, component, &with_key(key, Verify::Required)).await;
        let by_other = check(name, component, &with_key("other.pub", Verify::Required)).await;
        let fits = match (name.starts_with("neg-"), &proven) {
            (true, Err(error)) => error.kind() == ErrorKind::Refused,
            (false, Ok(verification)) => verification.is_proven() && verification.resources_read > 0,
            _ => false,
        };
        if fits && by_other.is_err() {
            right += 1;
        } else {
            wrong.push(format!("{name}: {:?}", proven.map_err(|error| error.to_string())));
        }
    }
    eprintln!("SHOW 04 verify {right}/{}", names.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(names.len() >= 14);
}

#[tokio::test]
async fn a_changed_child_is_refused_with_the_way_to_it() {
    let error = check("neg-child-changed", CHANNEL, &with_key("acme.pub", Verify::IfSigned)).await.unwrap_err();
    assert!(error.to_string().contains(&format!("{CHANNEL} → ")), "{error}");
    assert!(matches!(error, ResolveError::Repository { source: RepositoryError::Digest { .. }, .. }), "{error}");
}

#[tokio::test]
async fn policies_differ_where_there_is_no_key() {
    let signed = "v3-pkcs1-sha256";
    let without_key = check(signed, CHANNEL, &offline()).await.unwrap();
    assert!(!without_key.is_proven() && without_key.remarks.iter().any(|remark| remark.contains("no key")), "{without_key:?}");
    let required = check(signed, CHANNEL, &Options { verify: Some(Verify::Required), ..offline() }).await.unwrap_err();
    assert!(required.to_string().contains("acme-sig"), "{required}");
    let off = check(signed, CHANNEL, &Options { verify: Some(Verify::Off), ..offline() }).await.unwrap();
    assert!(off.remarks.iter().any(|remark| remark.contains("switched off")));
    let wrong_key = check(signed, CHANNEL, &with_key("other.pub", Verify::IfSigned)).await.unwrap_err();
    assert!(matches!(wrong_key, ResolveError::Unproven { .. }), "{wrong_key}");
}

#[tokio::test]
async fn an_unsigned_channel_is_refused_where_a_signature_is_required_or_a_key_was_given() {
    let path = data().join("ocm/ctf/v1");
    let source = SourceRef::parse(&format!("ctf::{}//{CHANNEL}", path.display())).unwrap();
    assert!(inspect(&source, &Selection::default(), &offline()).await.is_ok());
    let required = Options { verify: Some(Verify::Required), ..offline() };
    let error = inspect(&source, &Selection::default(), &required).await.unwrap_err();
    assert!(error.to_string().contains("not signed"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Refused);
    let stripped = inspect(&source, &Selection::default(), &with_key("acme.pub", Verify::IfSigned)).await.unwrap_err();
    assert!(stripped.to_string().contains("a key was given, and it has no signature acme-sig; it has: none"), "{stripped}");
    assert_eq!(stripped.kind(), ErrorKind::Refused);
}

/// What is excluded by its maker is said, what is tampered with is refused.
#[tokio::test]
async fn local_content_is_read_and_compared() {
    let check = async |name: &str, component: &str| {
        let path = data().join("ocm/ctf/hand").join(name);
        let source = SourceRef::parse(&format!("ctf::{}//{component}", path.display())).unwrap();
        inspect(&source, &Selection::default(), &offline()).await.unwrap().verify_resources().await
    };
    let excluded = check("excluded-from-signature", "acme.example/hand/excluded:1.0.0").await.unwrap();
    assert!(excluded.remarks.iter().any(|remark| remark.contains("excluded")), "{excluded:?}");
    let error = check("tampered-blob", "acme.example/hand/tampered:1.0.0").await.unwrap_err();
    assert!(matches!(error, ResolveError::Repository { source: RepositoryError::Digest { .. }, .. }), "{error}");
}

/// Packed and nested artifacts have their digests by the dual rule: all local content of both tools' archives is right.
#[tokio::test]
async fn show_04_resource_digests() {
    let mut read = 0;
    for name in ["v1", "v2", "v1-byval", "v2-byval", "v1-byref"] {
        let path = data().join("ocm/ctf").join(name);
        let source = SourceRef::parse(&format!("ctf::{}//{CHANNEL}", path.display())).unwrap();
        let channel = inspect(&source, &Selection::default(), &offline()).await.unwrap();
        let verification = channel.verify_resources().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(verification.resources_read > 8, "{name}: {}", verification.resources_read);
        read += verification.resources_read;
    }
    eprintln!("SHOW 04 resource-digests {read}/{read}");
}

/// What an access leads to is not signed: another artifact under the same name is found by its manifest, a place that is down is said.
#[tokio::test]
async fn artifacts_elsewhere_are_compared_by_their_manifests() {
    use crate::testing::{Stub, add, http};
    let manifest = r#"{"schemaVersion":2,"layers":[]}"#;
    let other = r#"{"schemaVersion":2,"layers":[],"annotations":{"a":"b"}}"#;
    let stub = Stub::start(move |seen, _| match seen.path.as_str() {
        "/v2/app/manifests/1" => http("200 OK", &[], manifest.as_bytes()),
        "/v2/moved/manifests/1" => http("200 OK", &[], other.as_bytes()),
        _ => http("404 Not Found", &[], b"{}"),
    })
    .await;
    let host = stub.host.clone();
    let check = async |images: &[&str]| {
        let resource = |(n, image): (usize, &&str)| {
            serde_json::json!({"name": format!("r{n}"), "version": "1", "type": "ociImage", "relation": "external",
                "access": {"type": "ociArtifact", "imageReference": image},
                "digest": {"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "ociArtifactDigest/v1", "value": Digest::of(manifest.as_bytes()).hex()}})
        };
        let resources: Vec<_> = images.iter().enumerate().map(resource).collect();
        let mut contents = crate::Contents::default();
        add(&mut contents, "acme.example/x", "1.0.0", serde_json::json!({"resources": resources}));
        let folder = tempfile::tempdir().unwrap();
        contents.write(folder.path(), crate::Format::Folder).unwrap();
        let source = SourceRef::parse(&format!("ctf::{}//acme.example/x:1.0.0", folder.path().display())).unwrap();
        inspect(&source, &Selection::default(), &offline()).await.unwrap().verify_resources().await
    };
    let (right, moved, gone) =
        (format!("http://{host}/app:1"), format!("http://{host}/moved:1"), format!("http://{host}/gone:1"));
    let down = "http://127.0.0.1:1/app:1";
    let found = check(&[&right, &gone, down, down]).await.unwrap();
    assert_eq!((found.artifacts_compared, found.resources_later), (1, 3));
    assert!(
        found.remarks.iter().any(|remark| remark.starts_with("2 artifacts at 127.0.0.1:1 were not compared")),
        "{:?}",
        found.remarks
    );
    assert!(found.remarks.iter().any(|remark| remark.contains(&host) && remark.contains("gone")), "{:?}", found.remarks);
    let error = check(&[&right, &moved]).await.unwrap_err();
    assert!(matches!(&error, ResolveError::Repository { source: RepositoryError::Digest { .. }, .. }), "{error}");
}
