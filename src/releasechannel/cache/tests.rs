use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::ctf::Contents;
use crate::options::Options;
use crate::resolve::resolve;
use crate::selection::Selection;
use crate::source::SourceRef;
use crate::testing::{Stub, data, offline, serving};

const CHANNEL: &str = "acme.example/releasechannel/stable:2026.11.0";

fn cache(folder: &Path, bytes: u64) -> ContentCache {
    let (cache, remarks) = ContentCache::open(Some(&CacheFolder { folder: folder.to_owned(), bytes }));
    assert_eq!(remarks, Vec::<String>::new());
    cache.unwrap()
}

fn put(cache: &ContentCache, bytes: &[u8]) -> Digest {
    let digest = Digest::of(bytes);
    let mut writer = cache.begin(&digest, Some(bytes.len() as u64)).unwrap();
    writer.write(bytes).unwrap();
    cache.wrote(writer.commit().unwrap());
    digest
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    below(folder.to_owned()).into_iter().filter(|path| path.is_dir()).flat_map(below).collect()
}

#[test]
fn a_damaged_entry_is_dropped_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache(folder.path(), 1 << 20);
    let digest = put(&cache, b"content");
    assert_eq!(cache.find(&digest).unwrap().1, 7);
    std::fs::write(cache.path(&digest), b"cOntent").unwrap();
    assert!(cache.find(&digest).is_none());
    assert!(!cache.path(&digest).exists());
    let remarks = cache.remarks();
    assert!(remarks.len() == 1 && remarks[0].contains(digest.as_str()) && remarks[0].contains("damaged"), "{remarks:?}");
}

#[test]
fn what_was_used_longest_ago_goes_first_and_large_entries_are_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache(folder.path(), 100_000);
    let entry = |n: u8| vec![n; 10_000];
    let digests: Vec<Digest> = (0..9).map(|n| put(&cache, &entry(n))).collect();
    for (age, digest) in digests.iter().enumerate() {
        let file = File::options().write(true).open(cache.path(digest)).unwrap();
        let then = jiff::Timestamp::now() - Duration::from_secs(1000 - age as u64);
        file.set_modified(then.into()).unwrap();
    }
    cache.find(&digests[0]).unwrap();
    for n in 9..12 {
        put(&cache, &entry(n));
    }
    assert!(cache.find(&digests[0]).is_some(), "it was used just now");
    assert!(cache.find(&digests[1]).is_none() && cache.find(&digests[2]).is_none());
    let total: u64 = files(folder.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!(total <= 100_000, "{total}");
    assert!(cache.begin(&digests[0], Some(20_000)).is_none());
    let mut lies = cache.begin(&Digest::of(b"x"), None).unwrap();
    assert!(lies.write(&vec![0; 20_000]).is_err());
    assert_eq!(cache.remarks(), Vec::<String>::new());
}

/// Two processes are two caches over one folder: writing, reading and making room at once, nobody ever sees wrong bytes.
#[test]
fn two_at_once_never_see_halves() {
    let folder = tempfile::tempdir().unwrap();
    let contents: Vec<Vec<u8>> = (0..40_u8).map(|n| vec![n; 3000 + usize::from(n)]).collect();
    std::thread::scope(|scope| {
        for turn in 0..4 {
            let (folder, contents) = (folder.path(), &contents);
            scope.spawn(move || {
                let cache = cache(folder, 60_000);
                for round in 0..200 {
                    let bytes = &contents[(round * 7 + turn * 11) % contents.len()];
                    if let Some((_, size)) = cache.find(&Digest::of(bytes)) {
                        assert_eq!(size, bytes.len() as u64);
                    } else {
                        put(&cache, bytes);
                    }
                }
                assert_eq!(cache.remarks(), Vec::<String>::new());
            });
        }
    });
}

#[test]
fn a_folder_that_cannot_be_written_is_a_remark() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (cache, remarks) = ContentCache::open(Some(&CacheFolder { folder: file.path().join("x"), bytes: 1 }));
    assert!(cache.is_some(), "the run keeps its own");
    assert!(remarks[0].contains("cannot be used"), "{remarks:?}");
}

fn with_cache(stub: &Stub, folder: &Path) -> Options {
    let mut options = Options { cache: Some(CacheFolder { folder: folder.to_owned(), bytes: 64 << 20 }), ..offline() };
    options.plain_http.insert(stub.host.clone());
    options
}

/// The second run asks for tags alone, the third mends what was damaged, and all three see the same channel.
#[tokio::test]
async fn show_04_cache() {
    let stub = Stub::start(serving(Contents::open(&data().join("ocm/ctf/v1"), &offline().limits).unwrap())).await;
    let folder = tempfile::tempdir().unwrap();
    let options = with_cache(&stub, folder.path());
    let source = SourceRef::parse(&format!("{}//{CHANNEL}", stub.host)).unwrap();
    let run = async || {
        let before = stub.seen().len();
        let channel = resolve(&source, &Selection::default(), &options).await.unwrap();
        channel.verify_resources().await.unwrap();
        (channel.lock, channel.remarks, stub.seen().len() - before)
    };
    let (first, _, cold) = run().await;
    let mut paths: Vec<String> = stub.seen().into_iter().map(|seen| seen.path).collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), cold, "something was fetched twice within a run");
    let (second, _, warm) = run().await;
    assert_eq!((warm, &second), (first.components.len(), &first));
    for file in files(folder.path()) {
        std::fs::write(file, "damaged").unwrap();
    }
    let (third, remarks, mended) = run().await;
    assert_eq!(third, first);
    assert!(remarks.iter().any(|remark| remark.contains("damaged")), "{remarks:?}");
    assert_eq!(mended, cold);
    eprintln!("SHOW 04 cache {cold} requests cold, {warm} warm, {mended} with every entry damaged");
}

#[tokio::test]
async fn two_who_want_the_same_blob_fetch_it_once() {
    let content = vec![7; 100_000];
    let digest = Digest::of(&content);
    let stub = Stub::start(move |_, _| crate::testing::http("200 OK", &[], &content)).await;
    let folder = tempfile::tempdir().unwrap();
    let registries = crate::registry::Registries::new(&with_cache(&stub, folder.path())).unwrap();
    let image = crate::ImageReference::parse(&format!("{}/x", stub.host)).unwrap();
    let (store, repository) = registries.locate(&image).unwrap();
    let read = async || Arc::clone(&store).blob(&repository, &digest).await.unwrap().read(1 << 20).await.unwrap().len();
    assert_eq!(futures::join!(read(), read(), read()), (100_000, 100_000, 100_000));
    assert_eq!(stub.seen().len(), 1);
}
