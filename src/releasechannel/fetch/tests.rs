use serde_json::json;

use super::*;
use crate::descriptor::Descriptor;
use crate::testing::{Stub, http, offline, set};

/// A component version in memory with one resource of this access.
async fn fetch(access: serde_json::Value, digest: Option<&[u8]>) -> Result<Bytes, ResolveError> {
    fetch_with(access, digest, &offline()).await
}

async fn fetch_with(access: serde_json::Value, digest: Option<&[u8]>, options: &Options) -> Result<Bytes, ResolveError> {
    let mut resource = json!({"name": "thing", "version": "1", "type": "blob", "relation": "external", "access": access});
    if let Some(content) = digest {
        resource["digest"] = json!({"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "genericBlobDigest/v1", "value": Digest::of(content).hex()});
    }
    let document = json!({"meta": {"schemaVersion": "v2"}, "component": {"name": "acme.example/x", "version": "1.0.0", "provider": "x", "resources": [resource]}});
    let descriptor = Descriptor::from_value(document).unwrap();
    let store = crate::Contents::default().into_store(Limits::default());
    let repository = crate::repository::OciRepository::new(store, "", serde_json::Value::Null, Limits::default());
    read_resource(&repository, &descriptor, &descriptor.resources[0], options).await
}

#[tokio::test]
async fn fetches_files_by_url_and_proves_them() {
    let stub = Stub::start(|seen, _| match seen.path.as_str() {
        "/moved" => http("302 Found", &[("location", "/file")], b""),
        "/file" => http("200 OK", &[], b"content"),
        _ => http("404 Not Found", &[], b""),
    })
    .await;
    let access = |path: &str| json!({"type": "wget", "url": format!("http://{}{path}", stub.host)});
    assert_eq!(&fetch(access("/moved"), Some(b"content")).await.unwrap()[..], b"content");
    assert_eq!(&fetch(access("/file"), None).await.unwrap()[..], b"content");
    let error = fetch(access("/file"), Some(b"other")).await.unwrap_err();
    assert!(matches!(&error, ResolveError::Repository { source: RepositoryError::Digest { .. }, .. }), "{error}");
    assert_eq!(fetch(access("/none"), None).await.unwrap_err().kind(), crate::ErrorKind::NotFound);
    for url in ["file:///etc/passwd", "ftp://x/y", "not a url"] {
        assert!(fetch(json!({"type": "wget", "url": url}), None).await.is_err(), "{url}");
    }
}

#[tokio::test]
async fn fetches_charts_by_the_index_of_their_repository() {
    let chart = b"chart bytes";
    let digest = Digest::of(chart).hex().to_owned();
    let index = format!(
        "apiVersion: v1\nentries:\n  gateway:\n  - {{version: 1.2.0, urls: [other.tgz]}}\n  - {{version: 1.3.0, digest: {digest}, urls: [charts/gateway-1.3.0.tgz]}}\n  wrong:\n  - {{version: 1.0.0, digest: {digest}, urls: [wrong.tgz]}}\n"
    );
    let stub = Stub::start(move |seen, _| match seen.path.as_str() {
        "/repo/index.yaml" => http("200 OK", &[], index.as_bytes()),
        "/repo/charts/gateway-1.3.0.tgz" => http("200 OK", &[], chart),
        "/repo/wrong.tgz" => http("200 OK", &[], b"<html>"),
        _ => http("404 Not Found", &[], b""),
    })
    .await;
    let access =
        |chart: &str| json!({"type": "helm", "helmRepository": format!("http://{}/repo", stub.host), "helmChart": chart});
    assert_eq!(&fetch(access("gateway:1.3.0"), Some(chart)).await.unwrap()[..], chart);
    assert_eq!(&fetch(access("gateway:v1.3.0"), None).await.unwrap()[..], chart);
    assert!(matches!(
        fetch(access("wrong:1.0.0"), None).await,
        Err(ResolveError::Repository { source: RepositoryError::Digest { .. }, .. })
    ));
    assert_eq!(fetch(access("gateway:9.9.9"), None).await.unwrap_err().kind(), crate::ErrorKind::NotFound);
}

/// Files and charts have logins of their own kind, which stay with the host that was asked for.
#[tokio::test]
async fn files_and_charts_are_fetched_with_their_own_logins() {
    let elsewhere = Stub::start(|_, _| http("200 OK", &[], b"content")).await;
    let target = format!("http://{}/file", elsewhere.host);
    let stub = Stub::start(move |seen, _| match (seen.path.as_str(), seen.header("authorization")) {
        ("/private/file", Some("Basic dXNlcjpwYXNz")) | ("/token/file", Some("Bearer secret")) => http("200 OK", &[], b"content"),
        ("/private/moved", Some(_)) => http("302 Found", &[("location", &target)], b""),
        ("/charts/index.yaml", Some("Basic aGVsbTpwYXNz")) => {
            http("200 OK", &[], b"entries: {app: [{version: 1.0.0, urls: [app.tgz]}]}")
        }
        ("/charts/app.tgz", Some("Basic aGVsbTpwYXNz")) => http("200 OK", &[], b"chart"),
        _ => http("401 Unauthorized", &[], b""),
    })
    .await;
    let (host, port) = stub.host.split_once(':').unwrap();
    let consumer = |kind: &str, path: &str, properties: &str| {
        format!(
            "  - identity: {{type: {kind}, hostname: {host}, port: \"{port}\", pathprefix: {path}}}\n    credentials: [{{type: Credentials, properties: {{{properties}}}}}]\n"
        )
    };
    let text = format!(
        "type: generic.config.ocm.software/v1\nconfigurations:\n- type: credentials.config.ocm.software\n  consumers:\n{}{}{}{}",
        consumer("wget", "private", "username: user, password: pass"),
        consumer("Wget/v1", "token", "identityToken: secret"),
        consumer("HelmChartRepository", "charts", "username: helm, password: pass"),
        consumer("OCIRegistry", "other", "username: user, password: pass"),
    );
    let options = Options { ocm_config_texts: vec![text], ..offline() };
    let file = |path: &str| json!({"type": "wget", "url": format!("http://{}{path}", stub.host)});
    for path in ["/private/file", "/token/file", "/private/moved"] {
        let read = fetch_with(file(path), Some(b"content"), &options).await;
        assert_eq!(&read.unwrap_or_else(|error| panic!("{path}: {error}"))[..], b"content");
    }
    assert!(elsewhere.seen().iter().all(|seen| seen.header("authorization").is_none()) && elsewhere.seen().len() == 1);
    let chart = json!({"type": "helm", "helmRepository": format!("http://{}/charts", stub.host), "helmChart": "app:1.0.0"});
    assert_eq!(&fetch_with(chart, Some(b"chart"), &options).await.unwrap()[..], b"chart");
    for (path, options) in [("/other/file", &options), ("/private/file", &offline())] {
        let error = fetch_with(file(path), None, options).await.unwrap_err();
        assert!(error.kind() == crate::ErrorKind::Refused && error.to_string().contains("401"), "{error}");
    }
}

#[tokio::test]
async fn an_access_may_forbid_to_follow_redirects() {
    let stub = Stub::start(|seen, _| match seen.path.as_str() {
        "/moved" => http("302 Found", &[("location", "/file")], b""),
        _ => http("200 OK", &[], b"content"),
    })
    .await;
    let access = |path: &str| json!({"type": "wget", "url": format!("http://{}{path}", stub.host), "noredirect": true});
    assert_eq!(&fetch(access("/file"), None).await.unwrap()[..], b"content");
    let error = fetch(access("/moved"), None).await.unwrap_err();
    assert!(error.to_string().contains("not to follow") && stub.seen().len() == 2, "{error}");
}

/// Every way in which a set says which of its artifacts is meant (ocm.md 4.1).
#[tokio::test]
async fn the_main_artifact_of_a_set_is_found() {
    let manifest = |n: u8| format!(r#"{{"schemaVersion":2,"layers":[],"annotations":{{"n":"{n}"}}}}"#);
    let (one, two) = (manifest(1), manifest(2));
    let of = |bytes: &str| Digest::of(bytes.as_bytes()).to_string();
    let index = json!({"schemaVersion": 2, "manifests": [{"digest": of(&one)}, {"digest": of(&two)}]}).to_string();
    let entry = |bytes: &str| json!({"digest": of(bytes)});
    let tagged = |bytes: &str, key: &str, tag: &str| json!({"digest": of(bytes), "annotations": {key: tag}});
    let main =
        |main: &str, manifests: serde_json::Value| json!({"annotations": {"software.ocm/main": main}, "manifests": manifests});
    let ref_name = "org.opencontainers.image.ref.name";
    let cases = [
        (main(&of(&two), json!([entry(&one), entry(&two)])), Some(&two)),
        (main("v2", json!([tagged(&one, "software.ocm/tags", "v1"), tagged(&two, "software.ocm/tags", "v1.0,v2")])), Some(&two)),
        (main("v3", json!([tagged(&one, "software.ocm/tags", "v1")])), None),
        (json!({"manifests": [entry(&one), tagged(&two, ref_name, "v2")]}), Some(&two)),
        (json!({"manifests": [tagged(&two, ref_name, "v2"), tagged(&two, ref_name, "latest"), entry(&one)]}), Some(&two)),
        (json!({"manifests": [entry(&one)]}), Some(&one)),
        (json!({"manifests": [entry(&one), entry(&one)]}), Some(&one)),
        (json!({"manifests": [entry(&one), entry(&index), entry(&two)]}), Some(&index)),
        (json!({"manifests": [entry(&one), entry(&two)]}), None),
        (json!({"manifests": [tagged(&one, ref_name, "a"), tagged(&two, ref_name, "b")]}), None),
        (json!({"manifests": null}), None),
    ];
    for (document, expected) in cases {
        for name in ["index.json", "artifact-descriptor.json", "artifact-set-descriptor.json"] {
            let bytes = Bytes::from(set(name, &document, &[one.as_bytes(), two.as_bytes(), index.as_bytes()]));
            let stream = BlobStream::from_bytes("a set", bytes.clone(), &Digest::of(&bytes));
            let found = artifact::unpack(stream, None, "a set", &Limits::default()).await;
            let found = found.ok().map(|(_, artifact)| artifact.manifest.bytes);
            assert_eq!(found.as_deref(), expected.map(String::as_bytes), "{document}");
        }
    }
}

/// An artifact is recorded by its manifest under either name, by its packed form under the name for blobs only (ocm.md section 7).
#[tokio::test]
async fn the_hash_of_a_packed_artifact_counts_by_one_name_only() {
    let layer = b"kind: ConfigMap";
    let manifest =
        json!({"schemaVersion": 2, "layers": [{"digest": Digest::of(layer).as_str(), "mediaType": "application/x-yaml"}]})
            .to_string();
    let packed = set(
        "index.json",
        &json!({"manifests": [{"digest": Digest::of(manifest.as_bytes()).as_str()}]}),
        &[manifest.as_bytes(), layer],
    );
    let mut contents = crate::Contents::default();
    let reference = contents.add_blob(packed.clone());
    let store = contents.into_store(Limits::default());
    let repository = crate::repository::OciRepository::new(store, "", serde_json::Value::Null, Limits::default());
    let sha512 = |bytes: &[u8]| {
        let like = format!("sha512:{}", "0".repeat(128)).parse().unwrap();
        hash_like(&like, bytes).hex().to_owned()
    };
    let (of_manifest, of_packed) = (Digest::of(manifest.as_bytes()), Digest::of(&packed));
    for (hash, normalisation, value, is_right) in [
        ("SHA-256", "ociArtifactDigest/v1", of_manifest.hex(), true),
        ("SHA-256", "ociArtefactDigest/v1", of_manifest.hex(), true),
        ("SHA-256", "genericBlobDigest/v1", of_manifest.hex(), true),
        ("SHA-256", "genericBlobDigest/v1", of_packed.hex(), true),
        ("SHA-256", "ociArtifactDigest/v1", of_packed.hex(), false),
        ("sha512", "ociArtifactDigest/v1", &sha512(manifest.as_bytes()), true),
        ("SHA-512", "genericBlobDigest/v1", &sha512(&packed), true),
        ("SHA-512", "genericBlobDigest/v1", &sha512(layer), false),
        ("NO-DIGEST", "EXCLUDE-FROM-SIGNATURE", "NO-DIGEST", true),
        ("SHA-256", "EXCLUDE-FROM-SIGNATURE", of_manifest.hex(), true),
        ("SHA-256", "EXCLUDE-FROM-SIGNATURE", Digest::of(b"x").hex(), false),
        ("MD5", "genericBlobDigest/v1", "00", false),
    ] {
        let access = json!({"type": "localBlob", "localReference": reference.as_str(), "mediaType": "application/vnd.oci.image.manifest.v1+tar"});
        let digest = json!({"hashAlgorithm": hash, "normalisationAlgorithm": normalisation, "value": value});
        let resource = json!({"name": "thing", "version": "1", "type": "blob", "access": access, "digest": digest});
        let document = json!({"meta": {"schemaVersion": "v2"}, "component": {"name": "acme.example/x", "version": "1.0.0", "resources": [resource]}});
        let descriptor = Descriptor::from_value(document).unwrap();
        let read = read_resource(&repository, &descriptor, &descriptor.resources[0], &offline()).await;
        assert_eq!(read.is_ok(), is_right, "{hash} {normalisation} {value}: {:?}", read.map_err(|error| error.to_string()));
    }
}

/// A server with a certificate of an authority of its own, which wants one from its clients too; files are those of the folder.
struct Guarded {
    server: std::process::Child,
    folder: tempfile::TempDir,
    host: String,
}

impl Guarded {
    async fn start(chart: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let openssl = |arguments: &[&str]| {
            let mut command = std::process::Command::new("openssl");
            command
                .args(arguments)
                .current_dir(folder.path())
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null());
            command
        };
        for name in ["server", "client"] {
            let (key, certificate, subject) = (format!("{name}.key"), format!("{name}.pem"), format!("/CN={name}"));
            let make = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", &subject, "-addext"];
            let into = ["subjectAltName=IP:127.0.0.1", "-keyout", &key, "-out", &certificate];
            assert!(openssl(&[&make[..], &into].concat()).status().expect("apt-get install openssl").success());
        }
        let index = "apiVersion: v1\nentries:\n  gateway:\n  - {version: 1.3.0, urls: [gateway.tgz]}\n";
        std::fs::write(folder.path().join("index.yaml"), index).unwrap();
        std::fs::write(folder.path().join("gateway.tgz"), chart).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let host = format!("127.0.0.1:{port}");
        let serve = ["s_server", "-accept", &host, "-cert", "server.pem", "-key", "server.key", "-WWW"];
        let wanting = ["-Verify", "1", "-CAfile", "client.pem", "-verify_return_error", "-quiet"];
        let server = openssl(&[&serve[..], &wanting].concat()).stdin(std::process::Stdio::null()).spawn().unwrap();
        for _ in 0..500 {
            if tokio::net::TcpStream::connect(&host).await.is_ok() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        Self { server, folder, host }
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A chart's server may have an authority that only the access names, and want a certificate of its clients, which the configuration has.
#[tokio::test]
async fn charts_behind_an_authority_and_a_client_certificate() {
    let chart = b"chart bytes";
    let guarded = Guarded::start(chart).await;
    let mut access = json!({"type": "helm", "helmRepository": format!("https://{}", guarded.host), "helmChart": "gateway:1.3.0"});
    let indented = |name: &str| format!("        {}\n", guarded.text(name).trim_end().replace('\n', "\n        "));
    let configuration = format!(
        "type: generic.config.ocm.software/v1\nconfigurations:\n- type: credentials.config.ocm.software\n  consumers:\n  - identity: {{type: HelmChartRepository, hostname: 127.0.0.1}}\n    credentials:\n    - type: Credentials/v1\n      properties:\n       certificate: |\n{}       privateKey: |\n{}",
        indented("client.pem"),
        indented("client.key")
    );
    let quick = || {
        let mut options = offline();
        options.limits.attempts = 1;
        options
    };
    let untrusted = fetch_with(access.clone(), Some(chart), &quick()).await.unwrap_err();
    assert!(matches!(&untrusted, ResolveError::Repository { source: RepositoryError::Untrusted { .. }, .. }), "{untrusted}");
    assert!(untrusted.hint().unwrap().contains("--ca"), "{untrusted}");

    let mut options = Options { ca_pem: vec![guarded.text("server.pem")], ..quick() };
    assert!(fetch_with(access.clone(), Some(chart), &options).await.is_err(), "nobody was asked for a certificate");
    options.ocm_config_texts = vec![configuration];
    assert_eq!(&fetch_with(access.clone(), Some(chart), &options).await.unwrap()[..], chart);

    // The authority of the access is trusted, and nobody is told a login for its sake: here the server goes without.
    access["caCert"] = guarded.text("server.pem").into();
    options.ca_pem.clear();
    let told = fetch_with(access, Some(chart), &options).await.unwrap_err();
    assert!(!matches!(&told, ResolveError::Repository { source: RepositoryError::Untrusted { .. }, .. }), "{told}");
}
