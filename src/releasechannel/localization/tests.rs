use plinth_api::lock::LockedComponent;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::digest::Digest;

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
    Localization::new(&lock, &RepositoryRef::parse("http://mirror.example:5000/x").unwrap())
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
    check("acme/local:v3", "mirror.example:5000/x/component-descriptors/acme.example/gateway@DIGEST");
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
    let unused: Vec<&str> = localization.unused(&applied).iter().map(|image| image.resource.as_str()).collect();
    assert_eq!(unused, ["local", "nginx", "pinned"]);
}

proptest! {
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
