mod budget;
mod hostile;
mod logins;
mod proxy;
mod sent;

use super::*;
use crate::ctf::Contents;
use crate::error::{ErrorKind, ResolveError};
use crate::options::Credential;
use crate::resolve::resolve;
use crate::selection::Selection;
use crate::source::{RepositoryRef, SourceRef};
use crate::testing::{RealRegistry, Stub, data, http, offline, serving};

const CHANNEL: &str = "acme.example/releasechannel/stable:2026.11.0";

fn corpus(name: &str) -> Contents {
    Contents::open(&data().join("ocm/ctf").join(name), &offline().limits).unwrap()
}

async fn resolve_at(host: &str, path: &str, options: &Options) -> Result<crate::Channel, ResolveError> {
    let source = SourceRef::parse(&format!("{host}{path}//{CHANNEL}")).unwrap();
    resolve(&source, &Selection::default(), options).await
}

fn plain(host: &str) -> Options {
    let mut options = offline();
    options.plain_http.insert(host.to_owned());
    options
}

/// Channel → registry → lock: the same components, digests and RGDs as in the archive, for archives of both OCM tools.
#[tokio::test]
async fn what_was_pushed_is_resolved_as_from_the_archive() {
    let registry = RealRegistry::start().await;
    let options = plain(&registry.host);
    for name in ["v1", "v2", "v2-byval"] {
        let contents = corpus(name);
        let target = RepositoryRef::parse(&format!("{}/{name}", registry.host)).unwrap();
        let pushed = push(&contents, &target, &Registries::new(&options).unwrap()).await.unwrap();
        assert!(pushed.manifests > 0 && pushed.blobs > 0, "{pushed:?}");
        let tags = contents.artifacts.iter().filter(|entry| entry.tag.is_some()).count();
        assert_eq!((pushed.tags, pushed.tags_unchanged), (tags, 0), "{name}");
        let again = push(&contents, &target, &Registries::new(&options).unwrap()).await.unwrap();
        assert_eq!((again.blobs, again.skipped), (0, pushed.blobs + pushed.skipped), "{name}");
        assert_eq!((again.manifests, again.unchanged), (0, pushed.manifests + pushed.unchanged), "{name}");
        assert_eq!((again.tags, again.tags_unchanged), (0, tags), "{name}");

        let from_registry = resolve_at(&registry.host, &format!("/{name}"), &options).await.unwrap();
        let archive = format!("ctf::{}//{CHANNEL}", data().join("ocm/ctf").join(name).display());
        let from_archive = resolve(&SourceRef::parse(&archive).unwrap(), &Selection::default(), &offline()).await.unwrap();
        assert_eq!(from_registry.lock.components, from_archive.lock.components, "{name}");
        assert_eq!(from_registry.rgds, from_archive.rgds, "{name}");
        assert_eq!(from_registry.rgds.len(), 5, "{name}");
    }
}

#[tokio::test]
async fn finds_the_highest_version_of_a_range() {
    let registry = RealRegistry::start().await;
    let options = plain(&registry.host);
    let target = RepositoryRef::parse(&registry.host).unwrap();
    push(&corpus("v1"), &target, &Registries::new(&options).unwrap()).await.unwrap();
    for (range, expected) in
        [("", "1.3.0"), (":~1.2", "1.2.0"), (":>=2.0.0-0", "2.0.0-rc.1+build.7"), (":2.0.0-rc.1+build.7", "2.0.0-rc.1+build.7")]
    {
        let source = SourceRef::parse(&format!("{}//acme.example/services/gateway{range}", registry.host)).unwrap();
        let channel = resolve(&source, &Selection::default(), &options).await.unwrap();
        assert_eq!(channel.root.version, expected, "{range}");
    }
    let source = SourceRef::parse(&format!("{}//acme.example/services/gateway:^7", registry.host)).unwrap();
    let error = resolve(&source, &Selection::default(), &options).await.unwrap_err();
    assert!(matches!(&error, ResolveError::NoVersion { there, .. } if there.len() == 3), "{error}");
}

