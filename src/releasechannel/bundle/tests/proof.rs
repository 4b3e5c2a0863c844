//! What is not what the lock says is named: descriptors, signatures, images under their ordinary names, plinth itself.

use plinth_api::lock::ReleaseLock;
use serde_json::Value;

use super::*;
use crate::assembly::{Blobs, store};
use crate::bundle::{Completeness, missing_at};
use crate::descriptor::Descriptor;
use crate::repository::{ComponentRepository, ComponentVersion, OciRepository};

/// A change of a descriptor, and the words that it is named with.
type Case<'a> = (&'a dyn Fn(&mut Value), &'a str);

pub(super) const GATEWAY: (&str, &str) = ("acme.example/services/gateway", "1.3.0");

/// A bundle of the newer tool's archive, and the lock that it was made from.
pub(super) async fn bundle() -> (Contents, ReleaseLock, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let channel = channel_at(&archive("v2-byval"), &offline()).await;
    let mut bundle = create(&channel, &folder.path().join("blobs"), &Kept::default()).await.unwrap();
    let program = folder.path().join("plinth");
    std::fs::write(&program, crate::program::tests::elf(0x3e, 1)).unwrap();
    add_program(&mut bundle, &program, "v0.1.0", &folder.path().join("blobs")).unwrap();
    (bundle.contents, channel.lock, folder)
}

/// Puts another descriptor in the place of a component version's own.
pub(super) async fn rewrite(contents: &mut Contents, (name, version): (&str, &str), change: &dyn Fn(&mut Value)) {
    let location = format!("component-descriptors/{name}");
    let is_it = |entry: &IndexEntry| entry.repository == location && entry.tag.as_deref() == Some(version);
    let limits = Limits::default();
    let repository = OciRepository::new(contents.clone().into_store(limits.clone()), "", Value::Null, limits);
    let found = repository.descriptor(&ComponentVersion::new(name, version)).await.unwrap();
    let mut document = found.descriptor.document.clone();
    contents.artifacts.retain(|entry| !is_it(entry));
    change(&mut document);
    let read = Descriptor::from_value(document.clone()).unwrap();
    store(contents, &read, serde_json::to_vec(&document).unwrap(), &Blobs::default());
}

pub(super) async fn verified(contents: &Contents, lock: &ReleaseLock, options: &Options) -> Completeness {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ctf");
    contents.write(&path, crate::Format::Folder).unwrap();
    missing_at(&RepositoryRef::Ctf(path), lock, &Kept::default(), options).await.unwrap()
}

#[tokio::test]
async fn show_04_proof_against_the_lock() {
    let (contents, lock, _folder) = bundle().await;
    let whole = verified(&contents, &lock, &offline()).await;
    assert_eq!(whole.missing, Vec::<String>::new());
    assert_eq!(whole.program.unwrap().to_string(), "plinth.dev/plinth:v0.1.0");
    let resource = |document: &mut Value, key: &str, value: Value| document["component"]["resources"][0][key] = value;
    let cases: [Case<'_>; 6] = [
        (
            &|document| {
                let added = json!([{"name": "extra", "componentName": "acme.example/services/notifier", "version": "3.1.0"}]);
                document["component"]["componentReferences"] = added;
            },
            "its reference extra to acme.example/services/notifier:3.1.0 is not in the lock",
        ),
        (&|document| document["component"]["labels"] = json!([]), "its descriptor says other things than the one of the lock"),
        (&|document| resource(document, "type", "other".into()), "its type is other, not acme.example/rgd"),
        (&|document| resource(document, "access", json!({"type": "none"})), "its access says that it has no content"),
        (&|document| resource(document, "digest", Value::Null), "its digest is unknown, not sha256:"),
        (
            &|document| {
                let mut added = document["component"]["resources"][0].clone();
                added["name"] = "second".into();
                document["component"]["resources"].as_array_mut().unwrap().push(added);
            },
            "its resource second is not in the lock",
        ),
    ];
    for (change, words) in &cases {
        let mut changed = contents.clone();
        rewrite(&mut changed, GATEWAY, change).await;
        let found = verified(&changed, &lock, &offline()).await.missing;
        assert!(found.iter().any(|line| line.contains(words) && line.contains("services/gateway:1.3.0")), "{words}: {found:?}");
    }
    let mut wrong = lock.clone();
    wrong.components[1].digest = format!("sha256:{}", "0".repeat(64));
    let found = verified(&contents, &wrong, &offline()).await.missing;
    assert!(found.len() == 1 && found[0].contains("no copy of it on the way here had the descriptor sha256:000"), "{found:?}");
    eprintln!("SHOW 04 proof-against-the-lock {0}/{0} changes named", cases.len() + 1);
}

