//! What `bundle push` does not do: publish what nobody vouches for, move tags unasked, believe that what is there is whole.

use serde_json::{Value, json};

use crate::bundle::Site;
use crate::{CHANNEL, archive, bundled, plinth};

/// A change of an archive's index.
type Change = fn(&mut Vec<Value>);

/// Writes the index of a folder anew.
fn edit(folder: &str, change: impl FnOnce(&mut Vec<Value>)) {
    let path = format!("{folder}/artifact-index.json");
    let mut index: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(index["artifacts"].as_array_mut().unwrap());
    std::fs::write(&path, index.to_string()).unwrap();
}

fn digest_of(entries: &[Value], repository: &str, tag: &str) -> Value {
    entries.iter().find(|entry| entry["repository"] == repository && entry["tag"] == tag).unwrap()["digest"].clone()
}

/// Requests that write.
fn written(site: &Site) -> usize {
    let is_write = |line: &&String| !line.starts_with("GET") && !line.starts_with("HEAD");
    site.registry.asked().unwrap().iter().filter(is_write).count()
}

#[test]
fn an_edited_index_is_refused_by_name_before_anything_is_sent() {
    let site = Site::new();
    let (host, folder) = (site.registry.host(), site.path("bundle"));
    bundled(&[&archive("ctf/v2-byval", CHANNEL), "-f", &folder]).with_code(0);
    let whole = std::fs::read(format!("{folder}/artifact-index.json")).unwrap();
    let changes: [(Change, &str); 4] = [
        (
            |entries| {
                let digest = digest_of(entries, "upstream/gateway", "1.2.0");
                entries.push(json!({"repository": "library/alpine", "tag": "3.20", "digest": digest}));
            },
            "library/alpine:3.20: no resource in the archive is called so",
        ),
        (
            |entries| {
                let digest = digest_of(entries, "upstream/gateway", "1.2.0");
                let swapped =
                    entries.iter_mut().find(|entry| entry["repository"] == "upstream/gateway" && entry["tag"] == "1.3.0");
                swapped.unwrap()["digest"] = digest;
            },
            "upstream/gateway:1.3.0: the index leads to sha256:",
        ),
        (
            |entries| {
                let digest = digest_of(entries, "upstream/gateway", "1.2.0");
                let own = entries.iter_mut().find(|entry| entry["repository"] == "plinth.dev/plinth" && entry["tag"].is_string());
                own.unwrap()["digest"] = digest;
            },
            "plinth.dev/plinth:v",
        ),
        (
            |entries| entries.retain(|entry| entry["repository"] != "component-descriptors/acme.example/services/notifier"),
            "component-descriptors/acme.example/services/notifier:3.1.0: the archive's lock names it, and it is not in the index",
        ),
    ];
    for (change, words) in changes {
        std::fs::write(format!("{folder}/artifact-index.json"), &whole).unwrap();
        edit(&folder, change);
        let refused = plinth(&["bundle", "push", &folder, &host, "--plain-http", &host]).with_code(4).stderr;
        assert!(refused.contains(words) && refused.contains("hint: somebody has changed the archive"), "{words}: {refused}");
    }
    assert_eq!(written(&site), 0, "{:?}", site.registry.asked());
    eprintln!("SHOW 04 edited-index {0}/{0} refused by name, 0 requests that write", changes.len());
}