#[tokio::test]
async fn logs_in_with_docker_configuration_and_never_says_the_password() {
    let registry = RealRegistry::with_password().await;
    let mut options = plain(&registry.host);
    options
        .credentials
        .insert(registry.host.clone(), Credential::Basic { user: "acme-user".into(), password: "acme-pass".into() });
    let target = RepositoryRef::parse(&registry.host).unwrap();
    push(&corpus("v1"), &target, &Registries::new(&options).unwrap()).await.unwrap();

    let mut from_docker = plain(&registry.host);
    let auth = "YWNtZS11c2VyOmFjbWUtcGFzcw==";
    from_docker.docker_config_texts = vec![format!(r#"{{"auths": {{"{}": {{"auth": "{auth}"}}}}}}"#, registry.host)];
    resolve_at(&registry.host, "", &from_docker).await.unwrap();

    let anonymous = resolve_at(&registry.host, "", &plain(&registry.host)).await.unwrap_err();
    let mut wrong = plain(&registry.host);
    wrong.credentials.insert(registry.host.clone(), Credential::Basic { user: "acme-user".into(), password: "hunter2".into() });
    let wrong = resolve_at(&registry.host, "", &wrong).await.unwrap_err();
    for error in [anonymous, wrong] {
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(!error.to_string().contains("hunter2") && error.to_string().contains(&registry.host), "{error}");
    }
}

#[tokio::test]
async fn trusts_only_what_it_is_told_to() {
    let registry = RealRegistry::with_tls().await;
    let mut options = offline();
    options.ca_files.push(registry.folder.path().join("ca.pem"));
    let target = RepositoryRef::parse(&registry.host).unwrap();
    push(&corpus("v1"), &target, &Registries::new(&options).unwrap()).await.unwrap();
    resolve_at(&registry.host, "", &options).await.unwrap();

    let error = resolve_at(&registry.host, "", &offline()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
    // Nothing is downgraded, in either direction.
    assert!(resolve_at(&registry.host, "", &plain(&registry.host)).await.is_err());
}

#[tokio::test]
async fn show_04_requests() {
    let stub = Stub::start(serving(corpus("v1"))).await;
    let channel = resolve_at(&stub.host, "", &plain(&stub.host)).await.unwrap();
    let components = channel.lock.components.len();
    let documents = channel.rgds.len();
    let requests = stub.seen().len();
    eprintln!("SHOW 04 requests {requests} for {components} component versions and {documents} RGDs");
    assert_eq!(components, 6);
    assert!(requests <= 2 * components + documents, "{requests}");
    let mut seen: Vec<String> = stub.seen().into_iter().map(|seen| seen.path).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), requests, "something was fetched twice");
}

#[tokio::test]
async fn says_unavailable_when_nobody_listens() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let error = resolve_at(&free, "", &plain(&free)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("attempts: 4"), "{error}");
}

/// A registry that takes what it is sent: damaged blobs are right afterwards, and that is counted.
#[tokio::test]
async fn what_is_damaged_is_sent_again_where_it_is_asked_for() {
    use std::sync::Mutex;
    let contents = corpus("v2-byval");
    let entry = contents.artifacts.iter().find(|entry| entry.tag.is_some() && entry.repository.ends_with("notifier")).unwrap();
    let few = Contents { artifacts: vec![entry.clone()], ..contents.clone() };
    let read = serving(contents.clone());
    let bytes = contents.blobs[&entry.digest].read(1 << 20, "index").unwrap();
    let index: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let manifest =
        contents.blobs[&index["manifests"][1]["digest"].as_str().unwrap().parse().unwrap()].read(1 << 20, "image").unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let layer = manifest["layers"][0]["digest"].as_str().unwrap().to_owned();
    let damaged = std::sync::Arc::new(Mutex::new(true));
    let (state, victim) = (std::sync::Arc::clone(&damaged), layer.clone());
    let stub = Stub::start(move |seen, count| {
        let method = seen.headers.split(' ').next().unwrap_or_default().to_owned();
        match method.as_str() {
            "POST" => http("202 Accepted", &[("location", "/v2/upload/1")], b""),
            "PUT" => {
                if seen.path.contains(&victim.replace(':', "%3A")) {
                    *state.lock().unwrap() = false;
                }
                http("201 Created", &[], b"")
            }
            "GET" if seen.path.ends_with(&victim) && *state.lock().unwrap() => http("200 OK", &[], b"other bytes"),
            "HEAD" => {
                let digest = seen.path.rsplit('/').next().unwrap_or_default();
                let digest = if digest.starts_with("sha256:") { digest } else { "" };
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ndocker-content-digest: {digest}\r\n\r\n").into_bytes()
            }
            _ => read(seen, count),
        }
    })
    .await;
    let (options, target) = (plain(&stub.host), RepositoryRef::parse(&stub.host).unwrap());
    let pushed = async |mend: bool| {
        push_by(&few, &target, &Registries::new(&options).unwrap(), PushRules { mend, move_tags: false }).await.unwrap()
    };
    let believed = pushed(false).await;
    assert_eq!((believed.blobs, believed.mended), (0, 0));
    let mended = pushed(true).await;
    assert_eq!((mended.blobs, mended.mended, mended.skipped), (1, 1, believed.skipped - 1), "{layer}");
    assert_eq!(pushed(true).await.mended, 0);
}
