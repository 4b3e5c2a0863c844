//! What tests of this room share.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::options::{Limits, Options};

/// The folder with corpora: `PLINTH_DATA`, else beside the workspace.
pub(crate) fn data() -> PathBuf {
    std::env::var_os("PLINTH_DATA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")), PathBuf::from)
}

/// Names in a folder of the corpus, in order.
pub(crate) fn names(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(data().join("ocm").join(folder)).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Adds a component version without content; `more` are fields of its component.
pub(crate) fn add(contents: &mut crate::ctf::Contents, name: &str, version: &str, more: serde_json::Value) {
    let mut component = serde_json::json!({"name": name, "version": version, "provider": "acme.example", "resources": [], "sources": [],
        "componentReferences": []});
    if let (Some(component), serde_json::Value::Object(more)) = (component.as_object_mut(), more) {
        component.extend(more);
    }
    let document = serde_json::json!({"meta": {"schemaVersion": "v2"}, "component": component});
    let bytes = serde_json::to_vec(&document).unwrap();
    let read = crate::descriptor::Descriptor::from_value(document).unwrap();
    crate::assembly::store(contents, &read, bytes, &crate::assembly::Blobs::default());
}

/// A packed artifact set: blobs, and an index with this text.
pub(crate) fn set(index_name: &str, index: &serde_json::Value, blobs: &[&[u8]]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, name, bytes).unwrap();
    };
    add(index_name, index.to_string().as_bytes());
    blobs.iter().for_each(|blob| add(&format!("blobs/{}", crate::digest::Digest::of(blob).file_name()), blob));
    tar.into_inner().unwrap()
}

/// Options that look at nothing of the current user, and do not wait long.
pub(crate) fn offline() -> Options {
    let limits = Limits { backoff: Duration::from_millis(5), ..Limits::default() };
    Options { no_user_config: true, limits, ..Options::default() }
}

/// A real registry (Debian's `docker-registry`) in a temporary folder; stopped when it is dropped, also by a panic.
pub(crate) struct RealRegistry {
    child: Child,
    pub(crate) host: String,
    pub(crate) folder: tempfile::TempDir,
}

impl RealRegistry {
    /// Plain HTTP, no login.
    pub(crate) async fn start() -> Self {
        Self::with("", |_| ()).await
    }

    /// Plain HTTP, `acme-user` and `acme-pass`.
    pub(crate) async fn with_password() -> Self {
        // bcrypt of "acme-pass".
        let line = "acme-user:$2y$05$abcdefghijklmnopqrstuu8ASd3s/crxNetJteCoWEIlvTUhLT3Hu\n";
        Self::with("auth: {htpasswd: {realm: test, path: FOLDER/htpasswd}}\n", |folder| {
            std::fs::write(folder.join("htpasswd"), line).unwrap();
        })
        .await
    }

    /// TLS with an authority of its own, in `ca.pem`.
    pub(crate) async fn with_tls() -> Self {
        let make = |folder: &std::path::Path| {
            let status = Command::new("openssl")
                .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=plinth-test", "-addext"])
                .args(["subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "ca.pem"])
                .current_dir(folder)
                .stderr(Stdio::null())
                .status()
                .expect("openssl makes the certificate of this test: apt-get install openssl");
            assert!(status.success());
        };
        Self::with("", make).await
    }

    async fn with(extra: &str, prepare: impl FnOnce(&std::path::Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        let place = folder.path().display().to_string();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let host = format!("127.0.0.1:{port}");
        let tls = if folder.path().join("ca.pem").exists() {
            format!(", tls: {{certificate: {place}/ca.pem, key: {place}/key.pem}}")
        } else {
            String::new()
        };
        let config = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {place}/data}}, delete: {{enabled: true}}}}\nhttp: {{addr: \"{host}\"{tls}}}\n{}",
            extra.replace("FOLDER", &place)
        );
        std::fs::write(folder.path().join("config.yml"), config).unwrap();
        let child = Command::new("docker-registry")
            .args(["serve", &format!("{place}/config.yml")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("docker-registry is what this test talks to: apt-get install docker-registry");
        let registry = Self { child, host, folder };
        for _ in 0..500 {
            if TcpStream::connect(&registry.host).await.is_ok() {
                return registry;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("docker-registry did not start");
    }
}

impl Drop for RealRegistry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request as a stub sees it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .lines()
            .find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value))
    }
}

/// A registry that says what it is told to. Every answer closes the connection.
pub(crate) struct Stub {
    pub(crate) host: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Stub {
    pub(crate) async fn start(answer: impl Fn(&Seen, usize) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().map(|address: SocketAddr| address.to_string()).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&seen), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                tokio::spawn(async move { serve(stream, &log, answer.as_ref()).await });
            }
        });
        Self { host, seen, task }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, log: &Mutex<Vec<Seen>>, answer: &(dyn Fn(&Seen, usize) -> Vec<u8> + Send + Sync)) {
    let mut head = Vec::new();
    let mut byte = [0; 1];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_exact(&mut byte).await.is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    // A connection that is closed with bytes in it is one that broke.
    let length = text.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
    let mut body = vec![0; length.unwrap_or_default()];
    if stream.read_exact(&mut body).await.is_err() {
        return;
    }
    let mut words = text.split(' ').skip(1);
    let seen = Seen { path: words.next().unwrap().into(), headers: text.clone() };
    let count = {
        let mut log = log.lock().unwrap();
        log.push(seen.clone());
        log.len()
    };
    let _ = stream.write_all(&answer(&seen, count)).await;
    let _ = stream.shutdown().await;
}

/// An HTTP answer.
pub(crate) fn http(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let headers: Vec<String> = headers.iter().map(|(key, value)| format!("{key}: {value}\r\n")).collect();
    let headers = headers.concat();
    let mut answer =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

/// Serves a CTF's content as a registry would.
pub(crate) fn serving(contents: crate::ctf::Contents) -> impl Fn(&Seen, usize) -> Vec<u8> + Send + Sync + 'static {
    move |seen, _| {
        let rest = seen.path.strip_prefix("/v2/").unwrap_or_default();
        let digest = if let Some((repository, reference)) = rest.split_once("/manifests/") {
            let named =
                contents.artifacts.iter().find(|entry| entry.repository == repository && entry.tag.as_deref() == Some(reference));
            named.map(|entry| entry.digest.clone()).or_else(|| reference.parse().ok())
        } else {
            rest.split_once("/blobs/").and_then(|(_, digest)| digest.parse().ok())
        };
        match digest.and_then(|digest| contents.blobs.get(&digest)) {
            Some(payload) => http("200 OK", &[], &payload.read(64 << 20, "served").unwrap()),
            _ => http("404 Not Found", &[], b"{}"),
        }
    }
}
