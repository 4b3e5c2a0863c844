use serde_json::Value;

use super::*;
use crate::repository::ComponentRepository;
use crate::testing::data;

pub(crate) fn read(path: &str) -> Descriptor {
    let bytes = std::fs::read(data().join("ocm").join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut document: Value = crate::text::document(&bytes).unwrap();
    if let Value::Array(mut list) = document {
        document = list.remove(0);
    }
    Descriptor::from_value(document).unwrap()
}

/// A component version of a signed archive.
pub(crate) fn signed(vector: &str, component: &str, version: &str) -> Descriptor {
    let archive = data().join("ocm/signed").join(vector);
    let contents = crate::ctf::Contents::open(&archive, &crate::Limits::default()).unwrap();
    let store = contents.into_store(crate::Limits::default());
    let repository = crate::repository::OciRepository::new(store, "", Value::Null, crate::Limits::default());
    let at = crate::ComponentVersion::new(component, version);
    // On a thread of its own, for whoever asks may be in a runtime already.
    let read = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(repository.descriptor(&at)).unwrap()
    });
    Descriptor::clone(&read.join().unwrap().descriptor)
}

/// A row of the comparison: equal, or where it differs.
fn compare(name: &str, found: &[u8], expected: &[u8], wrong: &mut Vec<String>) {
    if found == expected {
        return;
    }
    let at = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let around = |bytes: &[u8]| String::from_utf8_lossy(&bytes[at.saturating_sub(40)..(at + 80).min(bytes.len())]).into_owned();
    wrong.push(format!("{name} at byte {at}:\n  ours   {}\n  theirs {}", around(found), around(expected)));
}

/// Every normal form of the corpus, byte for byte.
#[test]
fn show_04_normal_forms() {
    let mut wrong = Vec::new();
    let mut rows = 0;
    for algorithm in Normalisation::ALL {
        let short = algorithm.name().trim_start_matches("jsonNormalisation/");
        let expected = std::fs::read(data().join(format!("ocm/normalised/norm-edge.{short}.norm"))).unwrap();
        compare(short, &normalise(&read("normalised/norm-edge.input.json"), algorithm), &expected, &mut wrong);
        rows += 1;
    }
    let digests = std::fs::read_to_string(data().join("ocm/golden/signing/DIGESTS.tsv")).unwrap();
    for row in digests.lines().skip(1) {
        let fields: Vec<&str> = row.split('\t').collect();
        let (vector, component) = (fields[0], fields[1]);
        let file = data().join(format!("ocm/golden/signing/{vector}.{component}.norm"));
        let archive = data().join("ocm/signed").join(vector);
        let (Ok(expected), true) = (std::fs::read(&file), archive.exists()) else { continue };
        let (name, version) = component.rsplit_once('_').unwrap();
        let descriptor = signed(vector, &name.replace('_', "/"), version);
        compare(&format!("{vector} {component}"), &normalise(&descriptor, fields[2].parse().unwrap()), &expected, &mut wrong);
        rows += 1;
    }
    eprintln!("SHOW 04 normal-forms {}/{rows}", rows - wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows >= 20, "{rows}");
}

