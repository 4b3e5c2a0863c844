use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::Value;

use super::*;
use crate::digest::Digest;
use crate::registry::{Registries, push};
use crate::repository::Pointer;
use crate::resolve::resolve;
use crate::selection::Selection;
use crate::source::{RepositoryRef, SourceRef};
use crate::testing::{RealRegistry, data, offline};

const NAME: &str = "component-descriptors/acme.example/services/gateway";

fn corpus() -> Contents {
    Contents::open(&data().join("ocm/ctf/v2-byval"), &Limits::default()).unwrap()
}

async fn started(contents: Contents) -> Serving {
    serve(contents, "127.0.0.1:0".parse().unwrap(), Limits::default()).await.unwrap()
}

/// What of an answer the specification says something about.
#[derive(Debug, PartialEq)]
struct Answer {
    status: u16,
    code: String,
    headers: BTreeMap<&'static str, String>,
    body: Digest,
}

async fn ask(host: &str, method: Method, path: &str, headers: &[(&'static str, String)]) -> Answer {
    let mut request = reqwest::Client::builder().no_proxy().build().unwrap().request(method, format!("http://{host}{path}"));
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let kept =
        ["content-type", "content-length", "content-range", "docker-content-digest", "link", "docker-distribution-api-version"];
    let of = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let headers = kept.into_iter().filter_map(|name| Some((name, of(name)?))).collect();
    // The peer cuts one of its answers short.
    let body = response.bytes().await.unwrap_or_else(|_| "cut off".into());
    let document: Value = serde_json::from_slice(&body).unwrap_or_default();
    let code = document.pointer("/errors/0/code").and_then(Value::as_str).unwrap_or_default().to_owned();
    Answer { status, code, headers, body: Digest::of(&body) }
}

struct Case {
    name: &'static str,
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    status: u16,
    code: &'static str,
    header: Option<(&'static str, String)>,
}

/// Cases of the specification's pull, content discovery and error sections.
fn cases(contents: &Contents) -> Vec<Case> {
    let entry =
        contents.artifacts.iter().find(|entry| entry.repository == NAME && entry.tag.as_deref() == Some("1.3.0")).unwrap();
    let manifest = contents.blobs[&entry.digest].read(1 << 20, "manifest").unwrap();
    let document: Value = serde_json::from_slice(&manifest).unwrap();
    let top = document.pointer("/manifests/0/digest").or_else(|| document.pointer("/config/digest")).unwrap().as_str().unwrap();
    let below: Value = serde_json::from_slice(&contents.blobs[&top.parse().unwrap()].read(1 << 20, "manifest").unwrap()).unwrap();
    let layer = below.pointer("/layers/0").unwrap();
    let (blob, size) = (layer["digest"].as_str().unwrap().to_owned(), layer["size"].as_u64().unwrap());
    let none = Digest::of(b"nobody has this").to_string();
    let accept = ("accept", "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json".to_owned());
    let digest_header = || Some(("docker-content-digest", entry.digest.to_string()));
    let case = |name, method, path: String, status, code| Case {
        name,
        method,
        path,
        headers: vec![accept.clone()],
        status,
        code,
        header: None,
    };
    let ranged = |name, range: &str, status, header| Case {
        headers: vec![("range", range.to_owned())],
        header,
        ..case(name, Method::GET, format!("/v2/{NAME}/blobs/{blob}"), status, if status == 416 { "SIZE_INVALID" } else { "" })
    };
    let with = |case: Case, header| Case { header, ..case };
    let (manifests, blobs) = (format!("/v2/{NAME}/manifests"), format!("/v2/{NAME}/blobs"));
    let mut cases = vec![
        with(case("base", Method::GET, "/v2/".into(), 200, ""), Some(("docker-distribution-api-version", "registry/2.0".into()))),
        case("base-head", Method::HEAD, "/v2/".into(), 200, ""),
        with(case("manifest-by-tag", Method::GET, format!("{manifests}/1.3.0"), 200, ""), digest_header()),
        with(case("manifest-by-tag-head", Method::HEAD, format!("{manifests}/1.3.0"), 200, ""), digest_header()),
        with(case("manifest-by-digest", Method::GET, format!("{manifests}/{}", entry.digest), 200, ""), digest_header()),
        with(case("manifest-by-digest-head", Method::HEAD, format!("{manifests}/{}", entry.digest), 200, ""), digest_header()),
        with(
            case("manifest-length", Method::HEAD, format!("{manifests}/{}", entry.digest), 200, ""),
            Some(("content-length", manifest.len().to_string())),
        ),
        case("manifest-unknown-tag", Method::GET, format!("{manifests}/0.0.0"), 404, "MANIFEST_UNKNOWN"),
        case("manifest-unknown-tag-head", Method::HEAD, format!("{manifests}/0.0.0"), 404, ""),
        case("manifest-unknown-digest", Method::GET, format!("{manifests}/{none}"), 404, "MANIFEST_UNKNOWN"),
        case("manifest-bad-reference", Method::GET, format!("{manifests}/.hidden"), 404, "MANIFEST_UNKNOWN"),
        case("manifest-unknown-name", Method::GET, "/v2/nobody/has/this/manifests/1".into(), 404, "MANIFEST_UNKNOWN"),
        case("blob", Method::GET, format!("{blobs}/{blob}"), 200, ""),
        with(case("blob-head", Method::HEAD, format!("{blobs}/{blob}"), 200, ""), Some(("content-length", size.to_string()))),
        with(
            case("blob-digest", Method::HEAD, format!("{blobs}/{blob}"), 200, ""),
            Some(("docker-content-digest", blob.clone())),
        ),
        case("blob-unknown", Method::GET, format!("{blobs}/{none}"), 404, "BLOB_UNKNOWN"),
        case("blob-unknown-head", Method::HEAD, format!("{blobs}/{none}"), 404, ""),
        case("blob-unknown-name", Method::GET, format!("/v2/nobody/has/this/blobs/{none}"), 404, "BLOB_UNKNOWN"),
        case("blob-bad-digest", Method::GET, format!("{blobs}/sha256:00"), 400, "DIGEST_INVALID"),
        ranged("range-start", "bytes=0-9", 206, Some(("content-range", format!("bytes 0-9/{size}")))),
        ranged("range-rest", "bytes=10-", 206, Some(("content-range", format!("bytes 10-{}/{size}", size - 1)))),
        ranged("range-end", "bytes=-5", 206, Some(("content-range", format!("bytes {}-{}/{size}", size - 5, size - 1)))),
        ranged("range-outside", &format!("bytes={size}-"), 416, Some(("content-range", format!("bytes */{size}")))),
        case("tags", Method::GET, format!("/v2/{NAME}/tags/list"), 200, ""),
        with(
            case("tags-first", Method::GET, format!("/v2/{NAME}/tags/list?n=1"), 200, ""),
            Some(("link", format!("</v2/{NAME}/tags/list?last=1.2.0&n=1>; rel=\"next\""))),
        ),
        case("tags-next", Method::GET, format!("/v2/{NAME}/tags/list?n=1&last=1.2.0"), 200, ""),
        case("tags-none", Method::GET, format!("/v2/{NAME}/tags/list?n=0"), 200, ""),
        case("tags-after-the-last", Method::GET, format!("/v2/{NAME}/tags/list?last=zzz"), 200, ""),
        case("tags-bad-number", Method::GET, format!("/v2/{NAME}/tags/list?n=many"), 400, "PAGINATION_NUMBER_INVALID"),
        case("tags-unknown-name", Method::GET, "/v2/nobody/has/this/tags/list".into(), 404, "NAME_UNKNOWN"),
        case("catalog", Method::GET, "/v2/_catalog".into(), 200, ""),
        case("catalog-first", Method::GET, "/v2/_catalog?n=2".into(), 200, ""),
        case("referrers", Method::GET, format!("/v2/{NAME}/referrers/{}", entry.digest), 200, ""),
        case("referrers-unknown", Method::GET, format!("/v2/{NAME}/referrers/{none}"), 200, ""),
        case("referrers-bad-digest", Method::GET, format!("/v2/{NAME}/referrers/sha256:00"), 400, "DIGEST_INVALID"),
        case("elsewhere", Method::GET, "/v2/nothing".into(), 404, "UNSUPPORTED"),
    ];
    for (name, method, path) in [
        ("put-manifest", Method::PUT, format!("{manifests}/1.3.0")),
        ("delete-manifest", Method::DELETE, format!("{manifests}/{}", entry.digest)),
        ("start-upload", Method::POST, format!("{blobs}/uploads/")),
    ] {
        cases.push(case(name, method, path, 405, "UNSUPPORTED"));
    }
    cases
}

/// Where Debian's registry answers otherwise, and why ours does not (docs/differences.md).
const DIFFERENT: &[(&str, &str)] = &[
    ("manifest-bad-reference", "a page that is not found, without an error of the specification"),
    ("range-outside", "says the blob's whole length and cuts the answer off"),
    ("tags-first", "2.8 does not page tags"),
    ("tags-next", "the same"),
    ("tags-none", "the same"),
    ("tags-after-the-last", "the same"),
    ("tags-bad-number", "the same"),
    ("referrers", "2.8 does not know referrers"),
    ("referrers-unknown", "the same"),
    ("referrers-bad-digest", "the same"),
    ("elsewhere", "a page that is not found, without an error of the specification"),
];

/// Every case against ours as the specification has it, and against a real registry with the same content.
#[tokio::test]
async fn show_04_registry() {
    let contents = corpus();
    let (ours, real) = (started(contents.clone()).await, RealRegistry::start().await);
    let mut options = offline();
    options.plain_http.insert(real.host.clone());
    push(&contents, &RepositoryRef::parse(&real.host).unwrap(), &Registries::new(&options).unwrap()).await.unwrap();

    let host = ours.address().to_string();
    let cases = cases(&contents);
    let (mut same, mut wrong) = (0, Vec::new());
    for case in &cases {
        let answer = ask(&host, case.method.clone(), &case.path, &case.headers).await;
        let header_is_right = case.header.as_ref().is_none_or(|(name, value)| answer.headers.get(name) == Some(value));
        if answer.status != case.status || answer.code != case.code || !header_is_right {
            wrong.push(format!("{}: {answer:?}", case.name));
        }
        if !matches!(case.method, Method::GET | Method::HEAD) {
            continue;
        }
        let peer = ask(&real.host, case.method.clone(), &case.path, &case.headers).await;
        let is_known = DIFFERENT.iter().any(|(name, _)| *name == case.name);
        if comparable(&answer) == comparable(&peer) {
            same += 1;
            if is_known {
                wrong.push(format!("{} is listed as different and is not", case.name));
            }
        } else if !is_known {
            wrong.push(format!("{}: ours {answer:?}\n  the peer's {peer:?}", case.name));
        }
    }
    eprintln!(
        "SHOW 04 registry {}/{} by the specification, {same} of them as docker-registry answers",
        cases.len() - wrong.len(),
        cases.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    ours.stop().await;
}

/// The words of an error's message are each registry's own; so is the length of a body with them.
fn comparable(answer: &Answer) -> (u16, &str, BTreeMap<&'static str, &str>, Option<&Digest>) {
    let is_error = answer.status >= 400;
    let mut headers: BTreeMap<_, _> = answer.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    if is_error || headers.get("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        headers.remove("content-length");
        headers.remove("content-type");
    }
    (answer.status, &answer.code, headers, (!is_error).then_some(&answer.body))
}

/// Our own client resolves from it what it resolves from the archive.
#[tokio::test]
async fn a_channel_is_resolved_from_it() {
    let serving = started(corpus()).await;
    let host = serving.address().to_string();
    let mut options = offline();
    options.plain_http.insert(host.clone());
    let channel = "acme.example/releasechannel/stable:2026.11.0";
    let source = SourceRef::parse(&format!("{host}//{channel}")).unwrap();
    let served = resolve(&source, &Selection::default(), &options).await.unwrap();
    let archive = format!("ctf::{}//{channel}", data().join("ocm/ctf/v2-byval").display());
    let archive = resolve(&SourceRef::parse(&archive).unwrap(), &Selection::default(), &offline()).await.unwrap();
    assert_eq!(served.lock.components, archive.lock.components);
    assert_eq!(served.rgds, archive.rgds);
    served.verify_resources().await.unwrap();
}

/// Bytes that are not what they are called are never served to their end.
#[tokio::test]
async fn a_damaged_blob_is_cut_off() {
    let mut contents = corpus();
    let digest = Digest::of(b"right");
    contents.blobs.insert(digest.clone(), crate::ctf::Payload::Bytes("wrong".into()));
    let serving = started(contents).await;
    let url = format!("http://{}/v2/{NAME}/blobs/{digest}", serving.address());
    let read = async { reqwest::Client::builder().no_proxy().build().unwrap().get(url).send().await?.bytes().await };
    let read = read.await;
    assert!(read.as_ref().map_or(true, |bytes| bytes.as_ref() != b"right"), "{read:?}");
    let mut options = offline();
    options.limits.attempts = 1;
    options.plain_http.insert(serving.address().to_string());
    let image = crate::ImageReference::parse(&format!("{}/{NAME}", serving.address())).unwrap();
    let (store, repository) = Registries::new(&options).unwrap().locate(&image).unwrap();
    assert!(store.blob(&repository, &digest).await.unwrap().drain().await.is_err());
    assert!(store.manifest(&repository, &Pointer::Digest(digest)).await.is_err());
}

#[tokio::test]
async fn it_stops_when_it_is_dropped() {
    let serving = started(corpus()).await;
    let address = serving.address();
    drop(serving);
    for _ in 0..100 {
        if tokio::net::TcpStream::connect(address).await.is_err() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("it still listens");
}
