use plinth_api::lock::{LockedComponent, LockedResource, ReleaseLock};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::words::words;
use super::*;
use crate::digest::Digest;
use crate::source::RepositoryRef;

fn resource(name: &str, access: Value, digest: Option<&Digest>) -> LockedResource {
    LockedResource {
        name: name.into(),
        kind: "ociImage".into(),
        access,
        digest: digest.map(ToString::to_string),
        ..LockedResource::default()
    }
}

fn localization() -> Localization {
    let digest = Digest::of(b"gateway");
    let image = |reference: &str| json!({"type": "ociArtifact", "imageReference": reference});
    let component = LockedComponent {
        name: "acme.example/gateway".into(),
        version: "1.0.0".into(),
        resources: vec![
            resource("gateway", image("ghcr.io/acme/gateway:v1"), Some(&digest)),
            resource("pinned", image(&format!("http://127.0.0.1:25000/acme/pinned:v2@{digest}")), Some(&digest)),
            resource("nginx", image("nginx:1.27"), Some(&digest)),
            resource("unknown-bytes", image("ghcr.io/acme/other:v1"), None),
            resource(
                "local",
                json!({"type": "localBlob", "localReference": digest.as_str(), "mediaType": crate::assembly::MANIFEST, "referenceName": "acme/local:v3"}),
                None,
            ),
        ],
        ..LockedComponent::default()
    };
    let lock = ReleaseLock { components: vec![component], ..ReleaseLock::default() };
    Localization::new(&lock, None, &RepositoryRef::parse("http://mirror.example:5000/x").unwrap())
}

fn check(text: &str, expected: &str) {
    let mut document = json!({ "image": text });
    localization().apply(&mut document, &mut Applied::default());
    let digest = Digest::of(b"gateway").to_string();
    assert_eq!(document["image"].as_str().unwrap().replace(&digest, "DIGEST"), expected, "{text}");
}

#[test]
fn replaces_every_spelling_of_an_image() {
    let gateway = "mirror.example:5000/x/acme/gateway:v1@DIGEST";
    check("ghcr.io/acme/gateway:v1", gateway);
    check("https://ghcr.io/acme/gateway:v1", gateway);
    check(&format!("ghcr.io/acme/gateway:v1@{}", Digest::of(b"gateway")), gateway);
    let pinned = "mirror.example:5000/x/acme/pinned:v2@DIGEST";
    check("127.0.0.1:25000/acme/pinned:v2", pinned);
    check(&format!("127.0.0.1:25000/acme/pinned@{}", Digest::of(b"gateway")), pinned);
    check("docker.io/library/nginx:1.27", "mirror.example:5000/x/library/nginx:1.27@DIGEST");
    check("acme/local:v3", "mirror.example:5000/x/acme/local:v3@DIGEST");
    // A copy by value keeps no host: the path decides.
    check("quay.io/acme/local:v3", "mirror.example:5000/x/acme/local:v3@DIGEST");
}

#[test]
fn leaves_everything_else_alone() {
    for text in [
        "ghcr.io/acme/gateway:v2",
        "nginx",
        "gateway:v1",
        "ghcr.io/acme/other:v1",
        "a ghcr.io/acme/gateway:v1x b",
        "xghcr.io/acme/gateway:v1",
    ] {
        check(text, text);
    }
}

#[test]
fn another_digest_is_another_image() {
    let other = format!("ghcr.io/acme/gateway:v1@{}", Digest::of(b"other"));
    check(&other, &other);
}

