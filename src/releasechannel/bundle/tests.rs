mod claims;
mod proof;
mod signed;
mod written;

use crate::assembly::MANIFEST;
use crate::error::ErrorKind;
use crate::options::{Limits, Options, Verify};
use crate::registry::{Registries, push};
use crate::resolve::{inspect, resolve};
use crate::selection::Selection;
use crate::source::{RepositoryRef, SourceRef};
use crate::testing::{RealRegistry, data, offline};

use super::*;

const CHANNEL: &str = "acme.example/releasechannel/stable:2026.11.0";

/// What keeps an archive from being pushed.
async fn unfounded(contents: &Contents) -> Vec<String> {
    Claims::read(contents, &Limits::default()).await.unfounded()
}

async fn channel_at(place: &str, options: &Options) -> Channel {
    inspect(&SourceRef::parse(&format!("{place}//{CHANNEL}")).unwrap(), &Selection::default(), options).await.unwrap()
}

fn archive(name: &str) -> String {
    format!("ctf::{}", data().join("ocm/ctf").join(name).display())
}

/// Archive by value → bundle → mirror: complete everywhere, the same RGDs, images under their ordinary names, for both tools' archives.
#[tokio::test]
async fn show_04_bundle() {
    let mirror = RealRegistry::start().await;
    let mut options = offline();
    options.plain_http.insert(mirror.host.clone());
    options.mirror = Some(mirror.host.clone());
    for name in ["v1-byval", "v2-byval"] {
        let original = channel_at(&archive(name), &offline()).await;
        let folder = tempfile::tempdir().unwrap();
        let bundle = create(&original, &folder.path().join("blobs"), &Kept::default()).await.unwrap();
        let path = folder.path().join("bundle.tgz");
        bundle.contents.write(&path, crate::Format::Tgz).unwrap();
        let bundled = channel_at(&path.display().to_string(), &offline()).await;
        assert_eq!(missing(&bundled, &original.lock).await.unwrap(), Vec::<String>::new(), "{name}");

        let target = RepositoryRef::parse(&format!("{}/{name}", mirror.host)).unwrap();
        push(&bundle.contents, &target, &Registries::new(&options).unwrap()).await.unwrap();
        let mirrored = channel_at(&format!("{}/{name}", mirror.host), &options).await;
        assert_eq!(missing(&mirrored, &original.lock).await.unwrap(), Vec::<String>::new(), "{name}");

        let source = SourceRef::parse(&format!("{}/{name}//{CHANNEL}", mirror.host)).unwrap();
        let installed = resolve(&source, &Selection::default(), &options).await.unwrap();
        let first =
            resolve(&SourceRef::parse(&format!("{}//{CHANNEL}", archive(name))).unwrap(), &Selection::default(), &offline())
                .await
                .unwrap();
        assert_eq!(installed.rgds, first.rgds, "{name}");
        let registries = Registries::new(&options).unwrap();
        let image = crate::ImageReference::parse(&format!("{}/{name}/upstream/gateway:1.3.0", mirror.host)).unwrap();
        let (store, repository) = registries.locate(&image).unwrap();
        store.manifest(&repository, &image.pointer()).await.unwrap();
        eprintln!(
            "SHOW 04 bundle {name}: {} resources, {} bytes, nothing missing in archive and mirror",
            bundle.resources, bundle.bytes
        );
    }
}

#[tokio::test]
async fn the_same_lock_gives_the_same_bytes_and_a_second_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let channel = channel_at(&archive("v1-byval"), &offline()).await;
    let mut bytes = Vec::new();
    for name in ["a.tgz", "b.tgz"] {
        let bundle = create(&channel, &folder.path().join("blobs"), &Kept::default()).await.unwrap();
        bundle.contents.write(&folder.path().join(name), crate::Format::Tgz).unwrap();
        bytes.push(std::fs::read(folder.path().join(name)).unwrap());
        // What a broken run left must not be trusted.
        let victim = std::fs::read_dir(folder.path().join("blobs")).unwrap().next().unwrap().unwrap().path();
        std::fs::write(victim, "broken").unwrap();
    }
    assert!(bytes[0] == bytes[1]);
}

