//! `bundle create`, `ls`, `push` and `verify`, from archives of both tools to a real registry.

use std::process::Command;

use plinth_support::{Ctf, Registry};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{CHANNEL, archive, bundled, plinth, static_program};

pub(crate) struct Site {
    folder: TempDir,
    pub(crate) registry: Registry,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), registry: Registry::start().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The lock of the source in a file.
    pub(crate) fn lock(&self, source: &str) -> String {
        let path = self.path("lock.json");
        plinth(&["channel", "lock", source, "-f", &path]).with_code(0);
        path
    }
}

#[test]
fn show_04_bundle_verbs() {
    let site = Site::new();
    let host = site.registry.host();
    for name in ["v1-byval", "v2-byval"] {
        let source = archive(&format!("ctf/{name}"), CHANNEL);
        let (file, lock) = (site.path(&format!("{name}.tgz")), site.lock(&source));
        let created = bundled(&[&source, "-f", &file]).with_code(0);
        assert!(created.text().contains("RESOURCE") && created.text().contains("gateway"), "{}", created.text());
        assert!(!std::path::Path::new(&format!("{file}.parts")).exists(), "what was fetched is left over");

        let listed = plinth(&["bundle", "ls", &file, "-o", "json"]).with_code(0).json();
        assert!(listed["items"].as_array().unwrap().len() > 15 && listed["bytes"].as_u64().unwrap() > 5000, "{listed}");
        plinth(&["bundle", "verify", &file, "--lock", &lock]).with_code(0);

        // The same lock gives the same bytes, from the lock too.
        for (source, again) in [(&source, "again.tgz"), (&lock, "from-lock.tgz")] {
            bundled(&[source, "-f", &site.path(again)]).with_code(0);
            let same = std::fs::read(&file).unwrap() == std::fs::read(site.path(again)).unwrap();
            assert!(same, "{name}: {again} has other bytes");
        }

        let target = format!("{host}/{name}");
        plinth(&["bundle", "verify", &target, "--lock", &lock, "--plain-http", &host]).with_code(4);
        plinth(&["bundle", "push", &file, &target, "--plain-http", &host]).with_code(0);
        plinth(&["bundle", "verify", &target, "--lock", &lock, "--plain-http", &host]).with_code(0);
        let second = plinth(&["bundle", "push", &file, &target, "--plain-http", &host]).with_code(0);
        assert!(second.stderr.contains("0 manifests put and ") && second.stderr.contains(" 0 blobs sent"), "{}", second.stderr);
        assert!(second.stderr.contains(" 0 tags set and "), "{}", second.stderr);
        eprintln!(
            "SHOW 04 bundle-verbs {name}: created, listed, pushed, complete in archive and mirror, the same bytes three times"
        );
    }
}

#[test]
fn what_is_missing_is_named_exactly() {
    let site = Site::new();
    let source = archive("ctf/v2-byval", CHANNEL);
    let (folder, lock) = (site.path("bundle"), site.lock(&source));
    bundled(&[&source, "-f", &folder]).with_code(0);
    let ctf = Ctf::open(folder.as_ref());
    let index: Value = serde_json::from_slice(&std::fs::read(format!("{folder}/artifact-index.json")).unwrap()).unwrap();
    let image = index["artifacts"].as_array().unwrap().iter().find(|entry| entry["repository"] == "upstream/gateway").unwrap();
    let manifest = image["digest"].as_str().unwrap().replace(':', ".");
    let document: Value = serde_json::from_slice(&std::fs::read(ctf.folder().join("blobs").join(manifest)).unwrap()).unwrap();
    let layer = document["layers"][0]["digest"].as_str().unwrap();
    std::fs::remove_file(ctf.folder().join("blobs").join(layer.replace(':', "."))).unwrap();
    let missing = plinth(&["bundle", "verify", &folder, "--lock", &lock, "-o", "json"]).with_code(4);
    let list = missing.json()["missing"].as_array().unwrap().clone();
    assert!(!list.is_empty() && list.iter().all(|line| line.as_str().unwrap().contains(layer)), "{list:?}");
    assert!(list[0].as_str().unwrap().contains("acme.example/services/gateway"), "{list:?}");

    // A whole component version, and what is only referred to.
    let by_reference = crate::corpus().join("ctf/v1-byref").display().to_string();
    let referred = plinth(&["bundle", "verify", &by_reference, "--lock", &lock]).with_code(4).text();
    assert!(referred.lines().any(|line| line.contains("only referred to") && line.contains("upstream/gateway")), "{referred}");
    let mut grown: Value = serde_json::from_slice(&std::fs::read(&lock).unwrap()).unwrap();
    grown["components"].as_array_mut().unwrap().push(json!({
        "name": "acme.example/services/late", "version": "9.9.9", "repository": 0, "digest": "sha256:00"}));
    std::fs::write(&lock, grown.to_string()).unwrap();
    let late = plinth(&["bundle", "verify", &folder, "--lock", &lock]).with_code(4).text();
    assert!(late.contains("missing  component acme.example/services/late:9.9.9"), "{late}");
    plinth(&["bundle", "verify", &folder, "--lock", &folder]).with_code(4);
}

