use std::collections::BTreeMap;

use super::*;
use crate::ctf::Format;
use crate::options::Options;
use crate::resolve::resolve;
use crate::selection::Selection;
use crate::source::SourceRef;

const CHANNEL: &str = r"
components:
  - name: acme.example/channel
    version: 1.0.0
    provider: {name: acme.example}
    componentReferences:
      - {name: platform, componentName: acme.example/platform, version: 0.1.0}
  - name: acme.example/platform
    version: 0.1.0
    provider: {name: acme.example, labels: [{name: a, value: b}]}
    resources:
      - {name: rgd, type: acme.example/rgd, input: {type: file, path: rgds/platform.yaml, mediaType: application/x-yaml, compress: true}}
      - {name: notes, type: text, input: {type: utf8, text: hello}}
      - {name: files, type: dir, input: {type: dir, path: rgds}}
      - {name: image, type: ociImage, input: {type: ociLayout, path: image}}
";
const RGD: &str = "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {name: p}\nspec: {schema: {apiVersion: v1, kind: P}}\n";

/// A distribution folder with every kind of input.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut all = BTreeMap::from([
        ("channel.yaml", CHANNEL),
        ("rgds/platform.yaml", RGD),
        ("instance.yaml", "apiVersion: kro.run/v1\nkind: P\nmetadata: {name: x}\n"),
    ]);
    all.extend(files.iter().copied());
    for (name, text) in all {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    image(&folder.path().join("image"));
    folder
}

