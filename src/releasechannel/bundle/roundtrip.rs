//! Channel → archive → mirror, over registries of every kind, for the archives of both OCM tools: what was signed stays proven, images
//! are under their own names and by digest, and nothing is sent twice.

use super::*;
use crate::error::ErrorKind;
use crate::options::{Credential, Options, Verify};
use crate::registry::{Pushed, Registries, push};
use crate::repository::Pointer;
use crate::resolve::inspect;
use crate::selection::Selection;
use crate::source::{RepositoryRef, SourceRef};
use crate::testing::{RealRegistry, data, offline};

const CHANNEL: &str = "acme.example/releasechannel/stable:2026.11.0";

/// A registry and how it is reached.
struct Place {
    kind: &'static str,
    registry: RealRegistry,
    options: Options,
}

impl Place {
    async fn all() -> [Self; 3] {
        let (open, password, tls) =
            (RealRegistry::start().await, RealRegistry::with_password().await, RealRegistry::with_tls().await);
        let plain = |registry: &RealRegistry| Options { plain_http: [registry.host.clone()].into(), ..offline() };
        let credential = Credential::Basic { user: "acme-user".into(), password: "acme-pass".into() };
        let of_password = Options { credentials: [(password.host.clone(), credential)].into(), ..plain(&password) };
        let of_tls = Options { ca_files: vec![tls.folder.path().join("ca.pem")], ..offline() };
        [
            Self { kind: "plain", options: plain(&open), registry: open },
            Self { kind: "htpasswd", options: of_password, registry: password },
            Self { kind: "tls", options: of_tls, registry: tls },
        ]
    }

    fn at(&self, path: &str) -> RepositoryRef {
        RepositoryRef::parse(&format!("{}/{path}", self.registry.host)).unwrap()
    }

    async fn push(&self, contents: &Contents, path: &str) -> Pushed {
        push(contents, &self.at(path), &Registries::new(&self.options).unwrap()).await.unwrap()
    }

    /// The options with the corpus' key; `mirror` for one that holds everything.
    fn proving(&self, mirror: Option<&str>) -> Options {
        let keys = [("acme-sig".to_owned(), data().join("ocm/keys/acme.pub"))].into();
        let mirror = mirror.map(|path| format!("{}/{path}", self.registry.host));
        Options { keys, verify: Some(Verify::Required), mirror_only: mirror.is_some(), mirror, ..self.options.clone() }
    }
}

async fn proven(source: &str, options: &Options) -> Channel {
    let channel = inspect(&SourceRef::parse(&format!("{source}//{CHANNEL}")).unwrap(), &Selection::default(), options).await;
    let channel = channel.unwrap_or_else(|error| panic!("{source}: {error}"));
    let verification = channel.verify_resources().await.unwrap_or_else(|error| panic!("{source}: {error}"));
    assert!(verification.is_proven() && verification.proven.len() == channel.lock.components.len(), "{source}: {verification:?}");
    channel
}

/// Every signed archive of the corpus goes from one kind of registry by way of an archive to the next kind, and is proven at every stop.
#[tokio::test(flavor = "multi_thread")]
async fn show_04_roundtrip() {
    let places = Place::all().await;
    // The corpus' images at the origins, under their ordinary names: the signed channels refer to them by a host that is the mirror's here.
    let staging = tempfile::tempdir().unwrap();
    let by_value = format!("ctf::{}//{CHANNEL}", data().join("ocm/ctf/v1-byval").display());
    let images = inspect(&SourceRef::parse(&by_value).unwrap(), &Selection::default(), &offline()).await.unwrap();
    let images = create(&images, staging.path(), &Kept::default()).await.unwrap();
    let mut hops = 0;
    for (number, vector) in
        ["v1-pkcs1-sha256", "v2-pkcs1-sha256", "v3-pkcs1-sha512", "v3-pss-sha256", "v4alpha1-pkcs1-sha256"].iter().enumerate()
    {
        let (from, to) = (&places[number % 3], &places[(number + 1) % 3]);
        let path = format!("origin/{vector}");
        from.push(&images.contents, &path).await;
        let signed = Contents::open(&data().join("ocm/signed").join(vector), &offline().limits).unwrap();
        from.push(&signed, &path).await;

        let origin = proven("nowhere.invalid/x", &from.proving(Some(&path))).await;
        let folder = tempfile::tempdir().unwrap();
        let bundle = create(&origin, &folder.path().join("blobs"), &Kept::default())
            .await
            .unwrap_or_else(|error| panic!("{vector}: {error}"));
        let archive = folder.path().join("bundle.tgz");
        bundle.contents.write(&archive, crate::Format::Tgz).unwrap();
        let carried = proven(&archive.display().to_string(), &to.proving(None)).await;
        assert_eq!(missing(&carried, &origin.lock).await.unwrap(), Vec::<String>::new(), "{vector}");

        let site = format!("site/{vector}");
        let contents = Contents::open(&archive, &offline().limits).unwrap();
        let first = to.push(&contents, &site).await;
        // An image is beside its component and under its own name: its blobs are sent for one and taken over for the other.
        assert!(first.blobs > 0 && first.skipped > 0, "{vector}: {first:?}");
        let again = to.push(&contents, &site).await;
        assert_eq!((again.blobs, again.skipped), (0, first.blobs + first.skipped), "{vector}");
        let mirrored = proven("nowhere.invalid/x", &to.proving(Some(&site))).await;
        assert_eq!(missing(&mirrored, &origin.lock).await.unwrap(), Vec::<String>::new(), "{vector}");
        let map = mirrored.localization(&to.at(&site)).await.unwrap();
        assert_eq!(map.missing(|_| true), Vec::<String>::new(), "{vector}");
        assert_same_images(&map, &contents, to).await;
        hops += 3;
        eprintln!("SHOW 04 roundtrip {vector}: {} → archive → {}, proven at 3 of 3", from.kind, to.kind);
    }
    eprintln!("SHOW 04 roundtrip {hops}/{hops} hops proven over plain, htpasswd and tls");
}

