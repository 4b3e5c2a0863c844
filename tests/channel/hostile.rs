//! Archives and registries that mean harm: each is named, ends with 4, and leaves nothing behind.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::{corpus, plinth};

/// One entry of a tar, `kind` as its header has it.
fn entry(name: &str, kind: u8, link: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = vec![0_u8; 512];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(124, &format!("{:011o}\0", bytes.len()));
    put(136, "00000000000\0");
    put(148, "        ");
    put(157, link);
    put(257, "ustar\x0000");
    header[156] = kind;
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header.extend_from_slice(bytes);
    header.resize(header.len().next_multiple_of(512), 0);
    header
}

fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut all = entries.concat();
    all.resize(all.len() + 1024, 0);
    all
}

/// Names of everything in a folder.
fn there(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn show_04_hostile_archives() {
    let folder = TempDir::new().unwrap();
    let index = json!({"schemaVersion": 1, "artifacts": []}).to_string();
    let plain = |text: &str| entry("artifact-index.json", b'0', "", text.as_bytes());
    let garbage = format!("{index}\"x\":1}}]}}");
    let wrong = json!({"schemaVersion": 1, "artifacts": [{"repository": "component-descriptors/acme.example/x", "tag": "1.0.0",
        "digest": format!("sha256:{}", "0".repeat(64))}]})
    .to_string();
    let of = |digest: &str| json!({"schemaVersion": 1, "artifacts": [{"repository": "a", "digest": digest}]}).to_string();
    let cases: [(&str, Vec<u8>, &str); 9] = [
        ("out.tar", archive(&[plain(&index), entry("../evil", b'0', "", b"evil")]), "../evil"),
        ("absolute.tar", archive(&[plain(&index), entry("/tmp/plinth-evil", b'0', "", b"evil")]), "/tmp/plinth-evil"),
        ("link.tar", archive(&[plain(&index), entry("blobs/sha256.00", b'2', "/etc/passwd", b"")]), "blobs/sha256.00"),
        ("hard.tar", archive(&[plain(&index), entry("blobs/sha256.00", b'1', "/etc/passwd", b"")]), "blobs/sha256.00"),
        ("garbage.tar", archive(&[plain(&garbage)]), "artifact-index.json"),
        ("digest.tar", archive(&[plain(&of("sha256:../../x"))]), "artifact-index.json"),
        ("lacks.tar", archive(&[plain(&wrong)]), "sha256:0000"),
        ("html.tar", b"<html><body>log in</body></html>".to_vec(), "html.tar"),
        ("cut.tgz", vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3], "cut.tgz"),
    ];
    let target = folder.path().join("made.tgz");
    for (name, bytes, words) in &cases {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let source = path.display().to_string();
        for verb in [
            &["channel", "show", &source][..],
            &["bundle", "create", &source, "-f", target.to_str().unwrap()],
            &["rehearse", &source],
        ] {
            let refused = plinth(verb).with_code(4).stderr;
            assert!(refused.contains(words) && refused.contains(name), "{verb:?}: {refused}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(there(folder.path()), Vec::<String>::new(), "{name}");
    }
    assert!(!Path::new("/tmp/plinth-evil").exists() && !folder.path().join("../evil").exists());
    // Those of the corpus that somebody changed, or that lead around in a circle.
    let changed = [
        ("tampered-descriptor", "tampdesc"),
        ("tampered-blob", "tampered"),
        ("cycle", "cycle-x"),
        ("unknown-schema", "unkschema"),
    ];
    for (name, component) in changed {
        let source = format!("ctf::{}//acme.example/hand/{component}:1.0.0", corpus().join("ctf/hand").join(name).display());
        let refused = plinth(&["bundle", "create", &source, "-f", target.to_str().unwrap()]).with_code(4).stderr;
        assert!(refused.contains("acme.example/hand/") && !target.exists(), "{name}: {refused}");
    }
    eprintln!("SHOW 04 hostile-archives {0}/{0} named, exit 4, nothing left", cases.len() + changed.len());
}

/// A server that says the same to everybody, for as long as the test lives.
fn says(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    host
}

#[test]
fn show_04_hostile_registries() {
    let cases = [
        (
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/html\r\ncontent-length: 25\r\n\r\n<html>please sign</html>\n",
            "expected",
        ),
        (
            "HTTP/1.1 307 Temporary Redirect\r\nconnection: close\r\ncontent-length: 0\r\nlocation: http://192.0.2.1/v2/\r\n\r\n",
            "http://192.0.2.1",
        ),
        (
            "HTTP/1.1 307 Temporary Redirect\r\nconnection: close\r\ncontent-length: 0\r\nlocation: file:///etc/passwd\r\n\r\n",
            "file:",
        ),
        ("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 99999999999\r\n\r\n{", "over the limit"),
        ("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", "is not in 127.0.0.1"),
    ];
    for (answer, words) in cases {
        let host = says(answer);
        let source = format!("{host}//acme.example/x:1.0.0");
        let refused = plinth(&["channel", "show", &source, "--plain-http", &host]).with_code(4).stderr;
        assert!(refused.contains(words) && refused.contains(&host), "{answer:?}: {refused}");
    }
    // Overload is no refusal: it can be tried again.
    let host = says("HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\ncontent-length: 0\r\nretry-after: 86400\r\n\r\n");
    let busy = plinth(&["channel", "show", &format!("{host}//acme.example/x:1.0.0"), "--plain-http", &host]).with_code(3).stderr;
    assert!(busy.contains("asks for a pause of 86400 s") && busy.contains("run the same command again then"), "{busy}");
    let host = says("HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\nretry-after: 1\r\n\r\n");
    let busy = plinth(&["channel", "show", &format!("{host}//acme.example/x:1.0.0"), "--plain-http", &host]).with_code(3).stderr;
    assert!(busy.contains(&format!("waiting 1 s for {host}: it answered 503 Service Unavailable")), "{busy}");
    eprintln!("SHOW 04 hostile-registries {} named", cases.len() + 2);
}
