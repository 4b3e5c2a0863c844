//! With a key nothing is published that its signature does not reach; without one, nothing that contradicts a signed digest.

use super::proof::{GATEWAY, rewrite};
use super::*;
use crate::bundle::{Signed, signed};
use crate::repository::ComponentVersion;

const ROOT: (&str, &str) = ("acme.example/releasechannel/stable", "2026.11.0");

fn archive_of(name: &str) -> Contents {
    Contents::open(&data().join("ocm/signed").join(name), &Limits::default()).unwrap()
}

async fn with_key(contents: &Contents, name: &str, key: &str) -> Signed {
    let keys = [(name.to_owned(), data().join("ocm/keys").join(key))].into();
    let (limits, registries) = (Limits::default(), Registries::new(&Options { keys, ..offline() }).unwrap());
    signed(&Claims::read(contents, &limits).await, &registries).unwrap()
}

/// A key that does not prove, a signature that is gone, a root that was edited, a component that nothing signed leads to.
#[tokio::test]
async fn show_04_keys_at_push() {
    let all = archive_of("v3-pkcs1-sha256");
    let place = format!("ctf::{}", data().join("ocm/signed/v3-pkcs1-sha256").display());
    let lock = channel_at(&place, &offline()).await.lock;
    let mut contents = all.clone();
    contents.artifacts.retain(|entry| {
        let is_it = |known: &plinth_api::lock::LockedComponent| {
            entry.repository == format!("component-descriptors/{}", known.name)
                && entry.tag == Some(crate::versions::to_tag(&known.version))
        };
        lock.components.iter().any(is_it)
    });
    let right = with_key(&contents, "acme-sig", "acme.pub").await;
    assert!(right.unproven.is_empty() && right.signatures.iter().any(|signature| signature.is_proven), "{right:?}");
    let mut stripped = contents.clone();
    rewrite(&mut stripped, ROOT, &|document| drop(document.as_object_mut().unwrap().remove("signatures"))).await;
    let mut edited = contents.clone();
    rewrite(&mut edited, ROOT, &|document| document["component"]["labels"] = json!([{"name": "x", "value": 1, "signing": true}]))
        .await;
    let mut extra = contents.clone();
    let own = |target: &str| json!({"componentReferences": [{"name": "x", "componentName": target, "version": "1.0.0"}]});
    crate::testing::add(&mut extra, "acme.example/one", "1.0.0", own("acme.example/other"));
    crate::testing::add(&mut extra, "acme.example/other", "1.0.0", own("acme.example/one"));
    let cases = [
        (&all, "acme.pub", "signature acme-sig of component acme.example/broken/top:1.0.0"),
        (&contents, "other.pub", "the signature acme-sig"),
        (&stripped, "acme.pub", "signature acme-sig of component acme.example/releasechannel/stable:2026.11.0"),
        (&edited, "acme.pub", "the signature acme-sig"),
        (&extra, "acme.pub", "component acme.example/one:1.0.0: nothing that is signed leads to it"),
    ];
    for (contents, key, words) in &cases {
        let found = with_key(contents, "acme-sig", key).await;
        assert!(found.unproven.iter().any(|line| line.contains(words)), "{words}: {found:?}");
    }
    eprintln!("SHOW 04 keys-at-push {0}/{0} refused", cases.len());
}

/// plinth itself goes along unsigned; a signature that there is a key for must hold.
#[tokio::test]
async fn a_signature_of_plinth_itself_must_hold() {
    let mut contents = archive_of("v3-pkcs1-sha256");
    crate::testing::add(&mut contents, program::COMPONENT, "0.1.0", json!({}));
    let found = with_key(&contents, "nobody", "acme.pub").await;
    assert!(found.remarks.iter().any(|remark| remark.contains("is not in the lock, and not signed")), "{found:?}");
    // Another one's signature.
    let signatures = Claims::read(&contents, &Limits::default()).await.nodes[&ComponentVersion::new(ROOT.0, ROOT.1)]
        .descriptor
        .document["signatures"]
        .clone();
    let own = (program::COMPONENT, "0.1.0");
    rewrite(&mut contents, own, &|document| document["signatures"] = signatures.clone()).await;
    let words = "plinth.dev/plinth:0.1.0";
    let found = with_key(&contents, "acme-sig", "acme.pub").await;
    assert!(found.unproven.iter().any(|line| line.contains(words) && line.contains("the signature acme-sig")), "{found:?}");
    let found = with_key(&contents, "nobody", "acme.pub").await;
    assert!(found.remarks.iter().any(|remark| remark.contains("no key proves its signature")), "{found:?}");
}