/// Signed by reference, bundled by value through a mirror, pushed: root and children are proven after every hop, for both tools.
#[tokio::test]
async fn show_04_signatures_survive() {
    let mirror = RealRegistry::start().await;
    let key = data().join("ocm/keys/acme.pub");
    let mut options = Options {
        keys: [("acme-sig".to_owned(), key)].into(),
        verify: Some(Verify::Required),
        mirror: Some(mirror.host.clone()),
        ..offline()
    };
    options.plain_http.insert(mirror.host.clone());
    let registries = Registries::new(&options).unwrap();
    // The corpus' images, under their ordinary names.
    let staging = tempfile::tempdir().unwrap();
    let images = create(&channel_at(&archive("v1-byval"), &offline()).await, staging.path(), &Kept::default()).await.unwrap();
    push(&images.contents, &RepositoryRef::parse(&mirror.host).unwrap(), &registries).await.unwrap();

    let mut hops = 0;
    for vector in
        ["v1-pkcs1-sha256", "v2-pkcs1-sha256", "v3-pkcs1-sha256", "v3-pss-sha256", "v3-pkcs1-sha512", "v4alpha1-pkcs1-sha256"]
    {
        let signed = channel_at(&format!("ctf::{}", data().join("ocm/signed").join(vector).display()), &options).await;
        let folder = tempfile::tempdir().unwrap();
        let bundle = create(&signed, &folder.path().join("blobs"), &Kept::default())
            .await
            .unwrap_or_else(|error| panic!("{vector}: {error}"));
        let path = folder.path().join("bundle.tar");
        bundle.contents.write(&path, crate::Format::Tar).unwrap();
        let target = RepositoryRef::parse(&format!("{}/{vector}", mirror.host)).unwrap();
        push(&bundle.contents, &target, &registries).await.unwrap();
        for place in [path.display().to_string(), format!("{}/{vector}", mirror.host)] {
            let channel = channel_at(&place, &options).await;
            let verification = channel.verify_resources().await.unwrap_or_else(|error| panic!("{vector} at {place}: {error}"));
            assert!(
                verification.is_proven() && verification.proven.len() == 6 && verification.resources_later == 0,
                "{vector} at {place}: {verification:?}"
            );
            hops += 1;
        }
    }
    eprintln!("SHOW 04 signatures-survive {hops}/{hops}");
}

/// What cannot be had is named, and the run says whether trying again can help.
#[tokio::test]
async fn an_image_that_is_not_there_stops_the_bundle() {
    let channel = channel_at(&archive("v1"), &offline()).await;
    let error = create(&channel, tempfile::tempdir().unwrap().path(), &Kept::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.to_string().contains("upstream/gateway:1.2.0") && error.to_string().contains("services/gateway:1.2.0"),
        "{error}"
    );
}

#[tokio::test]
async fn says_exactly_what_is_missing() {
    let original = channel_at(&archive("v1-byval"), &offline()).await;
    let mut contents = Contents::open(&data().join("ocm/ctf/v1-byval"), &Limits::default()).unwrap();
    let local = original
        .lock
        .components
        .iter()
        .flat_map(|component| &component.resources)
        .find(|resource| resource.name == "chart-tgz")
        .unwrap();
    let digest: crate::Digest = local.access["localReference"].as_str().unwrap().parse().unwrap();
    contents.blobs.remove(&digest).unwrap();
    let folder = tempfile::tempdir().unwrap();
    contents.write(&folder.path().join("x"), crate::Format::Folder).unwrap();
    let broken = channel_at(&format!("ctf::{}/x", folder.path().display()), &offline()).await;
    let missing = missing(&broken, &original.lock).await.unwrap();
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].contains("chart-tgz") && missing[0].contains("services/gateway:1.3.0"), "{missing:?}");
}