/// What was made with a selection is listed and verified for what it holds, which is said; what the whole lock names is missing in it.
#[test]
fn a_selection_is_listed_and_verified_for_what_it_holds() {
    let site = Site::new();
    let (host, file) = (site.registry.host(), site.path("some.tgz"));
    let source = archive("ctf/v2-byval", CHANNEL);
    let lock = site.lock(&source);
    bundled(&[&source, "-f", &file, "--select", "acme.example/services/gateway=1.3.0"]).with_code(0);
    let target = format!("{host}/some");
    plinth(&["bundle", "push", &file, &target, "--plain-http", &host]).with_code(0);
    for (place, listed) in [(&file, file.clone()), (&target, format!("{target}//"))] {
        let at = ["--plain-http", host.as_str()];
        for verb in [&["bundle", "ls"], &["channel", "ls"], &["channel", "show"]] {
            let said = plinth(&[&verb[..], &[listed.as_str()], &at].concat()).with_code(0);
            assert!(said.stderr.contains("made with a selection; component references left out: 1"), "{}", said.stderr);
            assert!(said.text().contains("1.3.0") && !said.text().contains("gateway:1.2.0"), "{}", said.text());
        }
        let own = plinth(&[&["bundle", "verify", place][..], &at].concat()).with_code(0);
        assert!(own.stderr.contains("which nobody has signed") && own.stderr.contains("has everything of"), "{}", own.stderr);
        assert!(own.stderr.contains("1 component references are not in the lock"), "{}", own.stderr);
        let whole = plinth(&[&["bundle", "verify", place, "--lock", &lock][..], &at].concat()).with_code(4);
        assert!(whole.text().contains("missing  component acme.example/services/gateway:1.2.0"), "{}", whole.text());
        assert!(whole.stderr.contains("made with a selection, without 1 of the lock's component versions"), "{}", whole.stderr);
    }
    let foreign = plinth(&["bundle", "verify", &crate::corpus().join("ctf/v2-byval").display().to_string()]).with_code(4);
    assert!(foreign.stderr.contains("--lock LOCK"), "{}", foreign.stderr);
}

#[test]
fn a_broken_run_goes_on() {
    let site = Site::new();
    let source = archive("ctf/v1-byval", CHANNEL);
    let file = site.path("bundle.tar");
    bundled(&[&source, "-f", &file]).with_code(0);
    let whole = std::fs::read(&file).unwrap();
    // A second run finds what the first had fetched, some of it damaged, and makes the same archive of it.
    std::fs::remove_file(&file).unwrap();
    let staging = format!("{file}.parts");
    std::fs::create_dir(&staging).unwrap();
    let mut archive = tar_entries(&whole);
    archive.truncate(10);
    for (at, (name, bytes)) in archive.iter().enumerate() {
        std::fs::write(format!("{staging}/{name}"), if at == 0 { b"damaged".as_slice() } else { bytes }).unwrap();
    }
    bundled(&[&source, "-f", &file]).with_code(0);
    assert!(std::fs::read(&file).unwrap() == whole);
}