/// Who pulls by tag must not get other content because somebody pushed another archive.
#[test]
fn tags_that_lead_elsewhere_are_moved_only_when_asked() {
    let site = Site::new();
    let host = site.registry.host();
    let (first, second) = (site.path("first.tar"), site.path("second.tar"));
    let source = archive("ctf/v1-byval", CHANNEL);
    bundled(&[&archive("ctf/v2-byval", CHANNEL), "-f", &first]).with_code(0);
    bundled(&[&source, "-f", &second]).with_code(0);
    let push = |file: &str, more: &[&str]| plinth(&[&["bundle", "push", file, &host, "--plain-http", &host], more].concat());
    push(&first, &[]).with_code(0);
    let before = written(&site);
    let refused = push(&second, &[]).with_code(4).stderr;
    let tag = "component-descriptors/acme.example/services/notifier:3.1.0 is sha256:";
    assert!(refused.contains(tag) && refused.contains(" in the archive") && refused.contains("--move-tags"), "{refused}");
    assert_eq!(written(&site), before);
    let moved = push(&second, &["--move-tags"]).with_code(0).stderr;
    let line = moved.lines().find(|line| line.contains("services/notifier:3.1.0")).unwrap_or_default();
    assert!(line.starts_with("moved ") && line.contains(" was sha256:") && line.ends_with(" now"), "{moved}");
    plinth(&["bundle", "verify", &host, "--lock", &site.lock(&source), "--plain-http", &host]).with_code(0);
    assert!(!push(&second, &[]).with_code(0).stderr.contains("moved "));
}

/// A registry that keeps its damaged bytes whatever it is sent, as docker's does: the blob is named, and so is the next step.
#[test]
fn damage_in_a_mirror_is_named_and_mended() {
    let site = Site::new();
    let (host, folder, source) = (site.registry.host(), site.path("bundle"), archive("ctf/v2-byval", CHANNEL));
    bundled(&[&source, "-f", &folder]).with_code(0);
    let lock = site.lock(&source);
    let push = |more: &[&str]| plinth(&[&["bundle", "push", &folder, &host, "--plain-http", &host], more].concat());
    push(&[]).with_code(0);
    let index: Value = serde_json::from_slice(&std::fs::read(format!("{folder}/artifact-index.json")).unwrap()).unwrap();
    let image = digest_of(index["artifacts"].as_array().unwrap(), "upstream/ledger", "0.5.0");
    let read = |digest: &str| std::fs::read(format!("{folder}/blobs/{}", digest.replace(':', "."))).unwrap();
    let manifest: Value = serde_json::from_slice(&read(image.as_str().unwrap())).unwrap();
    let layer = manifest["layers"][0]["digest"].as_str().unwrap();
    let stored = site.registry.stored(layer);
    let mut bytes = std::fs::read(&stored).unwrap();
    bytes[0] ^= 1;
    std::fs::write(&stored, bytes).unwrap();

    let verify = || plinth(&["bundle", "verify", &host, "--lock", &lock, "--plain-http", &host]);
    let found = verify().with_code(4).text();
    assert!(found.lines().all(|line| line.contains(layer) && line.contains("tampered with or damaged")), "{found}");
    assert!(found.contains("resource image of acme.example/services/ledger:0.5.0"), "{found}");
    assert!(push(&[]).with_code(0).stderr.contains(" 0 blobs sent"));
    let kept = push(&["--mend"]).with_code(4).stderr;
    assert!(kept.contains(layer) && kept.contains("remove them where it stores them"), "{kept}");
    std::fs::remove_file(stored).unwrap();
    push(&["--mend"]).with_code(0);
    verify().with_code(0);
}

/// A key that is given must prove what is published; where none is, nothing is proven, and that is said.
#[test]
fn with_a_key_only_what_it_proves_is_pushed() {
    let site = Site::new();
    let host = site.registry.host();
    let folder = crate::corpus().join("signed/v3-pkcs1-sha256").display().to_string();
    let key = |name: &str| format!("acme-sig={}", crate::corpus().join("keys").join(name).display());
    let push = |more: &[&str]| plinth(&[&["bundle", "push", &folder, &host, "--plain-http", &host], more].concat());
    let refused = push(&["--key", &key("other.pub")]).with_code(4).stderr;
    assert!(
        refused.contains("is not proven by its signatures, and nothing was sent") && refused.contains("the signature acme-sig"),
        "{refused}"
    );
    assert_eq!(written(&site), 0, "{:?}", site.registry.asked());
    let said = push(&[]).with_code(0).stderr;
    assert!(said.contains("note: nothing proves who made this archive: --key"), "{said}");
}
