use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::ctf::Format;
use crate::testing::offline;

const INDEX: &[u8] = br#"{"schemaVersion":1,"artifacts":[]}"#;

/// A tar with raw names, as a hostile writer would make it.
fn tar_of(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        tar.append(&header, Cursor::new(content)).unwrap();
    }
    tar.into_inner().unwrap()
}

fn open_bytes(bytes: &[u8], limits: &Limits) -> Result<Contents, RepositoryError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    Contents::open(file.path(), limits)
}

fn refused(bytes: &[u8], expected: &str) {
    let error = open_bytes(bytes, &Limits::default()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error} does not say {expected}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const FILE: tar::EntryType = tar::EntryType::Regular;

#[test]
fn names_that_lead_out_and_links_are_refused() {
    for name in ["../x", "/etc/passwd", "blobs/../../x", "./../x"] {
        refused(&tar_of(&[("artifact-index.json", FILE, INDEX), (name, FILE, b"x")]), "leads out");
    }
    for kind in [tar::EntryType::Symlink, tar::EntryType::Link, tar::EntryType::Char, tar::EntryType::Fifo] {
        refused(&tar_of(&[("artifact-index.json", FILE, INDEX), ("blobs/x", kind, b"")]), "link or special file");
    }
}

#[test]
fn order_prefix_and_folders_do_not_matter() {
    let name = format!("./blobs/{}", Digest::of(b"x").file_name());
    let entries: Vec<(&str, tar::EntryType, &[u8])> = vec![
        ("./", tar::EntryType::Directory, b""),
        (&name, FILE, b"x"),
        ("./README", FILE, b"y"),
        ("./artifact-index.json", FILE, INDEX),
    ];
    assert_eq!(open_bytes(&tar_of(&entries), &Limits::default()).unwrap().blobs.len(), 1);
    assert_eq!(open_bytes(&gzip(&tar_of(&entries)), &Limits::default()).unwrap().blobs.len(), 1);
}

#[test]
fn what_is_no_archive_is_refused() {
    refused(b"", "no artifact-index.json");
    refused(b"not a tar at all", "tar");
    refused(&[0x1f, 0x8b, 8, 0, 1, 2, 3], "decompressing");
    refused(&tar_of(&[("blobs/x", FILE, b"x")]), "no artifact-index.json");
    refused(&tar_of(&[("artifact-index.json", FILE, INDEX), ("artifact-index.json", FILE, INDEX)]), "twice");
    refused(&tar_of(&[("artifact-index.json", FILE, br#"{"schemaVersion":1,"artifacts":[]}"x":1}]}"#)]), "line 1");
    let whole = tar_of(&[("artifact-index.json", FILE, INDEX), ("blobs/x", FILE, &[7; 4000])]);
    refused(&whole[..1600], "");
}

#[test]
fn bombs_stop_at_their_bounds() {
    let many: Vec<String> = (0..60).map(|n| format!("f{n}")).collect();
    let entries: Vec<(&str, tar::EntryType, &[u8])> = many.iter().map(|name| (name.as_str(), FILE, &b""[..])).collect();
    let few = Limits { archive_entries: 50, ..Limits::default() };
    assert!(matches!(open_bytes(&tar_of(&entries), &few), Err(RepositoryError::Limit { unit: "entries", .. })));
    let bomb = gzip(&vec![0; 8 << 20]);
    let small = Limits { archive_bytes: 1 << 20, ..Limits::default() };
    assert!(matches!(open_bytes(&bomb, &small), Err(RepositoryError::Limit { unit: "bytes", .. })));
    let bytes = Bytes::from(bomb);
    assert!(matches!(gunzip_bytes(&bytes, "x", 1 << 20), Err(RepositoryError::Limit { .. })));
}

/// 3 GiB of zeros in 3 MB: known for a bomb after a twelfth of it, by what came out against what went in.
#[test]
fn show_04_bomb() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    // Members of gzip may follow each other, which makes a large one quickly.
    let member = gzip(&vec![0; 1 << 20]);
    for _ in 0..3 << 10 {
        file.write_all(&member).unwrap();
    }
    let started = std::time::Instant::now();
    let error = Contents::open(file.path(), &Limits::default()).unwrap_err();
    assert!(matches!(error, RepositoryError::Limit { limit: FREE_BYTES, unit: "bytes", .. }), "{error}");
    let packed = file.path().metadata().unwrap().len();
    eprintln!("SHOW 04 bomb refused after {FREE_BYTES} of {} bytes from {packed}, {:?}", 3_u64 << 30, started.elapsed());
    let hasty = Limits { archive_time: std::time::Duration::ZERO, ..Limits::default() };
    let error = Contents::open(file.path(), &hasty).unwrap_err();
    assert!(matches!(error, RepositoryError::Limit { unit: "seconds", .. }), "{error}");
}

#[test]
fn a_link_in_a_folder_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("artifact-index.json"), INDEX).unwrap();
    std::fs::create_dir(folder.path().join("blobs")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("blobs").join(Digest::of(b"x").file_name())).unwrap();
    assert!(Contents::open(folder.path(), &Limits::default()).unwrap().blobs.is_empty());
}

#[tokio::test]
async fn a_blob_that_is_not_what_it_is_called_is_neither_read_nor_written() {
    use crate::repository::ArtifactStore;
    let digest = Digest::of(b"right");
    let name = format!("blobs/{}", digest.file_name());
    let contents =
        open_bytes(&tar_of(&[("artifact-index.json", FILE, INDEX), (&name, FILE, b"wrong")]), &Limits::default()).unwrap();
    let target = tempfile::tempdir().unwrap();
    for (name, format) in [("x.tgz", Format::Tgz), ("x", Format::Folder)] {
        assert!(matches!(contents.write(&target.path().join(name), format), Err(RepositoryError::Digest { .. })));
    }
    assert!(!target.path().join("x.tgz").exists());
    assert!(!target.path().join("x/artifact-index.json").exists());
    let store = contents.into_store(offline().limits);
    let read = store.blob("x", &digest).await.unwrap().read(100).await;
    assert!(matches!(read, Err(RepositoryError::Digest { .. })));
}

/// Both tools' archives go through our writer and come out the same.
#[test]
fn archives_of_both_tools_are_written_again() {
    for name in ["v1-byval", "v2-byval"] {
        let contents = Contents::open(&crate::testing::data().join("ocm/ctf").join(name), &Limits::default()).unwrap();
        let target = tempfile::tempdir().unwrap();
        let path = target.path().join("again.tgz");
        contents.write(&path, Format::of(&path).unwrap()).unwrap();
        let again = Contents::open(&path, &Limits::default()).unwrap();
        let mut expected = contents.artifacts.clone();
        expected.sort();
        assert_eq!(again.artifacts, expected);
        assert!(again.blobs.keys().eq(contents.blobs.keys()));
    }
}

/// Digests of SHA-512 make names that are too long for a plain tar header; empty blobs and many entries are nothing special.
#[tokio::test]
async fn long_names_and_empty_blobs_go_through_every_form() {
    use crate::repository::ArtifactStore;

    let mut contents = Contents { place: "x".into(), ..Contents::default() };
    let empty = contents.add_blob(Vec::new());
    let like: Digest = format!("sha512:{}", "0".repeat(128)).parse().unwrap();
    let long = crate::fetch::hash_like(&like, b"long");
    contents.blobs.insert(long.clone(), Payload::Bytes(Bytes::from_static(b"long")));
    let folder = tempfile::tempdir().unwrap();
    for (name, format) in [("x", Format::Folder), ("x.tar", Format::Tar), ("x.tgz", Format::Tgz)] {
        let path = folder.path().join(name);
        contents.write(&path, format).unwrap();
        let store = Contents::open(&path, &Limits::default()).unwrap().into_store(Limits::default());
        for (digest, expected) in [(&empty, &b""[..]), (&long, b"long")] {
            assert_eq!(&store.blob("a", digest).await.unwrap().read(10).await.unwrap()[..], expected, "{name}");
        }
    }
}

proptest! {
    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..2000), flip in 0_usize..3000, to in any::<u8>()) {
        let _ = open_bytes(&bytes, &Limits::default());
        let mut near = tar_of(&[("artifact-index.json", FILE, INDEX), ("blobs/x", FILE, b"x")]);
        let at = flip % near.len();
        near[at] = to;
        let _ = open_bytes(&near, &Limits::default());
    }
}