/// A signature that the lock has must be there; with a key it must be right.
#[tokio::test]
async fn signatures_are_wanted_and_proven() {
    let place = format!("ctf::{}", data().join("ocm/signed/v3-pkcs1-sha256").display());
    let lock = channel_at(&place, &offline()).await.lock;
    let contents = Contents::open(&data().join("ocm/signed/v3-pkcs1-sha256"), &Limits::default()).unwrap();
    let root = ("acme.example/releasechannel/stable", "2026.11.0");
    let with =
        |name: &str, key: &str| Options { keys: [(name.to_owned(), data().join("ocm/keys").join(key))].into(), ..offline() };
    let about = |found: Completeness| -> Vec<String> {
        found.missing.into_iter().filter(|line| line.contains("signature") || line.contains("reference ")).collect()
    };
    let right = verified(&contents, &lock, &with("acme-sig", "acme.pub")).await;
    assert!(right.signatures[0].is_proven, "{right:?}");
    assert_eq!(about(right), Vec::<String>::new());
    for (name, key, words) in
        [("acme-sig", "other.pub", "the signature acme-sig"), ("second", "acme.pub", "signature second of component")]
    {
        let found = about(verified(&contents, &lock, &with(name, key)).await);
        assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
    }
    let mut stripped = contents.clone();
    rewrite(&mut stripped, root, &|document| drop(document.as_object_mut().unwrap().remove("signatures"))).await;
    let found = about(verified(&stripped, &lock, &offline()).await);
    assert_eq!(found, ["signature acme-sig of component acme.example/releasechannel/stable:2026.11.0"]);
    // A child that its signed parent does not mean.
    let mut changed = contents;
    rewrite(&mut changed, GATEWAY, &|document| document["component"]["resources"][0]["version"] = "9".into()).await;
    let found = verified(&changed, &lock, &with("acme-sig", "acme.pub")).await.missing;
    assert!(found.iter().any(|line| line.starts_with("reference gateway-1-3 of ")), "{found:?}");
}

/// Nodes pull by ordinary names: an image that is there beside its component alone is missing.
#[tokio::test]
async fn images_are_looked_for_under_their_ordinary_names() {
    let (contents, lock, _folder) = bundle().await;
    let registry = RealRegistry::start().await;
    let options = Options { plain_http: [registry.host.clone()].into(), ..offline() };
    let registries = Registries::new(&options).unwrap();
    let missing = async |contents: &Contents, path: &str| {
        let place = RepositoryRef::parse(&format!("{}/{path}", registry.host)).unwrap();
        push(contents, &place, &registries).await.unwrap();
        missing_at(&place, &lock, &Kept::default(), &options).await.unwrap().missing
    };
    assert_eq!(missing(&contents, "whole").await, Vec::<String>::new());

    let mut without = contents.clone();
    without
        .artifacts
        .retain(|entry| entry.repository != "upstream/gateway-sidecar" && !entry.repository.contains("plinth.dev/plinth"));
    let found = missing(&without, "without").await;
    assert!(
        found
            .iter()
            .any(|line| line.starts_with("image without/upstream/gateway-sidecar:1.3.0, the ordinary name of resource sidecar")),
        "{found:?}"
    );
    assert!(found.iter().any(|line| line.starts_with("component plinth.dev/plinth")), "{found:?}");

    let at = |repository: &str, tag: &str| {
        let is_it = |entry: &&IndexEntry| entry.repository == repository && entry.tag.as_deref() == Some(tag);
        contents.artifacts.iter().find(is_it).unwrap().clone()
    };
    let mut replaced = contents.clone();
    replaced.artifacts.push(IndexEntry { tag: Some("1.3.0".into()), ..at("upstream/gateway", "1.2.0") });
    let found = missing(&replaced, "replaced").await;
    let words = format!("it is {}, not {}", at("upstream/gateway", "1.2.0").digest, at("upstream/gateway", "1.3.0").digest);
    assert!(
        found.len() == 1 && found[0].contains("image replaced/upstream/gateway:1.3.0") && found[0].contains(&words),
        "{found:?}"
    );
}

/// What another tool has made has no ordinary names, which is said and is no fault.
#[tokio::test]
async fn an_archive_of_another_tool_is_complete_without_ordinary_names() {
    let lock = channel_at(&archive("v2-byval"), &offline()).await.lock;
    let contents = Contents::open(&data().join("ocm/ctf/v2-byval"), &Limits::default()).unwrap();
    let found = verified(&contents, &lock, &offline()).await;
    assert_eq!(found.missing, Vec::<String>::new());
    assert!(found.remarks.iter().any(|remark| remark.contains("not under their ordinary names")), "{:?}", found.remarks);
}