#[test]
fn never_touches_cel_and_what_belongs_to_it() {
    for text in [
        "${'ghcr.io/acme/gateway:v1'}",
        "ghcr.io/acme/gateway:v1${schema.spec.suffix}",
        "${x}ghcr.io/acme/gateway:v1",
        "${ {'a': 'ghcr.io/acme/gateway:v1'} }",
    ] {
        check(text, text);
    }
    check(
        "--image=ghcr.io/acme/gateway:v1 --name=${schema.metadata.name}",
        "--image=mirror.example:5000/x/acme/gateway:v1@DIGEST --name=${schema.metadata.name}",
    );
    check("${a + '}'} ghcr.io/acme/gateway:v1", "${a + '}'} mirror.example:5000/x/acme/gateway:v1@DIGEST");
}

#[test]
fn reports_leaks_and_what_was_never_used() {
    let mut document = json!({"spec": {"containers": [{"image": "ghcr.io/acme/gateway:v1"}, {"image": "quay.io/evil/miner:1"}, {"image": "${x}"}], "args": ["quay.io/no/image:1"]}});
    let mut applied = Applied::default();
    let localization = localization();
    localization.apply(&mut document, &mut applied);
    assert_eq!(applied.leaks.iter().collect::<Vec<_>>(), ["quay.io/evil/miner:1"]);
    assert_eq!(applied.replaced.len(), 1);
    let unused: Vec<&str> = localization.unused(&applied.used).iter().map(|image| image.resource.as_str()).collect();
    assert_eq!(unused, ["local", "nginx", "pinned", "unknown-bytes"]);
}