/// What one repository of the registry has, another takes over: it is sent once.
#[test]
fn blobs_of_other_repositories_are_mounted() {
    let site = Site::new();
    let (host, file) = (site.registry.host(), site.path("bundle"));
    bundled(&[&archive("ctf/v2-byval", CHANNEL), "-f", &file]).with_code(0);
    plinth(&["bundle", "push", &file, &host, "--plain-http", &host]).with_code(0);
    let asked = site.registry.asked().unwrap();
    let count = |start: &str, part: &str| asked.iter().filter(|line| line.starts_with(start) && line.contains(part)).count();
    let (begun, mounts, sent) = (count("POST", "/blobs/uploads/"), count("POST", "mount="), count("PUT", "/blobs/uploads/"));
    assert!(mounts > 5 && sent == begun - mounts, "{begun} begun, {mounts} mounts, {sent} sent");
    eprintln!("SHOW 04 mounts {mounts} blobs taken over, {sent} sent");
}

/// An archive by reference takes no content along, which is said.
#[test]
fn what_is_only_referred_to_is_said_by_push() {
    let site = Site::new();
    let (host, by_reference) = (site.registry.host(), crate::corpus().join("ctf/v1-byref").display().to_string());
    let pushed = plinth(&["bundle", "push", &by_reference, &host, "--plain-http", &host]).with_code(0);
    assert!(pushed.stderr.contains("resources are only referred to and are not in the archive"), "{}", pushed.stderr);
}

/// Names and bytes of the blobs in a tar that we wrote.
fn tar_entries(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at + 512 <= bytes.len() && bytes[at] != 0 {
        let text = |from: usize, length: usize| {
            let field = &bytes[at + from..at + from + length];
            String::from_utf8_lossy(field.split(|byte| *byte == 0).next().unwrap()).into_owned()
        };
        let size = usize::from_str_radix(text(124, 12).trim(), 8).unwrap();
        if let Some(name) = text(0, 100).strip_prefix("blobs/").filter(|name| !name.is_empty()) {
            found.push((name.to_owned(), bytes[at + 512..at + 512 + size].to_vec()));
        }
        at += 512 + size.div_ceil(512) * 512;
    }
    found
}

/// plinth is in the bundle beside the channel, which stays the only one there, and in the mirror under its own name.
#[test]
fn plinth_itself_travels_along() {
    let site = Site::new();
    let (source, file, plinth_file) = (archive("ctf/v2-byval", CHANNEL), site.path("bundle.tgz"), site.path("plinth"));
    std::fs::write(&plinth_file, static_program()).unwrap();
    let created = plinth(&["bundle", "create", &source, "-f", &file, "--program", &plinth_file]).with_code(0);
    assert!(!created.stderr.contains("plinth itself"), "{}", created.stderr);
    // In the list with its size, before anything is fetched, and afterwards; missing where it is not there.
    let row = |text: &str| text.lines().find(|line| line.starts_with("plinth.dev/plinth:v")).unwrap_or_default().to_owned();
    assert!(row(&created.text()).contains(" KiB") || row(&created.text()).contains(" B"), "{}", created.text());
    let inside = plinth(&["bundle", "ls", &file]).with_code(0).text();
    assert!(row(&inside).contains("ociImage"), "{inside}");
    let lock = site.lock(&source);
    let verified = plinth(&["bundle", "verify", &file, "--lock", &lock, "-o", "json"]).with_code(0).json();
    assert_eq!(verified["program"], format!("plinth.dev/plinth:v{}", env!("CARGO_PKG_VERSION")));
    let listed = plinth(&["channel", "ls", &file]).with_code(0).text();
    assert!(listed.contains("acme.example/releasechannel/stable") && !listed.contains("plinth.dev"), "{listed}");
    let host = site.registry.host();
    plinth(&["bundle", "push", &file, &format!("{host}/site"), "--plain-http", &host]).with_code(0);
    let version = format!("v{}", env!("CARGO_PKG_VERSION"));
    let own = format!("{host}/site//plinth.dev/plinth:{version}");
    let shown = plinth(&["channel", "show", &own, "--plain-http", &host, "-o", "json"]).with_code(0);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("plinth.dev/plinth"), "{:?}", shown.stdout);

    let refused = plinth(&["bundle", "create", &source, "-f", &site.path("other.tgz"), "--program", "/bin/sh"]).with_code(4);
    assert!(refused.stderr.contains("not a static build"), "{}", refused.stderr);
    assert!(!std::path::Path::new(&site.path("other.tgz.parts")).exists(), "something was fetched before the refusal");
}