/// The lock of an archive is not signed: whoever takes it away must not be able to exchange what a signed digest names.
#[tokio::test]
async fn a_child_that_contradicts_its_signed_digest_is_unfounded_without_a_lock() {
    let mut contents = archive_of("v3-pkcs1-sha256");
    assert_eq!(unfounded(&contents).await, Vec::<String>::new());
    rewrite(&mut contents, GATEWAY, &|document| document["component"]["resources"][0]["version"] = "9".into()).await;
    let found = unfounded(&contents).await;
    assert!(found.iter().any(|line| line.starts_with("reference gateway-1-3 of ")), "{found:?}");
}

/// Two runs into one target would write over each other; what a killed one left half is not kept.
#[test]
fn one_run_at_a_time_has_the_parts() {
    let folder = tempfile::tempdir().unwrap();
    let parts = folder.path().join("x.tgz.parts");
    let first = crate::bundle::hold(&parts).unwrap();
    let error = crate::bundle::hold(&parts).unwrap_err();
    assert!(error.to_string().contains("another run") && error.kind() == ErrorKind::Refused, "{error}");
    std::fs::write(parts.join(".tmpAbCdEf"), "half").unwrap();
    std::fs::write(parts.join("sha256.00"), "whole").unwrap();
    drop(first);
    let _second = crate::bundle::hold(&parts).unwrap();
    let left: Vec<_> = std::fs::read_dir(&parts).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["sha256.00"]);
}

/// A folder that had an older bundle has the new one, and no more.
#[test]
fn a_folder_keeps_no_blobs_of_an_older_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bundle");
    let holding = |bytes: &'static [u8]| {
        let mut contents = Contents::default();
        (contents.add_blob(bytes), contents)
    };
    let ((_, older), (digest, newer)) = (holding(b"older"), holding(b"newer"));
    older.write(&path, crate::Format::Folder).unwrap();
    newer.write(&path, crate::Format::Folder).unwrap();
    let left: Vec<_> = std::fs::read_dir(path.join("blobs")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [std::ffi::OsString::from(digest.file_name())]);
}

/// What is written must be readable: real content is never packed so well, but zeros are.
#[test]
fn a_tgz_that_would_not_be_read_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut contents = Contents::default();
    contents.add_blob(vec![0; 257 << 20]);
    let path = folder.path().join("big.tgz");
    let error = contents.write(&path, crate::Format::Tgz).unwrap_err();
    assert!(error.to_string().contains(".tar or a folder") && !path.exists(), "{error}");
    contents.write(&folder.path().join("big.tar"), crate::Format::Tar).unwrap();
}

/// With a key plinth itself is proven, too: by a signature, or by being what runs here.
#[tokio::test]
async fn plinth_in_a_mirror_is_proven_where_there_are_keys() {
    use crate::bundle::{of_program, program_at};
    let (registry, folder) = (RealRegistry::start().await, tempfile::tempdir().unwrap());
    let mirror = RepositoryRef::parse(&format!("{}/site", registry.host)).unwrap();
    let plain = Options { plain_http: [registry.host.clone()].into(), mirror: Some(mirror.to_string()), ..offline() };
    let keys: std::collections::BTreeMap<_, _> = [("acme-sig".to_owned(), data().join("ocm/keys/acme.pub"))].into();
    let keyed = Options { keys, ..plain.clone() };
    let registries = Registries::new(&plain).unwrap();
    let (own, other) = (folder.path().join("plinth"), folder.path().join("other"));
    std::fs::write(&own, crate::program::tests::elf(0x3e, 1)).unwrap();
    std::fs::write(&other, crate::program::tests::elf(0x3e, 2)).unwrap();
    let at = async |executable: &std::path::Path, options: &Options| program_at(&mirror, "v0.1.0", executable, options).await;
    assert_eq!(at(&own, &keyed).await.unwrap(), None);
    let (bundle, name) = of_program(&own, "v0.1.0", &crate::program::Chart::default(), folder.path()).unwrap();
    push(&bundle.contents, &mirror, &registries).await.unwrap();
    let there = format!("{}/site/{name}", registry.host);
    for (executable, options) in [(&own, &plain), (&other, &plain), (&own, &keyed)] {
        assert_eq!(at(executable, options).await.unwrap().as_ref(), Some(&there));
    }
    for executable in [&other, &folder.path().join("nothing")] {
        let refused = at(executable, &keyed).await.unwrap_err();
        let said = refused.to_string();
        assert!(said.contains("plinth.dev/plinth:v0.1.0 is not proven") && said.contains("acme-sig"), "{said}");
        assert!(said.contains("not that of the plinth that runs"), "{said}");
    }
}