proptest! {
    #[test]
    fn fields_are_written_once_and_never_break(
        key in "(image|sidecarImage|url|x)", registry in "(ghcr\\.io|\\$\\{x\\}|)", repository in "(acme/gateway|ghcr\\.io/acme/gateway|oci://a/b|\\PC{0,12})",
        tag in "(v1|v2|\\PC{0,6})", digest in "(sha256:[0-9a-f]{64}|)",
    ) {
        let (localization, mut applied) = (localization(), Applied::default());
        let inner = json!({"registry": registry, "repository": repository, "tag": tag, "digest": digest, "ref": {"tag": tag}, "url": repository});
        let mut once = json!({ key: inner, "list": [registry, tag] });
        localization.apply(&mut once, &mut applied);
        let mut twice = once.clone();
        localization.apply(&mut twice, &mut applied);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn words_lose_nothing(text in "(\\$\\{|\\}|[a-z/:'\" =]|ghcr\\.io/acme/gateway:v1){0,20}", any in "\\PC{0,40}") {
        for text in [text, any] {
            let together: String = words(&text).iter().map(|(part, _)| *part).collect();
            prop_assert_eq!(together, text);
        }
    }

    #[test]
    fn applying_twice_is_applying_once(text in "(\\$\\{x\\}|[a-z =]| ghcr\\.io/acme/gateway:v1 ){0,8}") {
        let (localization, mut applied) = (localization(), Applied::default());
        let mut once = json!({ "a": text });
        localization.apply(&mut once, &mut applied);
        let mut twice = once.clone();
        localization.apply(&mut twice, &mut applied);
        prop_assert_eq!(once, twice);
    }
}

fn applied_to(mut document: Value) -> (Value, Applied) {
    let mut applied = Applied::default();
    localization().apply(&mut document, &mut applied);
    (document, applied)
}

#[test]
fn replaces_references_that_are_taken_apart() {
    let digest = Digest::of(b"gateway").to_string();
    let (values, applied) = applied_to(json!({"spec": {"values": {
        "whole": {"repository": "ghcr.io/acme/gateway", "tag": "v1"},
        "pinned": {"registry": "ghcr.io", "repository": "acme/gateway", "tag": "v1", "digest": ""},
        "other": {"repository": "quay.io/evil/miner", "tag": "1"},
        "open": {"repository": "ghcr.io/acme/gateway", "tag": "${schema.spec.tag}"},
        "git": {"repository": "https://ghcr.io/acme/gateway", "tag": "v1"},
        "plain": {"repository": "charts", "tag": "v1"},
    }, "chart": {"url": "oci://ghcr.io/acme/gateway", "ref": {"tag": "v1"}}}}));
    let values_of = |name: &str| values["spec"]["values"][name].clone();
    assert_eq!(values_of("whole"), json!({"repository": "mirror.example:5000/x/acme/gateway", "tag": "v1"}));
    assert_eq!(
        values_of("pinned"),
        json!({"registry": "mirror.example:5000", "repository": "x/acme/gateway", "tag": "v1", "digest": digest})
    );
    for name in ["other", "open", "git", "plain"] {
        assert!(!values_of(name).to_string().contains("mirror"), "{name}");
    }
    assert_eq!(
        values["spec"]["chart"],
        json!({"url": "oci://mirror.example:5000/x/acme/gateway", "ref": {"tag": "v1", "digest": digest}})
    );
    assert_eq!(applied.leaks.iter().collect::<Vec<_>>(), ["quay.io/evil/miner:1"]);
}

#[test]
fn finds_leaks_in_expressions_defaults_and_beginnings_and_touches_none() {
    let leaking = json!({
        "image": "quay.io/evil/miner:${schema.spec.tag}",
        "initImage": "${schema.spec.image != '' ? schema.spec.image : 'quay.io/other/miner:1'}",
        "spec": {"image": "string | default=\"quay.io/third/miner:1\"", "sidecarImage": "string", "initImage": "string | required=true"},
        "mirrored": {"image": "mirror.example:5000/x/acme/gateway:v1"},
        "computed": {"image": "${registry}/gateway:v1"},
        "text": "quay.io/no/image:1",
    });
    let (after, applied) = applied_to(leaking.clone());
    assert_eq!(after, leaking);
    let expected = ["quay.io/evil/miner:${schema.spec.tag}", "quay.io/other/miner:1", "quay.io/third/miner:1"];
    assert_eq!(applied.leaks.iter().collect::<Vec<_>>(), expected);
    let (after, _) = applied_to(json!({"image": "string | default=\"ghcr.io/acme/gateway:v1\""}));
    assert!(after["image"].as_str().unwrap().starts_with("string | default=\"mirror.example:5000/x/acme/gateway:v1@"), "{after}");
}

/// After a copy by value the channel's own lock has forgotten where images came from; the one from before remembers.
#[test]
fn the_lock_from_before_gives_names_and_nothing_else() {
    let (digest, other) = (Digest::of(b"gateway"), Digest::of(b"other"));
    let component = |access: Value, digest: &Digest| LockedComponent {
        name: "acme.example/gateway".into(),
        version: "1.0.0".into(),
        resources: vec![resource("gateway", access, Some(digest))],
        ..LockedComponent::default()
    };
    let lock = |component: LockedComponent| ReleaseLock { components: vec![component], ..ReleaseLock::default() };
    let blob = json!({"type": "localBlob", "localReference": digest.as_str(), "mediaType": crate::assembly::MANIFEST, "referenceName": "acme/gateway:v1"});
    let now = lock(component(blob, &digest));
    let image = json!({"type": "ociArtifact", "imageReference": "ghcr.io/acme/gateway:v1"});
    let mirror = RepositoryRef::parse("mirror.example").unwrap();
    let map = Localization::new(&now, Some(&lock(component(image.clone(), &digest))), &mirror);
    assert_eq!(map.find("ghcr.io/acme/gateway:v1").unwrap().mirrored, format!("mirror.example/acme/gateway:v1@{digest}"));
    assert!(map.find("quay.io/acme/gateway:v1").is_none());
    // A lock of other content is not asked.
    let map = Localization::new(&now, Some(&lock(component(image, &other))), &mirror);
    assert_eq!(map.images()[0].original, "acme/gateway:v1");
}

#[test]
fn a_path_that_two_images_have_decides_nothing() {
    let blob = |content: &[u8]| json!({"type": "localBlob", "localReference": Digest::of(content).as_str(), "mediaType": crate::assembly::MANIFEST, "referenceName": "acme/app:1"});
    let component = LockedComponent {
        name: "acme.example/x".into(),
        resources: vec![resource("a", blob(b"a"), None), resource("b", blob(b"b"), None)],
        ..LockedComponent::default()
    };
    let lock = ReleaseLock { components: vec![component], ..ReleaseLock::default() };
    let map = Localization::new(&lock, None, &RepositoryRef::parse("mirror.example").unwrap());
    assert!(map.find("quay.io/acme/app:1").is_none());
}

#[test]
fn without_a_mirror_nothing_is_rewritten_and_leaks_are_found() {
    let component = LockedComponent {
        name: "acme.example/gateway".into(),
        resources: vec![resource("gateway", json!({"type": "ociArtifact", "imageReference": "ghcr.io/acme/gateway:v1"}), None)],
        ..LockedComponent::default()
    };
    let map = Localization::describing(&ReleaseLock { components: vec![component], ..ReleaseLock::default() });
    let document = json!({"a": {"image": "ghcr.io/acme/gateway:v1"}, "b": {"image": "quay.io/evil/miner:1"}, "c": {"repository": "ghcr.io/acme/gateway", "tag": "v1"}});
    let (mut after, mut applied) = (document.clone(), Applied::default());
    map.apply(&mut after, &mut applied);
    assert_eq!(after, document);
    assert_eq!((applied.used.len(), applied.leaks.len(), map.unused(&applied.used).len()), (1, 1, 0));
}

/// Graphs and manifests of real projects: nothing is changed without a mirror, and what is told as a leak looks like an image.
#[test]
fn documents_of_the_corpora_are_left_as_they_are() {
    let (mut folders, mut applied, mut documents) = (vec![crate::testing::data()], Applied::default(), 0);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Some(read) =
                is_yaml.then(|| std::fs::read(&path).ok()).flatten().and_then(|bytes| crate::text::yaml_documents(&bytes).ok())
            else {
                continue;
            };
            for document in read {
                let mut after = document.clone();
                Localization::describing(&ReleaseLock::default()).apply(&mut after, &mut applied);
                assert_eq!(after, document, "{}", path.display());
                documents += 1;
            }
        }
    }
    assert!(documents > 100 && applied.leaks.contains("nginx:1.25"), "{documents} documents");
    assert!(applied.leaks.len() * 10 < documents, "{:?}", applied.leaks);
    eprintln!("SHOW 04 leaks {} images in {documents} documents of the corpora", applied.leaks.len());
}

