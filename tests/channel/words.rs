//! What plinth says of input that it cannot use: in words, with the right hint, and never with lines of a file that is none of its own.

use tempfile::TempDir;

use crate::{CHANNEL, archive, corpus, plinth};

fn file(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name).display().to_string();
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_file_that_is_no_channel_is_not_quoted() {
    let folder = TempDir::new().unwrap();
    let text = "<p>password: hunter2</p>\n".repeat(100);
    for name in ["page.html", "page", "page.tar", "page.json"] {
        let path = file(&folder, name, &text);
        let refused = plinth(&["channel", "ls", &path]).with_code(4);
        assert!(refused.stderr.contains(&path) && !refused.stderr.contains("hunter2"), "{}", refused.stderr);
    }
    let page = file(&folder, "page.html", &text);
    let diff = plinth(&["channel", "diff", &page, &archive("ctf/v1", CHANNEL)]).with_code(4);
    assert!(diff.stderr.contains("no tar archive") && diff.stderr.contains("or a lock that plinth channel lock has saved"));
    assert!(!diff.stderr.contains("hunter2"), "{}", diff.stderr);
}

/// A lock is looked at before anything is believed for its sake.
#[test]
fn a_lock_that_is_none_is_refused_with_words() {
    let folder = TempDir::new().unwrap();
    let place = corpus().join("ctf/v2-byval").display().to_string();
    let of = |lock: &str| plinth(&["bundle", "verify", &place, "--lock", lock]).with_code(4).stderr;
    assert!(of("nowhere.json").contains("--lock: read nowhere.json: No such file"));
    assert!(of(&file(&folder, "page.html", "<p>x</p>")).contains("that is no release lock"));
    let path = folder.path().join("lock.json").display().to_string();
    plinth(&["channel", "lock", &archive("ctf/v2-byval", CHANNEL), "-f", &path]).with_code(0);
    let mut lock: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    lock["components"] = serde_json::json!([]);
    let empty = file(&folder, "empty.json", &lock.to_string());
    assert!(of(&empty).contains("does not hold together: it has no components"));
    let create = plinth(&["bundle", "create", &empty, "-f", &folder.path().join("x.tar").display().to_string()]).with_code(4);
    assert!(create.stderr.contains("it has no components"), "{}", create.stderr);
}

#[test]
fn another_spelling_of_a_version_and_a_bad_range_are_said() {
    let spelled = plinth(&["channel", "ls", &archive("ctf/v1", "acme.example/services/gateway:v1.2.0")]).with_code(4).stderr;
    assert!(spelled.contains("no version of acme.example/services/gateway satisfies `v1.2.0`; there are: 1.2.0"), "{spelled}");
    assert!(spelled.contains("v1.2.0 is not 1.2.0"), "{spelled}");
    let range = plinth(&["channel", "ls", &archive("ctf/v1", CHANNEL), "--artifacts", "--version", "!!"]).with_code(4);
    assert!(range.stderr.contains("--version: `!!` is not a version constraint") && range.stdout.is_empty(), "{}", range.stderr);
    let host = plinth(&["channel", "ls", &archive("ctf/v1", CHANNEL), "--plain-http", "a/b"]).with_code(64);
    assert!(host.stderr.contains("'a/b' is no host"), "{}", host.stderr);
}

#[test]
fn artifacts_that_only_their_identity_tells_apart_have_rows_of_their_own() {
    let listed = plinth(&["channel", "ls", &archive("ctf/v1", CHANNEL), "--artifacts"]).with_code(0).text();
    let rows: Vec<&str> = listed.lines().filter(|line| line.starts_with("gateway-cli")).map(|line| &line[..40]).collect();
    assert!(rows.len() == 2 && rows[0] != rows[1] && rows[0].contains("architecture=amd64,os=linux"), "{listed}");
}

#[test]
fn an_archive_is_written_where_nothing_else_is() {
    let folder = TempDir::new().unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/distributions/open-control-plane-kind");
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir(at("full")).unwrap();
    std::fs::write(at("full/notes.txt"), "mine").unwrap();
    let full = plinth(&["channel", "pack", sample, "-f", &at("full")]).with_code(4);
    assert!(full.stderr.contains("the folder holds notes.txt, and no channel"), "{}", full.stderr);
    assert_eq!(std::fs::read_dir(at("full")).unwrap().count(), 1);
    let strange = plinth(&["channel", "pack", sample, "-f", &at("a\nb")]).with_code(4);
    assert!(strange.stderr.contains("control characters") && strange.stderr.contains("a\\nb"), "{}", strange.stderr);
    for _ in 0..2 {
        plinth(&["channel", "pack", sample, "-f", &at("new")]).with_code(0);
    }
}