/// A one-layer image as OCI layout.
fn image(path: &Path) {
    let blobs = path.join("blobs/sha256");
    std::fs::create_dir_all(&blobs).unwrap();
    let put = |bytes: &[u8]| {
        let digest = crate::Digest::of(bytes);
        std::fs::write(blobs.join(digest.hex()), bytes).unwrap();
        serde_json::json!({"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest.as_str(), "size": bytes.len()})
    };
    let (layer, config) = (put(b"layer"), put(b"{}"));
    let manifest =
        serde_json::json!({"schemaVersion": 2, "mediaType": crate::assembly::MANIFEST, "config": config, "layers": [layer]});
    let mut entry = put(manifest.to_string().as_bytes());
    entry["mediaType"] = crate::assembly::MANIFEST.into();
    entry["annotations"] = serde_json::json!({"org.opencontainers.image.ref.name": "upstream/platform:0.1.0"});
    let index = serde_json::json!({"schemaVersion": 2, "manifests": [entry]});
    std::fs::write(path.join("index.json"), index.to_string()).unwrap();
}

fn offline() -> Options {
    Options { no_user_config: true, ..Options::default() }
}

async fn check(source: &Path) {
    let channel = resolve(&SourceRef::Path(source.to_owned()), &Selection::default(), &offline()).await.unwrap();
    assert_eq!(channel.root.to_string(), "acme.example/channel:1.0.0");
    assert_eq!(channel.rgds.len(), 1);
    assert_eq!(channel.rgds[0].text, RGD);
    let platform = ComponentVersion::new("acme.example/platform", "0.1.0");
    assert!(channel.instance(&platform).unwrap().contains("kind: P"));
    assert_eq!(&channel.fetch(&platform, "notes").await.unwrap()[..], b"hello");
    // The image's only layer.
    assert_eq!(&channel.fetch(&platform, "image").await.unwrap()[..], b"layer");
    assert_eq!(channel.descriptor(&platform).unwrap().provider, "acme.example");
}

#[tokio::test]
async fn a_folder_resolves_and_so_does_every_packed_form() {
    let folder = folder(&[]);
    check(folder.path()).await;
    let contents = pack(folder.path(), &Limits::default()).unwrap();
    let target = tempfile::tempdir().unwrap();
    for name in ["x.tgz", "x.tar", "x.tar.gz", "folder"] {
        let path = target.path().join(name);
        contents.write(&path, Format::of(&path).unwrap()).unwrap();
        check(&path).await;
    }
}

#[test]
fn the_same_folder_gives_the_same_bytes() {
    let folder = folder(&[]);
    let target = tempfile::tempdir().unwrap();
    let bytes = |name: &str| {
        let path = target.path().join(name);
        pack(folder.path(), &Limits::default()).unwrap().write(&path, Format::of(&path).unwrap()).unwrap();
        std::fs::read(path).unwrap()
    };
    assert_eq!(bytes("a.tgz"), bytes("b.tgz"));
    let tar = bytes("a.tar");
    let mut archive = tar::Archive::new(tar.as_slice());
    let names: Vec<String> =
        archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect();
    assert_eq!(names[..2], ["artifact-index.json", "blobs"].map(str::to_owned), "{names:?}");
    assert!(names.iter().all(|name| !name.starts_with("./")));
}

#[test]
fn names_file_and_component_of_what_is_wrong() {
    let with = |text: &str| CHANNEL.replace("path: rgds/platform.yaml", text);
    let cases = [
        (with("path: rgds/none.yaml"), "acme.example/platform:0.1.0"),
        (with("path: ../../etc/passwd"), "acme.example/platform:0.1.0"),
        (CHANNEL.replace("type: utf8", "type: spiff"), "spiff"),
        (CHANNEL.replace("version: 0.1.0\n    provider", "version: 1.0\n    provider"), "quote it"),
        (CHANNEL.replace("type: acme.example/rgd, ", ""), "component.resources[0].type"),
        ("components: [".to_owned(), "line"),
        ("a: b".to_owned(), "components"),
        (CHANNEL.replace("    provider:", "    providerr:"), "channel.yaml:"),
        (format!("{CHANNEL}\n  - {{name: acme.example/channel, version: 1.0.0, provider: x}}"), "twice"),
        (CHANNEL.replace("version: 1.0.0\n", "version: latest\n"), "acme.example/channel:latest: its version is no semantic one"),
        (CHANNEL.replace("{name: files,", "{name: notes,"), "resource notes 0.1.0 is there twice"),
    ];
    for (text, expected) in cases {
        let folder = folder(&[("channel.yaml", &text)]);
        let error = pack(folder.path(), &Limits::default()).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("channel.yaml") && message.contains(expected), "{message} does not name {expected}");
    }
}

/// Their version tells them apart, as the tools have it (ocm.md section 2).
#[test]
fn references_of_one_name_may_differ_in_their_version() {
    let entry = "      - {name: platform, componentName: acme.example/platform, version: 0.1.0}\n";
    let two = |version: &str| format!("{entry}{}", entry.replace("0.1.0", version));
    let read = |version: &str| {
        let folder = folder(&[("channel.yaml", &CHANNEL.replace(entry, &two(version)))]);
        pack(folder.path(), &Limits::default()).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(read("0.2.0"), Ok(()));
    assert!(read("0.1.0").unwrap_err().contains("reference platform 0.1.0 is there twice"));
}

/// The tools pack it, and nobody can resolve it.
#[test]
fn a_circle_of_references_is_not_packed() {
    let back = "    componentReferences: [{name: back, componentName: acme.example/channel, version: 1.0.0}]\n    resources:";
    let folder = folder(&[("channel.yaml", &CHANNEL.replace("    resources:", back))]);
    let message = pack(folder.path(), &Limits::default()).unwrap_err().to_string();
    assert!(
        message.ends_with("acme.example/channel:1.0.0 → acme.example/platform:0.1.0 → acme.example/channel:1.0.0"),
        "{message}"
    );
}

/// Nobody who asks for a zip expects a folder of that name.
#[test]
fn an_archive_that_nothing_of_ocm_reads_is_refused() {
    for (name, form) in [
        ("a.tgz", Some(Format::Tgz)),
        ("a.tar.gz", Some(Format::Tgz)),
        ("A.TAR", Some(Format::Tar)),
        ("channel.d", Some(Format::Folder)),
        ("a.zip", None),
        ("a.yaml.gz", None),
    ] {
        assert_eq!(Format::of(Path::new(name)).ok(), form, "{name}");
    }
}

#[test]
fn an_instance_without_its_rgd_is_refused() {
    let folder = folder(&[("instance.yaml", "kind: Q\n")]);
    let error = pack(folder.path(), &Limits::default()).unwrap_err().to_string();
    assert!(error.contains("instance.yaml:1:7") && error.contains('Q'), "{error}");
}

/// Every constructor of OCM's tools that the corpus has is without a field that is not known.
#[test]
fn constructors_of_the_tools_have_known_fields_alone() {
    let mut count = 0;
    for entry in std::fs::read_dir(crate::testing::data().join("ocm/src")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = if path.is_file() { std::fs::read(&path).unwrap() } else { continue };
        let Ok(document) = crate::text::document::<serde_json::Value>(&bytes) else { continue };
        let is_list = document.get("components").is_some();
        if !is_list && document.get("provider").is_none() {
            continue;
        }
        let unknown = super::known::first_unknown(&bytes, is_list);
        assert_eq!(unknown, None, "{}", path.display());
        count += 1;
    }
    assert!(count >= 8, "{count} constructors");
}

/// The corpus' constructor: the same resources with the same digests as the tool that it was written for.
#[tokio::test]
async fn packs_a_constructor_of_the_tools() {
    use crate::descriptor::Descriptor;
    use crate::repository::{ComponentRepository, OciRepository};
    let repository =
        |contents: Contents| OciRepository::new(contents.into_store(Limits::default()), "", Value::Null, Limits::default());
    let ours = repository(pack(&crate::testing::data().join("ocm/src/services.yaml"), &Limits::default()).unwrap());
    let theirs = repository(Contents::open(&crate::testing::data().join("ocm/ctf/v1"), &Limits::default()).unwrap());
    let mut compared = 0;
    for component in ours.components().await.unwrap().unwrap() {
        for version in ours.versions(&component).await.unwrap() {
            let at = ComponentVersion::new(&component, version);
            let (ours, theirs) =
                (ours.descriptor(&at).await.unwrap().descriptor, theirs.descriptor(&at).await.unwrap().descriptor);
            assert_eq!((&ours.provider, ours.resources.len()), (&theirs.provider, theirs.resources.len()), "{at}");
            // What is compressed depends on the compressor.
            let plain = |descriptor: &Descriptor, name: &str| {
                descriptor.resources.iter().find(|r| r.identity.name == name).and_then(|r| r.digest.clone())
            };
            for name in ["rgd", "chart-tgz"].iter().filter(|_| !component.ends_with("notifier")) {
                assert_eq!(plain(&ours, name), plain(&theirs, name), "{at} {name}");
                compared += usize::from(plain(&ours, name).is_some());
            }
        }
    }
    assert_eq!(compared, 6);
}

#[tokio::test]
async fn the_sample_distribution_resolves_from_its_folder_and_packed() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../distributions/open-control-plane-kind"));
    let target = tempfile::tempdir().unwrap();
    let archive = target.path().join("sample.tgz");
    pack(folder, &Limits::default()).unwrap().write(&archive, Format::Tgz).unwrap();
    let mut locks = Vec::new();
    for path in [folder, &archive] {
        let channel = resolve(&SourceRef::Path(path.to_owned()), &Selection::default(), &offline()).await.unwrap();
        assert!(channel.rgds.len() >= 4 && channel.instances.len() == 1, "{} RGDs", channel.rgds.len());
        locks.push(channel.lock.components);
    }
    assert_eq!(locks[0], locks[1]);
}

/// The file of the image's manifest.
fn manifest_in(folder: &Path) -> String {
    let index: Value = serde_json::from_slice(&std::fs::read(folder.join("image/index.json")).unwrap()).unwrap();
    format!("image/blobs/{}", index["manifests"][0]["digest"].as_str().unwrap().replace(':', "/"))
}

/// A pipe may give nothing for as long as it likes: it is refused by its name, wherever it stands.
#[test]
fn pipes_and_devices_are_not_read() {
    let all = ["channel.yaml", "rgds/platform.yaml", "rgds/beside.yaml", "image/index.json", "a manifest", "archive.tar"];
    for name in all {
        let folder = folder(&[]);
        let name = if name == "a manifest" { manifest_in(folder.path()) } else { name.to_owned() };
        let path = folder.path().join(&name);
        let _ = std::fs::remove_file(&path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let source = if name.starts_with("archive") { path } else { folder.path().to_owned() };
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let limits = Limits::default();
            let opened =
                if source.is_dir() { pack(&source, &limits) } else { Contents::open(&source, &limits).map_err(Into::into) };
            sender.send(opened.map(drop).unwrap_err().to_string()).unwrap();
        });
        let said = receiver.recv_timeout(std::time::Duration::from_mins(1)).unwrap_or_else(|_| panic!("{name} is waited for"));
        let is_refused = said.contains("no regular file") || said.contains("links and special files are not packed");
        assert!(is_refused && said.contains(&name), "{name}: {said}");
    }
    let said = Contents::open(Path::new("/dev/zero"), &Limits::default()).unwrap_err().to_string();
    assert!(said.contains("/dev/zero") && said.contains("no regular file"), "{said}");
}
