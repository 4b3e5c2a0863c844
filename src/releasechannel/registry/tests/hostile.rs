//! Registries that lie, stall, send us elsewhere, or are only busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::image::ImageReference;
use crate::repository::{ArtifactStore, Pointer};

fn store(stub: &Stub, options: Options) -> Arc<dyn ArtifactStore> {
    let mut options = options;
    options.plain_http.insert(stub.host.clone());
    let image = ImageReference::parse(&format!("{}/x", stub.host)).unwrap();
    Registries::new(&options).unwrap().locate(&image).unwrap().0
}

async fn blob(store: &Arc<dyn ArtifactStore>, digest: &Digest) -> Result<bytes::Bytes, RepositoryError> {
    store.blob("x", digest).await?.read(1 << 20).await
}

fn with_password(stub: &Stub) -> Options {
    let mut options = offline();
    options.credentials.insert(stub.host.clone(), Credential::Basic { user: "u".into(), password: "p".into() });
    options
}

#[tokio::test]
async fn a_blob_may_come_from_elsewhere_but_credentials_stay() {
    let content = b"from another host";
    let elsewhere = Stub::start(|_, _| http("200 OK", &[], content)).await;
    let target = format!("http://{}/data", elsewhere.host);
    let stub = Stub::start(move |seen, _| match seen.header("authorization") {
        Some(_) => http("307 Temporary Redirect", &[("location", &target)], b""),
        None => http("401 Unauthorized", &[("www-authenticate", "Basic realm=x")], b""),
    })
    .await;
    let read = blob(&store(&stub, with_password(&stub)), &Digest::of(content)).await.unwrap();
    assert_eq!(&read[..], content);
    assert!(stub.seen().last().unwrap().header("authorization").is_some());
    assert_eq!(elsewhere.seen().len(), 1);
    assert!(elsewhere.seen()[0].header("authorization").is_none());
}