/// Pulled by name and by digest, every image has the bytes that it had in the archive.
async fn assert_same_images(map: &crate::localization::Localization, contents: &Contents, place: &Place) {
    let store = Registries::new(&place.options).unwrap().registry(&place.registry.host, false).unwrap();
    assert!(!map.images().is_empty());
    for image in map.images() {
        let pulled = crate::ImageReference::parse(&image.mirrored).unwrap();
        let digest = pulled.digest.clone().unwrap();
        let here = contents.blobs[&digest].read(1 << 24, "image").unwrap();
        for pointer in [Pointer::Digest(digest.clone()), Pointer::Tag(pulled.tag.clone().unwrap_or_default())] {
            use crate::repository::ArtifactStore;
            let there = store.manifest(&pulled.repository, &pointer).await;
            let there = there.unwrap_or_else(|error| panic!("{}{pointer}: {error}", pulled.repository));
            assert_eq!(there.bytes, here, "{}{pointer}", pulled.repository);
        }
    }
}

/// Both tools' archives go in, and what comes out is laid out so that both read it (ocm.md section 4).
#[tokio::test]
async fn archives_are_written_for_both_tools() {
    for name in ["v1-byval", "v2-byval", "v1-v3alpha1"] {
        let component = if name == "v1-v3alpha1" { "acme.example/diamond/top:1.0.0" } else { CHANNEL };
        let source = format!("ctf::{}//{component}", data().join("ocm/ctf").join(name).display());
        let channel = inspect(&SourceRef::parse(&source).unwrap(), &Selection::default(), &offline()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let bundle = create(&channel, &folder.path().join("blobs"), &Kept::default()).await.unwrap();
        let path = folder.path().join("bundle.tar");
        bundle.contents.write(&path, crate::Format::Tar).unwrap();
        let mut archive = tar::Archive::new(std::fs::File::open(&path).unwrap());
        let names: Vec<String> =
            archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect();
        assert_eq!(names[0], "artifact-index.json", "{name}: the index comes first");
        assert!(names.iter().all(|name| !name.starts_with("./")), "{name}: no name begins with ./");
        let again = Contents::open(&path, &offline().limits).unwrap();
        assert!(again.artifacts.iter().all(|entry| !entry.media_type.is_empty()), "{name}: every entry has its media type");
        for entry in again.artifacts.iter().filter(|entry| entry.tag.is_some()) {
            let manifest: Value = serde_json::from_slice(&again.blobs[&entry.digest].read(1 << 24, name).unwrap()).unwrap();
            for member in manifest["manifests"].as_array().into_iter().flatten() {
                let is_listed =
                    |other: &IndexEntry| other.repository == entry.repository && member["digest"] == other.digest.as_str();
                assert!(again.artifacts.iter().any(is_listed), "{name}: members of an index are listed beside it");
            }
        }
    }
}

/// A registry that does not let us write says so, and says no password.
#[tokio::test]
async fn a_push_without_a_login_is_refused() {
    let places = Place::all().await;
    let contents = Contents::open(&data().join("ocm/ctf/v2-byval"), &offline().limits).unwrap();
    let anonymous = Options { plain_http: [places[1].registry.host.clone()].into(), ..offline() };
    let error = push(&contents, &places[1].at("x"), &Registries::new(&anonymous).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(!error.to_string().contains("acme-pass"), "{error}");
}

/// Nobody listens at the target: what is refused is refused before anything is asked.
#[tokio::test]
async fn names_that_lead_out_of_the_target_are_refused_unsent() {
    let target = RepositoryRef::parse("127.0.0.1:1/team/a").unwrap();
    let registries = Registries::new(&offline()).unwrap();
    for (repository, tag, is_refused) in [
        ("../../tenant-b/app", "1.0", true),
        ("a/../b", "1.0", true),
        ("%2e%2e/x", "1.0", true),
        ("app", "../x", true),
        ("app", "1.0", false),
    ] {
        let digest = crate::digest::Digest::of(b"{}");
        let blobs = [(digest.clone(), crate::ctf::Payload::Bytes("{}".into()))].into();
        let entry = IndexEntry {
            repository: repository.into(),
            tag: Some(tag.into()),
            digest,
            media_type: crate::assembly::MANIFEST.into(),
        };
        let contents = Contents { place: "test".into(), artifacts: vec![entry], blobs };
        let error = push(&contents, &target, &registries).await.unwrap_err();
        assert_eq!(error.to_string().contains("no name of a repository"), is_refused, "{repository}:{tag}: {error}");
    }
}