/// Bundle → mirror → map: the map of the mirrored channel knows the original names, and every image is found where it says.
#[tokio::test]
async fn show_04_localization() {
    use crate::registry::{Registries, push};
    use crate::resolve::inspect;
    use crate::selection::Selection;
    use crate::testing::{RealRegistry, data, offline};

    let (origin, mirror) = (RealRegistry::start().await, RealRegistry::start().await);
    let mut options = offline();
    options.plain_http.extend([origin.host.clone(), mirror.host.clone()]);
    let registries = Registries::new(&options).unwrap();
    // Images at their origin, and a channel that refers to them there.
    let corpus = crate::Contents::open(&data().join("ocm/ctf/v1-byval"), &options.limits).unwrap();
    let component = "acme.example/services/gateway:1.3.0";
    let at = |place: String, options: crate::Options| async move {
        let source = crate::SourceRef::parse(&format!("{place}//{component}")).unwrap();
        inspect(&source, &Selection::default(), &options).await.unwrap()
    };
    let bundled = |channel: crate::Channel, to: String, options: crate::Options| async move {
        let folder = tempfile::tempdir().unwrap();
        let bundle = crate::bundle::create(&channel, folder.path(), &crate::bundle::Kept::default()).await.unwrap();
        push(&bundle.contents, &RepositoryRef::parse(&to).unwrap(), &Registries::new(&options).unwrap()).await.unwrap();
    };
    push(&corpus, &RepositoryRef::parse(&format!("{}/packed", origin.host)).unwrap(), &registries).await.unwrap();
    let packed = at(format!("{}/packed", origin.host), options.clone()).await;
    let not_pullable = packed.localization(&RepositoryRef::parse(&format!("{}/packed", origin.host)).unwrap()).await.unwrap();
    assert_eq!(not_pullable.missing(|_| true).len(), 6, "{:?}", not_pullable.missing(|_| true));
    bundled(packed, format!("{}/site", mirror.host), options.clone()).await;

    let site = RepositoryRef::parse(&format!("{}/site", mirror.host)).unwrap();
    let only = crate::Options { mirror: Some(site.to_string()), mirror_only: true, ..options.clone() };
    // The source names a registry that nobody may ask.
    let mirrored = at("unreachable.invalid/x".to_owned(), only).await;
    let map = mirrored.localization(&site).await.unwrap();
    assert_eq!(map.missing(|_| true), [""; 0]);
    for image in map.images() {
        assert!(image.mirrored.starts_with(&format!("{}/site/{}@sha256:", mirror.host, image.original)), "{image:?}");
    }
    assert_eq!(map.unnamed(|_| true), [""; 0]);
    // One name leads elsewhere, and one is gone: pods are sent beside the component, which is said.
    let (site_of, image) = (RealRegistry::start().await, "upstream/gateway");
    let mut options = options.clone();
    options.plain_http.insert(site_of.host.clone());
    let folder = tempfile::tempdir().unwrap();
    let packed = at(format!("{}/packed", origin.host), options.clone()).await;
    let mut contents = crate::bundle::create(&packed, folder.path(), &crate::bundle::Kept::default()).await.unwrap().contents;
    contents.artifacts.retain(|entry| entry.repository != "upstream/gateway-sidecar");
    let chart = contents.artifacts.iter().find(|entry| entry.repository == "upstream/charts/gateway-chart").unwrap().clone();
    contents.artifacts.retain(|entry| entry.repository != image);
    contents.artifacts.push(crate::ctf::IndexEntry { repository: image.into(), tag: Some("1.3.0".into()), ..chart });
    let place = RepositoryRef::parse(&site_of.host).unwrap();
    push(&contents, &place, &Registries::new(&options).unwrap()).await.unwrap();
    let changed = at(site_of.host.clone(), options).await.localization(&place).await.unwrap();
    assert_eq!(changed.missing(|_| true), [""; 0]);
    let said = changed.unnamed(|_| true);
    assert!(said.len() == 2 && said[0].contains("upstream/gateway:1.3.0 in the mirror is sha256:"), "{said:?}");
    assert!(said[1].contains("upstream/gateway-sidecar:1.3.0 is not in the mirror"), "{said:?}");
    let beside = changed.images().iter().find(|image| image.resource == "image").unwrap();
    assert!(beside.mirrored.contains("/component-descriptors/acme.example/services/gateway@"), "{beside:?}");
    // The graph of the corpus names its images by the host of its maker, which no lock of a copy by value remembers.
    let rgd = mirrored.fetch(&mirrored.root, "rgd").await.unwrap();
    let mut applied = Applied::default();
    for mut document in crate::text::yaml_documents(&rgd).unwrap() {
        map.apply(&mut document, &mut applied);
        assert!(!document.to_string().contains("127.0.0.1:25000"), "{document}");
    }
    assert_eq!((applied.replaced.len(), applied.leaks.len()), (2, 0), "{applied:?}");
    let elsewhere = mirrored.localization(&RepositoryRef::parse(&format!("{}/other", mirror.host)).unwrap()).await.unwrap();
    assert_eq!(elsewhere.missing(|_| true).len(), map.images().len());
    eprintln!("SHOW 04 localization {} images by name and digest in the mirror", map.images().len());
}