/// v3alpha1: the same bytes as from schema v2 for v2 and v3, others for v1. The goldens were made with the child's digest filled in.
#[test]
fn the_newer_schema_has_the_same_newer_forms() {
    let mut document = read("golden/v3/nest-a.v3alpha1.yaml").document;
    document["spec"]["references"][0]["digest"] = serde_json::json!({"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "jsonNormalisation/v3",
        "value": "23e0f12303df762a2307901f77d5cd9356afd4bfded1846b8af8e370d7aadbfc"});
    let descriptor = Descriptor::from_value(document).unwrap();
    let mut wrong = Vec::new();
    for (algorithm, short) in [(Normalisation::V1, "v1"), (Normalisation::V2, "v2"), (Normalisation::V3, "v3")] {
        let expected = std::fs::read(data().join(format!("ocm/golden/v3/nest-a.{short}.norm"))).unwrap();
        compare(short, &normalise(&descriptor, algorithm), &expected, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The digests that the older tool prints for hand-made archives. It fills in missing digests first, which is why only those whose
/// elements all have one are compared.
#[test]
fn show_04_hand_digests() {
    let summary = std::fs::read_to_string(data().join("ocm/golden/hand/SUMMARY.tsv")).unwrap();
    let mut rows = 0;
    let mut wrong = Vec::new();
    for row in summary.lines().filter(|row| row.contains("hash --verify")) {
        let fields: Vec<&str> = row.split('\t').collect();
        let Some(expected) = fields[4].split_whitespace().last().filter(|word| word.len() == 64) else { continue };
        let archive = data().join("ocm/ctf/hand").join(fields[0]);
        let store = crate::ctf::Contents::open(&archive, &crate::Limits::default()).unwrap().into_store(crate::Limits::default());
        let repository = crate::repository::OciRepository::new(store, "", Value::Null, crate::Limits::default());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let at = crate::ComponentVersion::new(fields[1], "1.0.0");
        let Ok(found) = runtime.block_on(repository.descriptor(&at)) else { continue };
        if found.descriptor.resources.iter().any(|resource| resource.digest.is_none()) {
            continue;
        }
        rows += 1;
        let ours = Digest::of(&normalise(&found.descriptor, Normalisation::V3));
        if ours.hex() != expected {
            wrong.push(format!("{}: {} instead of {expected}", fields[0], ours.hex()));
        }
    }
    eprintln!("SHOW 04 hand-digests {}/{rows}", rows - wrong.len());
    assert!(wrong.is_empty() && rows > 5, "{rows} {}", wrong.join("\n"));
}

#[test]
fn names_are_known_long_and_short() {
    for algorithm in Normalisation::ALL {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
    }
    assert_eq!("v3".parse(), Ok(Normalisation::V3));
    assert!("jsonNormalisation/v5".parse::<Normalisation>().is_err());
}

fn forms(component: &Value) -> [String; 4] {
    let mut document = serde_json::json!({"meta": {"schemaVersion": "v2"}, "component": {"name": "acme.example/x", "version": "1.0.0", "provider": "acme"}});
    document["component"].as_object_mut().unwrap().extend(component.as_object().unwrap().clone());
    let descriptor = Descriptor::from_value(document).unwrap();
    Normalisation::ALL.map(|algorithm| String::from_utf8(normalise(&descriptor, algorithm)).unwrap())
}

/// As the models of both tools write what is not there: some texts always, some never.
#[test]
fn what_is_not_there_is_empty_or_left_out() {
    let bare = serde_json::json!({"resources": [{"name": "bare", "type": "t", "access": {"type": "none/v1"},
        "digest": {"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "n", "value": "v"}, "labels": [{"name": "flag", "signing": true}]}],
        "sources": [{"name": "src"}]});
    let [v1, v2, v3, v4] = forms(&bare);
    for form in [&v2, &v3] {
        assert!(form.contains(r#"{"digest":{"hashAlgorithm":"SHA-256","normalisationAlgorithm":"n","value":"v"},"labels":[{"name":"flag","signing":true}],"name":"bare","type":"t","version":""}"#), "{form}");
        assert!(form.contains(r#""sources":[{"name":"src","type":"","version":""}]"#), "{form}");
    }
    assert!(v4.contains(r#""name":"bare","relation":"","type":"t","version":""}"#) && v4.contains(r#""digest""#), "{v4}");
    assert!(v1.contains(r#"{"version":""}"#) && v1.contains(r#"[[{"name":"flag"},{"signing":true}]]"#), "{v1}");
    assert!(!v1.contains("relation"), "{v1}");
}

#[test]
fn the_older_tool_writes_times_anew() {
    for (written, anew) in [
        ("2026-11-29T14:05:41Z", "2026-11-29T14:05:41Z"),
        ("2026-11-29T14:05:41+01:00", "2026-11-29T13:05:41Z"),
        ("2026-11-29T14:05:41.5Z", "2026-11-29T14:05:42Z"),
        ("2026-11-29T14:05:41.499999Z", "2026-11-29T14:05:41Z"),
        ("some day", "some day"),
    ] {
        let [v1, v2, v3, v4] = forms(&serde_json::json!({"creationTime": written}));
        for form in [v1, v2, v3] {
            assert!(form.contains(&format!(r#""creationTime":"{anew}""#)), "{form}");
        }
        assert!(v4.contains(&format!(r#""creationTime":"{written}""#)), "{v4}");
    }
}

/// Numbers are doubles, keys go by UTF-16, and text is not made another text: no normalisation of Unicode, no escape but what must be.
#[test]
fn labels_hold_whatever_json_holds() {
    let text = r#"{"z": 123456789012345678901234567890, "\ud83d\ude00": 1, "\ufb33": 2, "e\u0301": "\u00e9",
        "c": "\u0000\u001f\u007f\b\f/", "n": -0, "big": 18446744073709551616}"#;
    let value: Value = serde_json::from_str(text).unwrap();
    let [v1, _, v3, _] = forms(&serde_json::json!({"labels": [{"name": "l", "value": value, "signing": true}]}));
    let expected = "{\"big\":18446744073709552000,\"c\":\"\\u0000\\u001f\u{7f}\\b\\f/\",\"e\u{301}\":\"\u{e9}\",\"n\":0,\"z\":1.2345678901234568e+29,\"\u{1f600}\":1,\"\u{fb33}\":2}";
    assert!(v3.contains(expected), "{v3}");
    // Bytes, not UTF-16, are the order of the oldest form.
    let (last, first) = (v1.find('\u{1f600}').unwrap(), v1.find('\u{fb33}').unwrap());
    assert!(first < last, "{v1}");
}
