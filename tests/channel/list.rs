//! `channel ls`: the three questions of a consumer, wherever the channel is; and `channel diff`.

use plinth_support::Registry;
use serde_json::Value;
use tempfile::TempDir;

use crate::{CHANNEL, archive, command, finished, plinth};

/// Two versions of one service from two registries, and a second service.
const LOCAL: &str = include_str!("services.yaml");

struct Places {
    folder: TempDir,
    registry: Registry,
}

impl Places {
    fn new() -> Self {
        let places = Self { folder: TempDir::new().unwrap(), registry: Registry::start().unwrap() };
        std::fs::create_dir(places.folder.path().join("local")).unwrap();
        std::fs::write(places.folder.path().join("local/channel.yaml"), LOCAL).unwrap();
        std::fs::create_dir(places.folder.path().join(".docker")).unwrap();
        let login = r#"{"auths": {"one.example": {"username": "ann", "password": "hunter2"}}}"#;
        std::fs::write(places.folder.path().join(".docker/config.json"), login).unwrap();
        let (local, packed) = (places.path("local"), places.path("channel.tgz"));
        plinth(&["channel", "pack", &local, "-f", &packed]).with_code(0);
        let (target, host) = (format!("{}/mirror", places.registry.host()), places.registry.host());
        plinth(&["bundle", "push", &packed, &target, "--plain-http", &host]).with_code(0);
        places
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Local YAML, archive, registry.
    fn sources(&self) -> [String; 3] {
        [self.path("local"), self.path("channel.tgz"), format!("{}/mirror//acme.example/channel", self.registry.host())]
    }

    fn ls(&self, source: &str, arguments: &[&str]) -> crate::Finished {
        let host = self.registry.host();
        finished(command(self.folder.path(), &[&["channel", "ls", source, "--plain-http", &host], arguments].concat()))
    }
}

#[test]
fn show_04_flows() {
    let places = Places::new();
    let mut answered = 0;
    for source in places.sources() {
        // 1: all versions of an artifact; 3: which may come from different registries.
        let all = places.ls(&source, &["--artifact", "crossplane-chart", "-o", "json"]).with_code(0).json();
        let of = |key: &str| all.as_array().unwrap().iter().map(|entry| entry[key].clone()).collect::<Vec<Value>>();
        assert_eq!(of("version"), ["v1.11.0", "v1.10.0"], "{source}: {all}");
        assert_eq!(of("registry"), ["two.example", "one.example"], "{source}");
        assert_eq!(of("url")[1], "one.example/charts/crossplane:1.10.0");
        // 2: its pull secrets at a version.
        let one = places.ls(&source, &["--artifact", "crossplane-chart", "--version", "v1.10", "-o", "json"]).with_code(0);
        let secrets = &one.json()[0]["pullsecrets"];
        assert_eq!(one.json().as_array().unwrap().len(), 1);
        assert_eq!(secrets[0]["registry"], "one.example");
        assert!(secrets[0]["from"].as_str().unwrap().ends_with("config.json"), "{secrets}");
        let table = places.ls(&source, &["--artifacts"]).with_code(0).text();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        assert!(
            lines[0].starts_with("ARTIFACT") && lines[1].starts_with("crossplane-chart") && lines[3].starts_with("flux-chart")
        );
        assert!(lines[1].contains("two.example") && lines[1].contains("none") && lines[2].contains("config.json"), "{table}");
        assert!(!table.contains("hunter2") && !one.text().contains("hunter2"));
        answered += 3;
    }
    eprintln!("SHOW 04 flows {answered}/9 from local YAML, archive and registry");
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let places = Places::new();
    let [local, ..] = places.sources();
    let unknown = places.ls(&local, &["--artifact", "velero"]).with_code(4);
    assert!(unknown.stderr.contains("no artifact velero") && unknown.stderr.contains("--artifacts"), "{}", unknown.stderr);
    let version = places.ls(&local, &["--artifact", "crossplane-chart", "--version", "^9"]).with_code(4);
    assert!(version.stderr.contains("v1.10.0, v1.11.0"), "{}", version.stderr);
    // Components as before.
    let components = places.ls(&local, &[]).with_code(0).text();
    assert_eq!(components.lines().count(), 4, "{components}");
    assert_eq!(places.ls(&local, &["-o", "json"]).with_code(0).json()["kind"], "ReleaseLock");
}

/// Real archives of both tools have artifacts that only plinth and those that anybody can pull.
#[test]
fn the_corpus_is_listed() {
    for name in ["v1", "v2", "v1-byval", "v2-byval"] {
        let listed = plinth(&["channel", "ls", &archive(&format!("ctf/{name}"), CHANNEL), "--artifacts", "-o", "json"])
            .with_code(0)
            .json();
        let images: Vec<&Value> = listed.as_array().unwrap().iter().filter(|entry| entry["type"] == "ociImage").collect();
        assert!(images.len() >= 4, "{name}: {listed}");
        assert!(images.iter().all(|image| image["digest"].is_string()), "{name}: {listed}");
    }
}

#[test]
fn a_diff_of_two_releases() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir(path("new")).unwrap();
    std::fs::create_dir(path("old")).unwrap();
    std::fs::write(path("old/channel.yaml"), LOCAL).unwrap();
    let newer = LOCAL
        .replace("v2.2.0", "v2.3.0")
        .replace("'two.example/charts/crossplane:1.11.3'", "'two.example/charts/crossplane:1.11.4'");
    std::fs::write(path("new/channel.yaml"), newer).unwrap();
    plinth(&["channel", "lock", &path("old"), "-f", &path("old.json")]).with_code(0);
    let diff = plinth(&["channel", "diff", &path("old.json"), &path("new"), "--detailed-exitcode"]).with_code(2);
    let text = diff.text();
    assert!(text.contains("~ acme.example/services/flux v2.2.0 → v2.3.0"), "{text}");
    assert!(text.contains("! acme.example/services/crossplane v1.11.0: other content under the same version: chart"), "{text}");
    let json = plinth(&["channel", "diff", &path("old.json"), &path("new"), "-o", "json"]).with_code(0).json();
    let of_flux = json["differences"].as_array().unwrap().iter().find(|entry| entry["component"] == "acme.example/services/flux");
    assert_eq!(of_flux.unwrap()["change"], "versions");
    let same = plinth(&["channel", "diff", &path("old.json"), &path("old"), "--detailed-exitcode"]).with_code(0);
    assert!(same.stdout.is_empty() && same.stderr.contains("nothing differs"), "{}", same.stderr);
    plinth(&["channel", "diff", &path("old.json"), &path("nowhere")]).with_code(4);
}