/// A layer that has no end is cut at the size that the manifest says, and leaves nothing behind.
#[tokio::test]
async fn a_layer_without_end_is_cut_at_its_size() {
    use crate::testing::{Stub, http};
    let layer = crate::Digest::of(b"ten bytes!");
    let config = crate::Digest::of(b"{}");
    let manifest = serde_json::json!({"schemaVersion": 2, "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config.as_str(), "size": 2},
        "layers": [{"mediaType": "application/octet-stream", "digest": layer.as_str(), "size": 10}]})
    .to_string();
    let blob = format!("/blobs/{layer}");
    let stub = Stub::start(move |seen, _| {
        if seen.path.contains("/manifests/") {
            return http("200 OK", &[("content-type", MANIFEST)], manifest.as_bytes());
        }
        if seen.path.ends_with(&blob) {
            let mut endless = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
            endless.resize(20 << 20, b'x');
            return endless;
        }
        http("200 OK", &[], b"{}")
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "components:\n  - name: acme.example/endless\n    version: 1.0.0\n    provider: {{name: acme.example}}\n    resources:\n      - {{name: image, type: ociImage, version: 1.0.0, access: {{type: ociArtifact, imageReference: '{}/x:1'}}}}\n",
        stub.host
    );
    std::fs::write(folder.path().join("channel.yaml"), text).unwrap();
    let mut options = offline();
    options.plain_http.insert(stub.host.clone());
    let source = SourceRef::parse(&folder.path().display().to_string()).unwrap();
    let channel = inspect(&source, &Selection::default(), &options).await.unwrap();
    let survey = survey(&channel, &Kept::default()).await.unwrap();
    assert_eq!(survey.items[0].bytes.map(|bytes| bytes < 1000), Some(true), "{survey:?}");
    let staging = folder.path().join("blobs");
    let error = create(&channel, &staging, &Kept::default()).await.unwrap_err();
    assert!(error.to_string().contains("over the limit of 10 bytes"), "{error}");
    assert!(!staging.join(layer.file_name()).exists());
}

/// Several downloads at a time, never more to one host than allowed; a layer that many images share is fetched once, and what a broken run
/// left is not fetched again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn downloads_overlap_within_their_bound_and_nothing_is_fetched_twice() {
    use crate::testing::{Stub, http, serving};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    let contents = Contents::open(&data().join("ocm/ctf/v2-byval"), &offline().limits).unwrap();
    let serve = serving(contents);
    let (now, most, broken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None)));
    let (counted, highest, failing) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&broken));
    let stub = Stub::start(move |seen, count| {
        highest.fetch_max(counted.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(5));
        counted.fetch_sub(1, Ordering::SeqCst);
        let is_broken = failing.lock().unwrap().as_ref().is_some_and(|digest: &String| seen.path.ends_with(digest.as_str()));
        if is_broken { http("403 Forbidden", &[], b"") } else { serve(seen, count) }
    })
    .await;
    let limits = Limits { parallel: 3, ..offline().limits };
    let options = Options { plain_http: [stub.host.clone()].into(), limits, ..offline() };
    let folder = tempfile::tempdir().unwrap();
    let blobs = |seen: &[crate::testing::Seen]| -> Vec<String> {
        let paths = seen.iter().map(|seen| seen.path.rsplit('/').next().unwrap().to_owned());
        let mut digests: Vec<String> = paths.filter(|last| last.starts_with("sha256:")).collect();
        digests.sort();
        digests
    };
    let channel = channel_at(&stub.host, &options).await;
    let whole = create(&channel, &folder.path().join("whole"), &Kept::default()).await.unwrap();
    let seen = blobs(&stub.seen());
    let mut once = seen.clone();
    once.dedup();
    assert_eq!(seen, once, "something was fetched twice");
    assert!((2..=3).contains(&most.load(Ordering::SeqCst)), "{most:?}");

    // One layer fails; the next run fetches it, and not what came before it.
    let layers: Vec<String> = stub.seen().into_iter().map(|seen| seen.path).filter(|path| path.contains("/blobs/")).collect();
    let victim = layers.last().unwrap().rsplit('/').next().unwrap().to_owned();
    *broken.lock().unwrap() = Some(victim.clone());
    let staging = folder.path().join("broken");
    let channel = channel_at(&stub.host, &options).await;
    let error = create(&channel, &staging, &Kept::default()).await.unwrap_err();
    assert!(error.to_string().contains("403"), "{error}");
    *broken.lock().unwrap() = None;
    let before = stub.seen().len();
    let channel = channel_at(&stub.host, &options).await;
    let again = create(&channel, &staging, &Kept::default()).await.unwrap();
    let asked = blobs(&stub.seen()[before..]);
    assert!(asked.contains(&victim) && asked.len() < seen.len(), "{} of {} were asked for again", asked.len(), seen.len());
    assert_eq!(again.contents.blobs.keys().collect::<Vec<_>>(), whole.contents.blobs.keys().collect::<Vec<_>>());
}

