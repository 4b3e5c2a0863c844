//! `channel verify` and `channel normalise`.

use crate::{CHANNEL, archive, corpus, plinth};

fn signed() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(corpus().join("signed"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Every signed archive: 0 where it is proven, 4 where it was changed, and 4 with another key.
#[test]
fn show_04_verify_verb() {
    let (names, mut right) = (signed(), 0);
    let keys = corpus().join("keys");
    let key = |file: &str| format!("acme-sig={}", keys.join(file).display());
    for name in &names {
        let component = if name.contains("-gateway-") { "acme.example/services/gateway:1.3.0" } else { CHANNEL };
        let source = archive(&format!("signed/{name}"), component);
        let expected = if name.starts_with("neg-") { 4 } else { 0 };
        let authority = keys.join("ca.crt").display().to_string();
        let (own, other) = (key("acme.pub"), key("other.pub"));
        let proof = if name.contains("-pem") { ["--ca", authority.as_str()] } else { ["--key", own.as_str()] };
        let verified = plinth(&[&["channel", "verify", &source][..], &proof].concat());
        let by_other = plinth(&["channel", "verify", &source, "--key", &other]);
        assert_eq!((verified.code, by_other.code), (expected, 4), "{name}: {}{}", verified.text(), verified.stderr);
        right += 1;
    }
    eprintln!("SHOW 04 verify-verb {right}/{}", names.len());
    assert!(right >= 14);
}

#[test]
fn says_what_was_proven_and_what_was_not() {
    let key = format!("acme-sig={}", corpus().join("keys/acme.pub").display());
    let source = archive("signed/v3-pkcs1-sha256", CHANNEL);
    let human = plinth(&["channel", "verify", &source, "--key", &key]).with_code(0).text();
    for words in ["proven  acme.example/releasechannel/stable:2026.11.0", "signature acme-sig  proven by the given key", "6 of 6"]
    {
        assert!(human.contains(words), "{human}");
    }
    let json = plinth(&["channel", "verify", &source, "--key", &key, "-o", "json"]).with_code(0).json();
    assert_eq!(json["components"].as_array().unwrap().len(), 6);
    let unsigned = plinth(&["channel", "verify", &archive("ctf/v1", CHANNEL), "--key", &key]).with_code(4);
    assert!(unsigned.stderr.contains("not signed"), "{}", unsigned.stderr);
    let without = plinth(&["channel", "verify", &source]).with_code(4);
    assert!(without.stderr.contains("there is no key for it"), "{}", without.stderr);
    let second = format!("second-sig={}", corpus().join("keys/acme.pub").display());
    let missing = plinth(&["channel", "verify", &source, "--key", &key, "--key", &second]).with_code(4);
    assert!(missing.stderr.contains("has no signature second-sig; it has: acme-sig"), "{}", missing.stderr);
    plinth(&["channel", "verify", &source, "--key", "acme-sig"]).with_code(64);
    let absent = plinth(&["channel", "verify", &source, "--key", "acme-sig=/nowhere/key.pem"]).with_code(4);
    assert!(absent.stderr.contains("/nowhere/key.pem"), "{}", absent.stderr);
}

/// The exact bytes of both tools, and not one more.
#[test]
fn show_04_normalise_verb() {
    let folder = corpus().join("golden/signing");
    let mut right = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let Some((vector, component)) = file.strip_suffix(".norm").and_then(|name| name.split_once(".acme.example_")) else {
            continue;
        };
        let (path, version) = component.rsplit_once('_').unwrap();
        let source = archive(&format!("signed/{vector}"), &format!("acme.example/{}:{version}", path.replace('_', "/")));
        let algorithm = format!("jsonNormalisation/{}", vector.split('-').next().unwrap());
        let printed = plinth(&["channel", "normalise", &source, "--algorithm", &algorithm]).with_code(0);
        let golden = std::fs::read(folder.join(&file)).unwrap();
        assert!(printed.stdout == golden, "{file}:\n{}\n{}", printed.text(), String::from_utf8_lossy(&golden));
        right += 1;
    }
    let edge = archive("ctf/hand/norm-edge", "acme.example/hand/norm:1.0.0");
    for name in ["v1", "v2", "v3", "v4alpha1"] {
        let printed = plinth(&["channel", "normalise", &edge, "--algorithm", name]).with_code(0);
        let golden = std::fs::read(corpus().join(format!("normalised/norm-edge.{name}.norm"))).unwrap();
        assert!(printed.stdout == golden, "{name}:\n{}\n{}", printed.text(), String::from_utf8_lossy(&golden));
        right += 1;
    }
    eprintln!("SHOW 04 normalise-verb {right}/{right}");
    assert!(right > 20);
    let unknown = plinth(&["channel", "normalise", &edge, "--algorithm", "v9"]).with_code(64);
    assert!(unknown.stderr.contains("jsonNormalisation/v4alpha1"), "{}", unknown.stderr);
}