/// The executable that runs is static: it goes into the bundle by itself, and what comes out of the mirror runs where there is nothing else.
#[test]
fn show_04_program_in_bundle() {
    let site = Site::new();
    let (source, file) = (archive("ctf/v1-byval", "acme.example/services/notifier"), site.path("bundle"));
    plinth(&["bundle", "create", &source, "-f", &file]).with_code(0);
    let blobs = std::fs::read_dir(format!("{file}/blobs")).unwrap().map(|entry| entry.unwrap());
    let layer = blobs.max_by_key(|entry| entry.metadata().unwrap().len()).unwrap().path();
    let root = site.path("root");
    std::fs::create_dir(&root).unwrap();
    assert!(Command::new("tar").arg("-xzf").arg(layer).args(["-C", &root]).status().unwrap().success());
    let (own, packed) = (env!("CARGO_BIN_EXE_plinth"), format!("{root}/plinth"));
    assert!(std::fs::read(own).unwrap() == std::fs::read(&packed).unwrap(), "the executable in the bundle is another one");
    // The folder as the whole file system: as root, else in a namespace where we may call ourselves so.
    let ran = [&["chroot"][..], &["unshare", "--map-root-user", "chroot"]].map(|with| {
        let output = Command::new(with[0]).args(&with[1..]).args([&root, "/plinth", "--version"]).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    });
    let expected = format!("plinth {}", env!("CARGO_PKG_VERSION"));
    assert!(ran.contains(&expected), "{ran:?}");
    let bytes = std::fs::metadata(&packed).unwrap().len();
    eprintln!(
        "SHOW 04 program-in-bundle this executable of {bytes} bytes is static; out of the bundle it runs in an empty root as {expected}"
    );
}

#[test]
fn one_platform_of_an_image() {
    let site = Site::new();
    let source = archive("ctf/v2-byval", CHANNEL);
    let lock = site.lock(&source);
    let (all, one) = (site.path("all.tar"), site.path("one.tar"));
    bundled(&[&source, "-f", &all]).with_code(0);
    let created = bundled(&[&source, "-f", &one, "--platform", "linux/amd64"]).with_code(0);
    assert!(created.stderr.contains("keep an index that names platforms which are left out"), "{}", created.stderr);
    let nobody = bundled(&[&source, "-f", &site.path("no.tar"), "--platform", "linux/riscv64"]).with_code(4);
    assert!(nobody.stderr.contains("--platform linux/riscv64") && nobody.stderr.contains("linux/arm64"), "{}", nobody.stderr);
    let size = |path: &str| std::fs::metadata(path).unwrap().len();
    assert!(size(&one) < size(&all), "{} {}", size(&one), size(&all));
    plinth(&["bundle", "verify", &one, "--lock", &lock, "--platform", "linux/amd64"]).with_code(0);
    let missing = plinth(&["bundle", "verify", &one, "--lock", &lock]).with_code(4).text();
    assert!(missing.lines().all(|line| line.contains("linux/arm64") || line.contains("manifest sha256:")), "{missing}");
    // The archive says by itself what it was made for.
    plinth(&["bundle", "ls", &one]).with_code(0);
    bundled(&[&one, "-f", &site.path("again.tar")]).with_code(0);
    let host = site.registry.host();
    let refused = plinth(&["bundle", "push", &one, &host, "--plain-http", &host]).with_code(4);
    assert!(refused.stderr.contains("leaves") && refused.stderr.contains("linux/amd64"), "{}", refused.stderr);
    bundled(&[&source, "-f", &one, "--platform", "amd64"]).with_code(64);
}