#[tokio::test]
async fn with_a_mirror_and_for_manifests_no_redirect_leaves() {
    let elsewhere = Stub::start(|_, _| http("200 OK", &[], b"{}")).await;
    let target = format!("http://{}/data", elsewhere.host);
    let stub = Stub::start(move |_, _| http("302 Found", &[("location", &target)], b"")).await;
    let error = store(&stub, offline()).manifest("x", &Pointer::Tag("1".into())).await.unwrap_err();
    assert!(error.to_string().contains("redirects to another host"), "{error}");
    let mirrored = Options { mirror: Some(stub.host.clone()), ..offline() };
    let error = blob(&store(&stub, mirrored), &Digest::of(b"x")).await.unwrap_err();
    assert!(error.to_string().contains("redirects to another host"), "{error}");
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn with_a_mirror_no_other_host_is_asked() {
    let registries = |mirror: &str| Registries::new(&Options { mirror: Some(mirror.into()), ..offline() }).unwrap();
    let place = |mirror: &str, image: &str| {
        let (store, repository) = registries(mirror).locate(&ImageReference::parse(image).unwrap()).unwrap();
        format!("{}/{repository}", store.place())
    };
    assert_eq!(place("mirror.example", "ghcr.io/a/b:1"), "mirror.example/a/b");
    assert_eq!(place("mirror.example/x", "ghcr.io/a/b:1"), "mirror.example/x/a/b");
    assert_eq!(place("http://mirror.example/x/", "mirror.example/x/a/b:1"), "mirror.example/x/a/b");
    let error = registries("mirror.example/x").of_host("ghcr.io", false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("mirror.example"), "{error}");
}

#[tokio::test]
async fn other_bytes_are_refused_as_blob_and_as_manifest() {
    let stub = Stub::start(|_, _| http("200 OK", &[("content-type", "text/html")], b"<html>please log in</html>")).await;
    let store = store(&stub, offline());
    let wanted = Digest::of(b"wanted");
    let errors =
        [blob(&store, &wanted).await.unwrap_err(), store.manifest("x", &Pointer::Digest(wanted.clone())).await.unwrap_err()];
    for error in errors {
        assert!(matches!(&error, RepositoryError::Digest { expected, .. } if *expected == wanted), "{error}");
    }
    let error = store.manifest("x", &Pointer::Tag("1".into())).await.unwrap_err();
    assert!(matches!(error, RepositoryError::Malformed { .. }), "{error}");
}

#[tokio::test]
async fn a_manifest_that_is_not_what_the_registry_says_is_refused() {
    let said = Digest::of(b"something else").to_string();
    let stub = Stub::start(move |_, _| http("200 OK", &[("docker-content-digest", &said)], b"{}")).await;
    let error = store(&stub, offline()).manifest("x", &Pointer::Tag("1".into())).await.unwrap_err();
    assert!(matches!(error, RepositoryError::Digest { .. }), "{error}");
}

#[tokio::test]
async fn bodies_are_bounded_whatever_their_header_says() {
    let huge = Stub::start(|_, _| b"HTTP/1.1 200 OK\r\ncontent-length: 2147483648\r\n\r\n{}".to_vec()).await;
    let endless = Stub::start(|_, _| {
        let mut answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
        answer.resize(9 << 20, b' ');
        answer
    })
    .await;
    for stub in [&huge, &endless] {
        let error = store(stub, offline()).manifest("x", &Pointer::Tag("1".into())).await.unwrap_err();
        assert!(matches!(error, RepositoryError::Limit { .. }), "{error}");
        let error = blob(&store(stub, offline()), &Digest::of(b"x")).await.unwrap_err();
        assert!(matches!(error, RepositoryError::Limit { .. }), "{error}");
    }
}

#[tokio::test]
async fn waits_as_long_as_it_is_told_to_and_tries_again() {
    let stub = Stub::start(|_, count| match count {
        1 => http("429 Too Many Requests", &[("retry-after", "0")], b""),
        2 => http("503 Service Unavailable", &[], b""),
        _ => http("200 OK", &[], b"content"),
    })
    .await;
    assert_eq!(&blob(&store(&stub, offline()), &Digest::of(b"content")).await.unwrap()[..], b"content");
    assert_eq!(stub.seen().len(), 3);
}

#[tokio::test]
async fn gives_up_after_its_attempts_and_says_so() {
    let stub = Stub::start(|_, _| http("503 Service Unavailable", &[], b"")).await;
    let error = blob(&store(&stub, offline()), &Digest::of(b"content")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(stub.seen().len(), 4);
}

#[tokio::test]
async fn a_broken_download_goes_on_where_it_stopped() {
    for knows_ranges in [true, false] {
        let content: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let digest = Digest::of(&content);
        let stub = Stub::start(move |seen, count| {
            let all = content.clone();
            if count == 1 {
                let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", all.len()).into_bytes();
                answer.extend_from_slice(&all[..60_000]);
                return answer;
            }
            let range = seen.header("range").unwrap().to_owned();
            let from: usize = range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap();
            if knows_ranges {
                let header = format!("bytes {from}-{}/{}", all.len() - 1, all.len());
                http("206 Partial Content", &[("content-range", &header)], &all[from..])
            } else {
                http("200 OK", &[], &all)
            }
        })
        .await;
        assert_eq!(blob(&store(&stub, offline()), &digest).await.unwrap().len(), 100_000);
        assert_eq!(stub.seen().len(), 2);
    }
}

#[tokio::test]
async fn gets_a_token_and_keeps_it_for_its_repository() {
    let token_requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&token_requests);
    let stub = Stub::start(move |seen, _| {
        let host = seen.header("host").unwrap().to_owned();
        if seen.path.starts_with("/token") {
            counter.fetch_add(1, Ordering::SeqCst);
            assert!(seen.header("authorization").unwrap().starts_with("Basic "));
            assert!(seen.path.contains("service=s") && seen.path.contains("repository%3Ax%3Apull"), "{}", seen.path);
            return http("200 OK", &[], br#"{"access_token": "t0ken"}"#);
        }
        if seen.header("authorization") == Some("Bearer t0ken") {
            return http("200 OK", &[], b"content");
        }
        let challenge = format!(r#"Bearer realm="http://{host}/token",service="s",scope="repository:x:pull""#);
        http("401 Unauthorized", &[("www-authenticate", &challenge)], b"")
    })
    .await;
    let store = store(&stub, with_password(&stub));
    for _ in 0..3 {
        blob(&store, &Digest::of(b"content")).await.unwrap();
    }
    assert_eq!(token_requests.load(Ordering::SeqCst), 1);
    assert_eq!(stub.seen().len(), 5);
}

/// That the registry may be asked without encryption says nothing of another host: no login goes there in the clear.
#[tokio::test]
async fn a_login_goes_to_no_other_host_without_encryption() {
    let other = Stub::start(|_, _| http("200 OK", &[], br#"{"token": "t0ken"}"#)).await;
    let challenge = format!(r#"Bearer realm="http://{}/token",service="s""#, other.host);
    let stub = Stub::start(move |seen, _| match seen.header("authorization") {
        Some("Bearer t0ken") => http("200 OK", &[], b"content"),
        _ => http("401 Unauthorized", &[("www-authenticate", &challenge)], b""),
    })
    .await;
    let refused = blob(&store(&stub, with_password(&stub)), &Digest::of(b"content")).await.unwrap_err();
    assert!(refused.to_string().contains("not one that credentials may be sent to"), "{refused}");
    assert_eq!(other.seen().len(), 0);
    let mut named = with_password(&stub);
    named.plain_http.insert(other.host.clone());
    blob(&store(&stub, named), &Digest::of(b"content")).await.unwrap();
}

/// A token service may be as busy as a registry; one that stays so is no refusal.
#[tokio::test]
async fn a_busy_token_service_is_asked_again() {
    for (busy, is_read) in [(2, true), (100, false)] {
        let asked = AtomicUsize::new(0);
        let stub = Stub::start(move |seen, _| {
            let host = seen.header("host").unwrap();
            let challenge = format!(r#"Bearer realm="http://{host}/token",service="s",scope="repository:x:pull""#);
            match (seen.path.starts_with("/token"), seen.header("authorization")) {
                (true, _) if asked.fetch_add(1, Ordering::SeqCst) < busy => {
                    http("429 Too Many Requests", &[("retry-after", "0")], b"")
                }
                (true, _) => http("200 OK", &[], br#"{"token": "t0ken"}"#),
                (false, Some("Bearer t0ken")) => http("200 OK", &[], b"content"),
                (false, _) => http("401 Unauthorized", &[("www-authenticate", &challenge)], b""),
            }
        })
        .await;
        let read = blob(&store(&stub, offline()), &Digest::of(b"content")).await;
        assert_eq!(read.is_ok(), is_read, "{read:?}");
        assert!(is_read || matches!(read, Err(RepositoryError::Unavailable { attempts: 4, .. })), "{read:?}");
    }
}

#[tokio::test]
async fn a_registry_that_never_lets_us_in_is_not_asked_for_ever() {
    let stub = Stub::start(|_, _| http("401 Unauthorized", &[("www-authenticate", "Basic realm=x")], b"")).await;
    let error = blob(&store(&stub, with_password(&stub)), &Digest::of(b"x")).await.unwrap_err();
    assert!(matches!(error, RepositoryError::Denied { .. }), "{error}");
    assert!(stub.seen().len() <= 3);
}

/// Pages of 100 with links, as in ocm#1468.
#[tokio::test]
async fn reads_all_pages_of_tags() {
    let stub = Stub::start(|seen, _| {
        let from: usize = seen.path.split("last=").nth(1).map_or(0, |text| text.parse().unwrap());
        let tags: Vec<String> = (from..(from + 100).min(101)).map(|n| format!("\"1.{n}.0\"")).collect();
        let body = format!(r#"{{"name": "x", "tags": [{}]}}"#, tags.join(","));
        let link = format!("</v2/x/tags/list?n=100&last={}>; rel=\"next\"", from + 100);
        let headers: &[(&str, &str)] = if from == 0 { &[("link", &link)] } else { &[] };
        http("200 OK", headers, body.as_bytes())
    })
    .await;
    assert_eq!(store(&stub, offline()).tags("x").await.unwrap().len(), 101);
    assert_eq!(stub.seen().len(), 2);
}

#[tokio::test]
async fn pages_that_lead_elsewhere_or_nowhere_are_refused() {
    for link in ["<http://127.0.0.1:1/v2/x/tags/list>; rel=\"next\"", "</v2/x/tags/list?n=1000>; rel=\"next\""] {
        let stub = Stub::start(move |_, _| http("200 OK", &[("link", link)], br#"{"tags": ["1"]}"#)).await;
        let error = store(&stub, offline()).tags("x").await.unwrap_err();
        assert!(matches!(error, RepositoryError::Malformed { .. }), "{error}");
    }
}

/// Pages that come again, bring nothing, or have no end.
#[tokio::test]
async fn pages_without_end_are_named() {
    let pages = |next: fn(usize) -> usize, tags: fn(usize) -> String| {
        Stub::start(move |_, count| {
            let link = format!("</v2/x/tags/list?last={}>; rel=\"next\"", next(count));
            http("200 OK", &[("link", &link)], format!(r#"{{"tags": [{}]}}"#, tags(count)).as_bytes())
        })
    };
    let one: fn(usize) -> String = |count| format!("\"1.{count}.0\"");
    for (stub, words, most) in [
        (pages(|count| count % 3, one).await, "a page that was read already", 4),
        (pages(|count| count, |_| String::new()).await, "without bringing anything new", 12),
        (pages(|count| count, |_| "\"1.0.0\"".to_owned()).await, "without bringing anything new", 13),
        (pages(|count| count, one).await, "over the limit of 1000 pages", 1000),
    ] {
        let error = store(&stub, offline()).tags("x").await.unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("tags of x"), "{error}");
        assert!(stub.seen().len() <= most, "{words}: {}", stub.seen().len());
    }
    let mut options = offline();
    options.limits.tags = 100;
    let many = pages(|count| count, one).await;
    let error = store(&many, options).tags("x").await.unwrap_err();
    assert!(matches!(error, RepositoryError::Limit { limit: 100, unit: "tags", .. }), "{error}");
}

/// What answers in plain HTTP is not asked again, and not asked without TLS unless somebody says so.
#[tokio::test]
async fn a_registry_without_tls_is_named_with_the_switch() {
    // The first bytes of TLS are no request, and are answered as a server of plain HTTP does.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let _hello = stream.read(&mut [0; 4096]).await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
    });
    let source = SourceRef::parse(&format!("{host}//acme.example/x:1.0.0")).unwrap();
    let error = resolve(&source, &Selection::default(), &offline()).await.unwrap_err();
    assert!(error.to_string().contains("plain HTTP, without TLS") && error.to_string().contains(&host), "{error}");
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.hint().unwrap().contains("--plain-http"), "{error}");
    task.abort();
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let stub = Stub::start(|_, _| http("307 Temporary Redirect", &[("location", "/v2/x/blobs/again")], b"")).await;
    let error = blob(&store(&stub, offline()), &Digest::of(b"x")).await.unwrap_err();
    assert!(matches!(&error, RepositoryError::Malformed { reason, .. } if reason.contains("redirects more than")), "{error}");
    assert!(stub.seen().len() <= 6);
}

/// A length that is too small cuts the answer, one that is too large never comes to its end: neither is taken for the blob.
#[tokio::test]
async fn lies_about_length_are_not_believed() {
    let content = b"all of the content";
    for said in [5, 500] {
        let stub = Stub::start(move |_, _| {
            let mut answer = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {said}\r\n\r\n").into_bytes();
            answer.extend_from_slice(content);
            answer
        })
        .await;
        let error = blob(&store(&stub, offline()), &Digest::of(content)).await.unwrap_err();
        assert!(matches!(error, RepositoryError::Digest { .. } | RepositoryError::Unavailable { .. }), "{said}: {error}");
        let error = store(&stub, offline()).manifest("x", &Pointer::Digest(Digest::of(content))).await.unwrap_err();
        assert!(matches!(error, RepositoryError::Digest { .. } | RepositoryError::Unavailable { .. }), "{said}: {error}");
        assert!(stub.seen().len() <= 8, "{}", stub.seen().len());
    }
}

/// A connection that breaks each time is taken up again only so often.
/// Small answers have no middle to go on from: they are asked for again.
#[tokio::test]
async fn a_small_answer_that_breaks_is_asked_for_again() {
    for (breaks, is_read) in [(2, true), (100, false)] {
        let stub = Stub::start(move |_, count| match count {
            count if count <= breaks => b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{".to_vec(),
            _ => http("200 OK", &[], br#"{"tags": ["1.0.0"], "layers": []}"#),
        })
        .await;
        let manifest = store(&stub, offline()).manifest("x", &Pointer::Tag("1".into())).await;
        assert_eq!(manifest.is_ok(), is_read, "{manifest:?}");
        assert!(is_read || matches!(manifest, Err(RepositoryError::Unavailable { attempts: 4, .. })), "{manifest:?}");
        assert_eq!(stub.seen().len(), if is_read { 3 } else { 4 });
    }
}

#[tokio::test]
async fn a_download_that_always_breaks_is_given_up() {
    let stub = Stub::start(|_, _| b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nx".to_vec()).await;
    let error = blob(&store(&stub, offline()), &Digest::of(b"x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(stub.seen().len() <= 4, "{}", stub.seen().len());
}

#[tokio::test]
async fn what_follows_json_and_what_is_none_are_refused() {
    for body in [&b"{\"tags\": [\"1\"]}\"x\":1}]}"[..], b"<html>please log in</html>", b"[\"1\"]", b""] {
        let stub = Stub::start(move |_, _| http("200 OK", &[("content-type", "application/json")], body)).await;
        let error = store(&stub, offline()).tags("x").await.unwrap_err();
        assert!(matches!(error, RepositoryError::Malformed { .. }), "{error}");
        let error = store(&stub, offline()).manifest("x", &Pointer::Tag("1".into())).await.unwrap_err();
        assert!(matches!(error, RepositoryError::Malformed { .. }), "{error}");
    }
}

/// A server whose answers never end: a byte now and then.
async fn dripping() -> (String, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                use tokio::io::{AsyncReadExt, AsyncWriteExt};
                let _request = stream.read(&mut [0; 4096]).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n").await.unwrap();
                while stream.write_all(b" ").await.is_ok() {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
            });
        }
    });
    (host, task)
}

/// A byte now and then keeps a connection alive for ever; an answer has a time of its own.
#[tokio::test]
async fn an_answer_that_drips_ends() {
    let (host, dripping) = dripping().await;
    let mut options = plain(&host);
    options.limits.answer_time = std::time::Duration::from_millis(300);
    let image = ImageReference::parse(&format!("{host}/x")).unwrap();
    let store = Registries::new(&options).unwrap().locate(&image).unwrap().0;
    let error = store.manifest("x", &Pointer::Tag("1".into())).await.unwrap_err();
    assert!(matches!(&error, RepositoryError::Unavailable { cause, .. } if cause.contains("did not end")), "{error}");
    dripping.abort();
}

/// So does a blob, and a file by URL: a part of it must come in a time, and the whole of it in another.
#[tokio::test]
async fn a_body_that_drips_ends_and_is_named() {
    let (host, dripping) = dripping().await;
    let time = std::time::Duration::from_millis;
    let digest = crate::Digest::of(b"blob");
    for (slow, answer, words) in [(time(200), time(60_000), "too slow"), (time(60_000), time(300), "did not end within 0.3 s")] {
        let mut options = plain(&host);
        (options.limits.slow_time, options.limits.answer_time) = (slow, answer);
        let image = ImageReference::parse(&format!("{host}/x")).unwrap();
        let registries = Registries::new(&options).unwrap();
        let blob = registries.locate(&image).unwrap().0.blob("x", &digest).await.unwrap();
        let error = blob.drain().await.unwrap_err().to_string();
        assert!(error.contains(words) && error.contains(digest.as_str()), "{error}");
        let access = serde_json::json!({"type": "wget", "url": format!("http://{host}/file")});
        let mut contents = Contents::default();
        let resource =
            serde_json::json!({"name": "file", "version": "1", "type": "blob", "relation": "external", "access": access});
        crate::testing::add(&mut contents, "acme.example/slow", "1.0.0", serde_json::json!({"resources": [resource]}));
        let folder = tempfile::tempdir().unwrap();
        contents.write(&folder.path().join("ctf"), crate::Format::Folder).unwrap();
        let source = SourceRef::parse(&format!("ctf::{}//acme.example/slow:1.0.0", folder.path().join("ctf").display())).unwrap();
        let channel = crate::resolve::inspect(&source, &Selection::default(), &options).await.unwrap();
        let error = channel.fetch(&channel.root, "file").await.unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("resource file of acme.example/slow:1.0.0"), "{error}");
    }
    dripping.abort();
}

/// A redirect to what no registry is at is said as that.
#[tokio::test]
async fn a_redirect_to_a_file_is_named() {
    let stub = Stub::start(|_, _| http("307 Temporary Redirect", &[("location", "file:///etc/passwd")], b"")).await;
    let error = blob(&store(&stub, offline()), &Digest::of(b"x")).await.unwrap_err();
    assert!(error.to_string().contains("redirects to a file: URL, where no registry is"), "{error}");
}

/// Nobody waits a day without a word: the host's own word is the answer, after one request.
#[tokio::test]
async fn a_pause_that_nobody_waits_for_is_said_at_once() {
    let stub = Stub::start(|_, _| http("429 Too Many Requests", &[("retry-after", "86400")], b"")).await;
    let error = resolve_at(&stub.host, "", &plain(&stub.host)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let words = "it answered 429 Too Many Requests and asks for a pause of 86400 s";
    assert!(error.to_string().contains(words) && error.to_string().contains("run the same command again then"), "{error}");
    assert_eq!(stub.seen().len(), 1);
}
