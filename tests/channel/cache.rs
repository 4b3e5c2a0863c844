//! The cache on disk, with two processes at once.

use std::process::Stdio;

use plinth_support::Registry;
use tempfile::TempDir;

use crate::{CHANNEL, archive, bundled, command, finished, plinth};

/// Blobs below the folder, and their bytes.
fn cached(folder: &std::path::Path) -> Vec<(std::path::PathBuf, u64)> {
    let below = |path: &std::path::Path| {
        let entries = std::fs::read_dir(path).map(|entries| entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>());
        entries.unwrap_or_default()
    };
    let folders = below(&folder.join("content"));
    folders
        .iter()
        .filter(|path| path.is_dir())
        .flat_map(|path| below(path))
        .map(|path| {
            let size = path.metadata().unwrap().len();
            (path, size)
        })
        .collect()
}

#[test]
fn two_processes_share_it_and_what_is_damaged_is_said() {
    let (registry, folder) = (Registry::start().unwrap(), TempDir::new().unwrap());
    let host = registry.host();
    let file = folder.path().join("bundle.tgz").display().to_string();
    bundled(&[&archive("ctf/v2-byval", CHANNEL), "-f", &file]).with_code(0);
    plinth(&["bundle", "push", &file, &host, "--plain-http", &host]).with_code(0);
    let source = format!("{host}//{CHANNEL}");
    let lock = || {
        let mut command = command(folder.path(), &["channel", "lock", &source, "--plain-http", &host]);
        command.env("PLINTH_CACHE", folder.path().join("cache"));
        command
    };
    let started: Vec<_> = (0..4).map(|_| lock().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()).collect();
    let outputs: Vec<_> = started.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    assert!(outputs.iter().all(|output| output.status.success() && output.stdout == outputs[0].stdout), "{outputs:?}");
    let entries = cached(&folder.path().join("cache"));
    assert!(entries.len() > 10, "{entries:?}");

    std::fs::write(&entries[0].0, "damaged").unwrap();
    let mended = finished(lock()).with_code(0);
    assert!(mended.stderr.contains("was damaged") && mended.stderr.contains("fetched again"), "{}", mended.stderr);
    assert_eq!(mended.stdout, outputs[0].stdout);
    assert!(!finished(lock()).with_code(0).stderr.contains("damaged"));

    // What the cache has says nothing of what a mirror has.
    let lock_file = folder.path().join("lock.json").display().to_string();
    std::fs::write(&lock_file, &mended.stdout).unwrap();
    let second = Registry::start().unwrap();
    let other = second.host();
    let mut elsewhere = command(folder.path(), &["bundle", "verify", &other, "--lock", &lock_file, "--plain-http", &other]);
    elsewhere.env("PLINTH_CACHE", folder.path().join("cache"));
    assert!(finished(elsewhere).with_code(4).text().lines().count() >= 6);

    // Bounded, and left alone when asked to.
    let mut small = lock();
    let bytes: u64 = entries.iter().map(|(_, size)| size).sum();
    small.env("PLINTH_CACHE", folder.path().join("small")).env("PLINTH_CACHE_BYTES", (bytes / 2).to_string());
    finished(small).with_code(0);
    let kept: u64 = cached(&folder.path().join("small")).iter().map(|(_, size)| size).sum();
    assert!(kept <= bytes / 2, "{kept} of {bytes}");
    let mut none = command(folder.path(), &["channel", "lock", &source, "--plain-http", &host, "--no-cache"]);
    none.env("PLINTH_CACHE", folder.path().join("none"));
    finished(none).with_code(0);
    assert!(!folder.path().join("none").exists());
}
