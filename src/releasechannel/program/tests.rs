use std::io::Read;

use super::*;
use crate::bundle::{self, Bundle};
use crate::options::{Limits, Options};
use crate::registry::{Registries, push};
use crate::repository::Pointer;
use crate::resolve::inspect;
use crate::selection::Selection;
use crate::source::{RepositoryRef, SourceRef};
use crate::testing::{RealRegistry, offline};

/// An ELF file of this machine with one program header.
pub(crate) fn elf(machine: u16, header: u32) -> Vec<u8> {
    let mut bytes = vec![0; 64 + 56];
    bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
    bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
    bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
    bytes[56..58].copy_from_slice(&1_u16.to_le_bytes());
    bytes[64..68].copy_from_slice(&header.to_le_bytes());
    bytes.resize(100_000, 7);
    bytes
}

fn file(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plinth");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

#[test]
fn refuses_what_cannot_run_alone() {
    for (bytes, expected) in [
        (elf(0x3e, 3), "not a static build"),
        (elf(0x28, 1), "architecture"),
        (b"#!/bin/sh\n".to_vec(), "not an executable"),
        (vec![0x7f, b'E', b'L', b'F'], "not an executable"),
        (Vec::new(), "not an executable"),
    ] {
        let (_folder, path) = file(&bytes);
        let error = pack(&path, "plinth.dev/plinth:v1", &Keep::Memory, &mut Contents::default()).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let (_folder, path) = file(&elf(0x3e, 1));
    for name in ["", "plinth", "Plinth:1", "a b:1"] {
        assert!(pack(&path, name, &Keep::Memory, &mut Contents::default()).is_err(), "{name}");
    }
    // A table of headers that lies outside of the file.
    let mut cut = elf(0x3e, 1);
    cut[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
    let (_folder, path) = file(&cut);
    assert!(pack(&path, "plinth:v1", &Keep::Memory, &mut Contents::default()).is_err());
}

#[test]
fn the_same_executable_gives_the_same_image_in_memory_and_in_a_folder() {
    let (folder, path) = file(&elf(0xb7, 1));
    let mut digests = Vec::new();
    for keep in [Keep::Memory, Keep::Folder(folder.path())] {
        let mut contents = Contents::default();
        digests.push((
            pack(&path, "plinth:v1", &keep, &mut contents).unwrap().digest,
            contents.blobs.into_keys().collect::<Vec<_>>(),
        ));
    }
    assert_eq!(digests[0], digests[1]);
}

/// Path, mode and content of the files in a layer, which have neither time nor owner.
fn files_of(layer: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in tar::Archive::new(layer).entries().unwrap() {
        let mut entry = entry.unwrap();
        let header = entry.header();
        let dated = (header.mtime().unwrap(), header.uid().unwrap(), header.gid().unwrap());
        assert_eq!(dated, (0, 0, 0));
        let (is_file, mode) = (header.entry_type().is_file(), header.mode().unwrap());
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        if is_file {
            files.push((entry.path().unwrap().display().to_string(), mode, content));
        }
    }
    files
}

/// A pod that pulls from a registry on the internet needs authorities, and every one of them can be read.
#[test]
fn an_image_brings_the_authorities_of_the_build() {
    let pem = layer::authorities();
    let blocks: Vec<&str> = pem.split("-----END CERTIFICATE-----\n").filter(|block| !block.is_empty()).collect();
    assert_eq!(blocks.len(), webpki_root_certs::TLS_SERVER_ROOT_CERTS.len());
    for (block, original) in blocks.iter().zip(webpki_root_certs::TLS_SERVER_ROOT_CERTS) {
        let body: String = block.lines().skip(1).collect();
        let read = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, body).unwrap();
        assert_eq!(read, original.as_ref());
    }
}

/// A folder with a build for each architecture is one image for all of them, whatever the files are called.
#[test]
fn a_folder_of_builds_is_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let packed = |names: [&str; 2]| {
        let path = folder.path().join(names.concat()).join("plinth");
        std::fs::create_dir_all(&path).unwrap();
        for (name, machine) in names.iter().zip([0x3e, 0xb7]) {
            std::fs::write(path.join(name), elf(machine, 1)).unwrap();
        }
        check(&path).unwrap();
        let mut contents = Contents::default();
        let packed = pack(&path, "plinth.dev/plinth:v1", &Keep::Memory, &mut contents).unwrap();
        let index: Value = serde_json::from_slice(&contents.blobs[&packed.digest].read(1 << 20, "index").unwrap()).unwrap();
        (packed, index)
    };
    let (packed_one, index) = packed(["amd64", "arm64"]);
    assert_eq!((packed_one.media_type.as_str(), packed_one.manifests.len()), (INDEX, 3));
    let platforms: Vec<&Value> = index["manifests"].as_array().unwrap().iter().map(|member| &member["platform"]).collect();
    let expected = [json!({"architecture": "amd64", "os": "linux"}), json!({"architecture": "arm64", "os": "linux"})];
    assert_eq!(platforms, expected.iter().collect::<Vec<_>>());
    assert_eq!(packed(["z", "a"]).0.digest, packed_one.digest, "the order of the files' names does not count");
    let twice = folder.path().join("twice");
    std::fs::create_dir(&twice).unwrap();
    for name in ["a", "b"] {
        std::fs::write(twice.join(name), elf(0x3e, 1)).unwrap();
    }
    let error = pack(&twice, "p:v1", &Keep::Memory, &mut Contents::default()).map(drop).unwrap_err().to_string();
    assert!(error.contains("two builds for amd64"), "{error}");
}

/// What `channel pack distributions/plinth` makes and what a bundle gets of the running executable are the same component.
#[test]
fn a_folder_and_the_executable_give_the_same_component() {
    let (folder, path) = file(&elf(0x3e, 1));
    let constructor = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../distributions/plinth/channel.yaml");
    std::fs::copy(constructor, folder.path().join("channel.yaml")).unwrap();
    let files = [("Chart.yaml", "name: plinth"), ("crds/a.yaml", "kind: A"), ("crds/b.yaml", "kind: B"), ("values.yaml", "a: 1")];
    for (name, text) in files {
        let path = folder.path().join("charts/plinth").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let packed = crate::constructor::pack(folder.path(), &Limits::default()).unwrap();
    let chart = Chart(files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect());
    let mut carried = Contents::default();
    let added = component(&path, "v0.1.0", &chart, &Keep::Memory, &mut carried).unwrap();
    assert_eq!(added.resources.iter().map(|(name, ..)| *name).collect::<Vec<_>>(), [RESOURCE, "chart", "crds"]);
    carried.artifacts.sort();
    assert_eq!(carried.artifacts, packed.artifacts);
    assert!(carried.blobs.keys().eq(packed.blobs.keys()));
}

/// Bundle → registry → pulled by digest and by name: one layer with the executable and its authorities, and nothing else.
#[tokio::test]
async fn show_04_program() {
    let registry = RealRegistry::start().await;
    let program = elf(0x3e, 1);
    let (folder, path) = file(&program);
    let mut bundle = Bundle::empty();
    bundle::add_program(&mut bundle, &path, "v0.1.0", &folder.path().join("blobs")).unwrap();
    bundle::add_program(&mut bundle, &path, "v0.1.0", &folder.path().join("blobs")).unwrap();
    assert_eq!((bundle.resources, bundle.remarks.len()), (1, 1), "{:?}", bundle.remarks);
    let options = Options { plain_http: [registry.host.clone()].into(), ..offline() };
    let registries = Registries::new(&options).unwrap();
    let target = RepositoryRef::parse(&format!("{}/site", registry.host)).unwrap();
    push(&bundle.contents, &target, &registries).await.unwrap();

    let source = SourceRef::parse(&format!("{}/site//{COMPONENT}:v0.1.0", registry.host)).unwrap();
    let channel = inspect(&source, &Selection::default(), &options).await.unwrap();
    let map = channel.localization(&target).await.unwrap();
    let image = map.of_resource(&channel.root, RESOURCE, &std::collections::BTreeMap::new()).unwrap();
    let store = registries.of_host(&registry.host, true).unwrap();
    let image = ImageReference::parse(image).unwrap();
    assert_eq!((image.repository.as_str(), image.tag.as_deref()), ("site/plinth.dev/plinth", Some("v0.1.0")));
    let by_digest = store.manifest(&image.repository, &Pointer::Digest(image.digest.clone().unwrap())).await.unwrap();
    let by_tag = store.manifest(&image.repository, &Pointer::Tag("v0.1.0".into())).await.unwrap();
    assert_eq!(by_digest.bytes, by_tag.bytes);
    let layer = by_digest.entries("layers")[0]["digest"].as_str().unwrap().parse().unwrap();
    let packed = store.blob(&image.repository, &layer).await.unwrap().read(1 << 20).await.unwrap();
    let plain = crate::ctf::archive::gunzip_bytes(&packed, "layer", Limits::default().document_bytes).unwrap();
    let files = files_of(&plain);
    let names: Vec<(&str, u32)> = files.iter().map(|(name, mode, _)| (name.as_str(), *mode)).collect();
    assert_eq!(names, [("etc/ssl/certs/ca-certificates.crt", 0o644), ("plinth", 0o755)]);
    assert!(files[1].2 == program);
    let config = by_digest.document["config"]["digest"].as_str().unwrap().parse().unwrap();
    let config = store.blob(&image.repository, &config).await.unwrap().read(1 << 20).await.unwrap();
    let config: Value = serde_json::from_slice(&config).unwrap();
    assert_eq!((config["architecture"].as_str(), config["config"]["Entrypoint"][0].as_str()), (Some("amd64"), Some("/plinth")));
    assert_eq!(config["rootfs"]["diff_ids"][0], Digest::of(&plain).as_str());
    eprintln!(
        "SHOW 04 program {} bytes in one layer beside {} authorities, pulled by digest and by name",
        program.len(),
        webpki_root_certs::TLS_SERVER_ROOT_CERTS.len()
    );
}

/// What does not run alone stays outside, with the reason.
#[test]
fn a_bundle_without_a_static_build_says_why() {
    let (folder, path) = file(&elf(0x3e, 3));
    let mut bundle = Bundle::empty();
    let error = bundle::add_program(&mut bundle, &path, "v0.1.0", folder.path()).unwrap_err();
    assert!(bundle.contents.artifacts.is_empty() && error.to_string().contains("not a static build"), "{error}");
}