/// An artifact whose digest is that of its packed form travels packed, and a source's content travels too.
#[tokio::test]
async fn what_is_recorded_packed_stays_packed_and_sources_go_along() {
    use crate::digest::Digest;
    use crate::testing::{add, set};
    let layer = b"kind: ConfigMap";
    let manifest =
        json!({"schemaVersion": 2, "layers": [{"digest": Digest::of(layer).as_str(), "mediaType": "application/x-yaml"}]})
            .to_string();
    let listed = json!({"manifests": [{"digest": Digest::of(manifest.as_bytes()).as_str()}]});
    let packed = set("index.json", &listed, &[manifest.as_bytes(), layer]);
    let mut contents = Contents::default();
    let (reference, source) = (contents.add_blob(packed), contents.add_blob(b"the source".to_vec()));
    let local = |digest: &Digest, kind: &str| json!({"type": "localBlob", "localReference": digest.as_str(), "mediaType": kind});
    let resource = |name: &str, digest: &Digest| {
        json!({"name": name, "version": "1", "type": "ociImage", "relation": "local",
            "access": local(&reference, "application/vnd.oci.image.manifest.v1+tar"),
            "digest": {"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "genericBlobDigest/v1", "value": digest.hex()}})
    };
    let more = json!({"resources": [resource("packed", &reference), resource("unpacked", &Digest::of(manifest.as_bytes()))],
        "sources": [{"name": "src", "version": "1", "type": "text", "access": local(&source, "text/plain")}]});
    add(&mut contents, "acme.example/x", "1.0.0", more);
    let folder = tempfile::tempdir().unwrap();
    contents.write(&folder.path().join("ctf"), crate::Format::Folder).unwrap();
    let at = |name: &str| format!("ctf::{}//acme.example/x:1.0.0", folder.path().join(name).display());
    let read =
        async |name: &str| inspect(&SourceRef::parse(&at(name)).unwrap(), &Selection::default(), &offline()).await.unwrap();
    let bundle = create(&read("ctf").await, &folder.path().join("parts"), &Kept::default()).await.unwrap();
    bundle.contents.write(&folder.path().join("bundle"), crate::Format::Folder).unwrap();
    let again = read("bundle").await;
    let verification = again.verify_resources().await.unwrap();
    assert_eq!((verification.resources_read, verification.manifests_read), (1, 1));
    let descriptor = again.descriptor(&again.root).unwrap();
    let media_type = |resource: &Resource| resource.access["mediaType"].as_str().unwrap_or_default().to_owned();
    let types: Vec<String> = descriptor.resources.iter().map(media_type).collect();
    assert_eq!(types, ["application/vnd.oci.image.manifest.v1+tar", MANIFEST]);
    assert!(bundle.contents.blobs.contains_key(&source) && descriptor.sources[0].access["localReference"] == source.as_str());
    for name in ["packed", "unpacked"] {
        assert_eq!(&again.fetch(&again.root, name).await.unwrap()[..], layer);
    }
}
